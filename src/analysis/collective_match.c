/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/collective_match.h"

#include <stdlib.h>

#include "analysis/collective_collect.h"

#define ENDS_COMPARED 16 /* of a device's first ones, to see where its capture begins */

struct run { /* of one device in one block: the parts of one collective and sequence number */
    uint32_t first, n;
    uint32_t shift; /* of its first among those of the device that has most */
};

struct matcher {
    struct collectives *out;
    struct arena *arena;
    struct err *err;
    const struct collective_part *sighted; /* by collective, sequence, device, start */
    bool one_clock;
    struct run *runs; /* of the block at hand */
    uint32_t n_runs, runs_capacity;
};

static uint64_t end_of(const struct collective_part *p)
{
    return p->start_ps + p->dur_ps;
}

static int by_identity(const void *x, const void *y)
{
    const struct collective_part *a = x, *b = y;
    if (a->collective != b->collective)
        return a->collective < b->collective ? -1 : 1;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    return a->dur_ps < b->dur_ps ? -1 : a->dur_ps > b->dur_ps;
}

static int by_start(const void *x, const void *y)
{
    const struct collective_instance *a = x, *b = y;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Where the device with fewer begins among those of the one with most. */
static uint32_t best_shift(const struct matcher *m, const struct run *most, const struct run *r)
{
    uint32_t best = 0;
    double least = -1;
    for (uint32_t shift = 0; shift <= most->n - r->n; shift++) {
        double sum = 0;
        for (uint32_t i = 0; i < r->n && i < ENDS_COMPARED; i++)
            sum += (double)difference(end_of(&m->sighted[r->first + i]),
                                      end_of(&m->sighted[most->first + shift + i]));
        if (least < 0 || sum < least) {
            least = sum;
            best = shift;
        }
    }
    return best;
}

/* The one that took least time; where several did, the last to begin, if the clocks tell. */
static uint32_t last_of(const struct collective_part *parts, uint32_t n, bool one_clock)
{
    const struct collective_part *last = &parts[0];
    bool sure = true;
    for (uint32_t i = 1; i < n; i++) {
        const bool same = parts[i].dur_ps == last->dur_ps;
        if (parts[i].dur_ps > last->dur_ps ||
            (same && one_clock && parts[i].start_ps < last->start_ps))
            continue;
        sure = !same || (one_clock && parts[i].start_ps != last->start_ps);
        last = &parts[i];
    }
    return sure ? last->device : UINT32_MAX;
}

static void measure_parts(struct matcher *m, struct collective_instance *x)
{
    struct collective_part *parts = &m->out->parts[x->first];
    for (uint32_t i = 0; i < x->n; i++) {
        struct collective_rank *r = &m->out->ranks[parts[i].device];
        r->parts++;
        r->time_ps += parts[i].dur_ps;
        if (!x->matched)
            continue;
        parts[i].wait_ps = parts[i].dur_ps - x->transfer_ps;
        x->wait_ps += parts[i].wait_ps;
        r->matched++;
        r->matched_ps += parts[i].dur_ps;
        r->wait_ps += parts[i].wait_ps;
        r->last_count += parts[i].device == x->last;
        if (x->has_apart) {
            r->late_ps += parts[i].start_ps - x->start_ps;
            r->n_late++;
        }
    }
}

static void measure(struct matcher *m, struct collective_instance *x)
{
    const struct collective_part *parts = &m->out->parts[x->first];
    const struct collective *c = &m->out->items[x->collective];
    uint64_t last_start = 0;
    bool sizes_differ = false;
    x->start_ps = x->transfer_ps = UINT64_MAX;
    for (uint32_t i = 0; i < x->n; i++) {
        x->start_ps = parts[i].start_ps < x->start_ps ? parts[i].start_ps : x->start_ps;
        x->end_ps = end_of(&parts[i]) > x->end_ps ? end_of(&parts[i]) : x->end_ps;
        x->transfer_ps = parts[i].dur_ps < x->transfer_ps ? parts[i].dur_ps : x->transfer_ps;
        last_start = parts[i].start_ps > last_start ? parts[i].start_ps : last_start;
        sizes_differ |= parts[i].bytes != parts[0].bytes;
    }
    x->matched = x->n > 1 || c->group_size == 1;
    x->bytes = sizes_differ ? 0 : parts[0].bytes;
    x->has_apart = x->matched && m->one_clock;
    x->apart_ps = last_start - x->start_ps;
    x->last = x->n > 1 ? last_of(parts, x->n, m->one_clock) : UINT32_MAX;
    m->out->n_unmatched += !x->matched;
    m->out->n_sizes_differ += sizes_differ;
    m->out->n_incomplete += x->matched && x->n < c->group_size;
    measure_parts(m, x);
}

static bool begin_instance(struct matcher *m, const struct collective_part *like)
{
    struct collectives *out = m->out;
    if (!ARENA_PUSH(m->arena, out->instances, out->n_instances, out->instances_capacity))
        return arena_full(m->arena, m->err);
    out->instances[out->n_instances - 1] = (struct collective_instance){
        .collective = like->collective, .sequence = like->sequence, .first = out->n_parts};
    return true;
}

static void take(struct matcher *m, const struct collective_part *part)
{
    m->out->parts[m->out->n_parts++] = *part;
    m->out->instances[m->out->n_instances - 1].n++;
}

/* Those of the block that are on a place together; a run that cannot be placed stands alone. */
static bool match_block(struct matcher *m)
{
    const struct run *most = &m->runs[0];
    for (uint32_t i = 1; i < m->n_runs; i++)
        most = m->runs[i].n > most->n ? &m->runs[i] : most;
    for (uint32_t i = 0; i < m->n_runs; i++)
        if (m->runs[i].n < most->n)
            m->runs[i].shift = m->one_clock ? best_shift(m, most, &m->runs[i]) : UINT32_MAX;
    for (uint32_t k = 0; k < most->n; k++) {
        if (!begin_instance(m, &m->sighted[most->first + k]))
            return false;
        for (uint32_t i = 0; i < m->n_runs; i++) {
            const struct run *r = &m->runs[i];
            if (r->shift != UINT32_MAX && k >= r->shift && k - r->shift < r->n)
                take(m, &m->sighted[r->first + k - r->shift]);
        }
        measure(m, &m->out->instances[m->out->n_instances - 1]);
    }
    for (uint32_t i = 0; i < m->n_runs; i++)
        for (uint32_t k = 0; m->runs[i].shift == UINT32_MAX && k < m->runs[i].n; k++) {
            if (!begin_instance(m, &m->sighted[m->runs[i].first + k]))
                return false;
            take(m, &m->sighted[m->runs[i].first + k]);
            measure(m, &m->out->instances[m->out->n_instances - 1]);
        }
    return true;
}

static bool match_all(struct matcher *m, uint32_t n)
{
    bool ok = true;
    for (uint32_t i = 0, next; ok && i < n; i = next) {
        m->n_runs = 0;
        for (next = i; ok && next < n && m->sighted[next].collective == m->sighted[i].collective &&
                       m->sighted[next].sequence == m->sighted[i].sequence;
             next++) {
            if (next == i || m->sighted[next].device != m->sighted[next - 1].device) {
                ok = ARENA_PUSH(m->arena, m->runs, m->n_runs, m->runs_capacity) ||
                     arena_full(m->arena, m->err);
                if (ok)
                    m->runs[m->n_runs - 1] = (struct run){.first = next};
            }
            if (ok)
                m->runs[m->n_runs - 1].n++;
        }
        ok = ok && match_block(m);
    }
    return ok;
}

bool collectives_of(const struct profile *p, struct arena *a, struct collectives *out,
                    struct err *e)
{
    *out = (struct collectives){0};
    if (!work_devices_of(p, a, &out->devices, e) || !collectives_collect(p, a, out, e))
        return false;
    const uint32_t n = out->n_parts;
    struct matcher m = {.out = out,
                        .arena = a,
                        .err = e,
                        .sighted = out->parts,
                        .one_clock = p->has_epoch || p->n_traces == 1};
    if (n > 1)
        qsort(out->parts, n, sizeof *out->parts, by_identity);
    out->parts = ARENA_ARRAY(a, struct collective_part, (size_t)n + 1);
    out->ranks = ARENA_ARRAY(a, struct collective_rank, (size_t)out->devices.n + 1);
    if (out->parts == NULL || out->ranks == NULL)
        return arena_full(a, e);
    out->n_parts = 0;
    if (!match_all(&m, n))
        return false;
    if (out->n_instances > 1)
        qsort(out->instances, out->n_instances, sizeof *out->instances, by_start);
    return true;
}

double collective_bus_bytes(str kind, uint64_t bytes, uint32_t n)
{
    if (bytes == 0 || n < 2)
        return 0;
    const double others = (n - 1) / (double)n;
    if (str_eq(kind, S("all-reduce")))
        return (double)bytes * 2 * others;
    if (str_eq(kind, S("all-gather")) || str_eq(kind, S("reduce-scatter")) ||
        str_eq(kind, S("all-to-all")) || str_eq(kind, S("ragged-all-to-all")))
        return (double)bytes * others;
    return kind.n > 0 ? (double)bytes : 0;
}
