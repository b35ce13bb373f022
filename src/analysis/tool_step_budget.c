/* SPDX-License-Identifier: Apache-2.0 */
/* steps: each step of each host and device. step_budget: where its time went. */
#include "analysis/step_budget.h"
#include "analysis/tool.h"

static struct cell host_cell(const struct trace *t)
{
    return t->host.n > 0 ? cell_text(t->host) : cell_unknown();
}

static struct cell part_cell(const struct budget_device *d, const struct budget_step *s,
                             enum budget_part p)
{
    return budget_part_known(d, p) ? cell_u64(s->part_ps[p]) : cell_unknown();
}

static const char *mark_of(const struct step_lane *lane)
{
    return lane == NULL ? "window" : step_mark_word(lane->mark);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void declare_steps(struct table *t)
{
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("name"), S("Name"), CELL_TEXT, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("duration_ps"), S("Duration"), CELL_U64, S("ps"));
    table_column(t, S("marked_ps"), S("Marked"), CELL_U64, S("ps"));
    table_column(t, S("compute_ps"), S("Compute"), CELL_U64, S("ps"));
    table_column(t, S("comm_exposed_ps"), S("Communication"), CELL_U64, S("ps"));
    table_column(t, S("copy_exposed_ps"), S("Copies"), CELL_U64, S("ps"));
    table_column(t, S("idle_ps"), S("Idle"), CELL_U64, S("ps"));
    table_column(t, S("complete"), S("Complete"), CELL_BOOL, S(""));
    table_column(t, S("marked_by"), S("Marked by"), CELL_TEXT, S(""));
    table_column(t, S("confidence"), S("Confidence"), CELL_TEXT, S(""));
}

static bool add_host(struct table *out, const struct budget_trace *t)
{
    const struct step_lane *lane = &t->lanes.items[0];
    if (lane->borrowed)
        return true; /* the host marked nothing */
    for (uint32_t i = 0; i < lane->n; i++) {
        const struct step_window *w = &lane->items[i];
        struct cell *row = table_row(out);
        if (row == NULL)
            return false;
        row[0] = host_cell(t->trace);
        row[2] = cell_i64(w->number);
        row[3] = w->name.n > 0 ? cell_text(w->name) : cell_unknown();
        row[4] = cell_u64(w->begin_ps + t->trace->shift_ps);
        row[5] = cell_u64(w->end_ps - w->begin_ps);
        row[6] = cell_u64(w->own_end_ps - w->begin_ps);
        row[11] = cell_bool(lane->n <= 2 || (i > 0 && i + 1 < lane->n));
        row[12] = cell_text(str_from(mark_of(lane)));
        row[13] = cell_text(str_from(step_mark_confidence(lane->mark, false)));
    }
    return true;
}

static bool add_device(struct table *out, const struct budget_device *d)
{
    for (uint32_t i = 0; i < d->n_steps; i++) {
        const struct budget_step *s = &d->steps[i];
        struct cell *row = table_row(out);
        if (row == NULL)
            return false;
        row[0] = host_cell(d->device->trace);
        row[1] = cell_text(d->device->name);
        row[2] = d->lane != NULL ? cell_i64(s->number) : cell_unknown();
        row[3] = s->name.n > 0 ? cell_text(s->name) : cell_unknown();
        row[4] = cell_u64(s->begin_ps + d->device->trace->shift_ps);
        row[5] = cell_u64(s->end_ps - s->begin_ps);
        if (d->lane != NULL && d->lane->items[i].own_end_ps > s->begin_ps)
            row[6] = cell_u64(d->lane->items[i].own_end_ps - s->begin_ps);
        row[7] = part_cell(d, s, BUDGET_COMPUTE);
        row[8] = part_cell(d, s, BUDGET_COMM);
        row[9] = part_cell(d, s, BUDGET_COPY);
        row[10] = cell_u64(budget_idle_ps(s));
        row[11] = cell_bool(s->is_complete);
        row[12] = cell_text(str_from(mark_of(d->lane)));
        row[13] = cell_text(str_from(budget_confidence(d)));
    }
    return true;
}

