/* SPDX-License-Identifier: Apache-2.0 */
/* gaps: when a device did nothing, between what, and why (device_gaps.h). */
#include <stdlib.h>

#include "analysis/step_budget.h"
#include "analysis/tool.h"

#define GAPS_MIN_US 10.0
#define GAPS_LIMIT 100

struct question {
    uint64_t least_ps, limit;
};

static bool read_question(const struct tool_request *r, struct question *q, struct err *e)
{
    const str least = tool_param(r, S("min_gap_us")), limit = tool_param(r, S("limit"));
    double us = GAPS_MIN_US;
    q->limit = GAPS_LIMIT;
    if (least.n > 0 && (!str_to_f64(least, &us) || !(us >= 0 && us < 1e12)))
        return err_set(e, ERR_USAGE, "min_gap_us is '%.*s', not a number of microseconds",
                       STR_ARG(least));
    if (limit.n > 0 && !str_to_u64(limit, &q->limit))
        return err_set(e, ERR_USAGE, "limit is '%.*s', not a number", STR_ARG(limit));
    q->least_ps = (uint64_t)(us * 1e6);
    return true;
}

struct found {
    const struct budget_device *device;
    const struct device_gap *gap;
};

struct founds {
    struct found *items;
    uint32_t n, capacity;
    uint64_t n_all, sum_ps, all_ps;
};

static uint64_t gap_ps(const struct device_gap *g)
{
    return g->end_ps - g->begin_ps;
}

static int by_length(const void *x, const void *y)
{
    const struct found *a = x, *b = y;
    const uint64_t first = gap_ps(a->gap), second = gap_ps(b->gap);
    if (first != second)
        return first > second ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->gap < b->gap ? -1 : a->gap > b->gap;
}

/* Between the first and the last work of each device. */
static bool find(const struct step_budget *b, const struct question *q, struct arena *a,
                 struct founds *out)
{
    for (uint32_t i = 0; i < b->work.n; i++)
        for (uint32_t k = 1; k < b->devices[i].gaps.n; k++) {
            const struct device_gap *gap = &b->devices[i].gaps.items[k];
            out->n_all++;
            out->all_ps += gap_ps(gap);
            if (gap_ps(gap) < q->least_ps)
                continue;
            out->sum_ps += gap_ps(gap);
            if (!ARENA_PUSH(a, out->items, out->n, out->capacity))
                return false;
            out->items[out->n - 1] = (struct found){&b->devices[i], gap};
        }
    if (out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_length);
    return true;
}

static void declare(struct table *t)
{
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("duration_ps"), S("Duration"), CELL_U64, S("ps"));
    table_column(t, S("part"), S("Why"), CELL_TEXT, S(""));
    table_column(t, S("last_op"), S("After"), CELL_TEXT, S(""));
    table_column(t, S("next_op"), S("Before"), CELL_TEXT, S(""));
    table_column(t, S("launch_starved_ps"), S("Starved"), CELL_U64, S("ps"));
    table_column(t, S("blocked_ps"), S("Blocked"), CELL_U64, S("ps"));
    table_column(t, S("launch_latency_ps"), S("Launch latency"), CELL_U64, S("ps"));
    table_column(t, S("unknown_ps"), S("Why unknown"), CELL_U64, S("ps"));
}

static struct cell name_cell(str name)
{
    return name.n > 0 ? cell_text(name) : cell_unknown();
}

static bool add_gap(struct table *t, const struct found *f)
{
    const struct budget_device *d = f->device;
    const struct device_gap *g = f->gap;
    const struct trace *trace = d->device->trace;
    const struct budget_step *step = budget_step_at(d, g->begin_ps);
    uint64_t part_ps[BUDGET_PARTS] = {0}, left = gap_ps(g);
    enum budget_part most = BUDGET_UNKNOWN;
    part_ps[BUDGET_STARVED] = spans_within(&d->gaps.starved, g->begin_ps, g->end_ps);
    part_ps[BUDGET_BLOCKED] = spans_within(&d->gaps.blocked, g->begin_ps, g->end_ps);
    part_ps[BUDGET_LATENCY] = spans_within(&d->gaps.latency, g->begin_ps, g->end_ps);
    for (int p = BUDGET_STARVED; p < BUDGET_UNKNOWN; p++)
        left -= part_ps[p];
    part_ps[BUDGET_UNKNOWN] = left;
    for (int p = BUDGET_STARVED; p < BUDGET_UNKNOWN; p++)
        most = part_ps[p] > part_ps[most] ? (enum budget_part)p : most;
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = name_cell(trace->host);
    row[1] = cell_text(d->device->name);
    row[2] = step != NULL && d->lane != NULL ? cell_i64(step->number) : cell_unknown();
    row[3] = cell_u64(g->begin_ps + trace->shift_ps);
    row[4] = cell_u64(gap_ps(g));
    row[5] = cell_text(str_from(budget_part_word(most)));
    row[6] = name_cell(gap_op_name(trace, g->last));
    row[7] = name_cell(gap_op_name(trace, g->next));
    for (uint32_t p = BUDGET_STARVED; p <= BUDGET_UNKNOWN; p++)
        if (budget_part_known(d, (enum budget_part)p))
            row[8 + p - BUDGET_STARVED] = cell_u64(part_ps[p]);
    return true;
}

static bool gaps_run(const struct tool_request *r, struct arena *a, struct table **out,
                     struct err *e)
{
    struct question q;
    struct step_budget b;
    struct founds f = {0};
    if (!read_question(r, &q, e) || !step_budget_with_gaps(r->profile, a, &b, e))
        return false;
    struct table *t = *out = table_new(a, S("gaps"), S("Gaps"));
    if (t == NULL || !find(&b, &q, a, &f))
        return arena_full(a, e);
    declare(t);
    for (uint32_t i = 0; i < f.n && i < q.limit; i++)
        if (!add_gap(t, &f.items[i]))
            return arena_full(a, e);
    table_value(t, S("gaps"), S("Gaps"), cell_u64(f.n_all), S(""));
    table_value(t, S("idle_ps"), S("Idle between work"), cell_u64(f.all_ps), S("ps"));
    table_value(t, S("long_gaps"), S("Gaps of min_gap_us and more"), cell_u64(f.n), S(""));
    table_value(t, S("long_idle_ps"), S("Idle in those"), cell_u64(f.sum_ps), S("ps"));
    if (f.n > q.limit)
        table_note(t, S("shorter_gaps"), f.n - q.limit,
                   "shorter gaps are not listed; limit=N shows more");
    return true;
}

const struct tool_functions tool_gaps = {.run = gaps_run};
