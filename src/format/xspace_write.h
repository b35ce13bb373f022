/* SPDX-License-Identifier: Apache-2.0 */
/* Writer of XSpace files: planes and lines are filled in any order, then written in one pass.
 *
 *     struct xspace_writer w;
 *     xspace_writer_init(&w);
 *     struct xspace_line_out *l = xspace_writer_line(&w, xspace_writer_plane(&w), 7, S("thread 7"));
 *     xspace_writer_stat_i64(&w, l, S("bytes"), 4096);       stats of the event that follows
 *     xspace_writer_event(&w, l, S("copy"), start_ns, sub_ps, dur_ps);
 *     if (!xspace_writer_save(&w, fd, e)) ...                 appends to fd
 *     xspace_writer_release(&w);
 *
 * A line's timestamp is its earliest event. Names and stat names are interned by plane. All the
 * events stay in memory until saved: beyond LIMIT_IMPORT_BYTES nothing more is taken and save fails
 * with ERR_LIMIT. Source: tsl/profiler/protobuf/xplane.proto. Thread: one at a time. */
#ifndef TACHO_FORMAT_XSPACE_WRITE_H
#define TACHO_FORMAT_XSPACE_WRITE_H

#include "base/buf.h"
#include "base/map.h"

struct xspace_event_out {
    int64_t start_ns;
    uint32_t sub_ps;  /* 0 … 999, added to start_ns */
    uint32_t name_id; /* of the plane's interner */
    uint64_t dur_ps;
    uint64_t stats_from; /* encoded, in the line's stats */
    uint32_t stats_n;
};

struct xspace_plane_out;

struct xspace_line_out {
    struct xspace_plane_out *plane;
    int64_t id;
    str name;
    struct xspace_event_out *events; /* owned */
    uint64_t n_events, capacity;
    struct buf stats;
    uint64_t stats_from; /* where those of the next event begin */
    struct xspace_line_out *next;
};

struct xspace_plane_out {
    str name; /* set by the caller before save; borrows w's arena or static text */
    struct interner names, stat_names;
    struct buf stats; /* encoded, of the plane itself */
    struct xspace_line_out *lines, **lines_end;
    uint32_t n_lines;
    struct xspace_plane_out *next;
};

struct xspace_writer {
    struct arena arena; /* text and lists; callers may use it */
    struct xspace_plane_out *planes, **planes_end;
    str *warnings, *hostnames;
    uint32_t n_warnings, warnings_capacity, n_hostnames, hostnames_capacity;
    int64_t shift_ns;     /* added to every line's timestamp */
    uint64_t event_bytes; /* held for events and stats */
    bool full;
};

void xspace_writer_init(struct xspace_writer *w);
void xspace_writer_release(struct xspace_writer *w);

/* Both NULL beyond the limit; every other function takes NULL and then does nothing. */
struct xspace_plane_out *xspace_writer_plane(struct xspace_writer *w);
struct xspace_line_out *xspace_writer_line(struct xspace_writer *w, struct xspace_plane_out *p,
                                           int64_t id, str name);
void xspace_writer_plane_i64(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             int64_t value);
void xspace_writer_stat_i64(struct xspace_writer *w, struct xspace_line_out *l, str name,
                            int64_t value);
void xspace_writer_stat_f64(struct xspace_writer *w, struct xspace_line_out *l, str name,
                            double value);
void xspace_writer_stat_str(struct xspace_writer *w, struct xspace_line_out *l, str name,
                            str value);
void xspace_writer_event(struct xspace_writer *w, struct xspace_line_out *l, str name,
                         int64_t start_ns, uint32_t sub_ps, uint64_t dur_ps);
void xspace_writer_warn(struct xspace_writer *w, str text);
void xspace_writer_host(struct xspace_writer *w, str name);
MUST_CHECK bool xspace_writer_save(struct xspace_writer *w, int fd, struct err *e);

#endif
