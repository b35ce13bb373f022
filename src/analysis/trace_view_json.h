/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and events of a trace view (trace_view.h) as members of `traceEvents`: "Trace Event Format".
 *
 *   X  an event (`i` where it takes no time and view_json.instants says so), C  a counter, M  names and order of rows
 *   bind_id, flow_out, flow_in  the arrow that begins or ends at it
 *
 * Times are microseconds with picoseconds as decimals. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_TRACE_VIEW_JSON_H
#define TACHO_ANALYSIS_TRACE_VIEW_JSON_H

#include "analysis/trace_view.h"
#include "model/trace_pick.h"

struct view_json {
    struct json *j;
    struct arena *scratch;
    bool instants, counters; /* as ph i and C, not as X */
    bool with_host;          /* in the names of processes */
    bool with_stats;         /* all arguments of recorded events */
    uint64_t n_events, n_counters;
    uint64_t last_pid; /* whose name was written */
    bool any_row;
};

/* For struct view: ctx is a view_json. They stop the walk when the sink is full. */
bool view_json_row(void *ctx, const struct view_row *row, struct err *e);
bool view_json_event(void *ctx, const struct view_event *ev, struct err *e);

#endif
