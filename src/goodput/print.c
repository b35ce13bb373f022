/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/print.h"

#include "base/clock.h"
#include "goodput/sums.h"
#include "model/table_print.h"

#define BAR_CELLS 40

static void put_seconds(struct json *j, const char *key, int64_t ns)
{
    json_key(j, key);
    json_fixed(j, ns, 9);
}

static void put_seconds_known(struct json *j, const char *key, int64_t ns, bool known)
{
    if (known)
        put_seconds(j, key, ns);
    else
        json_knull(j, key);
}

static void put_number_known(struct json *j, const char *key, int64_t v)
{
    if (v >= 0)
        json_ki64(j, key, v);
    else
        json_knull(j, key);
}

static void put_time(struct json *j, const char *key, int64_t wall_ns)
{
    char text[CLOCK_RFC3339_MAX];
    const size_t n = clock_format_rfc3339(wall_ns, text);
    json_kstr(j, key, (str){text, n});
}

static void put_totals(struct json *j, const struct ledger_sums *t)
{
    json_key(j, "ledger");
    json_array(j);
    for (uint32_t i = 0; i < t->n; i++) {
        json_object(j);
        json_kstr(j, "category", t->items[i].word);
        put_seconds(j, "seconds", t->items[i].total_ns);
        json_kf64(j, "percent", ledger_percent(t->items[i].total_ns, t->whole_ns));
        json_ku64(j, "count", t->items[i].count);
        json_end(j);
    }
    json_end(j);
}

static void put_step_time(struct json *j, const struct ledger_step_stats *s)
{
    json_key(j, "step_time");
    json_object(j);
    put_seconds_known(j, "ideal_s", s->ideal_ns, s->n > 0);
    put_seconds_known(j, "mean_s", s->mean_ns, s->n > 0);
    put_seconds_known(j, "p50_s", s->p50_ns, s->n > 0);
    put_seconds_known(j, "p99_s", s->p99_ns, s->n > 0);
    put_seconds_known(j, "deviation_s", s->deviation_ns, s->n > 0);
    json_end(j);
}

static void put_ranks(struct json *j, const struct ledger *l)
{
    json_key(j, "ranks");
    json_array(j);
    for (uint32_t i = 0; i < l->n_ranks; i++) {
        const struct ledger_rank *r = &l->ranks[i];
        json_object(j);
        json_ki64(j, "rank", r->rank);
        json_kstr(j, "host", r->host);
        put_seconds_known(j, "step_time_p50_s", r->step_p50_ns, r->step_p50_ns >= 0);
        if (r->step_p50_ns >= 0)
            json_kf64(j, "slower_percent", r->slower_percent);
        else
            json_knull(j, "slower_percent");
        json_kbool(j, "straggler", r->straggler);
        put_seconds_known(j, "cost_s", r->cost_ns, r->first_slow_step >= 0);
        put_number_known(j, "first_slow_step", r->first_slow_step);
        put_number_known(j, "last_slow_step", r->last_slow_step);
        put_number_known(j, "hung_step", r->hung_step);
        json_end(j);
    }
    json_end(j);
}

static void put_goodput(struct json *j, const struct ledger *l, const struct ledger_sums *t)
{
    if (l->workload_silent)
        json_knull(j, "goodput_percent");
    else
        json_kf64(j, "goodput_percent", ledger_percent(t->good_ns, t->whole_ns));
}

static bool put_windows(struct json *j, const struct ledger *l, const struct ledger_view *v,
                        struct arena *a, struct err *e)
{
    json_key(j, "windows");
    json_array(j);
    for (uint32_t i = 0; i < v->n_windows; i++) {
        struct ledger_sums t;
        if (!ledger_sums(l, v, ledger_window_from(v, i), v->to_ns, a, &t, e))
            return false;
        json_object(j);
        put_seconds(j, "seconds", t.whole_ns);
        put_goodput(j, l, &t);
        put_totals(j, &t);
        json_end(j);
    }
    json_end(j);
    return true;
}

static void put_steps(struct json *j, const struct ledger *l, const struct ledger_view *v)
{
    json_key(j, "steps");
    json_array(j);
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        if (!ledger_view_has(v, s->from_ns))
            continue;
        json_object(j);
        json_ki64(j, "step", s->step);
        json_ku64(j, "attempt", s->attempt);
        put_time(j, "from", s->from_ns);
        put_seconds(j, "seconds", s->dur_ns);
        json_kbool(j, "wasted", s->wasted);
        json_kbool(j, "startup", s->startup);
        json_end(j);
    }
    json_end(j);
}

/* Step times of ranks are compared over the whole run: a part of it may hold too few. */
static bool is_part_with_ranks(const struct ledger *l, const struct ledger_view *v)
{
    return l->n_ranks > 0 && (v->from_ns > l->from_ns || v->to_ns < l->to_ns);
}

