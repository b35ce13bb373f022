/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: what one target did during a profile, read only once loaded.
 *
 *   trace ─ planes ─ lines ─ row groups of events, sorted by start
 *                      │      start_ps dur_ps depth metadata src, side columns    packed, in memory or index
 *                      └ levels of merged events, for drawing (model/trace_pyramid.h)
 *
 * Times are picoseconds since `origin_ns` (the earliest line timestamp of the trace), because
 * epoch nanoseconds times 1000 do not fit 64 bits. Arguments ("stats") of one event are decoded
 * from the XSpace only when asked for; those of an event's metadata are decoded at load.
 * Names and words are plain strs in the trace's arena. Planes are known by index, never by id or
 * name: real files repeat both.
 *
 *     struct trace_cursor c;
 *     for (trace_cursor_init(&c, t, line); trace_cursor_next(&c);)
 *         busy += c.event.dur_ps;
 *     if (!trace_cursor_ok(&c, e)) return false;
 *
 * Source: tsl/profiler/protobuf/xplane.proto. Loaded by format/xspace.h. Thread: a trace may be read by
 * many threads, each with its own cursors. */
#ifndef TACHO_MODEL_TRACE_H
#define TACHO_MODEL_TRACE_H

#include "base/arena.h"
#include "base/map.h"
#include "model/note.h"

/* How the file of a target's XSpace ends, behind the target's name: <target>.xplane.pb, as XProf has it. */
#define TRACE_FILE_ENDING ".xplane.pb"
#define TRACE_FILE_ENDING_BYTES (sizeof TRACE_FILE_ENDING - 1)

enum trace_plane_kind {
    TRACE_PLANE_OTHER = 0,
    TRACE_PLANE_HOST,        /* /host:CPU and its kin with threads of the host */
    TRACE_PLANE_TPU,         /* /device:TPU:N, one TensorCore */
    TRACE_PLANE_TPU_SPARSE,  /* /device:TPU:N SparseCore M */
    TRACE_PLANE_GPU,         /* /device:GPU:N */
    TRACE_PLANE_CUSTOM,      /* /device:CUSTOM:… */
    TRACE_PLANE_METADATA,    /* /host:metadata: HLO protos */
    TRACE_PLANE_ENVIRONMENT, /* Task Environment */
};

enum trace_stat_type {
    TRACE_STAT_NONE = 0,
    TRACE_STAT_F64,
    TRACE_STAT_U64,
    TRACE_STAT_I64,
    TRACE_STAT_STR, /* also resolved references and decompressed strings */
    TRACE_STAT_BYTES,
};

struct trace_stat {
    str name; /* of the stat's metadata */
    enum trace_stat_type type;
    union {
        double f64;
        uint64_t u64;
        int64_t i64;
        str text; /* STR and BYTES */
    };
};

struct trace_stats {
    const struct trace_stat *items;
    uint32_t n;
};

struct trace_event_metadata {
    int64_t id;
    str name;         /* on TPU the whole HLO text */
    str display_name; /* may be empty */
    str metadata;     /* opaque bytes */
    struct trace_stats stats;
    const int64_t *child_ids;
    uint32_t n_child_ids;
};

struct trace_event {
    uint64_t start_ps; /* since trace.origin_ns */
    uint64_t dur_ps;
    uint64_t src;             /* byte offset of the XEvent message in the XSpace */
    uint32_t src_bytes;       /* its length */
    uint32_t metadata_index;  /* into the plane's event_metadata; UINT32_MAX = unknown id */
    uint32_t num_occurrences; /* > 0 for an aggregated event (then start is the line's) */
    uint32_t group, row;      /* where it stands: row group of the trace, and row of it */
    uint16_t depth;           /* 0 = outermost on its line */
};

