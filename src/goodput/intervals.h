/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end records of one process, paired. A begin that the same phase and type begins anew
 * without an end was cut: it stays open. Private to goodput/. */
#ifndef TACHO_GOODPUT_INTERVALS_H
#define TACHO_GOODPUT_INTERVALS_H

#include "goodput/timeline.h"

struct interval {
    enum record_phase phase;
    str type;
    int64_t from_ns, to_ns; /* to_ns: of the end, or INT64_MAX */
    int64_t step;
    bool open;           /* no end was recorded */
    int64_t replaced_ns; /* when open: the begin that took its place, or INT64_MAX */
};

struct intervals {
    struct interval *items; /* by from_ns */
    uint32_t n, capacity;
    uint64_t n_ends_alone; /* ends without a begin */
};

/* Pairs the phases of `process` in [from_ns, to_ns], JOB and (with `without_steps`) STEP left out. */
void intervals_pair(struct timeline *t, uint32_t process, int64_t from_ns, int64_t to_ns,
                    bool without_steps, struct intervals *out);

/* Index of the first interval that begins at or after ns. */
uint32_t intervals_at(const struct intervals *in, int64_t ns);

#endif
