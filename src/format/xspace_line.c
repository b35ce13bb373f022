/* SPDX-License-Identifier: Apache-2.0 */
/* Events of one line into row groups. Most lines are written in order of start: they are decoded once, sorted within
 * the rows at hand, and flow through. A line whose events go back further is begun again and sorted whole. */
#include "format/xspace_line.h"

#include "base/limits.h"

#define STEP_ROWS 65536
#define WINDOW_BYTES (1 << 18) /* stays in the second cache */

void line_decoder_init(struct line_decoder *d, struct xspace_reader *r)
{
    *d = (struct line_decoder){.r = r, .ended = true};
    d->window = (struct window){.fd = r->window.fd, .size = r->window.size, .ahead = WINDOW_BYTES};
    d->level_end_ps = map_alloc(LIMIT_TRACE_DEPTH, sizeof *d->level_end_ps);
    d->packs = r->store != NULL;
    arena_init(&d->texts, "names of a line", 0);
    trace_rows_init(&d->sink.rows, LINE_ROWS);
    d->sink.by_processor = xspace_event_by_processor();
}

static void outputs_drop(struct line_decoder *d)
{
    for (uint32_t i = 0; i < d->n_outputs; i++) {
        free(d->outputs[i].group.bytes);
        free(d->outputs[i].packed.bytes);
    }
    d->n_outputs = 0;
}

void line_decoder_release(struct line_decoder *d)
{
    outputs_drop(d);
    free(d->outputs);
    window_release(&d->window);
    map_free(d->level_end_ps);
    arena_release(&d->texts);
    trace_rows_release(&d->sink.rows);
    sorter_free(d->sorter);
    pyramid_free(d->pyramid);
    index_packer_release(&d->packer);
}

static void output_add(void *ctx, uint32_t level, struct trace_group *g)
{
    struct line_decoder *d = ctx;
    if (d->n_outputs == d->outputs_capacity) {
        d->outputs_capacity = d->outputs_capacity == 0 ? 64 : d->outputs_capacity * 2;
        d->outputs = realloc(d->outputs, d->outputs_capacity * sizeof *d->outputs);
        must(d->outputs != NULL);
    }
    struct line_output *out = &d->outputs[d->n_outputs++];
    *out = (struct line_output){.level = level, .group = *g};
    if (d->packs)
        index_pack(&d->packer, &out->group, &out->packed);
}

/* Begins the line again: nothing of it counts. */
static void line_reset(struct line_decoder *d, enum line_mode mode)
{
    struct event_sink *s = &d->sink;
    outputs_drop(d);
    arena_release(&d->texts);
    sorter_free(d->sorter);
    pyramid_free(d->pyramid);
    d->sorter = mode == LINE_SORT ? sorter_new(d->r) : NULL;
    d->pyramid = NULL;
    d->line = (struct trace_line){.plane_index = d->r->trace->lines[d->line_index].plane_index,
                                  .start_ps = UINT64_MAX};
    d->pos = d->extent.pos;
    d->mode = mode;
    d->ended = d->failed = d->was_unsorted = d->merges = d->is_partial = false;
    d->n_open = d->n_levels = 0;
    d->busy_end_ps = d->n_too_deep = d->n_packed = 0;
    d->packer.n_plain = 0;
    trace_rows_shift(&s->rows, s->rows.n);
    s->unsorted = s->goes_back = s->has_last_id = false;
    s->n_bad = s->n_unknown = s->n_aggregated = s->n_long = s->n_bad_stats = 0;
}

void line_decoder_begin(struct line_decoder *d, uint32_t line_index)
{
    d->line_index = line_index;
    d->extent = d->r->line_extents[line_index];
    d->sink.plane = &d->r->trace->planes[d->r->trace->lines[line_index].plane_index];
    d->sink.ids = &d->r->ids[d->r->trace->lines[line_index].plane_index];
    d->restarted = false;
    d->has_line = true;
    line_reset(d, LINE_STREAM);
}

/* Depth: one more than the deepest event that still runs. While no two events overlap in part, the ends of those that
 * run fall with their depth: the deepest tells whether this one does. */
static uint16_t row_depth(struct line_decoder *d, uint64_t start_ps, uint64_t end_ps)
{
    uint64_t *const ends = d->level_end_ps;
    while (d->n_open > 0 && ends[d->n_open - 1] <= start_ps)
        d->n_open--;
    if (d->n_open > 0 && ends[d->n_open - 1] < end_ps)
        d->line.overlaps = true;
    if (d->n_open == LIMIT_TRACE_DEPTH) {
        d->n_too_deep++;
        return (uint16_t)(LIMIT_TRACE_DEPTH - 1);
    }
    ends[d->n_open++] = end_ps;
    return (uint16_t)(d->n_open - 1);
}