struct trace_line {
    int64_t id, display_id;
    str name, display_name;
    uint32_t plane_index;
    int64_t timestamp_ns; /* as written */
    uint64_t duration_ps; /* as written, or 0 */
    uint64_t n_events;
    uint64_t start_ps, end_ps; /* of its events; start > end when there are none */
    uint64_t busy_ps;          /* length of the union of its events */
    uint16_t max_depth;
    bool was_unsorted;              /* the file had its events out of order */
    bool overlaps;                  /* events overlap in part (no nesting) */
    bool is_partial;                /* only its first events were loaded */
    uint32_t first_group, n_groups; /* row groups */
    uint64_t base_ps;               /* what is added to the starts kept in its row groups */
    uint32_t first_level,
        n_levels;         /* trace.levels[first_level …], finest first; none for short lines */
    bool is_part;         /* of a view: shows n_events of the events in its row groups, from … */
    uint64_t first_event; /* … this one on */
};

/* Events of a line merged for drawing in buckets of 2^bucket_log2 ps: model/trace_pyramid.h. */
struct trace_level {
    uint32_t bucket_log2;
    uint32_t first_group, n_groups;
    uint64_t n_rows;
};

struct trace_plane {
    int64_t id;
    str name;
    enum trace_plane_kind kind;
    int32_t ordinal;              /* N of /device:GPU:N, or -1 */
    uint32_t first_line, n_lines; /* trace.lines[first_line …] */
    struct trace_event_metadata *event_metadata;
    uint32_t n_event_metadata;
    struct trace_stats stats;
    struct map_u64_u32 metadata_by_id; /* event metadata id to index */
    str *stat_names;                   /* names of stat metadata: keys, and values of references */
    uint32_t n_stat_names;
    struct map_u64_u32 stat_name_by_id; /* stat metadata id to index */
    bool left_out;                      /* of a view: its lines are empty, its kind is OTHER */
};

struct trace_groups; /* private to model/trace_groups.h */
struct hlo_module;   /* model/hlo.h */
struct trace;
struct trace_line;
struct trace_event;
struct trace_picker; /* model/trace_pick.h */

/* Where arguments of events come from: the reader that loaded the trace sets it. */
struct trace_source {
    bool (*event_stats)(const struct trace *t, const struct trace_line *line,
                        const struct trace_event *ev, struct arena *a, struct trace_stats *out,
                        struct err *e);
    /* Takes from the message of an event, which lies at pos, the stats asked for. */
    bool (*pick)(struct trace_picker *p, str message, uint64_t pos, struct err *e);
    /* Reads the HloProto that stands in a stat of /host:metadata; NULL: the source has none. */
    bool (*hlo_module)(str bytes, struct arena *a, struct hlo_module *out, struct err *e);
};

struct trace {
    struct arena arena; /* owns all text and arrays below */
    str host;           /* of the file's name, else of the XSpace, else empty */
    str file;           /* name for messages */
    int64_t origin_ns;  /* wall ns (epoch) or profile-relative ns; start_ps counts from here */
    bool has_epoch;     /* origin_ns is since 1970 (else profile_start_ns may tell) */
    bool is_partial;    /* only the first events of some lines were loaded */
    int64_t profile_start_ns, profile_stop_ns; /* Task Environment, wall; 0 = not said */
    struct trace_plane *planes;
    uint32_t n_planes;
    struct trace_line *lines;
    uint32_t n_lines;
    struct trace_level *levels;
    uint32_t n_levels;
    uint64_t n_events;
    uint64_t start_ps, end_ps;          /* over all lines */
    str *errors, *warnings, *hostnames; /* said inside the file */
    uint32_t n_errors, n_warnings, n_hostnames;
    struct note *notes; /* what the reader repaired, guessed or left out */
    uint32_t n_notes, notes_capacity;
    struct trace_groups *groups;
    const struct trace_source *source; /* static; NULL: events have no stats */
    int fd;                            /* the XSpace, for stats; owned; -1 = none */
    uint64_t shift_ps;                 /* added to its times they count from the session's origin */
    void *kept; /* what analysis found out once for those that ask again; owned */
    void (*kept_free)(void *kept);
};

#define TRACE_CURSOR_WINDOW 256 /* events that trace_cursor_take gives at most */

