/* SPDX-License-Identifier: Apache-2.0 */
/* Row groups: up to 65,536 events of one line, sorted by start, as columns.
 *
 *   group = column × 7:  width u8 · minimum u64 · n values of `width` bytes, little-endian, minus
 *                        the minimum (frame of reference)
 *   start_ps (difference from the event before) · dur_ps · src (difference from the end of the
 *   event before, signed) · src_bytes · metadata_index · depth · num_occurrences
 *
 * A column whose values are all equal has width 0. Typical cost is 10 to 16 bytes an event.
 * Groups live in memory until their sum is above a cap, then in a spill file, or they come from an
 * index through `fetch`. Packed bytes may be hostile (index files): unpack checks every length.
 *
 * Thread: written by one; read by many. */
#ifndef TACHO_MODEL_TRACE_GROUPS_H
#define TACHO_MODEL_TRACE_GROUPS_H

#include "base/buf.h"
#include "model/trace.h"

#define TRACE_GROUP_COLUMNS 7
#define TRACE_GROUP_BYTES_MAX(n) ((size_t)TRACE_GROUP_COLUMNS * (9 + 8 * (size_t)(n)))

struct trace_group {
    uint32_t n_events;
    uint32_t n_bytes;        /* packed */
    uint64_t first_start_ps; /* smallest start, relative to the line's base */
    uint64_t last_start_ps;
    uint64_t max_end_ps;
    uint64_t offset; /* in the spill file, when bytes is NULL */
    uint8_t *bytes;  /* owned, or NULL */
};

struct trace_groups {
    struct trace_group *items; /* owned */
    uint32_t n, capacity;
    uint64_t memory_bytes;     /* sum of groups held in memory */
    uint64_t memory_cap_bytes; /* above it groups are spilled */
    int spill_fd;              /* owned; -1 = none */
    uint64_t spill_bytes;
    /* Set by an index reader: fills n_bytes bytes at out. */
    bool (*fetch)(void *ctx, uint32_t group, uint8_t *out, struct err *e);
    void (*fetch_free)(void *ctx);
    void *fetch_ctx;
};

struct trace_groups *trace_groups_new(int spill_fd, uint64_t memory_cap_bytes);
void trace_groups_free(struct trace_groups *g);
/* Packs n sorted events (starts relative to the line) as one more group. */
MUST_CHECK bool trace_groups_add(struct trace_groups *g, const struct trace_event *events,
                                 uint32_t n, struct err *e);
/* Forgets the groups from index n on. */
void trace_groups_cut(struct trace_groups *g, uint32_t n);
/* Unpacks one group into out[n_events]. */
MUST_CHECK bool trace_groups_read(const struct trace_groups *g, uint32_t group,
                                  struct trace_event *out, struct err *e);
/* The packed bytes of one group, into b. */
MUST_CHECK bool trace_groups_raw(const struct trace_groups *g, uint32_t group, uint8_t *out,
                                 struct err *e);

/* The codec alone. Pack answers the bytes written to out (room: TRACE_GROUP_BYTES_MAX(n)). */
size_t trace_group_pack(const struct trace_event *events, uint32_t n, uint8_t *out);
MUST_CHECK bool trace_group_unpack(const uint8_t *p, size_t n_bytes, uint32_t n,
                                   struct trace_event *out, struct err *e);

#endif
