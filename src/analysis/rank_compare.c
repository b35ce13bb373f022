/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rank_compare.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/cohort.h"

#define OUTLIER_Z 3.5      /* of five and more */
#define LEAST_SHARE 0.01   /* of a step: less names nobody */
#define OUTLIER_RATIO 1.10 /* of three or four */

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

/* Who has most of a part of its own over the median: as an outlier, by a tenth, and by more than noise. */
static void find_straggler(struct rank_compare *r)
{
    static const enum rank_part own[] = {RANK_COMPUTE, RANK_COPY, RANK_STARVED, RANK_LATENCY};
    r->straggler = UINT32_MAX;
    for (uint32_t i = 0; i < r->budget.work.n; i++)
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            const struct rank_value *v = &r->rows[i].parts[own[k]];
            const double excess = v->value_ps - v->median_ps;
            if (!v->known || !v->outlier || !(v->ratio >= OUTLIER_RATIO) ||
                excess < LEAST_SHARE * r->rows[i].parts[RANK_STEP].median_ps ||
                (r->straggler != UINT32_MAX && excess <= r->excess_ps))
                continue;
            r->straggler = i;
            r->culprit = own[k];
            r->excess_ps = excess;
        }
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
    find_straggler(out);
    return true;
}
