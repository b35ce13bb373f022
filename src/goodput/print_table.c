/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "goodput/sums.h"

/* Nanoseconds as seconds with nine digits: a double would not sum exactly. */
static struct cell seconds_cell(struct arena *a, int64_t ns)
{
    return cell_text(
        arena_printf(a, "%lld.%09lld", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S)));
}

static bool add_span(struct table *t, const struct ledger *l, const struct ledger_view *v,
                     int64_t from_ns, struct arena *a, struct err *e)
{
    struct ledger_sums sums;
    if (!ledger_sums(l, v, from_ns, v->to_ns, a, &sums, e))
        return false;
    for (uint32_t i = 0; i < sums.n; i++) {
        const struct ledger_total *total = &sums.items[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(a, e);
        row[0] = cell_moment(a, from_ns);
        row[1] = cell_moment(a, v->to_ns);
        row[2] = cell_text(total->word);
        row[3] = seconds_cell(a, total->total_ns);
        row[4] = cell_f64(ledger_percent(total->total_ns, sums.whole_ns));
        row[5] = cell_u64(total->count);
    }
    return true;
}

static struct table *steps_table(const struct ledger *l, const struct ledger_view *v,
                                 struct arena *a)
{
    struct table *t = table_new(a, S("steps"), S("Steps"));
    if (t == NULL)
        return NULL;
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("attempt"), S("Attempt"), CELL_U64, S(""));
    table_column(t, S("from"), S("From"), CELL_TEXT, S(""));
    table_column(t, S("seconds"), S("Time"), CELL_TEXT, S("s"));
    table_column(t, S("wasted"), S("Wasted"), CELL_BOOL, S(""));
    table_column(t, S("startup"), S("Start-up"), CELL_BOOL, S(""));
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        struct cell *row = ledger_view_has(v, s->from_ns) ? table_row(t) : NULL;
        if (row == NULL)
            continue;
        row[0] = cell_i64(s->step);
        row[1] = cell_u64(s->attempt);
        row[2] = cell_moment(a, s->from_ns);
        row[3] = seconds_cell(a, s->dur_ns);
        row[4] = cell_bool(s->wasted);
        row[5] = cell_bool(s->startup);
    }
    return t;
}

static struct table *ranks_table(const struct ledger *l, struct arena *a)
{
    struct table *t = table_new(a, S("ranks"), S("Ranks"));
    if (t == NULL)
        return NULL;
    table_column(t, S("rank"), S("Rank"), CELL_I64, S(""));
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("step_time_p50_s"), S("Step median"), CELL_TEXT, S("s"));
    table_column(t, S("slower_percent"), S("Slower"), CELL_F64, S("%"));
    table_column(t, S("straggler"), S("Straggler"), CELL_BOOL, S(""));
    table_column(t, S("cost_s"), S("Cost at most"), CELL_TEXT, S("s"));
    table_column(t, S("hung_step"), S("Hung in step"), CELL_I64, S(""));
    for (uint32_t i = 0; i < l->n_ranks; i++) {
        const struct ledger_rank *r = &l->ranks[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return t;
        row[0] = cell_i64(r->rank);
        row[1] = cell_text(r->host);
        row[2] = r->step_p50_ns >= 0 ? seconds_cell(a, r->step_p50_ns) : cell_unknown();
        row[3] = r->step_p50_ns >= 0 ? cell_f64(r->slower_percent) : cell_unknown();
        row[4] = cell_bool(r->straggler);
        row[5] = r->first_slow_step >= 0 ? seconds_cell(a, r->cost_ns) : cell_unknown();
        row[6] = r->hung_step >= 0 ? cell_i64(r->hung_step) : cell_unknown();
    }
    return t;
}

struct table *ledger_table(const struct ledger *l, const struct ledger_view *v, struct arena *a,
                           struct err *e)
{
    struct table *t = table_new(a, S("ledger"), S("Ledger"));
    if (t == NULL) {
        arena_full(a, e);
        return NULL;
    }
    table_column(t, S("from"), S("From"), CELL_TEXT, S(""));
    table_column(t, S("to"), S("To"), CELL_TEXT, S(""));
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("seconds"), S("Time"), CELL_TEXT, S("s"));
    table_column(t, S("percent"), S("Share"), CELL_F64, S("%"));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    if (!add_span(t, l, v, v->from_ns, a, e))
        return NULL;
    for (uint32_t i = 0; i < v->n_windows; i++)
        if (!add_span(t, l, v, ledger_window_from(v, i), a, e))
            return NULL;
    struct table *last = t;
    if (v->steps)
        last = last->next = steps_table(l, v, a);
    if (v->ranks && last != NULL)
        last->next = ranks_table(l, a);
    for (const struct table *each = t; each != NULL; each = each->next)
        if (!table_ok(each, e))
            return NULL;
    if (a->overflow) {
        arena_full(a, e);
        return NULL;
    }
    return t;
}
