/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/sums.h"

#include "goodput/ledger_build.h"

double ledger_percent(int64_t part_ns, int64_t whole_ns)
{
    return whole_ns > 0 ? 100.0 * (double)part_ns / (double)whole_ns : 0;
}

struct ledger_view ledger_view_all(const struct ledger *l)
{
    return (struct ledger_view){.from_ns = l->from_ns, .to_ns = l->to_ns};
}

int64_t ledger_window_from(const struct ledger_view *v, uint32_t i)
{
    const int64_t from = v->to_ns - v->windows_ns[i];
    return from > v->from_ns ? from : v->from_ns;
}

bool ledger_view_has(const struct ledger_view *v, int64_t ns)
{
    return ns >= v->from_ns && ns < v->to_ns &&
           ledger_part_at(v->excluded, v->n_excluded, ns) == NULL;
}

/* What of [from_ns, to_ns) is not excluded. NULL when the arena is full. */
static struct ledger_part *parts_of(const struct ledger_view *v, int64_t from_ns, int64_t to_ns,
                                    struct arena *a, uint32_t *n)
{
    struct ledger_part *parts = ARENA_ARRAY(a, struct ledger_part, v->n_excluded + 1);
    int64_t at = from_ns;
    *n = 0;
    for (uint32_t i = 0; parts != NULL && i <= v->n_excluded; i++) {
        const bool last = i == v->n_excluded;
        const int64_t until =
            last || v->excluded[i].from_ns > to_ns ? to_ns : v->excluded[i].from_ns;
        if (at < until)
            parts[(*n)++] = (struct ledger_part){at, until};
        if (!last && v->excluded[i].to_ns > at)
            at = v->excluded[i].to_ns;
    }
    return parts;
}

static bool overlaps(const struct ledger_part *parts, uint32_t n, const struct ledger_attempt *x)
{
    for (uint32_t i = 0; i < n; i++)
        if (x->from_ns < parts[i].to_ns && x->to_ns > parts[i].from_ns)
            return true;
    return false;
}

/* What is counted, of the same parts as the sums. Progress made stays made when its time is excluded. */
static void count(const struct ledger *l, const struct ledger_view *v, int64_t from_ns,
                  int64_t to_ns, const struct ledger_part *parts, uint32_t n_parts,
                  struct ledger_sums *t)
{
    for (uint32_t i = 0; i < l->n_attempts; i++)
        t->n_attempts += overlaps(parts, n_parts, &l->attempts[i]);
    for (uint32_t i = 0; i < l->n_disruptions; i++)
        t->n_disruptions +=
            l->disruptions_ns[i] >= from_ns && l->disruptions_ns[i] <= to_ns &&
            ledger_part_at(v->excluded, v->n_excluded, l->disruptions_ns[i]) == NULL;
    t->max_productive_step = to_ns == l->to_ns ? l->max_productive_step : -1;
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        if (!s->wasted && s->from_ns >= from_ns && s->from_ns + s->dur_ns <= to_ns &&
            s->step > t->max_productive_step)
            t->max_productive_step = s->step;
    }
}

bool ledger_sums(const struct ledger *l, const struct ledger_view *v, int64_t from_ns,
                 int64_t to_ns, struct arena *a, struct ledger_sums *out, struct err *e)
{
    uint32_t n_parts;
    const struct ledger_part *parts = parts_of(v, from_ns, to_ns, a, &n_parts);
    *out = (struct ledger_sums){0};
    if (parts == NULL)
        return arena_full(a, e);
    for (uint32_t i = 0; i < n_parts; i++)
        out->whole_ns += parts[i].to_ns - parts[i].from_ns;
    out->excluded_ns = to_ns - from_ns - out->whole_ns;
    out->items = ledger_sum(l, parts, n_parts, a, &out->n);
    if (a->overflow)
        return arena_full(a, e);
    for (uint32_t i = 0; i < out->n; i++)
        if (out->items[i].category == LEDGER_PRODUCTIVE_STEP)
            out->good_ns += out->items[i].total_ns;
    count(l, v, from_ns, to_ns, parts, n_parts, out);
    out->step_stats = ledger_step_stats(l, parts, n_parts, to_ns, a);
    return a->overflow ? arena_full(a, e) : true;
}
