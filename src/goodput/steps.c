/* SPDX-License-Identifier: Apache-2.0 */
/* Judges step executions: how long a warm one takes, what a first one took beyond that, which were
 * lost, and what became of the last. */
#include "goodput/ledger_build.h"
#include "goodput/timeline.h"

#include <stdlib.h>

#include "base/clock.h"

#define WARM_STEPS_MIN 3            /* of one group, to speak for it */
#define HANG_FACTOR 10              /* a step this many times longer than a warm one … */
#define HANG_MIN_NS (60 * NS_PER_S) /* … and at least this long stopped moving */
#define OUTLIER_MADS 3

static void measure(struct timeline *t, const struct timeline_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t span = pieces[i].span;
        if (span != UINT32_MAX && t->spans[span].step_index != TIMELINE_NO_STEP)
            t->steps[t->spans[span].step_index].work_ns += pieces[i].to_ns - pieces[i].from_ns;
    }
}

static bool is_warm(const struct timeline_step *s)
{
    return !s->cold && s->complete && !s->end_unknown && s->work_ns > 0;
}

/* Median work of warm steps, of one group or (UINT32_MAX) of all; -1 when fewer than `least`. */
static int64_t warm_median(const struct timeline *t, uint32_t from, uint32_t to, int64_t *scratch,
                           uint32_t least)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        if (is_warm(&t->steps[i]))
            scratch[n++] = t->steps[i].work_ns;
    return n >= least ? timeline_median(scratch, n) : -1;
}

/* A step that is begun again later, or that lies behind one that is, was work for nothing. */
static void find_lost(struct timeline *t)
{
    int64_t least_later = INT64_MAX;
    for (uint32_t i = t->n_steps; i > 0; i--) {
        struct timeline_step *s = &t->steps[i - 1];
        s->lost = least_later <= s->step || (s->died && !s->complete);
        if (s->step < least_later)
            least_later = s->step;
    }
}

static void judge(struct timeline_step *s, int64_t warm_ns, bool entries_only)
{
    s->own = s->in_progress ? LEDGER_IN_PROGRESS_STEP
             : s->lost      ? LEDGER_WASTED_PROGRESS
                            : LEDGER_PRODUCTIVE_STEP;
    s->keep_ns = s->work_ns;
    if (s->stuck_after_ns >= 0) {
        s->keep_ns = s->stuck_after_ns;
        s->rest = LEDGER_HANG;
    } else if (warm_ns < 0) {
        return;
    } else if (s->cold && s->complete && !s->end_unknown) {
        s->extra_ns = s->work_ns > warm_ns ? s->work_ns - warm_ns : 0;
    } else if (s->end_unknown) {
        s->keep_ns = warm_ns;
        s->rest = s->cold ? LEDGER_PROGRAM_STARTUP : LEDGER_OTHER;
    } else if (!entries_only && !s->complete && !s->cold && s->work_ns >= HANG_MIN_NS &&
               s->work_ns / HANG_FACTOR >= warm_ns) {
        s->keep_ns = warm_ns;
        s->rest = LEDGER_HANG;
    }
}

void timeline_judge_steps(struct timeline *t, const struct timeline_piece *pieces, uint32_t n)
{
    int64_t *scratch = ARENA_ARRAY(t->a, int64_t, t->n_steps + 1);
    if (scratch == NULL)
        return;
    measure(t, pieces, n);
    find_lost(t);
    const int64_t overall = warm_median(t, 0, t->n_steps, scratch, 1);
    for (uint32_t from = 0, to; from < t->n_steps; from = to) {
        for (to = from + 1; to < t->n_steps && t->steps[to].group == t->steps[from].group;)
            to++;
        int64_t warm = warm_median(t, from, to, scratch, WARM_STEPS_MIN);
        if (warm < 0)
            warm = overall;
        for (uint32_t i = from; i < to; i++)
            judge(&t->steps[i], warm, t->set->entries_only);
    }
}

/* Mean of the warm steps that are no outliers: what a step takes when nothing is wrong. */
static int64_t ideal_of(int64_t *work, int64_t *scratch, uint32_t n)
{
    const int64_t median = timeline_median(work, n);
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = work[i] > median ? work[i] - median : median - work[i];
    const int64_t mad = timeline_median(scratch, n);
    double sum = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t off = work[i] > median ? work[i] - median : median - work[i];
        if (off / OUTLIER_MADS <= mad) {
            sum += (double)work[i];
            kept++;
        }
    }
    return kept == 0 ? median : (int64_t)(sum / kept);
}

/* A step that reaches out of its part is counted only where the whole span ends, not into a cut. */
static bool is_in(const struct ledger_step *s, const struct ledger_part *parts, uint32_t n_parts,
                  int64_t to_ns)
{
    const struct ledger_part *part = ledger_part_at(parts, n_parts, s->from_ns);
    return part != NULL && (part->to_ns == to_ns || s->from_ns + s->dur_ns <= part->to_ns);
}

struct ledger_step_stats ledger_step_stats(const struct ledger *l, const struct ledger_part *parts,
                                           uint32_t n_parts, int64_t to_ns, struct arena *a)
{
    struct ledger_step_stats out = {0};
    int64_t *work = ARENA_ARRAY(a, int64_t, l->n_steps + 1);
    int64_t *scratch = ARENA_ARRAY(a, int64_t, l->n_steps + 1);
    uint32_t n = 0;
    double sum = 0, off = 0;
    if (work == NULL || scratch == NULL)
        return out;
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        if (s->startup || s->dur_ns <= 0 || !is_in(s, parts, n_parts, to_ns))
            continue;
        work[n++] = s->dur_ns;
        sum += (double)s->dur_ns;
    }
    if (n == 0)
        return out;
    out.n = n;
    out.ideal_ns = ideal_of(work, scratch, n); /* sorts work */
    for (uint32_t i = 0; i < n; i++)
        off += (double)(work[i] > out.ideal_ns ? work[i] - out.ideal_ns : out.ideal_ns - work[i]);
    out.mean_ns = (int64_t)(sum / n);
    out.p50_ns = n % 2 == 1 ? work[n / 2] : work[n / 2 - 1] + (work[n / 2] - work[n / 2 - 1]) / 2;
    out.p99_ns = work[(uint64_t)(n - 1) * 99 / 100];
    out.deviation_ns = (int64_t)(off / n);
    return out;
}
