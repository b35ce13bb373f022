/* SPDX-License-Identifier: Apache-2.0 */
/* The pyramid of a line: its events merged for drawing, so that a wide view reads few rows.
 *
 * A level has buckets of 2^bucket_log2 ps, counted from the line's base; each level's are four times as wide as those of
 * the one before. Its rows stand in row groups of their own, sorted by start, and are read with trace_cursor_init_level:
 *
 *   an event that lasts a bucket or longer, or is alone in its bucket: itself. `src` is its index on the line.
 *   a cell, `src_bytes` = PYRAMID_CELL: the shorter events of one depth that begin in a bucket: start_ps of the bucket,
 *   dur_ps of them all (more than a bucket when the last reaches into the next), num_occurrences, metadata_index of the
 *   name that takes most of it (majority vote by time: exact when a name takes more than half).
 *
 * Nothing vanishes: the sum over a level of num_occurrences (1 for an event itself) is the number of events, and the sum
 * of dur_ps the sum of their durations. Short lines have no levels. Thread: one at a time a builder. */
#ifndef TACHO_MODEL_TRACE_PYRAMID_H
#define TACHO_MODEL_TRACE_PYRAMID_H

#include "model/trace_groups.h"

#define PYRAMID_STEP_LOG2 2 /* from a level's buckets to the next one's */
#define PYRAMID_LEVELS 16
#define PYRAMID_LEAST_EVENTS 4096 /* shorter lines have no levels */
#define PYRAMID_GROUP_ROWS 4096
#define PYRAMID_CELL 1 /* src_bytes of a cell */

struct pyramid;

/* Takes each finished group of a level. Its bytes are the taker's. */
typedef void (*pyramid_emit)(void *ctx, uint32_t level, struct trace_group *g);

struct pyramid *pyramid_new(pyramid_emit emit, void *ctx);
/* The first events of the line decide how wide the finest buckets are: about sixteen events each. */
void pyramid_begin(struct pyramid *p, uint64_t span_ps, uint64_t n_events);
/* The next event of the line, in order of start. */
void pyramid_add(struct pyramid *p, uint64_t index, uint64_t start_ps, uint64_t dur_ps,
                 uint32_t metadata_index, uint16_t depth);
/* Emits what is open; answers how many levels there are, and their buckets. */
uint32_t pyramid_end(struct pyramid *p, uint32_t bucket_log2[PYRAMID_LEVELS]);
void pyramid_free(struct pyramid *p); /* NULL allowed */

#endif
