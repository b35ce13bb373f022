/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a device that nothing marks: the period of the most regular sequence of its kernels.
 *
 * A training loop launches the same kernels in the same order step after step. So the events of the
 * stream that is busy most, as a sequence of names, repeat after p events: p is the smallest for which
 * the name at i + p is the name at i nearly everywhere, and periods last about equally long. Candidates for p are the distances at which the
 * rarer names come again. A step then begins where the device had idled longest before, of all places in
 * the period: between steps a host has most to do.
 *
 * Cost: linear in the events of that stream, for at most PERIOD_CANDIDATES candidates. Of a stream with more
 * than PERIOD_EVENTS events the first ones tell the period. Thread: any. */
#ifndef TACHO_ANALYSIS_STEP_PERIOD_H
#define TACHO_ANALYSIS_STEP_PERIOD_H

#include "model/trace.h"

#define PERIOD_CANDIDATES 16
#define PERIOD_EVENTS 4000000
#define PERIOD_STEPS_MIN 3     /* fewer repetitions are none */
#define PERIOD_MATCH_MIN 0.95  /* of the names that must come again after a period */
#define PERIOD_MATCH_NEAR 0.01 /* kept as well as the best */
#define PERIOD_REGULAR_MIN 0.8 /* of the periods that must last 0.5 to 1.5 times their median */

struct period_begin {
    uint64_t idle_from_ps, begin_ps; /* the stream did nothing between them */
};

struct step_period {
    struct period_begin *items; /* of each step; the last one may be cut off */
    uint32_t n, capacity;
    uint64_t end_ps; /* of the last work of the stream */
    double match;    /* share of names that come again after a period */
};

/* n stays 0 where nothing repeats. The arrays live in the arena. */
MUST_CHECK bool step_period_of(const struct trace *t, uint32_t line_index, struct arena *a,
                               struct step_period *out, struct err *e);

#endif
