/* SPDX-License-Identifier: Apache-2.0 */
/* How long steps would be if something in them took everywhere what it takes in the middle.
 *
 *   T'(step, device) = T - w - x + m    x  what is asked about took in that step on that device
 *                                       m  the median of x over the device's cohort in that step
 *                                       w  what the device waited for others
 *
 * w is its idle and exposed communication beyond that of the device of its cohort that has least: the
 * slowest has none, and the others wait for it. Where x is such waiting itself, w is 0. The saving
 * is a ceiling: what else would have kept them waiting is not known.
 *
 * What is asked about: a part of the step (compute, comm_exposed, …, idle), or operations by the
 * beginning of their names; of those the time counts in which they ran and no other work did, for
 * only that is saved. A cohort (cohort.h) is the devices that do equal work and had the step.
 * One alone is compared with its own complete steps. The median of an even number is the mean of the
 * two in the middle, rounded down.
 *
 * A step of the program is as long as on its longest device: the others wait for it. Complete steps
 * only. Source: "what-if" of straggler analysis (arXiv 2505.05713). Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_WHAT_IF_H
#define TACHO_ANALYSIS_WHAT_IF_H

#include "analysis/step_budget.h"

struct what_if_question {
    str ops;               /* beginnings of names, comma separated; empty: the part */
    enum budget_part part; /* BUDGET_PARTS: all of idle */
};

struct what_if_row { /* a step of a device */
    const struct budget_device *device;
    const struct budget_step *step;
    uint64_t now_ps, median_ps; /* x and m */
    uint64_t step_ps, then_ps;  /* T and T' */
    uint64_t waited_ps;         /* w */
    uint32_t n_cohort;          /* values that the median is of */
    uint32_t cohort;
};

struct what_if_step { /* of the program, by number */
    int64_t number;
    uint64_t now_ps, then_ps; /* longest over devices */
};

struct what_if {
    struct what_if_row *rows; /* by number, then cohort, then device */
    uint32_t n_rows, rows_capacity;
    struct what_if_step *steps;
    uint32_t n_steps, steps_capacity;
    uint64_t median_now_ps, median_then_ps; /* over the program's steps; 0: there are none */
    uint64_t n_named;                       /* events that the names are of */
    bool is_waiting;                        /* what is asked about is idle or communication */
};

MUST_CHECK bool what_if_of(const struct step_budget *b, const struct what_if_question *q,
                           struct arena *a, struct what_if *out, struct err *e);

#endif
