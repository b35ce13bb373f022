/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/sample.h"

#include <math.h>

void sample_add(struct sample *s, double v)
{
    s->min = s->n == 0 || v < s->min ? v : s->min;
    s->max = s->n == 0 || v > s->max ? v : s->max;
    s->sum += v;
    s->squares += v * v;
    s->n++;
}

double sample_mean(const struct sample *s)
{
    return s->n > 0 ? s->sum / s->n : 0;
}

double sample_deviation(const struct sample *s)
{
    if (s->n < 2)
        return 0;
    const double over = (s->squares - s->sum * s->sum / s->n) / (s->n - 1);
    return over > 0 ? sqrt(over) : 0; /* rounding may leave it just below 0 */
}
