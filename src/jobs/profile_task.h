/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a profile here, decodes it in a parser (jobs/parser.h), and runs one function on it there.
 * What the function adds to its buffer comes back. With limits->indexes the profile is loaded from its index
 * (format/index.h), which is made when there is none.
 *
 *     buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
 *     if (!profile_task_run(path, &limits, tile_json, &request, &out, e)) return false;
 *
 * Thread: any. */
#ifndef TACHO_JOBS_PROFILE_TASK_H
#define TACHO_JOBS_PROFILE_TASK_H

#include "analysis/tiles.h"
#include "format/profile_open.h"
#include "jobs/parser.h"
#include "model/profile_facts.h"

typedef bool (*profile_fn)(struct profile *p, void *ctx, struct buf *out, struct err *e);

MUST_CHECK bool profile_task_run(const char *path, const struct parser_limits *limits,
                                 profile_fn fn, void *ctx, struct buf *out, struct err *e);
/* The same for output of any length: fn writes to a descriptor, and what it writes goes to the sink as
 * it comes. fn may be run a second time from its begin, and then has to write the same bytes. */
typedef bool (*profile_stream_fn)(struct profile *p, void *ctx, int fd, struct err *e);
MUST_CHECK bool profile_task_stream(const char *path, const struct parser_limits *limits,
                                    profile_stream_fn fn, void *ctx, const struct parser_sink *sink,
                                    struct err *e);
/* A tool's printed answer. */
MUST_CHECK bool profile_task_tool(const char *path, const struct parser_limits *limits,
                                  const struct tool *tool, const struct tool_param *params,
                                  uint32_t n_params, enum tool_format format, struct buf *out,
                                  struct err *e);
/* A view of the trace (analysis/tiles.h) as JSON. */
MUST_CHECK bool profile_task_trace(const char *path, const struct parser_limits *limits,
                                   enum tiles_view view, const struct tool_param *params,
                                   uint32_t n_params, struct buf *out, struct err *e);
/* What the report's rules stand on (model/profile_facts.h). Lives in a. */
MUST_CHECK bool profile_task_facts(const char *path, const struct parser_limits *limits,
                                   struct arena *a, struct profile_facts *out, struct err *e);
/* Makes the indexes that are missing. */
MUST_CHECK bool profile_task_index(const char *path, const struct parser_limits *limits,
                                   struct err *e);

/* For jobs/trace_pool.h: a parser of the source that runs fn for as long as fn likes, with one more descriptor; and what
 * such a function answers to one question. */
struct parser_child *profile_task_open(struct profile_source *s, const struct parser_limits *limits,
                                       profile_stream_fn fn, void *ctx, int fd, struct err *e);
MUST_CHECK bool profile_task_view(enum tiles_view view, const struct tool_request *r,
                                  struct buf *out, struct err *e);

#endif
