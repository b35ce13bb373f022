/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as XProf's trace viewer draws it: the recorded lines, those derived from them (derived_lines.h), the steps
 * of each GPU, arrows between events, under XProf's process and thread numbers.
 *
 *   process   1000·host + 1 + the plane's id for devices, + 501 for custom planes, + 701 for the host's threads
 *             (without the 1000·host where one host is shown as a file of its own)
 *   thread    the line's id; on a GPU 1 + 7·(place of the stream, the busiest first), its derived lines behind it;
 *             0xdeadbeef + n for the derived lines of a TPU and the steps of a GPU
 *   time      as written in the file, from the earliest clock of the hosts on where they can be compared
 *
 * Everything that is shown goes to a callback, line by line and by start within a line (derived lines: per level),
 * so memory does not depend on what is shown; the grouping of one host's events (grouping.h) is kept meanwhile.
 * An event keeps its number (uid) whatever part of the trace is shown. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_TRACE_VIEW_H
#define TACHO_ANALYSIS_TRACE_VIEW_H

#include "analysis/flows.h"
#include "analysis/tool.h"
#include "analysis/trace_visible.h"

enum view_numbers { VIEW_ONE_HOST = 0, VIEW_ALL_HOSTS };

struct view_row { /* a line, recorded or derived */
    const struct trace *trace;
    const struct trace_plane *plane;
    const struct trace_line *line; /* NULL for derived ones */
    uint64_t pid, tid;
    str name;
};

struct view_event {
    const struct view_row *row;
    const struct trace_event *recorded; /* NULL for derived ones */
    str name, long_name;                /* long_name may be empty; valid during the call */
    int64_t start_ps, dur_ps;
    uint64_t uid;
    int32_t group; /* or GROUP_NONE */
    bool has_flow;
    struct flow flow; /* one of the event's: its id is unique over hosts */
};

struct view {
    enum view_numbers numbers;
    int64_t from_ps, to_ps;
    uint64_t resolution_ps; /* 0: everything in the window */
    str name_prefix;        /* of recorded and derived names; empty: all */
    bool with_async;        /* the line "Async XLA Ops" */
    /* False stops the walk: with the error set, or with none when enough was seen. */
    bool (*row)(void *ctx, const struct view_row *row, struct err *e);
    bool (*event)(void *ctx, const struct view_event *ev, struct err *e);
    void *ctx;
};

MUST_CHECK bool view_walk(const struct tool_request *r, const struct view *v, struct err *e);
/* From the first start to the last end of all lines, on the view's clock; false: no events. */
bool view_span(const struct tool_request *r, int64_t *from_ps, int64_t *to_ps);
/* A time of the trace on the view's clock. */
int64_t view_time_ps(const struct tool_request *r, const struct trace *t, uint64_t ps);

#endif
