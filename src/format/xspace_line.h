/* SPDX-License-Identifier: Apache-2.0 */
/* One line being decoded, a stretch at a time, so that several lines can go on side by side and what they yield is
 * kept in an order that does not depend on how many threads there are. Not for others than the XSpace reader. */
#ifndef TACHO_FORMAT_XSPACE_LINE_H
#define TACHO_FORMAT_XSPACE_LINE_H

#include "format/xspace_internal.h"

#define LINE_EVENTS UINT32_MAX /* `level` of a group of the line's own events */
#define LINE_ROWS 32768        /* events gathered before they are sorted and packed */

struct line_output {
    uint32_t level;
    struct trace_group group;
    struct index_packed packed;
};

enum line_mode { LINE_STREAM = 0, LINE_SORT };

struct line_decoder {
    struct xspace_reader *r;
    uint32_t line_index;
    struct trace_line line; /* what the line will be; its names are in `texts` */
    struct extent extent;
    uint64_t pos; /* of the next field */
    enum line_mode mode;
    bool has_line, ended; /* of the line at hand */
    struct window window;
    struct event_sink sink;
    struct sorter *sorter; /* LINE_SORT only; owned */
    bool merges;           /* the sorter has all keys */
    struct arena texts;
    uint64_t *level_end_ps; /* per depth: end of the last event there; owned */
    uint32_t n_open;
    uint64_t busy_end_ps, n_too_deep;
    uint64_t last_start_ps, last_dur_ps, last_src; /* of the event packed last */
    uint64_t n_packed;                             /* events */
    bool was_unsorted;
    bool is_partial;         /* the rest of the line was left out */
    struct pyramid *pyramid; /* owned, or NULL */
    struct index_packer packer;
    bool packs;                  /* outputs are packed for the store */
    struct line_output *outputs; /* since they were last taken; owned */
    uint32_t n_outputs, outputs_capacity;
    uint32_t n_levels, level_log2[PYRAMID_LEVELS];
    bool failed, restarted; /* restarted: what came before this step's outputs does not count */
    struct err err;
};

void line_decoder_init(struct line_decoder *d, struct xspace_reader *r);
void line_decoder_release(struct line_decoder *d);
/* Begins a line. */
void line_decoder_begin(struct line_decoder *d, uint32_t line_index);
/* Decodes the next stretch: afterwards `outputs` hold what came of it, and ended or failed may be set. */
void line_decoder_step(struct line_decoder *d);

/* Of the decoder, for the sorter: takes the event at pos as a row; packs rows when there are enough. */
MUST_CHECK bool line_decoder_take(struct line_decoder *d, struct window *w, uint64_t pos,
                                  uint32_t n, struct err *e);

/* Lines whose events go back further than the rows at hand (xspace_sort.c): keys of all events in sorted runs, merged. */
struct sorter *sorter_new(struct xspace_reader *r);
void sorter_free(struct sorter *s); /* NULL allowed */
MUST_CHECK bool sorter_add(struct sorter *s, const struct trace_rows *rows, struct err *e);
/* Hands at most n events on, in order; *more: there are some left. */
MUST_CHECK bool sorter_merge(struct sorter *s, struct line_decoder *d, uint32_t n, bool *more,
                             struct err *e);

#endif