static void put_excluded(struct json *j, const struct ledger_view *v, const struct ledger_sums *t)
{
    if (v->n_excluded == 0)
        return;
    put_seconds(j, "excluded_s", t->excluded_ns);
    json_key(j, "excluded");
    json_array(j);
    for (uint32_t i = 0; i < v->n_excluded; i++) {
        const struct ledger_part *x = &v->excluded[i];
        if (x->from_ns >= v->to_ns || x->to_ns <= v->from_ns)
            continue;
        json_object(j);
        put_time(j, "from", x->from_ns > v->from_ns ? x->from_ns : v->from_ns);
        put_time(j, "to", x->to_ns < v->to_ns ? x->to_ns : v->to_ns);
        json_end(j);
    }
    json_end(j);
}

static void put_notes(struct json *j, const struct ledger *l, const struct record_set *set,
                      const struct ledger_view *v)
{
    json_key(j, "warnings");
    json_array(j);
    if (is_part_with_ranks(l, v)) {
        json_object(j);
        json_kcstr(j, "code", "ranks_of_whole_run");
        json_kcstr(j, "message", "ranks are compared over the whole run, not over this part");
        json_ku64(j, "count", 1);
        json_end(j);
    }
    for (uint32_t i = 0; i < set->n_notes; i++) {
        json_object(j);
        json_kstr(j, "code", set->notes[i].code);
        json_kstr(j, "message", set->notes[i].message);
        json_ku64(j, "count", set->notes[i].count);
        json_end(j);
    }
    json_end(j);
}

bool ledger_print_json(const struct ledger *l, const struct record_set *notes,
                       const struct ledger_view *v, struct arena *a, struct json *j, struct err *e)
{
    struct ledger_sums t;
    if (!ledger_sums(l, v, v->from_ns, v->to_ns, a, &t, e))
        return false;
    json_object(j);
    json_kstr(j, "run", l->run);
    put_number_known(j, "lead_rank", l->lead_rank);
    json_ku64(j, "attempts", t.n_attempts);
    put_time(j, "from", v->from_ns);
    put_time(j, "to", v->to_ns);
    put_seconds(j, "total_elapsed_s", t.whole_ns);
    put_excluded(j, v, &t);
    put_goodput(j, l, &t);
    if (l->workload_silent) {
        json_knull(j, "goodput_time_s");
        json_knull(j, "badput_time_s");
    } else {
        put_seconds(j, "goodput_time_s", t.good_ns);
        put_seconds(j, "badput_time_s", t.whole_ns - t.good_ns);
    }
    put_totals(j, &t);
    json_ku64(j, "disruptions", t.n_disruptions);
    put_number_known(j, "max_productive_step", t.max_productive_step);
    put_step_time(j, &t.step_stats);
    put_ranks(j, l);
    if (!put_windows(j, l, v, a, e))
        return false;
    if (v->steps)
        put_steps(j, l, v);
    put_notes(j, l, notes, v);
    json_end(j);
    return true;
}

/* "Productive for 5.2 s of 8.1 s (64.2 %). Most of the rest is data_loading_sync: 2.1 s." */
static void print_headline(const struct ledger *l, const struct ledger_sums *t, struct arena *a,
                           struct buf *out)
{
    const struct ledger_total *worst = NULL;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->items[i].category != LEDGER_PRODUCTIVE_STEP &&
            (worst == NULL || t->items[i].total_ns > worst->total_ns))
            worst = &t->items[i];
    const str good = format_duration_ns(a, t->good_ns), all = format_duration_ns(a, t->whole_ns);
    if (l->workload_silent)
        buf_addf(out, "Took %.*s; how much of it was productive is not known.", STR_ARG(all));
    else
        buf_addf(out, "Productive for %.*s of %.*s (%.1f %%).", STR_ARG(good), STR_ARG(all),
                 ledger_percent(t->good_ns, t->whole_ns));
    if (worst != NULL && !l->workload_silent) {
        const str lost = format_duration_ns(a, worst->total_ns),
                  word = text_printable(a, worst->word);
        buf_addf(out, " Most of the rest is %.*s: %.*s.", STR_ARG(word), STR_ARG(lost));
    }
    buf_addf(out, "\n%u attempt%s, %u disruption%s", t->n_attempts, t->n_attempts == 1 ? "" : "s",
             t->n_disruptions, t->n_disruptions == 1 ? "" : "s");
    if (t->step_stats.n > 0) {
        const str p50 = format_duration_ns(a, t->step_stats.p50_ns);
        buf_addf(out, ", step median %.*s", STR_ARG(p50));
    }
    if (t->max_productive_step >= 0)
        buf_addf(out, ", last kept step %lld", (long long)t->max_productive_step);
    buf_add_str(out, l->running ? S(", still running\n\n") : S("\n\n"));
}

static const char *colour_of(enum ledger_category c)
{
    const str family = str_from(ledger_category_family(c));
    if (str_eq(family, S("productive")))
        return "\033[32m";
    if (str_eq(family, S("lost")) || str_eq(family, S("hang")) || str_eq(family, S("recovery")))
        return "\033[31m";
    return str_eq(family, S("other")) || str_eq(family, S("idle")) ? "\033[90m" : "\033[33m";
}