/* What the sums stand on, said once. */
static void add_notes(struct table *t, const struct step_budget *b)
{
    for (uint32_t i = 0; i < b->n_traces; i++) {
        const struct budget_trace *trace = &b->traces[i];
        if (trace->lanes.items[0].n > 0 && trace->lanes.items[0].counted)
            table_note(t, S("counted_steps"), 1,
                       "step numbers are missing or do not grow: counted from 0");
        if (trace->grouping.n_early > 0)
            table_note(t, S("early_work"), trace->grouping.n_early,
                       "work that begins before its launch: the clocks of host and device differ");
        if (trace->grouping.n_unlaunched > 0)
            table_note(t, S("unlaunched_work"), trace->grouping.n_unlaunched,
                       "work whose launch is not in the profile: why it began late is unknown");
    }
    for (uint32_t i = 0; i < b->work.n; i++)
        if (b->devices[i].lane == NULL)
            table_note(t, S("no_steps"), 1,
                       "a device without steps: all of its work is one window");
}

/* Each host and device has a row a step: rows are not steps. */
static void add_counts(struct table *t, const struct step_budget *b)
{
    uint64_t steps = 0, lanes = 0;
    for (uint32_t i = 0; i < b->n_traces; i++) {
        const uint32_t n = b->traces[i].lanes.items[0].n;
        steps = n > steps ? n : steps;
        lanes += n > 0;
    }
    for (uint32_t k = 0; k < b->work.n; k++) {
        const struct budget_device *d = &b->devices[k];
        if (d->lane == NULL)
            continue;
        steps = d->n_steps > steps ? d->n_steps : steps;
        lanes += d->n_steps > 0;
    }
    table_value(t, S("steps"), S("Steps"), steps > 0 ? cell_u64(steps) : cell_unknown(), S(""));
    table_value(t, S("lanes"), S("Hosts and devices with steps"), cell_u64(lanes), S(""));
}

static bool steps_run(const struct tool_request *r, struct arena *a, struct table **out,
                      struct err *e)
{
    struct step_budget b;
    struct table *t = *out = table_new(a, S("steps"), S("Steps"));
    if (t == NULL)
        return arena_full(a, e);
    if (!step_budget_of(r->profile, a, &b, e))
        return false;
    declare_steps(t);
    for (uint32_t i = 0; i < b.n_traces; i++) {
        if (!add_host(t, &b.traces[i]))
            return arena_full(a, e);
        for (uint32_t k = 0; k < b.work.n; k++)
            if (b.work.items[k].trace == b.traces[i].trace && !add_device(t, &b.devices[k]))
                return arena_full(a, e);
    }
    add_counts(t, &b);
    add_notes(t, &b);
    return true;
}

const struct tool_functions tool_steps = {.run = steps_run};

/* --- step_budget ------------------------------------------------------------------------------ */

