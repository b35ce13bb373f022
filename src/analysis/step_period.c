/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/step_period.h"

#include <stdlib.h>

struct sequence {
    uint32_t *names;              /* metadata of each event, in order */
    uint64_t *start_ps, *idle_ps; /* idle_ps: before it, on the stream */
    uint32_t n;
    uint64_t end_ps;
};

static bool read_sequence(const struct trace *t, uint32_t line, struct arena *a, struct sequence *s,
                          struct err *e)
{
    const uint64_t n = t->lines[line].n_events;
    const size_t room = n < PERIOD_EVENTS ? (size_t)n : PERIOD_EVENTS;
    *s = (struct sequence){ARENA_ARRAY(a, uint32_t, room), ARENA_ARRAY(a, uint64_t, room),
                           ARENA_ARRAY(a, uint64_t, room), 0, 0};
    if (room > 0 && (s->names == NULL || s->start_ps == NULL || s->idle_ps == NULL))
        return arena_full(a, e);
    struct trace_cursor c;
    for (trace_cursor_init_work(&c, t, line); s->n < room && trace_cursor_next(&c);) {
        if (c.event.num_occurrences > 0 || c.event.dur_ps == 0)
            continue;
        const uint64_t end_ps = c.event.start_ps + c.event.dur_ps;
        s->names[s->n] = c.event.metadata_index;
        s->start_ps[s->n] = c.event.start_ps;
        s->idle_ps[s->n++] = c.event.start_ps > s->end_ps ? c.event.start_ps - s->end_ps : 0;
        s->end_ps = end_ps > s->end_ps ? end_ps : s->end_ps;
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, e);
}

/* --- the period ------------------------------------------------------------------------------- */

struct rare { /* a name by how often it comes */
    uint32_t name, count;
};

static int by_count(const void *x, const void *y)
{
    const struct rare *a = x, *b = y;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

/* How many events have the same name p later. */
static uint32_t matches(const struct sequence *s, uint32_t p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i + p < s->n; i++)
        n += s->names[i] == s->names[i + p];
    return n;
}

/* The distance of the two occurrences in the middle of the sequence: far from its ends. */
static uint32_t distance_of(const struct sequence *s, uint32_t name, uint32_t count)
{
    uint32_t seen = 0, before = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->names[i] != name)
            continue;
        if (++seen == count / 2 + 1)
            return i - before;
        before = i;
    }
    return 0;
}

/* Distances at which rarer names come again; those that come equally often have the same. */
static uint32_t candidates(const struct sequence *s, const struct rare *names, uint32_t n,
                           uint32_t out[static PERIOD_CANDIDATES])
{
    uint32_t n_out = 0, before = 0;
    for (uint32_t i = 0; i < n && n_out < PERIOD_CANDIDATES; i++) {
        if (names[i].count < PERIOD_STEPS_MIN || names[i].count == before)
            continue;
        before = names[i].count;
        const uint32_t p = distance_of(s, names[i].name, names[i].count);
        bool known = p == 0 || (uint64_t)p * (PERIOD_STEPS_MIN - 1) > s->n;
        for (uint32_t k = 0; k < n_out; k++)
            known = known || out[k] == p;
        if (!known)
            out[n_out++] = p;
    }
    return n_out;
}

/* The smallest that is kept as well as the best one, or nearly; 0: none is. Layers of one kind repeat
 * within a step, too, but break off at its ends. */
static uint32_t find_period(const struct sequence *s, const struct rare *names, uint32_t n,
                            double *match)
{
    uint32_t p[PERIOD_CANDIDATES], best = 0;
    double share[PERIOD_CANDIDATES], most = 0;
    const uint32_t n_p = candidates(s, names, n, p);
    for (uint32_t i = 0; i < n_p; i++) {
        share[i] = (double)matches(s, p[i]) / (double)(s->n - p[i]);
        most = share[i] > most ? share[i] : most;
    }
    for (uint32_t i = 0; i < n_p && most >= PERIOD_MATCH_MIN; i++)
        if (share[i] >= most - PERIOD_MATCH_NEAR && (best == 0 || p[i] < best)) {
            best = p[i];
            *match = share[i];
        }
    return best;
}

static bool count_names(const struct trace *t, uint32_t line, const struct sequence *s,
                        struct arena *a, struct rare **out, uint32_t *n, struct err *e)
{
    const uint32_t most = t->planes[t->lines[line].plane_index].n_event_metadata;
    struct rare *names = *out = ARENA_ARRAY(a, struct rare, (size_t)most + 1);
    *n = 0;
    if (names == NULL)
        return arena_full(a, e);
    for (uint32_t i = 0; i < s->n; i++)
        names[s->names[i] < most ? s->names[i] : most].count++;
    for (uint32_t i = 0; i < most; i++)
        if (names[i].count > 0)
            names[(*n)++] = (struct rare){i, names[i].count};
    if (*n > 1)
        qsort(names, *n, sizeof *names, by_count);
    return true;
}

/* --- where in the period a step begins -------------------------------------------------------- */

/* The place before which the stream idled most, in sum; the first event of the stream has no before. */
static uint32_t find_phase(const struct sequence *s, uint32_t p, uint64_t *idle_ps)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->n; i++)
        idle_ps[i % p] += s->idle_ps[i];
    for (uint32_t i = 1; i < p; i++)
        if (idle_ps[i] > idle_ps[best])
            best = i;
    return best;
}

static int by_length(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Whether the periods last about equally long. `lengths` has room for them. */
static bool is_regular(const struct step_period *p, uint64_t *lengths)
{
    const uint32_t n = p->n - 1;
    uint32_t n_near = 0;
    for (uint32_t i = 0; i < n; i++)
        lengths[i] = p->items[i + 1].begin_ps - p->items[i].begin_ps;
    qsort(lengths, n, sizeof *lengths, by_length);
    const uint64_t median = lengths[n / 2];
    for (uint32_t i = 0; i < n; i++)
        n_near += lengths[i] >= median / 2 && lengths[i] <= median + median / 2;
    return n_near >= PERIOD_REGULAR_MIN * n;
}

bool step_period_of(const struct trace *t, uint32_t line_index, struct arena *a,
                    struct step_period *out, struct err *e)
{
    struct sequence s;
    struct rare *names;
    uint32_t n_names;
    *out = (struct step_period){0};
    if (!read_sequence(t, line_index, a, &s, e) ||
        !count_names(t, line_index, &s, a, &names, &n_names, e))
        return false;
    const uint32_t p = find_period(&s, names, n_names, &out->match);
    if (p == 0)
        return true;
    uint64_t *idle_ps = ARENA_ARRAY(a, uint64_t, p);
    if (idle_ps == NULL)
        return arena_full(a, e);
    for (uint32_t i = find_phase(&s, p, idle_ps); i < s.n; i += p) {
        if (!ARENA_PUSH(a, out->items, out->n, out->capacity))
            return arena_full(a, e);
        out->items[out->n - 1] = (struct period_begin){s.start_ps[i] - s.idle_ps[i], s.start_ps[i]};
    }
    out->end_ps = s.end_ps;
    if (out->n < PERIOD_STEPS_MIN || !is_regular(out, s.idle_ps)) /* no longer needed otherwise */
        out->n = 0;
    return true;
}
