/* SPDX-License-Identifier: Apache-2.0 */
/* Writer of XSpace files: planes and lines are filled in any order, then written in one pass.
 *
 *     struct xspace_writer w;
 *     xspace_writer_init(&w);
 *     struct xspace_plane_out *p = xspace_writer_plane(&w);
 *     struct xspace_line_out *l = xspace_writer_line(&w, p, 7, S("thread 7"));
 *     xspace_writer_stat_i64(l, xspace_writer_stat_id(&w, p, S("bytes")), 4096);   of the event that follows
 *     xspace_writer_event(&w, l, xspace_writer_name(&w, p, S("copy")), start_ns, sub_ps, dur_ps);
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

/* The duration of an event whose end has not come. Such events are not saved. */
#define XSPACE_OPEN UINT64_MAX

struct xspace_event_out {
    int64_t start_ns;
    uint32_t sub_ps;     /* 0 … 999, added to start_ns */
    uint32_t name_id;    /* of the plane's names */
    uint64_t dur_ps;     /* or XSPACE_OPEN */
    uint64_t stats_from; /* encoded, in the line's stats */
    uint32_t stats_n;
};

/* Stats that came to an event after it was there. */
struct xspace_late_out {
    uint64_t event, stats_from;
    uint32_t stats_n;
};

struct xspace_name_out {
    str name;
    struct buf stats; /* encoded, of the metadata */
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
    struct xspace_late_out *late;
    uint32_t n_late, late_capacity;
    int64_t order; /* lines are saved by it, then as they were made */
    struct xspace_line_out *next;
};

struct xspace_plane_out {
    str name; /* set by the caller before save; borrows w's arena or static text */
    struct xspace_name_out *names;
    uint32_t n_names, names_capacity;
    struct map_str_u32 name_ids;
    struct interner stat_names;
    struct buf stats; /* encoded, of the plane itself */
    struct xspace_line_out *lines, **lines_end;
    uint32_t n_lines;
    int64_t order; /* as of lines */
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

/* The id of a stat's name on a plane; 0 beyond the limit. */
uint32_t xspace_writer_stat_id(struct xspace_writer *w, struct xspace_plane_out *p, str name);
/* Stats of the plane itself. */
void xspace_writer_plane_i64(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             int64_t value);
void xspace_writer_plane_str(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             str value);

/* The id of an event's name on a plane: the same for the same name; 0 beyond the limit. */
uint32_t xspace_writer_name(struct xspace_writer *w, struct xspace_plane_out *p, str name);
/* Another one, whose metadata has a stat of its own. */
uint32_t xspace_writer_name_with(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                                 str stat, str value);

/* Stats of the event that follows on the line. */
void xspace_writer_stat_i64(struct xspace_line_out *l, uint32_t stat_id, int64_t value);
void xspace_writer_stat_u64(struct xspace_line_out *l, uint32_t stat_id, uint64_t value);
void xspace_writer_stat_f64(struct xspace_line_out *l, uint32_t stat_id, double value);
void xspace_writer_stat_str(struct xspace_line_out *l, uint32_t stat_id, str value);

void xspace_writer_event(struct xspace_writer *w, struct xspace_line_out *l, uint32_t name_id,
                         int64_t start_ns, uint32_t sub_ps, uint64_t dur_ps);
/* Gives the stats since the last event to one that is there already. */
void xspace_writer_late(struct xspace_writer *w, struct xspace_line_out *l, uint64_t event);

/* Gives the stats of one event of the line to another one too. */
void xspace_writer_lend(struct xspace_writer *w, struct xspace_line_out *l, uint64_t from,
                        uint64_t to);

void xspace_writer_warn(struct xspace_writer *w, str text);
void xspace_writer_host(struct xspace_writer *w, str name);
MUST_CHECK bool xspace_writer_save(struct xspace_writer *w, int fd, struct err *e);

#endif
