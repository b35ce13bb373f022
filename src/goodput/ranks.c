/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks beside the lead: who computes longer than the others, and who never finished a step.
 * Only durations are compared, never the clocks of two hosts. */
#include "goodput/timeline.h"

#include <math.h>
#include <stdlib.h>

#define SLOW_FACTOR 1.05  /* a step's computation beyond the median of its ranks */
#define SLOW_PERCENT 10.0 /* for ranks whose whole step times are all that is known */
#define STRETCH_STEPS 5   /* slow in that many steps of a stretch */
#define STRETCH_GAP 2     /* steps in between that were not */
#define RANKS_MIN 3       /* to say what the others do */

struct sample { /* one rank in one step */
    int32_t attempt;
    int64_t step;
    uint32_t process;
    double compute_s;
    bool slow;
};

struct samples {
    struct sample *items;
    uint32_t n, capacity;
};

static int compare_samples(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    if (a->attempt != b->attempt)
        return a->attempt < b->attempt ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->process < b->process ? -1 : a->process > b->process;
}

static int compare_f64(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static struct samples collect(struct timeline *t)
{
    struct samples out = {0};
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->kind != RECORD_METRIC || !str_eq(r->text, S("step.compute_s")) ||
            r->process >= t->set->n_processes || (!isnan(r->value) && !(r->value >= 0)))
            continue;
        if (ARENA_PUSH(t->a, out.items, out.n, out.capacity))
            out.items[out.n - 1] = (struct sample){r->code, r->step, r->process, r->value, false};
    }
    if (out.n > 1)
        qsort(out.items, out.n, sizeof *out.items, compare_samples);
    return out;
}

static uint32_t group_end(const struct samples *s, uint32_t from)
{
    uint32_t to = from + 1;
    while (to < s->n && s->items[to].attempt == s->items[from].attempt &&
           s->items[to].step == s->items[from].step)
        to++;
    return to;
}

/* Median of those who finished; NaN when there are too few. */
static double group_median(const struct samples *s, uint32_t from, uint32_t to, double *scratch)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        if (!isnan(s->items[i].compute_s))
            scratch[n++] = s->items[i].compute_s;
    if (n < RANKS_MIN)
        return (double)NAN;
    qsort(scratch, n, sizeof *scratch, compare_f64);
    return n % 2 == 1 ? scratch[n / 2] : (scratch[n / 2 - 1] + scratch[n / 2]) / 2;
}

static void mark_slow(struct samples *s, double *scratch)
{
    for (uint32_t from = 0, to; from < s->n; from = to) {
        to = group_end(s, from);
        const double median = group_median(s, from, to, scratch);
        for (uint32_t i = from; i < to; i++)
            s->items[i].slow = !isnan(median) && s->items[i].compute_s > median * SLOW_FACTOR;
    }
}

/* What the step took longer because of this rank: beyond the slowest of those that are not slow. */
static double cost_in(const struct samples *s, uint32_t at)
{
    uint32_t from = at;
    while (from > 0 && s->items[from - 1].attempt == s->items[at].attempt &&
           s->items[from - 1].step == s->items[at].step)
        from--;
    double others = 0;
    for (uint32_t i = from, to = group_end(s, from); i < to; i++)
        if (!s->items[i].slow && s->items[i].compute_s > others)
            others = s->items[i].compute_s;
    const double cost = s->items[at].compute_s - others;
    return cost > 0 ? cost : 0;
}

struct stretch {
    int64_t first, last;
    uint32_t n, gap;
    double cost_s;
};

static void close_stretch(struct timeline *t, struct ledger_rank *rank, struct stretch *s)
{
    if (s->n >= STRETCH_STEPS) {
        rank->straggler = true;
        rank->cost_ns += (int64_t)(s->cost_s * 1e9);
        rank->first_slow_step = rank->first_slow_step < 0 || s->first < rank->first_slow_step
                                    ? s->first
                                    : rank->first_slow_step;
        rank->last_slow_step = s->last > rank->last_slow_step ? s->last : rank->last_slow_step;
        record_set_note(
            t->set, arena_printf(t->a, "straggler_rank_%d", rank->rank), s->n,
            "rank %d (%.*s) computes longer than the others in steps %lld to %lld: at most %.2f s",
            rank->rank, STR_ARG(rank->host), (long long)s->first, (long long)s->last, s->cost_s);
    }
    *s = (struct stretch){0};
}

static void find_stretches(struct timeline *t, const struct samples *s, uint32_t process,
                           struct ledger_rank *rank)
{
    struct stretch open = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->items[i].process != process)
            continue;
        if (s->items[i].slow) {
            open.first = open.n == 0 ? s->items[i].step : open.first;
            open.last = s->items[i].step;
            open.n++;
            open.gap = 0;
            open.cost_s += cost_in(s, i);
        } else if (open.n > 0 && ++open.gap > STRETCH_GAP) {
            close_stretch(t, rank, &open);
        }
    }
    close_stretch(t, rank, &open);
}

