/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rank_compare.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/cohort.h"

#define OUTLIER_Z 3.5      /* of five and more */
#define LEAST_SHARE 0.01   /* of a step: less names nobody */
#define OUTLIER_RATIO 1.10 /* of three or four */
#define LEAST_STEPS 3
#define LATE_P 0.01

const char *rank_part_word(enum rank_part p)
{
    static const char *const words[RANK_PARTS] = {
        "step",           "compute", "comm_exposed",   "copy_exposed", "idle",
        "launch_starved", "blocked", "launch_latency", "unknown",      "comm_wait"};
    return words[p];
}

/* ---- statistics ---- */

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

double rank_median(double *values, uint32_t n)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double rank_z(double x, double median, double mad)
{
    const double scale = fmax(mad, 0.01 * median);
    if (scale > 0)
        return 0.6745 * (x - median) / scale;
    return x == median ? 0 : NAN;
}

/* ---- cohorts ---- */

static bool find_cohorts(struct rank_compare *r, struct arena *a)
{
    const uint32_t n = r->budget.work.n;
    uint32_t *cohort = ARENA_ARRAY(a, uint32_t, n);
    uint32_t *sizes = ARENA_ARRAY(a, uint32_t, n);
    if ((cohort == NULL || sizes == NULL) && n > 0)
        return false;
    r->n_cohorts = cohorts_of(&r->budget, cohort);
    for (uint32_t i = 0; i < n; i++)
        sizes[cohort[i]]++;
    for (uint32_t i = 0; i < n; i++) {
        r->rows[i].cohort = cohort[i];
        r->rows[i].cohort_size = sizes[cohort[i]];
    }
    return true;
}

/* ---- values ---- */

static bool counts(const struct budget_device *d, const struct budget_step *s)
{
    return s->is_complete || budget_complete(d) == 0;
}

static void set(struct rank_row *row, enum rank_part part, double value_ps)
{
    row->parts[part].known = true;
    row->parts[part].value_ps = value_ps;
}

static void take_budget(struct rank_row *row, const struct budget_device *d)
{
    static const enum rank_part parts[BUDGET_PARTS] = {
        [BUDGET_COMPUTE] = RANK_COMPUTE, [BUDGET_COMM] = RANK_COMM,
        [BUDGET_COPY] = RANK_COPY,       [BUDGET_STARVED] = RANK_STARVED,
        [BUDGET_BLOCKED] = RANK_BLOCKED, [BUDGET_LATENCY] = RANK_LATENCY,
        [BUDGET_UNKNOWN] = RANK_UNKNOWN};
    uint64_t sums[BUDGET_PARTS] = {0}, idle = 0, all = 0;
    for (uint32_t i = 0; i < d->n_steps; i++) {
        const struct budget_step *s = &d->steps[i];
        if (!counts(d, s))
            continue;
        row->n_steps++;
        all += s->end_ps - s->begin_ps;
        idle += budget_idle_ps(s);
        for (uint32_t p = 0; p < BUDGET_PARTS; p++)
            sums[p] += s->part_ps[p];
    }
    if (row->n_steps == 0)
        return;
    set(row, RANK_STEP, (double)all / row->n_steps);
    set(row, RANK_IDLE, (double)idle / row->n_steps);
    for (uint32_t p = 0; p < BUDGET_PARTS; p++)
        if (budget_part_known(d, (enum budget_part)p))
            set(row, parts[p], (double)sums[p] / row->n_steps);
}

/* Waiting in collectives within the steps, several at once counted once; known where all are matched. */
static bool take_waits(struct rank_compare *r, struct arena *a)
{
    const struct collectives *c = &r->collectives;
    struct spans *waits = ARENA_ARRAY(a, struct spans, (size_t)c->devices.n + 1);
    for (uint32_t i = 0; waits != NULL && i < c->n_parts; i++) {
        const struct collective_part *part = &c->parts[i];
        const uint64_t from = part->start_ps - c->devices.items[part->device].trace->shift_ps;
        if (!spans_add(&waits[part->device], a, from, from + part->wait_ps))
            return false;
    }
    for (uint32_t i = 0; waits != NULL && i < c->devices.n; i++) {
        const struct budget_device *d = &r->budget.devices[i];
        uint64_t sum = 0;
        if (c->ranks[i].parts == 0 || c->ranks[i].matched < c->ranks[i].parts ||
            r->rows[i].n_steps == 0)
            continue;
        spans_close(&waits[i]);
        for (uint32_t k = 0; k < d->n_steps; k++)
            if (counts(d, &d->steps[k]))
                sum += spans_within(&waits[i], d->steps[k].begin_ps, d->steps[k].end_ps);
        set(&r->rows[i], RANK_WAIT, (double)sum / r->rows[i].n_steps);
    }
    return waits != NULL;
}