static const struct {
    enum budget_part part;
    str ps, percent, title;
} columns[] = {
    {BUDGET_COMPUTE, STR_INIT("compute_ps"), STR_INIT("compute_percent"), STR_INIT("Compute")},
    {BUDGET_COMM, STR_INIT("comm_exposed_ps"), STR_INIT("comm_exposed_percent"),
     STR_INIT("Communication")},
    {BUDGET_COPY, STR_INIT("copy_exposed_ps"), STR_INIT("copy_exposed_percent"),
     STR_INIT("Copies")},
    {BUDGET_STARVED, STR_INIT("launch_starved_ps"), STR_INIT("launch_starved_percent"),
     STR_INIT("Starved")},
    {BUDGET_BLOCKED, STR_INIT("blocked_ps"), STR_INIT("blocked_percent"), STR_INIT("Blocked")},
    {BUDGET_LATENCY, STR_INIT("launch_latency_ps"), STR_INIT("launch_latency_percent"),
     STR_INIT("Launch latency")},
    {BUDGET_UNKNOWN, STR_INIT("unknown_ps"), STR_INIT("unknown_percent"),
     STR_INIT("Idle, why unknown")},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

/* Means of the complete steps of each device, as shares of the step. */
static struct table *devices_table(const struct step_budget *b, struct arena *a)
{
    struct table *t = table_new(a, S("step_budget"), S("Step budget"));
    if (t == NULL)
        return NULL;
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("complete_steps"), S("Steps"), CELL_U64, S(""));
    table_column(t, S("median_step_ps"), S("Median step"), CELL_U64, S("ps"));
    for (size_t i = 0; i < N_COLUMNS; i++)
        table_column(t, columns[i].percent, columns[i].title, CELL_F64, S("%"));
    table_column(t, S("idle_percent"), S("Idle"), CELL_F64, S("%"));
    table_column(t, S("confidence"), S("Confidence"), CELL_TEXT, S(""));
    for (uint32_t k = 0; k < b->work.n; k++) {
        const struct budget_device *d = &b->devices[k];
        const uint32_t n = budget_complete(d);
        double total = 0;
        for (int p = 0; p < BUDGET_PARTS; p++)
            total += budget_mean_ps(d, (enum budget_part)p);
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = host_cell(d->device->trace);
        row[1] = cell_text(d->device->name);
        row[2] = cell_u64(n);
        if (d->n_steps > 0)
            row[3] = cell_u64(budget_median_ps(d, a));
        double idle = 0;
        for (size_t i = 0; total > 0 && i < N_COLUMNS; i++) {
            const double mean = budget_mean_ps(d, columns[i].part);
            idle += columns[i].part >= BUDGET_STARVED ? mean : 0;
            if (budget_part_known(d, columns[i].part))
                row[4 + i] = cell_f64(100.0 * mean / total);
        }
        if (total > 0)
            row[4 + N_COLUMNS] = cell_f64(100.0 * idle / total);
        row[5 + N_COLUMNS] = cell_text(str_from(budget_confidence(d)));
    }
    return t;
}

static struct table *parts_table(const struct step_budget *b, struct arena *a)
{
    struct table *t = table_new(a, S("steps"), S("Each step"));
    if (t == NULL)
        return NULL;
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("duration_ps"), S("Duration"), CELL_U64, S("ps"));
    for (size_t i = 0; i < N_COLUMNS; i++)
        table_column(t, columns[i].ps, columns[i].title, CELL_U64, S("ps"));
    table_column(t, S("idle_ps"), S("Idle"), CELL_U64, S("ps"));
    table_column(t, S("complete"), S("Complete"), CELL_BOOL, S(""));
    for (uint32_t k = 0; k < b->work.n; k++)
        for (uint32_t i = 0; i < b->devices[k].n_steps; i++) {
            const struct budget_device *d = &b->devices[k];
            const struct budget_step *s = &d->steps[i];
            struct cell *row = table_row(t);
            if (row == NULL)
                return NULL;
            row[0] = host_cell(d->device->trace);
            row[1] = cell_text(d->device->name);
            row[2] = d->lane != NULL ? cell_i64(s->number) : cell_unknown();
            row[3] = cell_u64(s->begin_ps + d->device->trace->shift_ps);
            row[4] = cell_u64(s->end_ps - s->begin_ps);
            for (size_t c = 0; c < N_COLUMNS; c++)
                row[5 + c] = part_cell(d, s, columns[c].part);
            row[5 + N_COLUMNS] = cell_u64(budget_idle_ps(s));
            row[6 + N_COLUMNS] = cell_bool(s->is_complete);
        }
    return t;
}

static bool step_budget_run(const struct tool_request *r, struct arena *a, struct table **out,
                            struct err *e)
{
    struct step_budget b;
    if (!step_budget_of(r->profile, a, &b, e))
        return false;
    struct table *t = *out = devices_table(&b, a);
    if (t == NULL)
        return arena_full(a, e);
    add_notes(t, &b);
    t->next = parts_table(&b, a);
    return t->next != NULL || arena_full(a, e);
}

const struct tool_functions tool_step_budget = {.run = step_budget_run};
