/* SPDX-License-Identifier: Apache-2.0 */
/* sync_points: calls in which the host waits for the device, and what the device does then. */
#include "analysis/sync_points.h"
#include "analysis/tool.h"

static void declare(struct table *t)
{
    table_column(t, S("call"), S("Call"), CELL_TEXT, S(""));
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("per_step"), S("A step"), CELL_F64, S(""));
    table_column(t, S("wait_ps"), S("Waiting"), CELL_U64, S("ps"));
    table_column(t, S("longest_ps"), S("Longest"), CELL_U64, S("ps"));
    table_column(t, S("idle_after_ps"), S("Device idle after"), CELL_U64, S("ps"));
    table_column(t, S("idle_during_ps"), S("Device idle meanwhile"), CELL_U64, S("ps"));
    table_column(t, S("stack"), S("Python stack"), CELL_TEXT, S(""));
}

static bool add_row(struct table *t, const struct sync_points *s, const struct sync_point *p)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(p->call);
    row[1] = p->operation.n > 0 ? cell_text(p->operation) : cell_unknown();
    row[2] = cell_u64(p->count);
    row[3] = s->n_steps > 0 ? cell_f64((double)p->in_steps / (double)s->n_steps) : cell_unknown();
    row[4] = cell_u64(p->wait_ps);
    row[5] = cell_u64(p->longest_ps);
    row[6] = p->has_idle ? cell_u64(p->idle_after_ps) : cell_unknown();
    row[7] = p->has_idle ? cell_u64(p->idle_during_ps) : cell_unknown();
    row[8] = p->stack.n > 0 ? cell_text(p->stack) : cell_unknown();
    return true;
}

static bool sync_points_run(const struct tool_request *r, struct arena *a, struct table **out,
                            struct err *e)
{
    struct sync_points s;
    if (!sync_points_of(r->profile, a, &s, e))
        return false;
    struct table *t = *out = table_new(a, S("sync_points"), S("Waiting for the device"));
    if (t == NULL)
        return arena_full(a, e);
    declare(t);
    for (uint32_t i = 0; i < s.n && add_row(t, &s, &s.items[i]); i++)
        continue;
    table_value(t, S("steps"), S("Complete steps"), cell_u64(s.n_steps), S(""));
    if (s.n == 0)
        table_note(t, S("no_waits"), 1,
                   "no call of the host that waits for a device is in the profile");
    return true;
}

const struct tool_functions tool_sync_points = {.run = sync_points_run};
