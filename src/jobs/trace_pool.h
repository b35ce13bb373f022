/* SPDX-License-Identifier: Apache-2.0 */
/* Views of traces for many questions: a parser that has loaded a profile's indexes stays and answers the next ones, so
 * that a tile costs what the tile costs. A few parsers are kept, each until nobody asked for a while.
 *
 * A large profile without an index is answered at once from the first events of each line, and the answer says so
 * (`partial`), while the index is made by a thread of its own.
 *
 * Thread: any; questions about one profile are answered one after the other. */
#ifndef TACHO_JOBS_TRACE_POOL_H
#define TACHO_JOBS_TRACE_POOL_H

#include "jobs/profile_task.h"

struct trace_pool;

/* at_once_bytes: profiles up to it get their index before the first answer. part_events: how many of a larger one are shown
 * until then, about. Owned. */
struct trace_pool *trace_pool_new(uint64_t at_once_bytes, uint64_t part_events);
/* Ends all parsers; waits for indexes that are being made. NULL allowed. */
void trace_pool_free(struct trace_pool *p);
/* As profile_task_trace(); limits->indexes is needed. *partial: only the first events of the lines are in the answer. */
MUST_CHECK bool trace_pool_ask(struct trace_pool *p, const char *path,
                               const struct parser_limits *limits, enum tiles_view view,
                               const struct tool_param *params, uint32_t n_params, struct buf *out,
                               bool *partial, struct err *e);
/* Ends parsers that nobody asked for a minute. */
void trace_pool_sweep(struct trace_pool *p);

#endif
