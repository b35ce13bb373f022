/* SPDX-License-Identifier: Apache-2.0 */
/* Places the events of one line so that they nest: formats that know slices only by their begins and
 * ends cannot hold two that overlap in part.
 *
 *   line    [---a---)              lane 0  [---a---)      [--c--)
 *              [----b----)         lane 1     [----b----)
 *                      [--c--)
 *
 * Events come by start, the longer first (as a cursor gives them). Each goes to the first lane where
 * it fits whole into what is open there. Memory is what is open at once: beyond NEST_LANES lanes,
 * or LIMIT_TRACE_DEPTH levels of each, an event has no place.
 *
 *     lane = nest_find(&n, start_ps, end_ps);
 *     while (nest_pop(&n, lane, start_ps, &ended)) ...          what ended before it, the inner first
 *     nest_push(&n, lane, (struct nest_open){start_ps, end_ps});
 *     ... at the end of the line, for each lane: while (nest_pop(&n, lane, UINT64_MAX, &ended)) ...
 *
 * Thread: one at a time. */
#ifndef TACHO_MODEL_NEST_H
#define TACHO_MODEL_NEST_H

#include "base/err.h"

#define NEST_LANES 256
#define NEST_NONE UINT32_MAX

struct nest_open {
    uint64_t start_ps, end_ps;
    uint64_t inner_ps; /* of those directly inside that have ended: for self times */
    uint32_t tag;      /* the caller's */
};

struct nest_lane {
    struct nest_open *open; /* owned; the outermost first */
    uint32_t n, capacity;
};

struct nest {
    struct nest_lane *lanes; /* owned */
    uint32_t n;
};

/* The lane of an event, added when new; NEST_NONE beyond the limits. */
uint32_t nest_find(struct nest *n, uint64_t start_ps, uint64_t end_ps);
/* Takes the innermost open event of the lane if it ends at until_ps or before. */
bool nest_pop(struct nest *n, uint32_t lane, uint64_t until_ps, struct nest_open *out);
void nest_push(struct nest *n, uint32_t lane, struct nest_open open);
/* The innermost open event of the lane, or NULL. */
struct nest_open *nest_top(struct nest *n, uint32_t lane);
void nest_release(struct nest *n);

#endif
