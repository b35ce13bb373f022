/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end records of one process, paired. A begin that the same phase and type begins anew
 * without an end was cut: it stays open. Threads pair their own records, except for steps, of which a
 * process has one at a time; an end of a thread that began nothing ends what another one began.
 * Private to goodput/. */
#ifndef TACHO_GOODPUT_INTERVALS_H
#define TACHO_GOODPUT_INTERVALS_H

#include "goodput/timeline.h"

#define INTERVALS_STEP_THREADS 16

struct interval {
    enum record_phase phase;
    str type;
    int64_t from_ns, to_ns; /* to_ns: of the end, or INT64_MAX */
    int64_t step;
    uint32_t thread;     /* that began it; 0 = unknown */
    bool open;           /* no end was recorded */
    int64_t replaced_ns; /* when open: the begin that took its place, or INT64_MAX */
};

struct intervals {
    struct interval *items; /* by from_ns */
    uint32_t n, capacity;
    uint64_t n_ends_alone;                                         /* ends without a begin */
    uint32_t step_threads[INTERVALS_STEP_THREADS], n_step_threads; /* that recorded steps */
    bool any_step_thread; /* steps of unknown threads, or of more than that */
};

/* True where it is known that the interval is a load of a thread that records none of these steps: it
 * prefetches, and holds nothing up. */
bool intervals_is_prefetch(const struct intervals *in, const struct interval *v);

/* Pairs the phases of `process` in [from_ns, to_ns], JOB and (with `without_steps`) STEP left out. */
void intervals_pair(struct timeline *t, uint32_t process, int64_t from_ns, int64_t to_ns,
                    bool without_steps, struct intervals *out);

/* Index of the first interval that begins at or after ns. */
uint32_t intervals_at(const struct intervals *in, int64_t ns);

#endif
