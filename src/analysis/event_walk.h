/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a profile that a request selects, one after the other: by POSIX extended regular
 * expressions on the plane's, the line's and the event's name, and by when they begin.
 *
 *     struct event_walk w;
 *     bool ok = event_walk_init(&w, r, e);
 *     while (ok && event_walk_next(&w, e))
 *         ... w.trace, w.line, w.cursor.event ...
 *     ok = ok && event_walk_ok(&w, e);
 *     event_walk_release(&w);
 *
 * Parameters (all may be left out): plane_regex, line_regex, event_regex, start_time_ps, end_time_ps. A window
 * takes the events that begin in [start, end), so that windows side by side take each event once. Names are looked
 * at once per entry of a plane's metadata. Memory does not depend on the number of events. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_EVENT_WALK_H
#define TACHO_ANALYSIS_EVENT_WALK_H

#include "analysis/memo.h"
#include "analysis/pattern.h"
#include "analysis/tool.h"

struct event_walk {
    const struct trace *trace; /* of the event at hand, and its line */
    const struct trace_line *line;
    uint32_t line_index;
    struct trace_cursor cursor; /* cursor.event is the event */
    uint64_t n_scanned;         /* events looked at */
    /* private: */
    const struct profile *profile;
    struct pattern plane, line_name, event;
    int64_t from_ps, to_ps;
    uint32_t next_trace, next_line;
    bool open, failed;
    struct memo names;
};

/* ERR_USAGE for an expression or a number that is none. */
MUST_CHECK bool event_walk_init(struct event_walk *w, const struct tool_request *r, struct err *e);
/* Goes on to the next line that is selected, without its events. */
bool event_walk_next_line(struct event_walk *w);
/* For those that go over planes themselves. */
bool event_walk_takes_plane(const struct event_walk *w, const struct trace_plane *p);
bool event_walk_takes_line(const struct event_walk *w, const struct trace_line *l);
bool event_walk_takes(struct event_walk *w, const struct trace *t, const struct trace_line *l,
                      const struct trace_event *ev);
/* False at the end, or when reading failed: see event_walk_ok. */
bool event_walk_next(struct event_walk *w, struct err *e);
MUST_CHECK bool event_walk_ok(const struct event_walk *w, struct err *e);
void event_walk_release(struct event_walk *w); /* also of one whose init failed */

/* A time of the trace as its file has it: since whatever its lines count from; since the trace's own beginning where
 * that is 1970, whose picoseconds 64 bits do not hold. */
int64_t event_written_ps(const struct trace *t, uint64_t ps);
/* The name as it was written: on a TPU the whole HLO text. */
str event_full_name(const struct trace *t, const struct trace_line *line,
                    const struct trace_event *ev);
/* A parameter that is a count; absent leaves *out. */
MUST_CHECK bool tool_param_count(const struct tool_request *r, str key, uint64_t *out,
                                 struct err *e);

#endif