/* Depths and sums of the first n rows. */
static void rows_nest(struct line_decoder *d, uint32_t n)
{
    struct trace_rows *r = &d->sink.rows;
    struct trace_line *line = &d->line;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t start = r->start_ps[i], end = start + r->dur_ps[i];
        r->depth[i] = 0;
        if (r->num_occurrences[i] > 0)
            continue;
        r->depth[i] = row_depth(d, start, end);
        line->max_depth = r->depth[i] > line->max_depth ? r->depth[i] : line->max_depth;
        line->start_ps = start < line->start_ps ? start : line->start_ps;
        line->end_ps = end > line->end_ps ? end : line->end_ps;
        if (end > d->busy_end_ps) {
            line->busy_ps += end - (start > d->busy_end_ps ? start : d->busy_end_ps);
            d->busy_end_ps = end;
        }
    }
}

static void rows_draw(struct line_decoder *d, uint32_t n)
{
    const struct trace_rows *r = &d->sink.rows;
    if (d->pyramid == NULL && d->n_packed == 0 && n >= PYRAMID_LEAST_EVENTS) {
        d->pyramid = pyramid_new(output_add, d);
        pyramid_begin(d->pyramid, r->start_ps[n - 1] - r->start_ps[0] + 1, n);
    }
    for (uint32_t i = 0; d->pyramid != NULL && i < n; i++)
        if (r->num_occurrences[i] == 0)
            pyramid_add(d->pyramid, d->n_packed + i, r->start_ps[i], r->dur_ps[i],
                        r->metadata_index[i], r->depth[i]);
}

enum packing { PACKED = 0, NOT_IN_ORDER };

/* The rows at hand into groups: all at the end of the line, else whole groups, and of a line in some disorder not the
 * last ones, before which others may belong. */
static enum packing rows_pack_out(struct line_decoder *d, bool at_end)
{
    struct trace_rows *r = &d->sink.rows;
    const uint32_t group = LIMIT_TRACE_GROUP_EVENTS;
    if (d->sink.unsorted) {
        d->was_unsorted = d->was_unsorted || d->sink.goes_back;
        trace_rows_sort(r);
    }
    if (r->n > 0 && d->n_packed > 0 &&
        !trace_order(d->last_start_ps, d->last_dur_ps, d->last_src, r->start_ps[0], r->dur_ps[0],
                     r->src[0]))
        return NOT_IN_ORDER;
    uint32_t n = r->n;
    if (!at_end) {
        n -= d->was_unsorted && d->mode == LINE_STREAM && n > group ? group : 0;
        n -= n % group;
    }
    if (n == 0)
        return PACKED;
    rows_nest(d, n);
    rows_draw(d, n);
    for (uint32_t first = 0; first < n; first += group) {
        struct trace_group g;
        trace_group_pack(r, first, n - first < group ? n - first : group, &g);
        output_add(d, LINE_EVENTS, &g);
    }
    d->last_start_ps = r->start_ps[n - 1];
    d->last_dur_ps = r->dur_ps[n - 1];
    d->last_src = r->src[n - 1];
    d->n_packed += n;
    trace_rows_shift(r, n);
    d->sink.unsorted = false;
    return PACKED;
}

static bool line_text(struct line_decoder *d, const struct field *f, str *out, struct err *e)
{
    if (f->n > LIMIT_XSPACE_NAME_BYTES)
        return err_at(e, ERR_LIMIT, f->pos, "a line's name has %llu bytes",
                      (unsigned long long)f->n);
    const uint8_t *p = window_at(&d->window, f->pos, (size_t)f->n, e);
    if (p == NULL)
        return false;
    *out = arena_str(&d->texts, (str){(const char *)p, (size_t)f->n});
    return out->p != NULL || out->n == 0 || arena_full(&d->texts, e);
}

static bool line_field(struct line_decoder *d, const struct field *f, struct err *e)
{
    struct trace_line *line = &d->line;
    if (f->number == 4 && f->type == WIRE_LEN) {
        if (f->n <= UINT32_MAX / 2)
            return line_decoder_take(d, &d->window, f->pos, (uint32_t)f->n, e);
        d->sink.n_long++;
    } else if (f->number == 1 && f->type == WIRE_VARINT) {
        line->id = (int64_t)f->value;
    } else if (f->number == 2 && f->type == WIRE_LEN) {
        return line_text(d, f, &line->name, e);
    } else if (f->number == 3 && f->type == WIRE_VARINT) {
        line->timestamp_ns = (int64_t)f->value;
    } else if (f->number == 9 && f->type == WIRE_VARINT) {
        line->duration_ps = (int64_t)f->value < 0 ? 0 : f->value;
    } else if (f->number == 10 && f->type == WIRE_VARINT) {
        line->display_id = (int64_t)f->value;
    } else if (f->number == 11 && f->type == WIRE_LEN) {
        return line_text(d, f, &line->display_name, e);
    }
    return true;
}

