/* SPDX-License-Identifier: Apache-2.0 */
/* What the allocators of a host reported, in the order of time: one event for each piece of memory that was
 * handed out or taken back (the host events MemoryAllocation and MemoryDeallocation of TensorFlow and
 * XLA), each with the allocator's own sums after it.
 *
 *     struct memory_events s;
 *     if (!memory_events_open(&s, t, a, e)) return false;
 *     while (memory_events_next(&s)) ... s.event ...
 *     if (!memory_events_close(&s, e)) return false;
 *
 * Lines are merged as they are read, so memory does not grow with the number of events. What an event
 * does not say is MEMORY_UNKNOWN. Times: picoseconds of the trace. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_MEMORY_EVENTS_H
#define TACHO_ANALYSIS_MEMORY_EVENTS_H

#include "model/trace.h"
#include "model/trace_pick.h"

#define MEMORY_UNKNOWN INT64_MIN

struct memory_use { /* sums of one allocator, bytes */
    int64_t stack;  /* set aside for stacks */
    int64_t heap;   /* handed out */
    int64_t free;
    int64_t lifetime_peak;      /* of heap, since the allocator began */
    double fragmentation_ratio; /* 0 to 1; NaN = unknown */
};
/* Stack and heap; MEMORY_UNKNOWN without a heap. */
int64_t memory_in_use(const struct memory_use *u);
/* An address may be written as signed or not: its bits count. False when there is none. */
bool memory_address(const struct trace_stat *s, uint64_t *out);

struct memory_event {
    uint32_t line;         /* of the trace */
    uint64_t index;        /* of the event on it */
    struct trace_event at; /* the event itself, for its other stats */
    str allocator;         /* name, else the device's number; valid until the next event */
    bool is_release;
    bool has_address;
    uint64_t address;
    int64_t bytes; /* of the piece, as the allocator rounded it */
    struct memory_use use;
};

struct memory_source; /* a line and where it is */

struct memory_events {
    struct memory_event event;
    /* private: */
    const struct trace *trace;
    struct arena *arena;
    struct memory_source *sources;
    uint32_t *heap; /* of sources, the earliest first */
    uint32_t n_sources, capacity, n_heap;
    bool started, failed;
    char number[24];
    struct err failure;
};

MUST_CHECK bool memory_events_open(struct memory_events *s, const struct trace *t, struct arena *a,
                                   struct err *e);
bool memory_events_next(struct memory_events *s); /* false at the end and on failure */
/* Ends the reading; false when it failed. Allowed after a failed open. */
MUST_CHECK bool memory_events_close(struct memory_events *s, struct err *e);

#endif