/* A rank that never finished a step which others finished. */
static void find_hung(struct timeline *t, const struct samples *s, uint32_t process,
                      struct ledger_rank *rank)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->items[i].process != process || !isnan(s->items[i].compute_s))
            continue;
        rank->hung_step = s->items[i].step;
        record_set_note(t->set, arena_printf(t->a, "hung_rank_%d", rank->rank), 1,
                        "rank %d (%.*s) never finished step %lld of attempt %d", rank->rank,
                        STR_ARG(rank->host), (long long)rank->hung_step, s->items[i].attempt);
    }
}

bool timeline_hung_step(const struct timeline *t, uint32_t attempt, int64_t step, int64_t *after_ns)
{
    bool hung = false, moved = false;
    double most = 0;
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->kind != RECORD_METRIC || r->step != step || r->code != (int32_t)attempt ||
            !str_eq(r->text, S("step.compute_s")))
            continue;
        hung |= isnan(r->value);
        moved |= !isnan(r->value);
        if (r->value > most && r->value < 1e9)
            most = r->value;
    }
    *after_ns = (int64_t)(most * 1e9);
    return hung && moved;
}

/* Work of the rank's steps: what was measured as computation, else the whole of each step. */
static int64_t rank_p50(struct timeline *t, const struct samples *s, uint32_t process)
{
    int64_t *work = NULL, open_ns = -1, open_step = -1;
    uint32_t n = 0, capacity = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->items[i].process == process && !isnan(s->items[i].compute_s) &&
            s->items[i].compute_s < 1e9 && ARENA_PUSH(t->a, work, n, capacity))
            work[n - 1] = (int64_t)(s->items[i].compute_s * 1e9);
    if (n > 0)
        return timeline_median(work, n);
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->process != process || r->phase != PHASE_STEP)
            continue;
        if (r->kind == RECORD_BEGIN) {
            open_ns = r->wall_ns;
            open_step = r->step;
        } else if (r->kind == RECORD_END && open_ns >= 0 && r->step == open_step) {
            if (ARENA_PUSH(t->a, work, n, capacity))
                work[n - 1] = r->wall_ns - open_ns;
            open_ns = -1;
        }
    }
    return timeline_median(work, n);
}

static struct ledger_rank *rank_row(struct timeline *t, struct ledger *out,
                                    const struct record_process *p)
{
    for (uint32_t i = 0; i < out->n_ranks; i++)
        if (out->ranks[i].rank == p->rank)
            return &out->ranks[i];
    if (!ARENA_PUSH(t->a, out->ranks, out->n_ranks, out->ranks_capacity))
        return NULL;
    struct ledger_rank *made = &out->ranks[out->n_ranks - 1];
    *made = (struct ledger_rank){.rank = p->rank,
                                 .host = p->host,
                                 .step_p50_ns = -1,
                                 .first_slow_step = -1,
                                 .last_slow_step = -1,
                                 .hung_step = -1};
    return made;
}

static int compare_ranks(const void *left, const void *right)
{
    const struct ledger_rank *a = left, *b = right;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void compare_p50(struct timeline *t, struct ledger *out, bool measured)
{
    int64_t *p50 = ARENA_ARRAY(t->a, int64_t, out->n_ranks + 1);
    uint32_t n = 0;
    if (p50 == NULL)
        return;
    for (uint32_t i = 0; i < out->n_ranks; i++)
        if (out->ranks[i].step_p50_ns > 0)
            p50[n++] = out->ranks[i].step_p50_ns;
    const int64_t median = timeline_median(p50, n);
    for (uint32_t i = 0; median > 0 && i < out->n_ranks; i++) {
        struct ledger_rank *r = &out->ranks[i];
        if (r->step_p50_ns <= 0)
            continue;
        r->slower_percent = 100.0 * ((double)r->step_p50_ns / (double)median - 1.0);
        if (!measured && n >= RANKS_MIN && r->slower_percent >= SLOW_PERCENT)
            r->straggler = true;
    }
}

void timeline_ranks(struct timeline *t, struct ledger *out)
{
    struct samples s = collect(t);
    double *scratch = ARENA_ARRAY(t->a, double, s.n + 1);
    if (scratch == NULL)
        return;
    mark_slow(&s, scratch);
    for (uint32_t i = 0; i < t->set->n_processes; i++) {
        const struct record_process *p = &t->set->processes[i];
        if (p->runner || p->rank < 0)
            continue;
        struct ledger_rank *row = rank_row(t, out, p);
        if (row == NULL)
            return;
        const int64_t p50 = rank_p50(t, &s, i);
        if (p50 >= 0)
            row->step_p50_ns = p50; /* of its newest process with steps */
        find_stretches(t, &s, i, row);
        find_hung(t, &s, i, row);
    }
    if (out->n_ranks > 1)
        qsort(out->ranks, out->n_ranks, sizeof *out->ranks, compare_ranks);
    compare_p50(t, out, s.n > 0);
}
