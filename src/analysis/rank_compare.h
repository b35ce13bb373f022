/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank's steps went into, beside the ranks that do equal work.
 *
 * A rank is a device of the profile (device_work.h). Its parts are those of step_budget.h, as the mean of its
 * complete steps (of all steps where none is complete), and what it waited for others inside
 * collectives (collective_match.h). Only devices of one cohort are compared: those that run the same kernels
 * or operations equally often a step (at least 90 % of all calls have their like on the other device).
 *
 * Against the cohort's median: z = 0.6745 (x - median) / max(MAD, 1 % of median). Of five and more an outlier is
 * beyond 3.5; of three or four the ratio alone tells, from 1.10 on or below 1 / 1.10; of two nothing does.
 * Source: Iglewicz and Hoaglin, "How to detect and handle outliers", 1993.
 *
 * In step with each other all ranks take the same time: the straggler is the one whose own part (compute,
 * copies, starved of launches) is high by 1 % of the step, in the median of its steps and not in one alone, and either
 *
 *   by a tenth and as an outlier, or
 *   over the next slowest by 1 % of the step too, and the others wait for it: it comes last in at least half of its
 *   collectives, more often than chance (p < 0.01 for all ranks together).
 *
 * What is over the next slowest is what the step would gain without it. Of many ranks that all differ a little the
 * slowest is also last most often, and no straggler.
 *
 * Times: picoseconds. Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_RANK_COMPARE_H
#define TACHO_ANALYSIS_RANK_COMPARE_H

#include "analysis/collective_match.h"
#include "analysis/step_budget.h"

enum rank_part {
    RANK_STEP = 0,
    RANK_COMPUTE,
    RANK_COMM, /* exposed */
    RANK_COPY, /* exposed */
    RANK_IDLE, /* of it: */
    RANK_STARVED,
    RANK_BLOCKED,
    RANK_LATENCY,
    RANK_UNKNOWN,
    RANK_WAIT, /* for others inside collectives */
    RANK_PARTS
};

struct rank_value {
    bool known;
    double value_ps; /* a step */
    double median_ps;
    double ratio, z; /* NaN: unknown */
    bool has_outlier, outlier;
};

struct rank_row {
    uint32_t cohort, cohort_size;
    uint32_t n_steps; /* that the means are of */
    struct rank_value parts[RANK_PARTS];
};

struct rank_compare {
    struct step_budget budget;
    struct collectives collectives;
    struct rank_row *rows; /* of budget.work.items */
    uint32_t n_cohorts;
    uint32_t straggler;     /* device; UINT32_MAX: none stands out */
    enum rank_part culprit; /* the part by which it does */
    double excess_ps;       /* a step, over the median */
    double *chance; /* Σ over its matched collectives of the chance to come last, one a device */
};

MUST_CHECK bool rank_compare_of(const struct profile *p, struct arena *a, struct rank_compare *out,
                                struct err *e);
const char *rank_part_word(enum rank_part p);

/* Of n values, which it sorts. NaN of none. */
double rank_median(double *values, uint32_t n);
/* 0.6745 (x - median) / max(MAD, 1 % of median); NaN where both are 0 and x is not the median. */
double rank_z(double x, double median, double mad);

#endif