bool line_decoder_take(struct line_decoder *d, struct window *w, uint64_t pos, uint32_t n,
                       struct err *e)
{
    const uint8_t *p = window_at(w, pos, n, e);
    return p != NULL && xspace_event_add(&d->sink, p, n, pos, e);
}

/* Events that lie whole in the window, one after the other, as long as there is room for rows. */
static bool window_events(struct line_decoder *d, struct err *e)
{
    const struct window *w = &d->window;
    const uint64_t end = d->extent.pos + d->extent.n;
    if (d->pos < w->base || d->pos >= w->base + w->n)
        return true;
    const uint8_t *const start = w->buf + (d->pos - w->base);
    const uint64_t left = w->base + w->n < end ? w->base + w->n - d->pos : end - d->pos;
    const uint8_t *p = start, *const stop = start + left;
    while (stop - p > 3 && *p == 0x22 && d->sink.rows.n < LINE_ROWS) {
        size_t n = p[1], head = 2;
        if (n >= 0x80) {
            if (p[2] >= 0x80)
                break;
            n = (n & 0x7f) | (size_t)p[2] << 7;
            head = 3;
        }
        if (n > (size_t)(stop - p) - head)
            break;
        if (!xspace_event_add(&d->sink, p + head, n, d->pos + (uint64_t)(p + head - start), e))
            return false;
        p += head + n;
    }
    d->pos += (uint64_t)(p - start);
    return true;
}

/* Rows are full, or the line ends. */
static bool rows_flush(struct line_decoder *d, bool at_end, struct err *e)
{
    if (d->mode == LINE_SORT)
        return sorter_add(d->sorter, &d->sink.rows, e) &&
               (trace_rows_shift(&d->sink.rows, d->sink.rows.n), d->sink.unsorted = false, true);
    if (rows_pack_out(d, at_end) == PACKED)
        return true;
    line_reset(d, LINE_SORT);
    d->restarted = true;
    return true;
}

static bool line_read(struct line_decoder *d, struct err *e)
{
    const uint64_t end = d->extent.pos + d->extent.n;
    const uint64_t begin = d->n_packed;
    while (d->pos < end && d->n_packed - begin < STEP_ROWS) {
        struct field f;
        const bool was_sorting = d->mode == LINE_SORT;
        if (!window_events(d, e))
            return false;
        if (d->sink.rows.n < LINE_ROWS && d->pos < end &&
            (field_next(&d->window, &d->pos, end, &f, e) != FIELD_READ || !line_field(d, &f, e)))
            return false;
        if (d->sink.rows.n == LINE_ROWS && !rows_flush(d, false, e))
            return false;
        if (!was_sorting && d->mode == LINE_SORT)
            return true; /* begun again */
    }
    return true;
}

static void line_end(struct line_decoder *d)
{
    if (d->pyramid != NULL)
        d->n_levels = pyramid_end(d->pyramid, d->level_log2);
    pyramid_free(d->pyramid);
    d->pyramid = NULL;
    d->line.n_events = d->n_packed;
    d->line.was_unsorted = d->was_unsorted || d->mode == LINE_SORT;
    if (d->line.start_ps > d->line.end_ps) {
        d->line.start_ps = 1;
        d->line.end_ps = 0;
    }
    d->ended = true;
}

static bool line_merge(struct line_decoder *d, struct err *e)
{
    bool more;
    if (!sorter_merge(d->sorter, d, LINE_ROWS - d->sink.rows.n, &more, e))
        return false;
    if (rows_pack_out(d, !more) == NOT_IN_ORDER)
        return err_set(e, ERR_INTERNAL, "sorted events are out of order");
    if (!more)
        line_end(d);
    return true;
}

static bool line_step(struct line_decoder *d, struct err *e)
{
    const uint64_t end = d->extent.pos + d->extent.n;
    if (d->merges)
        return line_merge(d, e);
    if (!line_read(d, e))
        return false;
    if (d->pos < end && d->n_packed + d->sink.rows.n >= d->r->most_line_events)
        d->is_partial = true;
    else if (d->pos < end)
        return true;
    if (!rows_flush(d, true, e))
        return false;
    if (d->mode == LINE_STREAM) {
        line_end(d);
    } else if (d->pos >= end) { /* counted again when they are decoded in order */
        d->merges = true;
        d->sink.n_unknown = d->sink.n_aggregated = d->sink.n_bad_stats = 0;
    }
    return true;
}

void line_decoder_step(struct line_decoder *d)
{
    d->failed = !line_step(d, &d->err);
}
