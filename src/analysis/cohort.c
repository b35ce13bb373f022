/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cohort.h"

#include <math.h>

/* Calls a step that two devices have in common, over all that one of them has. Both by hash. */
static double likeness(const struct budget_device *x, const struct budget_device *y)
{
    const struct work_device *a = x->device, *b = y->device;
    const double steps_a = x->n_steps, steps_b = y->n_steps;
    double both = 0, either = 0;
    for (uint32_t i = 0, k = 0; i < a->n_names || k < b->n_names;) {
        const bool has_a =
            i < a->n_names && (k >= b->n_names || a->names[i].hash <= b->names[k].hash);
        const bool has_b =
            k < b->n_names && (i >= a->n_names || b->names[k].hash <= a->names[i].hash);
        const double of_a = has_a ? (double)a->names[i].count / steps_a : 0;
        const double of_b = has_b ? (double)b->names[k].count / steps_b : 0;
        both += fmin(of_a, of_b);
        either += fmax(of_a, of_b);
        i += has_a;
        k += has_b;
    }
    return either > 0 ? both / either : 1; /* XLA:CPU's devices run one program */
}

uint32_t cohorts_of(const struct step_budget *b, uint32_t *cohort)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->work.n; i++) {
        uint32_t k = 0;
        while (k < i && likeness(&b->devices[k], &b->devices[i]) < COHORT_ALIKE)
            k++;
        cohort[i] = k < i ? cohort[k] : n++;
    }
    return n;
}
