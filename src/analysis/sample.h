/* SPDX-License-Identifier: Apache-2.0 */
/* Mean, deviation and range of one number over many steps, by sums. {0} is empty. */
#ifndef TACHO_ANALYSIS_SAMPLE_H
#define TACHO_ANALYSIS_SAMPLE_H

#include <stdint.h>

struct sample {
    double sum, squares, min, max;
    uint32_t n;
};

void sample_add(struct sample *s, double v);
double sample_mean(const struct sample *s);      /* 0 of none */
double sample_deviation(const struct sample *s); /* of a sample: over n - 1; 0 below two */

#endif
