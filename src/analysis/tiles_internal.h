/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tiles.c (views of single things) and the files of the other views. Not for others. */
#ifndef TACHO_ANALYSIS_TILES_INTERNAL_H
#define TACHO_ANALYSIS_TILES_INTERNAL_H

#include "analysis/tiles.h"

/* An unsigned parameter; the default when it is absent, ERR_USAGE when it is not a number. */
MUST_CHECK bool tiles_u64(const struct tool_request *r, str key, uint64_t fallback, uint64_t *out,
                          struct err *e);
MUST_CHECK bool tiles_target(const struct tool_request *r, struct trace **out, struct err *e);
/* The lines of "3,4,7"; all lines of the trace when the parameter is absent and `all`. */
MUST_CHECK bool tiles_lines(const struct tool_request *r, const struct trace *t, bool all,
                            struct arena *a, uint32_t **out, uint32_t *n, struct err *e);

MUST_CHECK bool tiles_tile(const struct tool_request *r, struct arena *a, struct buf *out,
                           struct err *e);
MUST_CHECK bool tiles_select(const struct tool_request *r, struct arena *a, struct json *j,
                             struct err *e);
MUST_CHECK bool tiles_search(const struct tool_request *r, struct arena *a, struct json *j,
                             struct err *e);
MUST_CHECK bool tiles_flows(const struct tool_request *r, struct arena *a, struct json *j,
                            struct err *e);
/* The parameters `line` and `index`, which name an event that is there. */
MUST_CHECK bool tiles_place(const struct tool_request *r, const struct trace *t, uint64_t *line,
                            uint64_t *index, struct err *e);
/* The event at index on the line. */
MUST_CHECK bool tiles_event_at(const struct trace *t, const struct trace_line *line, uint64_t index,
                               struct trace_event *out, struct err *e);

#endif
