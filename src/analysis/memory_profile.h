/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory each allocator had handed out over time, when most, and to what.
 *
 * In use = stack + heap, as the allocator counted. The peak is the last moment at which in use was
 * highest within the profile; what was live then are the pieces that were handed out before and not taken
 * back (matched by address). Heap that no such piece explains was handed out before the profile
 * began. The timeline holds at most MEMORY_TIMELINE samples: the events are cut into as many runs,
 * the fullest moment of each stands for it (XProf's max box filter).
 *
 * Events are read twice, in the order of time (memory_events.h); memory is that of what is live at
 * once, not of the number of events. Times: picoseconds of the trace. Everything lives in the
 * arena. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_MEMORY_PROFILE_H
#define TACHO_ANALYSIS_MEMORY_PROFILE_H

#include "analysis/grouping.h"
#include "analysis/memory_events.h"

#define MEMORY_TIMELINE 1000

struct memory_place { /* an event of an allocator */
    uint32_t line;
    struct trace_event at;
};

struct memory_sample {
    uint64_t time_ps;
    bool is_release;
    struct memory_use use;
    struct memory_place event;
    struct memory_place
        piece; /* what was handed out: the event itself or, of a release, its match */
    bool has_piece;
    int64_t step; /* as XProf numbers them: the group, or one more than the last */
};

struct memory_piece { /* live at the peak */
    uint64_t time_ps;
    uint64_t address;
    int64_t bytes;
    int64_t step;
    struct memory_use use; /* once it was handed out */
    struct memory_place event;
};

struct memory_allocator {
    const struct trace *trace;
    str name; /* may be empty */
    uint64_t n_allocations, n_releases;
    uint64_t n_unmatched; /* releases of what was handed out before the profile */
    uint64_t peak_time_ps;
    struct memory_use peak; /* heap is MEMORY_UNKNOWN when no event said it */
    int64_t lifetime_peak_bytes;
    double most_fragmentation_ratio; /* NaN = unknown */
    int64_t peak_step;
    struct memory_piece *live; /* by bytes, largest first, then time */
    uint32_t n_live;
    int64_t
        before_bytes; /* live at the peak and handed out before the profile, or MEMORY_UNKNOWN */
    struct memory_sample *timeline; /* by time */
    uint32_t n_timeline;
};

struct memory_profile {
    struct memory_allocator *allocators; /* by trace, then name */
    uint32_t n_allocators, capacity;
};

/* groupings: one a trace, for the steps; NULL: steps are not asked for. */
MUST_CHECK bool memory_profile_of(const struct profile *p, const struct grouping *groupings,
                                  struct arena *a, struct memory_profile *out, struct err *e);

struct memory_description {           /* of a piece: what its event says beside the sums */
    str op, region, data_type, shape; /* empty = unknown */
    int64_t requested_bytes, bytes;
    uint64_t address;
};
MUST_CHECK bool memory_describe(const struct trace *t, const struct memory_place *place,
                                struct arena *a, struct memory_description *out, struct err *e);

/* The allocator that was fullest at its peak, or NULL. */
const struct memory_allocator *memory_fullest(const struct memory_profile *m);
/* In use and free at the peak; MEMORY_UNKNOWN where one of them is. */
int64_t memory_capacity(const struct memory_allocator *m);

#endif
