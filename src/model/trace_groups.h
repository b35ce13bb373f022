/* SPDX-License-Identifier: Apache-2.0 */
/* Row groups: up to LIMIT_TRACE_GROUP_EVENTS events of one line, sorted by start, as columns.
 *
 *   group = column × 7 (model/trace_column.h) · side columns (model/trace_side.h)
 *   start_ps · dur_ps · src (difference from the end of the event before, signed) · src_bytes ·
 *   metadata_index · depth · num_occurrences
 *
 * Typical cost is 10 to 16 bytes an event. Groups live in memory until their sum is above a cap; beyond it they
 * come from a store: the index, or a temporary file made alike. Packed bytes may be hostile (index files): a view
 * checks every length.
 *
 * Thread: written by one; read by many. */
#ifndef TACHO_MODEL_TRACE_GROUPS_H
#define TACHO_MODEL_TRACE_GROUPS_H

#include "base/buf.h"
#include "model/trace.h"
#include "model/trace_column.h"
#include "model/trace_side.h"

struct trace_group {
    uint32_t n_events;
    uint32_t n_bytes;        /* packed */
    uint64_t first_start_ps; /* smallest start, relative to the line's base */
    uint64_t last_start_ps;
    uint64_t max_end_ps;
    uint64_t offset;       /* in the store */
    uint32_t stored_bytes; /* there; less than n_bytes when compressed; 0: it is not there */
    uint32_t crc;          /* crc32c of the stored bytes */
    uint8_t *bytes;        /* owned, with TRACE_COLUMN_SLACK behind it, or NULL */
};

/* Where groups lie that are not in memory. */
struct trace_store {
    /* Fills n_bytes bytes at out. */
    bool (*fetch)(void *ctx, const struct trace_group *g, uint8_t *out, struct err *e);
    void (*free)(void *ctx);
    void *ctx;
};

struct trace_groups {
    struct trace_group *items; /* owned */
    uint32_t n, capacity;
    uint64_t memory_bytes;    /* sum of groups held in memory */
    struct trace_store store; /* fetch NULL: all is in memory */
};

/* Events that are being gathered, column by column. */
struct trace_rows {
    uint32_t n, capacity;
    uint64_t *start_ps, *dur_ps, *src; /* [capacity], owned as all below */
    uint32_t *src_bytes, *metadata_index, *num_occurrences;
    uint16_t *depth;
    struct side_table side;
    uint64_t *scratch; /* [capacity] */
    uint8_t *packed;   /* scratch of a group */
    size_t packed_room;
};
void trace_rows_init(struct trace_rows *r, uint32_t capacity); /* a multiple of 64 */
void trace_rows_release(struct trace_rows *r);
/* Sorts by start; of equal ones the longer first, then as in the file. */
void trace_rows_sort(struct trace_rows *r);
/* True when row b, which comes after row a, may stand behind it. */
static inline bool trace_order(uint64_t a_start, uint64_t a_dur, uint64_t a_src, uint64_t b_start,
                               uint64_t b_dur, uint64_t b_src)
{
    if (a_start != b_start)
        return a_start < b_start;
    return a_dur != b_dur ? a_dur > b_dur : a_src <= b_src;
}
/* Takes the first `n` rows away. */
void trace_rows_shift(struct trace_rows *r, uint32_t n);
/* Packs rows [first, first + n) as a group with bytes. */
void trace_group_pack(struct trace_rows *r, uint32_t first, uint32_t n, struct trace_group *out);

struct trace_groups *trace_groups_new(void);
void trace_groups_free(struct trace_groups *g);
/* Adds a group; takes its bytes. */
void trace_groups_add(struct trace_groups *g, const struct trace_group *item);

/* The columns of one group. */
struct trace_group_view {
    uint32_t group, n_rows;
    struct trace_column columns[TRACE_GROUP_COLUMNS];
    const uint8_t *side; /* packed side columns */
    size_t side_bytes;
    uint8_t *own; /* bytes that came from the store; used again */
    size_t own_capacity;
};
#define TRACE_GROUP_UNREAD UINT32_MAX
/* Opens group `group` unless the view is of it. */
MUST_CHECK bool trace_group_view_open(struct trace_group_view *v, const struct trace_groups *g,
                                      uint32_t group, struct err *e);
/* The same for packed bytes, behind which TRACE_COLUMN_SLACK bytes can be read. Borrows them. */
MUST_CHECK bool trace_group_view_read(struct trace_group_view *v, const uint8_t *bytes,
                                      size_t n_bytes, uint32_t n_rows, struct err *e);
void trace_group_view_release(struct trace_group_view *v);
/* Unpacks rows [first, first + n) into out. src_end: where the event before row `first` ends in the file
 * (0 for the first row); moved on. NULL: src and src_bytes are left as they are. */
void trace_group_unpack(const struct trace_group_view *v, uint32_t first, uint32_t n,
                        uint64_t *src_end, struct trace_event *out);
/* The view of a cursor, of the group of the events it gave last; NULL before them. */
const struct trace_group_view *trace_cursor_view(const struct trace_cursor *c);
/* The same `src_end` found for any row. */
uint64_t trace_group_src_end(const struct trace_group_view *v, uint32_t row);

#endif
