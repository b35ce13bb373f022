/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the XSpace reader: xspace.c (skim), xspace_lines.c (all lines, several at once),
 * xspace_line.c (one line's events into row groups), xspace_sort.c (lines in no order), xspace_event.c (one event),
 * xspace_stat.c (stats). Not for others. */
#ifndef TACHO_FORMAT_XSPACE_INTERNAL_H
#define TACHO_FORMAT_XSPACE_INTERNAL_H

#include <stdatomic.h>

#include "format/index_store.h"
#include "format/wire.h"
#include "model/trace_groups.h"
#include "model/trace_pyramid.h"
#include "model/trace_side.h"

#define WINDOW_SLACK 16 /* bytes that can be read behind those of a window */

/* Bytes of a file, seen through one buffer that moves forward. */
struct window {
    int fd;
    uint64_t size;   /* of the file */
    uint64_t base;   /* position of buf[0] */
    uint8_t *buf;    /* owned */
    size_t n, alloc; /* bytes held; room */
    size_t ahead;    /* bytes read at once at least */
};

/* n bytes at pos, or NULL and e; valid until the next call. */
const uint8_t *window_at(struct window *w, uint64_t pos, size_t n, struct err *e);
void window_release(struct window *w);

/* One field of a message that lies in the file; the content of LEN fields is not read. */
struct field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;  /* VARINT, I64, I32 */
    uint64_t at;     /* position of the tag */
    uint64_t pos, n; /* LEN: the content */
};
enum field_result { FIELD_DONE = 0, FIELD_READ, FIELD_FAILED };
/* The field at *pos of a message that ends at end; moves *pos behind it. */
enum field_result field_next(struct window *w, uint64_t *pos, uint64_t end, struct field *f,
                             struct err *e);

/* A message kept in the trace's arena, and where it came from. */
struct raw {
    str bytes;
    uint64_t pos;
};

struct extent {
    uint64_t pos, n;
};

/* What ids of a plane mean, for those that are small enough to be looked up in an array. */
struct plane_ids {
    uint32_t *metadata; /* by event metadata id: its index, or UINT32_MAX */
    uint32_t n_metadata;
    uint32_t *names; /* by stat metadata id: index of its name, or UINT32_MAX */
    uint8_t *slots;  /* its side slot, or SIDE_SLOTS */
    uint32_t n_names;
    bool has_large_slot; /* a name with a side slot has an id beyond the array */
};

struct xspace_reader {
    struct trace *trace;
    struct window window;
    struct extent *line_extents; /* one a line, in the trace's arena */
    struct plane_ids *ids;       /* one a plane, in the trace's arena */
    uint32_t lines_capacity, extents_capacity, n_extents, planes_capacity;
    uint32_t errors_capacity, warnings_capacity, hostnames_capacity;
    struct index_store *store; /* where row groups go; borrowed from the trace's groups, or NULL */
    bool keeps_all; /* all row groups go there (an index), else those that memory does not hold */
    int sort_fd;    /* of sorted runs, or -1; borrowed */
    _Atomic uint64_t sort_bytes;
    unsigned n_threads;
    uint64_t most_events;      /* of the trace; 0: all */
    uint64_t most_line_events; /* of one line, as follows from that */
};

/* Events of one line, as far as they are decoded. */
struct event_sink {
    const struct trace_plane *plane;
    const struct plane_ids *ids;
    struct trace_rows rows;
    bool by_processor; /* it takes varints apart: xspace_event_by_processor() */
    bool unsorted;     /* the rows at hand are not in order */
    bool goes_back;    /* a start before that of the event before it */
    uint64_t n_bad, n_unknown, n_aggregated, n_long, n_bad_stats;
    uint64_t last_id; /* of metadata beyond the array */
    uint32_t last_index;
    bool has_last_id;
};
/* Adds the event whose message this is as one more row; the rows have room. An impossible one is counted and left out.
 * Behind the message WINDOW_SLACK bytes can be read. False for broken bytes. */
MUST_CHECK bool xspace_event_add(struct event_sink *s, const uint8_t *p, size_t n, uint64_t pos,
                                 struct err *e);

/* Whether the processor has an instruction that is quick at it. */
bool xspace_event_by_processor(void);

/* All lines into row groups, levels and sums. */
MUST_CHECK bool xspace_lines_decode(struct xspace_reader *r, struct err *e);

/* Decodes one XStat. */
MUST_CHECK bool xspace_stat_decode(const struct trace_plane *plane, str bytes, uint64_t pos,
                                   struct arena *a, struct trace_stat *s, struct err *e);
/* Decodes the XStats among the fields of a message: those with field number `field`. */
MUST_CHECK bool xspace_stats_decode(const struct trace_plane *plane, str message, uint64_t pos,
                                    uint32_t field, struct arena *a, struct trace_stats *out,
                                    struct err *e);
extern const struct trace_source xspace_source;

#endif
