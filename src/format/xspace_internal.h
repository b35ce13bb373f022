/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the XSpace reader: xspace.c (skim), xspace_line.c (events into row
 * groups), xspace_stat.c (stats). Not for others. */
#ifndef TACHO_FORMAT_XSPACE_INTERNAL_H
#define TACHO_FORMAT_XSPACE_INTERNAL_H

#include "format/wire.h"
#include "model/trace_groups.h"

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

struct xspace_reader {
    struct trace *trace;
    struct window window;
    struct extent *line_extents; /* one a line, in the trace's arena */
    uint32_t lines_capacity, extents_capacity, n_extents, planes_capacity;
    uint32_t errors_capacity, warnings_capacity, hostnames_capacity;
    struct trace_event *run; /* sort buffer, owned */
    uint32_t run_capacity;
};

/* Decodes one line into row groups and fills its sums. */
MUST_CHECK bool xspace_line_decode(struct xspace_reader *r, uint32_t line_index, struct err *e);

/* Decodes one XStat. */
MUST_CHECK bool xspace_stat_decode(const struct trace_plane *plane, str bytes, uint64_t pos,
                                   struct arena *a, struct trace_stat *s, struct err *e);
/* Decodes the XStats among the fields of a message: those with field number `field`. */
MUST_CHECK bool xspace_stats_decode(const struct trace_plane *plane, str message, uint64_t pos,
                                    uint32_t field, struct arena *a, struct trace_stats *out,
                                    struct err *e);
extern const struct trace_source xspace_source;

#endif