/* All events of a line, by start. Events with equal start: longer first, then file order. */
struct trace_cursor {
    const struct trace *trace;
    struct trace_event event; /* the current one */
    uint64_t index;           /* of the current event on its line */
    bool is_cut;              /* its duration was, see trace_cursor_init_work */
    /* private: */
    uint32_t line_index, first_group, n_groups;
    uint64_t base_ps;
    uint32_t group, row;      /* next to unpack: row group of the line, row of it */
    uint32_t at, n_window;    /* in the window */
    uint64_t left;            /* events still to give */
    uint64_t src_end;         /* where the event before `row` ends in the file */
    struct cursor_room *room; /* unpacked rows, owned */
    bool cuts, leaves_src;
    uint64_t ahead_index, ahead_start_ps, ahead_end_ps; /* the next event that lasts, once found */
    struct err *failed;
    struct err failure;
};
void trace_cursor_init(struct trace_cursor *c, const struct trace *t, uint32_t line_index);
/* Over the rows of one of its line's levels, by start: events and cells (model/trace_pyramid.h). */
void trace_cursor_init_level(struct trace_cursor *c, const struct trace *t, uint32_t line_index,
                             uint32_t level);
/* For those that count time. A stream ("Stream #7(Kernel)") runs in order: what it runs may reach into the
 * next one but cannot contain it whole. A duration that does was measured wrong, so such an event ends here
 * where the next one that lasts begins. On other lines as trace_cursor_init. */
void trace_cursor_init_work(struct trace_cursor *c, const struct trace *t, uint32_t line_index);
/* Continues at the first event with start_ps >= from_ps, or the first that is still running at
 * from_ps (whichever begins earlier within its row group). */
void trace_cursor_seek(struct trace_cursor *c, uint64_t from_ps);
bool trace_cursor_next(struct trace_cursor *c); /* false at the end or on failure */
/* The next events, as many as are at hand, for passes that want no copy of each; answers how many, 0 at the end or on
 * failure. They are valid until the next call; c->index is that of the last one. */
uint32_t trace_cursor_take(struct trace_cursor *c, const struct trace_event **events);
/* Passes over the first n events; before any was given. */
void trace_cursor_skip(struct trace_cursor *c, uint64_t n);
/* Leaves src and src_bytes out: for passes that ask for no stats. */
void trace_cursor_leave_src(struct trace_cursor *c);
MUST_CHECK bool trace_cursor_ok(const struct trace_cursor *c, struct err *e);
void trace_cursor_release(struct trace_cursor *c); /* also done by next() at the end */

/* The event's own stats (not its metadata's), decoded into a. */
MUST_CHECK bool trace_event_stats(const struct trace *t, const struct trace_line *line,
                                  const struct trace_event *ev, struct arena *a,
                                  struct trace_stats *out, struct err *e);
/* NULL when the id was unknown. */
const struct trace_event_metadata *trace_event_meta(const struct trace *t,
                                                    const struct trace_line *line,
                                                    const struct trace_event *ev);
/* What a person calls the event: display name, else name, else "?". */
str trace_event_name(const struct trace *t, const struct trace_line *line,
                     const struct trace_event *ev);
/* The stat of that name, or NULL. Event stats win over metadata stats: ask both in that order. */
const struct trace_stat *trace_stat_find(struct trace_stats stats, str name);
/* A stat as an integer, a double or text, whatever its type where that loses nothing. */
bool trace_stat_i64(const struct trace_stat *s, int64_t *out);
bool trace_stat_f64(const struct trace_stat *s, double *out);
bool trace_stat_str(const struct trace_stat *s, str *out);

/* Adds count to the note of that code. */
void trace_note(struct trace *t, str code, uint64_t count, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Frees everything, closes fd. NULL allowed. */
void trace_free(struct trace *t);

/* A profile session: one trace per target. */
struct profile {
    struct arena arena;
    str name;              /* of the session */
    str path;              /* what the user named */
    struct trace **traces; /* owned */
    uint32_t n_traces;
    int64_t origin_ns; /* wall ns where known, of the earliest trace */
    bool has_epoch;    /* origin_ns is since 1970, and the traces are on one clock */
};
/* Sets origin_ns and every trace's shift_ps. Traces without a wall clock all begin at 0. */
void profile_align(struct profile *p);
/* "host-0.3": the file's name without its ending. */
str trace_target(const struct trace *t);
/* The trace of that target, or of that host; an empty name is the first. NULL when there is none. */
struct trace *profile_find_trace(const struct profile *p, str target);
void profile_free(struct profile *p);

#endif
