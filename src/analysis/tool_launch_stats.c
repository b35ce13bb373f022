/* SPDX-License-Identifier: Apache-2.0 */
/* launch_stats: how the host launches work, by the name of the call (launch_stats.h). */
#include "analysis/launch_stats.h"
#include "analysis/tool.h"

static void declare(struct table *t)
{
    table_column(t, S("call"), S("Call"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("works"), S("Kernels and copies"), CELL_U64, S(""));
    table_column(t, S("call_time_ps"), S("Call time"), CELL_U64, S("ps"));
    table_column(t, S("mean_call_ps"), S("A call"), CELL_F64, S("ps"));
    table_column(t, S("work_time_ps"), S("Work"), CELL_U64, S("ps"));
    table_column(t, S("median_queue_delay_ps"), S("Queue delay"), CELL_I64, S("ps"));
    table_column(t, S("mean_queue_delay_ps"), S("Mean"), CELL_F64, S("ps"));
    table_column(t, S("max_queue_delay_ps"), S("Longest"), CELL_I64, S("ps"));
    table_column(t, S("median_queue_depth"), S("Queue depth"), CELL_U64, S(""));
    table_column(t, S("max_queue_depth"), S("Deepest"), CELL_U64, S(""));
    table_column(t, S("short_percent"), S("Shorter than the call"), CELL_F64, S("%"));
}

static double short_percent(const struct launch_row *r)
{
    return 100.0 * (double)r->n_short / (double)r->count;
}

static bool add_row(struct table *t, const struct launch_row *r)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(r->name);
    row[1] = cell_u64(r->count);
    row[2] = cell_u64(r->n_works);
    row[3] = cell_u64(r->call_ps);
    row[4] = cell_f64((double)r->call_ps / (double)r->count);
    row[5] = cell_u64(r->work_ps);
    row[6] = cell_i64(r->median_delay_ps);
    row[7] = cell_f64(r->mean_delay_ps);
    row[8] = cell_i64(r->max_delay_ps);
    row[9] = cell_u64(r->median_depth);
    row[10] = cell_u64(r->max_depth);
    row[11] = cell_f64(short_percent(r));
    return true;
}

static bool launch_stats_run(const struct tool_request *r, struct arena *a, struct table **out,
                             struct err *e)
{
    struct budget_trace *traces;
    struct launch_stats s;
    struct table *t = *out = table_new(a, S("launch_stats"), S("Launches"));
    if (t == NULL)
        return arena_full(a, e);
    if (!budget_traces_of(r->profile, a, &traces, e) ||
        !launch_stats_of(traces, r->profile->n_traces, a, &s, e))
        return false;
    declare(t);
    for (uint32_t i = 0; i < s.n; i++)
        if (!add_row(t, &s.items[i]))
            return arena_full(a, e);
    const bool any = s.all.count > 0;
    table_value(t, S("launches"), S("Launches"), any ? cell_u64(s.all.count) : cell_unknown(),
                S(""));
    table_value(t, S("median_queue_depth"), S("Median queue depth"),
                any ? cell_u64(s.all.median_depth) : cell_unknown(), S(""));
    table_value(t, S("median_queue_delay_ps"), S("Median queue delay"),
                any ? cell_i64(s.all.median_delay_ps) : cell_unknown(), S("ps"));
    table_value(t, S("short_percent"), S("Launches with work shorter than the call"),
                any ? cell_f64(short_percent(&s.all)) : cell_unknown(), S("%"));
    if (!any)
        table_note(t, S("no_launches"), 1,
                   "no launch is recorded: no GPU kernel or TPU module with its call");
    if (s.n_without_work > 0)
        table_note(t, S("calls_without_work"), s.n_without_work,
                   "calls with a correlation id and no work in the profile: left out");
    return true;
}

const struct tool_functions tool_launch_stats = {.run = launch_stats_run};
