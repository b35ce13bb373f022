/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices do equal work: they run the same kernels or operations equally often a step, at least
 * 90 % of all calls have their like on the other device. Only devices of one cohort may be compared.
 * XLA:CPU's devices run one program: they are alike. Thread: any. */
#ifndef TACHO_ANALYSIS_COHORT_H
#define TACHO_ANALYSIS_COHORT_H

#include "analysis/step_budget.h"

#define COHORT_ALIKE 0.9

/* The cohort of each device, from 0 on: each joins that of the first device that is like it. Answers
 * how many there are. */
uint32_t cohorts_of(const struct step_budget *b, uint32_t *cohort);

#endif