/* ---- comparison ---- */

static void judge(struct rank_value *v, uint32_t n, double mad)
{
    v->ratio = v->median_ps > 0 ? v->value_ps / v->median_ps : NAN;
    v->z = n >= 5 ? rank_z(v->value_ps, v->median_ps, mad) : NAN;
    v->has_outlier = n >= 5 ? !isnan(v->z) : n >= 3 && !isnan(v->ratio);
    v->outlier =
        v->has_outlier && (n >= 5 ? fabs(v->z) > OUTLIER_Z
                                  : v->ratio >= OUTLIER_RATIO || v->ratio <= 1 / OUTLIER_RATIO);
}

static void compare(struct rank_compare *r, uint32_t cohort, enum rank_part part, double *values)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->budget.work.n; i++)
        if (r->rows[i].cohort == cohort && r->rows[i].parts[part].known)
            values[n++] = r->rows[i].parts[part].value_ps;
    const double median = rank_median(values, n);
    for (uint32_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - median);
    const double mad = rank_median(values, n);
    for (uint32_t i = 0; i < r->budget.work.n; i++) {
        struct rank_value *v = &r->rows[i].parts[part];
        if (r->rows[i].cohort != cohort || !v->known)
            continue;
        v->median_ps = median;
        judge(v, n, mad);
    }
}

/* ---- the straggler ---- */

struct scratch {
    double *values;                  /* one a device */
    double *over_median, *over_next; /* one a step */
};

static const struct {
    enum rank_part part;
    enum budget_part of;
} own[] = {{RANK_COMPUTE, BUDGET_COMPUTE},
           {RANK_COPY, BUDGET_COPY},
           {RANK_STARVED, BUDGET_STARVED},
           {RANK_LATENCY, BUDGET_LATENCY}};

static bool sum_chances(struct rank_compare *r, struct arena *a)
{
    const struct collectives *c = &r->collectives;
    r->chance = ARENA_ARRAY(a, double, (size_t)c->devices.n + 1);
    for (uint32_t i = 0; r->chance != NULL && i < c->n_instances; i++) {
        const struct collective_instance *x = &c->instances[i];
        for (uint32_t k = 0; x->matched && k < x->n; k++)
            r->chance[c->parts[x->first + k].device] += 1.0 / x->n;
    }
    return r->chance != NULL;
}

/* Last in half of its collectives and more, which by chance one of all ranks is in less than one of a hundred
 * profiles. Chernoff's bound of the binomial tail. */
static bool others_wait(const struct rank_compare *r, uint32_t device)
{
    const struct collective_rank *c = &r->collectives.ranks[device];
    if (c->matched == 0 || 2 * c->last_count < c->matched)
        return false;
    const double n = (double)c->matched, share = (double)c->last_count / n;
    const double chance = r->chance[device] / n;
    if (!(chance < share))
        return false;
    const double rest = share < 1 ? (1 - share) * log((1 - share) / (1 - chance)) : 0;
    const double divergence = share * log(share / chance) + rest;
    return r->collectives.devices.n * exp(-n * divergence) < LATE_P;
}

/* The one of that number, which mostly stands at `at`. */
static const struct budget_step *step_of(const struct budget_device *d, int64_t number, uint32_t at)
{
    if (at < d->n_steps && d->steps[at].number == number)
        return counts(d, &d->steps[at]) ? &d->steps[at] : NULL;
    for (uint32_t i = 0; i < d->n_steps; i++)
        if (d->steps[i].number == number)
            return counts(d, &d->steps[i]) ? &d->steps[i] : NULL;
    return NULL;
}

/* By how much a device's part is over its cohort's median of the same step, and over the next slowest's; of each the
 * median over steps, NaN of too few. */
