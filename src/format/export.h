/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a loaded profile in formats of other programs, as a stream: memory is what is open at once
 * and what has a name, whatever the length.
 *
 *     const struct exporter *x = export_find(S("perfetto"));
 *     if (!export_write(x, profile, &options, fd, &counts, e)) ...
 *
 * Times count from the session's origin; Chrome's JSON says that origin (baseTimeNanoseconds), and
 * Perfetto's times contain it, where it is known. With a window, formats of events hold every event
 * that reaches into it, whole; formats of stacks count what lies inside it.
 * Formats: docs/guide/export.md. Thread: any; runs in the parser. */
#ifndef TACHO_FORMAT_EXPORT_H
#define TACHO_FORMAT_EXPORT_H

#include "model/trace.h"

struct export_options {
    str host;                /* or target; empty: all */
    uint64_t from_ps, to_ps; /* since the session's origin; to_ps 0: to the end */
    bool is_gzip;            /* Chrome's JSON as gzip */
    /* Told now and then how far it is; NULL: nobody asks. */
    void (*progress)(void *ctx, uint64_t n_done, uint64_t n_total);
    void *progress_ctx;
};

struct export_counts {
    uint64_t n_events;   /* written, or counted into a stack */
    uint64_t n_left_out; /* that the format cannot hold */
};

struct export_work;
struct exporter {
    const char *name, *endings, *content_type, *help;
    bool (*run)(struct export_work *w, struct err *e);
};
extern const struct exporter export_table[];
extern const uint32_t export_count;

/* NULL when there is none. */
const struct exporter *export_find(str name);
const struct exporter *export_for_path(str path); /* by its ending, the longest that fits */
/* Appends to fd. ERR_NOT_FOUND: the profile has no such host; ERR_USAGE: xspace of several targets. */
MUST_CHECK bool export_write(const struct exporter *x, const struct profile *p,
                             const struct export_options *o, int fd, struct export_counts *counts,
                             struct err *e);

#endif