static void print_bars(const struct ledger_sums *t, bool colour, struct arena *a, struct buf *out)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ledger_total *row = &t->items[i];
        const double share = ledger_percent(row->total_ns, t->whole_ns);
        const str word = text_printable(a, row->word), took = format_duration_ns(a, row->total_ns);
        buf_addf(out, "%-26.*s %12.*s %6.1f %% %7llu  ", STR_ARG(word), STR_ARG(took), share,
                 (unsigned long long)row->count);
        if (colour)
            buf_add_str(out, str_from(colour_of(row->category)));
        for (int k = 0; k < (int)(share * BAR_CELLS / 100.0 + 0.5); k++)
            buf_add_str(out, S("█"));
        buf_add_str(out, colour ? S("\033[0m\n") : S("\n"));
    }
    const str sum = format_duration_ns(a, t->whole_ns);
    buf_addf(out, "%-26s %12.*s\n", "wall time", STR_ARG(sum));
    if (t->excluded_ns > 0) {
        const str excluded = format_duration_ns(a, t->excluded_ns);
        buf_addf(out, "%-26s %12.*s  in no sum and no step time above\n", "excluded",
                 STR_ARG(excluded));
    }
}

static void print_ranks(const struct ledger *l, bool all, struct arena *a, struct buf *out)
{
    bool title = false;
    for (uint32_t i = 0; i < l->n_ranks; i++) {
        const struct ledger_rank *r = &l->ranks[i];
        if (!all && !r->straggler && r->hung_step < 0)
            continue;
        const str host = text_printable(a, r->host);
        const str p50 = r->step_p50_ns >= 0 ? format_duration_ns(a, r->step_p50_ns) : S("–");
        if (!title)
            buf_add_str(out, S("\nrank  host              step median   slower\n"));
        title = true;
        buf_addf(out, "%-5d %-16.*s %12.*s ", r->rank, STR_ARG(host), STR_ARG(p50));
        if (r->step_p50_ns >= 0)
            buf_addf(out, "%+6.1f %%", r->slower_percent);
        if (r->first_slow_step >= 0) {
            const str cost = format_duration_ns(a, r->cost_ns);
            buf_addf(out, "  slow in steps %lld to %lld, at most %.*s",
                     (long long)r->first_slow_step, (long long)r->last_slow_step, STR_ARG(cost));
        } else if (r->straggler) {
            buf_add_str(out, S("  straggler"));
        }
        if (r->hung_step >= 0)
            buf_addf(out, "  hung in step %lld", (long long)r->hung_step);
        buf_add_char(out, '\n');
    }
}

static void print_steps(const struct ledger *l, const struct ledger_view *v, struct arena *a,
                        struct buf *out)
{
    buf_add_str(out, S("\n    step attempt         time\n"));
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        const struct arena_mark mark = arena_mark(a);
        if (!ledger_view_has(v, s->from_ns))
            continue;
        const str took = format_duration_ns(a, s->dur_ns);
        buf_addf(out, "%8lld %7u %12.*s%s%s\n", (long long)s->step, s->attempt, STR_ARG(took),
                 s->wasted ? "  wasted" : "", s->startup ? "  start-up" : "");
        arena_reset(a, mark);
    }
}

static bool print_windows(const struct ledger *l, const struct ledger_view *v, struct arena *a,
                          struct buf *out, struct err *e)
{
    for (uint32_t i = 0; i < v->n_windows; i++) {
        struct ledger_sums t;
        if (!ledger_sums(l, v, ledger_window_from(v, i), v->to_ns, a, &t, e))
            return false;
        const str length = format_duration_ns(a, t.whole_ns);
        if (l->workload_silent)
            buf_addf(out, "\nlast %.*s: how much of it was productive is not known\n",
                     STR_ARG(length));
        else
            buf_addf(out, "\nlast %.*s: %.1f %% productive\n", STR_ARG(length),
                     ledger_percent(t.good_ns, t.whole_ns));
        print_bars(&t, v->colour, a, out);
    }
    return true;
}

bool ledger_print_text(const struct ledger *l, const struct record_set *notes,
                       const struct ledger_view *v, struct arena *a, struct buf *out, struct err *e)
{
    struct ledger_sums t;
    if (!ledger_sums(l, v, v->from_ns, v->to_ns, a, &t, e))
        return false;
    print_headline(l, &t, a, out);
    print_bars(&t, v->colour, a, out);
    print_ranks(l, v->ranks, a, out);
    if (!print_windows(l, v, a, out, e))
        return false;
    if (v->steps)
        print_steps(l, v, a, out);
    for (uint32_t i = 0; i < notes->n_notes; i++) {
        const str message = text_printable(a, notes->notes[i].message);
        buf_addf(out, "note: %.*s (%llu)\n", STR_ARG(message),
                 (unsigned long long)notes->notes[i].count);
    }
    return a->overflow ? arena_full(a, e) : buf_ok(out, "the text", e);
}
