/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporters share: the stream that they fill, and the walk over what is to be written.
 *
 *     for (const struct trace *t = NULL; (t = export_next_trace(w, t)) != NULL;)
 *         for each plane and line ...
 *             export_cursor_init(&c, w, t, line_index);
 *             while (export_next(&c)) { ... c.event, c.start_ps ... if (!export_flush(w, e)) ... }
 *             if (!export_cursor_end(&c, e)) return false; */
#ifndef TACHO_FORMAT_EXPORT_INSIDE_H
#define TACHO_FORMAT_EXPORT_INSIDE_H

#include <zlib.h>

#include "base/json.h"
#include "format/export.h"

struct export_work {
    const struct profile *profile;
    const struct export_options *options;
    struct export_counts *counts;
    int fd;
    struct buf out;       /* what is not yet in fd; exporters append to it */
    struct arena scratch; /* of the event at hand */
    uint64_t n_total;
    z_stream gzip;
    bool is_gzip; /* what leaves is compressed */
};

#define X(symbol, name, endings, type, help)                                                       \
    bool export_##symbol(struct export_work *w, struct err *e);
#include "format/exports.def"
#undef X

/* From here on what is written is gzip; before the first byte. */
MUST_CHECK bool export_gzip(struct export_work *w, struct err *e);
/* Hands on what has gathered, when it is enough. */
MUST_CHECK bool export_flush(struct export_work *w, struct err *e);

/* The next trace that is wanted, the first for NULL; NULL at the end. */
const struct trace *export_next_trace(const struct export_work *w, const struct trace *after);
/* What a line and a plane are called, never empty. */
str export_line_name(const struct trace_line *line);
str export_plane_name(const struct trace_plane *plane);
/* Text as UTF-8, repaired where it is not; in a or as it was. */
str export_utf8(struct arena *a, str s);

struct export_cursor {
    struct export_work *work;
    const struct trace *trace;
    const struct trace_line *line;
    uint32_t line_index;
    struct trace_event event;
    uint64_t start_ps; /* of the event, since the session's origin */
    struct trace_cursor cursor;
};
void export_cursor_init(struct export_cursor *c, struct export_work *w, const struct trace *t,
                        uint32_t line_index);
/* The next event that reaches into the window. */
bool export_next(struct export_cursor *c);
/* Releases; false when a row group could not be read. */
MUST_CHECK bool export_cursor_end(struct export_cursor *c, struct err *e);

/* What an event says about others: it is where the flow of that id begins or ends. */
struct export_flow {
    uint64_t id;
    bool begins;
};
#define EXPORT_FLOWS_MAX 3
/* From the event's stats (producer and consumer contexts, correlation of a launch with its kernel). */
uint32_t export_flows(const struct trace *t, const struct trace_line *line,
                      struct trace_stats stats, struct export_flow out[static EXPORT_FLOWS_MAX]);
/* The value of a counter's event, or false. */
bool export_counter(const struct trace_event *ev, struct trace_stats stats, double *value);

#endif
