/* SPDX-License-Identifier: Apache-2.0 */
/* overview_page: what the devices did, every step, and the operations that took most. All hosts. */
#include "analysis/op_metrics.h"
#include "analysis/overview_xprof.h"
#include "analysis/pod_table.h"
#include "analysis/steps.h"
#include "analysis/tool.h"

#define TOP_OPERATIONS 10

struct totals { /* over the steps of all hosts */
    uint64_t n, sum_ps, min_ps, max_ps, input_ps, input_step_ps;
    bool has_input;
};

static void add_total(struct totals *t, const struct step *s)
{
    t->min_ps = t->n == 0 || s->dur_ps < t->min_ps ? s->dur_ps : t->min_ps;
    t->max_ps = s->dur_ps > t->max_ps ? s->dur_ps : t->max_ps;
    t->sum_ps += s->dur_ps;
    t->n++;
    if (!s->input_ps.known)
        return;
    t->has_input = true;
    t->input_ps += s->input_ps.ps;
    t->input_step_ps += s->dur_ps;
}

static struct cell ps_cell(struct fact_ps f)
{
    return f.known ? cell_u64(f.ps) : cell_unknown();
}

static const char *source_name(enum steps_source s)
{
    static const char *const names[] = {"none", "device", "host", "implicit"};
    return names[s];
}

static struct cell percent(uint64_t part, uint64_t whole, bool known)
{
    return known && whole > 0 ? cell_f64(100.0 * (double)part / (double)whole) : cell_unknown();
}

static bool add_steps(struct table *t, const struct tool_request *r, const struct op_db *db,
                      const struct pod_steps *pods, struct totals *sum, struct err *e)
{
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("source"), S("Marked by"), CELL_TEXT, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("duration_ps"), S("Duration"), CELL_U64, S("ps"));
    table_column(t, S("device_busy_ps"), S("Devices busy"), CELL_U64, S("ps"));
    table_column(t, S("input_wait_ps"), S("Input wait"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        const struct trace *trace = r->profile->traces[i];
        struct host_steps steps;
        if (pods->steps != NULL)
            steps = pods->steps[i];
        else if (!steps_of(trace, db->groupings[i], t->arena, &steps, e))
            return false;
        for (uint32_t k = 0; k < steps.n; k++) {
            const struct step *s = &steps.items[k];
            struct cell *row = table_row(t);
            if (row == NULL)
                return arena_full(t->arena, e);
            row[0] = cell_text(trace->host);
            row[1] = cell_i64(s->number);
            row[2] = cell_text(str_from(source_name(steps.source)));
            row[3] = cell_u64(s->start_ps);
            row[4] = cell_u64(s->dur_ps);
            row[5] = ps_cell(s->device_busy_ps);
            row[6] = ps_cell(s->input_ps);
            add_total(sum, s);
        }
    }
    return true;
}

static bool add_operations(struct table *t, const struct op_db *db, struct err *e)
{
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("self_share_percent"), S("Share of operations"), CELL_F64, S("%"));
    for (uint32_t i = 0; i < db->n_ops && i < TOP_OPERATIONS; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(t->arena, e);
        row[0] = cell_text(db->ops[i].name);
        row[1] = db->ops[i].category.n > 0 ? cell_text(db->ops[i].category) : cell_unknown();
        row[2] = cell_u64(db->ops[i].self_ps);
        row[3] = percent(db->ops[i].self_ps, db->self_ps, true);
    }
    return true;
}

static void add_values(struct table *t, const struct op_db *db, const struct totals *s)
{
    const uint64_t duty = db->duty_busy_ps + db->duty_idle_ps;
    const bool steps = s->n > 0;
    table_value(t, S("hosts"), S("Hosts"), cell_u64(db->n_hosts), S(""));
    table_value(t, S("device_type"), S("Device"), cell_text(db->device.type), S(""));
    const uint32_t n = db->backend == OP_BACKEND_CPU ? db->n_cpu_devices : db->n_devices;
    if (n > 0)
        table_value(t, S("devices"), S("Devices"), cell_u64(n), S(""));
    table_value(t, S("duty_cycle_percent"), S("Duty cycle"), percent(db->duty_busy_ps, duty, true),
                S("%"));
    table_value(t, S("steps"), S("Steps"), steps ? cell_u64(s->n) : cell_unknown(), S(""));
    table_value(t, S("step_mean_ps"), S("Mean step"),
                steps ? cell_u64(s->sum_ps / s->n) : cell_unknown(), S("ps"));
    table_value(t, S("step_min_ps"), S("Shortest step"),
                steps ? cell_u64(s->min_ps) : cell_unknown(), S("ps"));
    table_value(t, S("step_max_ps"), S("Longest step"),
                steps ? cell_u64(s->max_ps) : cell_unknown(), S("ps"));
    table_value(t, S("input_wait_percent"), S("Input wait"),
                percent(s->input_ps, s->input_step_ps, s->has_input), S("%"));
    if (!steps)
        table_note(t, S("no_steps"), 1, "no step marker: step times are unknown");
}

static bool overview_run(const struct tool_request *r, struct arena *a, struct table **out,
                         struct err *e)
{
    struct op_db db;
    struct totals sum = {0};
    struct pod_steps pods;
    if (!op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    struct table *t = *out = table_new(a, S("overview_page"), S("Steps"));
    struct table *ops = table_new(a, S("top_operations"), S("Operations that took most"));
    bool ok = t != NULL && ops != NULL;
    if (!ok)
        (void)arena_full(a, e);
    ok = ok && pod_steps_of(r->profile, db.groupings, a, &pods, e) &&
         add_steps(t, r, &db, &pods, &sum, e) && add_operations(ops, &db, e);
    if (ok) {
        add_values(t, &db, &sum);
        t->next = ops;
        ok = pod_straggler_values(&pods, t, e);
    }
    op_db_release(&db);
    return ok;
}

const struct tool_functions tool_overview_page = {.run = overview_run, .xprof = overview_xprof};
