/* SPDX-License-Identifier: Apache-2.0 */
/* what_if: steps, were something in them as long everywhere as in the middle (what_if.h). */
#include "analysis/tool.h"
#include "analysis/what_if.h"

static bool read_question(const struct tool_request *r, struct what_if_question *q, struct err *e)
{
    const str part = tool_param(r, S("part"));
    *q = (struct what_if_question){.ops = tool_param(r, S("op")), .part = BUDGET_COMPUTE};
    if (q->ops.n > 0 && part.n > 0)
        return err_set(e, ERR_USAGE, "what_if takes op or part, not both");
    if (part.n == 0)
        return true;
    if (str_eq(part, S("idle"))) {
        q->part = BUDGET_PARTS;
        return true;
    }
    for (int p = 0; p < BUDGET_PARTS; p++)
        if (str_eq(part, str_from(budget_part_word((enum budget_part)p)))) {
            q->part = (enum budget_part)p;
            return true;
        }
    err_set(e, ERR_USAGE, "part is '%.*s'", STR_ARG(part));
    return err_hint(e,
                    "it may be compute, comm_exposed, copy_exposed, idle, launch_starved, blocked, "
                    "launch_latency or unknown");
}

static struct table *steps_table(const struct what_if *w, struct arena *a)
{
    struct table *t = table_new(a, S("what_if"), S("What if"));
    if (t == NULL)
        return NULL;
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("step_ps"), S("Now"), CELL_U64, S("ps"));
    table_column(t, S("then_ps"), S("Then"), CELL_U64, S("ps"));
    table_column(t, S("saved_ps"), S("Saved"), CELL_I64, S("ps"));
    for (uint32_t i = 0; i < w->n_steps; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = cell_i64(w->steps[i].number);
        row[1] = cell_u64(w->steps[i].now_ps);
        row[2] = cell_u64(w->steps[i].then_ps);
        row[3] = cell_i64((int64_t)(w->steps[i].now_ps - w->steps[i].then_ps));
    }
    const bool any = w->n_steps > 0;
    table_value(t, S("median_step_ps"), S("Median step now"),
                any ? cell_u64(w->median_now_ps) : cell_unknown(), S("ps"));
    table_value(t, S("median_then_ps"), S("Median step then"),
                any ? cell_u64(w->median_then_ps) : cell_unknown(), S("ps"));
    const double now = (double)w->median_now_ps, then = (double)w->median_then_ps;
    table_value(t, S("saved_percent"), S("Saved"),
                any && now > 0 ? cell_f64(100.0 * (now - then) / now) : cell_unknown(), S("%"));
    return t;
}

static struct table *devices_table(const struct what_if *w, struct arena *a)
{
    struct table *t = table_new(a, S("devices"), S("Each device"));
    if (t == NULL)
        return NULL;
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("step_ps"), S("Now"), CELL_U64, S("ps"));
    table_column(t, S("then_ps"), S("Then"), CELL_U64, S("ps"));
    table_column(t, S("waited_ps"), S("Waited for others"), CELL_U64, S("ps"));
    table_column(t, S("took_ps"), S("Took"), CELL_U64, S("ps"));
    table_column(t, S("median_ps"), S("Median"), CELL_U64, S("ps"));
    table_column(t, S("median_of"), S("Of"), CELL_U64, S(""));
    for (uint32_t i = 0; i < w->n_rows; i++) {
        const struct what_if_row *r = &w->rows[i];
        const struct trace *trace = r->device->device->trace;
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = trace->host.n > 0 ? cell_text(trace->host) : cell_unknown();
        row[1] = cell_text(r->device->device->name);
        row[2] = cell_i64(r->step->number);
        row[3] = cell_u64(r->step_ps);
        row[4] = cell_u64(r->then_ps);
        row[5] = cell_u64(r->waited_ps);
        row[6] = cell_u64(r->now_ps);
        row[7] = cell_u64(r->median_ps);
        row[8] = cell_u64(r->n_cohort);
    }
    return t;
}

static bool what_if_run(const struct tool_request *r, struct arena *a, struct table **out,
                        struct err *e)
{
    struct what_if_question q;
    struct step_budget b;
    struct what_if w;
    if (!read_question(r, &q, e) || !step_budget_of(r->profile, a, &b, e) ||
        !what_if_of(&b, &q, a, &w, e))
        return false;
    if (q.ops.n > 0 && w.n_named == 0 && b.work.n > 0)
        return err_set(e, ERR_NOT_FOUND, "no operation's name begins with '%.*s'", STR_ARG(q.ops));
    struct table *t = *out = steps_table(&w, a);
    if (t == NULL)
        return arena_full(a, e);
    if (w.n_steps == 0)
        table_note(t, S("no_steps"), 1, "no complete step is known");
    t->next = devices_table(&w, a);
    return t->next != NULL || arena_full(a, e);
}

const struct tool_functions tool_what_if = {.run = what_if_run};