struct step_excess {
    double median_ps, next_ps;
};

static struct step_excess excess_by_step(const struct rank_compare *r, uint32_t device,
                                         enum budget_part part, struct scratch *x)
{
    const struct budget_device *d = &r->budget.devices[device];
    uint32_t n_steps = 0;
    for (uint32_t i = 0; i < d->n_steps; i++) {
        uint32_t n = 0;
        double next = 0;
        const double mine = (double)d->steps[i].part_ps[part];
        if (!counts(d, &d->steps[i]))
            continue;
        for (uint32_t k = 0; k < r->budget.work.n; k++) {
            const struct budget_step *s =
                r->rows[k].cohort == r->rows[device].cohort
                    ? step_of(&r->budget.devices[k], d->steps[i].number, i)
                    : NULL;
            if (s == NULL)
                continue;
            x->values[n++] = (double)s->part_ps[part];
            next = k != device ? fmax(next, (double)s->part_ps[part]) : next;
        }
        if (n < 3)
            continue;
        x->over_next[n_steps] = mine - next;
        x->over_median[n_steps++] = mine - rank_median(x->values, n);
    }
    if (n_steps < LEAST_STEPS)
        return (struct step_excess){NAN, NAN};
    return (struct step_excess){rank_median(x->over_median, n_steps),
                                rank_median(x->over_next, n_steps)};
}

static bool is_slow(const struct rank_compare *r, uint32_t device, size_t k, struct scratch *x)
{
    const struct rank_value *v = &r->rows[device].parts[own[k].part];
    const double least = LEAST_SHARE * r->rows[device].parts[RANK_STEP].median_ps;
    if (!v->known || r->rows[device].cohort_size < 3 || !(v->value_ps - v->median_ps >= least))
        return false;
    const bool stands_out = v->outlier && v->ratio >= OUTLIER_RATIO;
    if (!stands_out && !others_wait(r, device))
        return false;
    const struct step_excess by_step = excess_by_step(r, device, own[k].of, x);
    if (stands_out) /* and not in one step alone */
        return isnan(by_step.median_ps) || by_step.median_ps >= least;
    return by_step.next_ps >= least;
}

static bool find_straggler(struct rank_compare *r, double *values, struct arena *a)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < r->budget.work.n; i++)
        most = r->budget.devices[i].n_steps > most ? r->budget.devices[i].n_steps : most;
    struct scratch x = {.values = values,
                        .over_median = ARENA_ARRAY(a, double, (size_t)most + 1),
                        .over_next = ARENA_ARRAY(a, double, (size_t)most + 1)};
    r->straggler = UINT32_MAX;
    if (x.over_median == NULL || x.over_next == NULL || !sum_chances(r, a))
        return false;
    for (uint32_t i = 0; i < r->budget.work.n; i++)
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            const struct rank_value *v = &r->rows[i].parts[own[k].part];
            const double over = v->value_ps - v->median_ps;
            if ((r->straggler != UINT32_MAX && over <= r->excess_ps) || !is_slow(r, i, k, &x))
                continue;
            r->straggler = i;
            r->culprit = own[k].part;
            r->excess_ps = over;
        }
    return true;
}

bool rank_compare_of(const struct profile *p, struct arena *a, struct rank_compare *out,
                     struct err *e)
{
    *out = (struct rank_compare){0};
    if (!step_budget_of(p, a, &out->budget, e) || !collectives_of(p, a, &out->collectives, e))
        return false;
    const uint32_t n = out->budget.work.n;
    double *values = ARENA_ARRAY(a, double, (size_t)n + 1);
    out->rows = ARENA_ARRAY(a, struct rank_row, (size_t)n + 1);
    if (values == NULL || out->rows == NULL)
        return arena_full(a, e);
    for (uint32_t i = 0; i < n; i++)
        take_budget(&out->rows[i], &out->budget.devices[i]);
    if (!take_waits(out, a) || !find_cohorts(out, a))
        return arena_full(a, e);
    for (uint32_t cohort = 0; cohort < out->n_cohorts; cohort++)
        for (uint32_t part = 0; part < RANK_PARTS; part++)
            compare(out, cohort, (enum rank_part)part, values);
    return find_straggler(out, values, a) || arena_full(a, e);
}
