/* SPDX-License-Identifier: Apache-2.0 */
/* Events of one line into row groups. Most lines are written in order of start: they are decoded
 * once, sorted within a buffer, and flow through. A line whose events go back further than the
 * buffer is decoded again: sorted runs go to the spill file and are merged from there. */
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "format/xspace_internal.h"

#define RUN_EVENTS (UINT32_C(1) << 20)
#define MERGE_EVENTS 4096
#define TIME_MAX_PS (INT64_MAX / 2)

enum line_mode { LINE_STREAM = 0, LINE_SORT };
enum line_result { LINE_DONE = 0, LINE_FAILED, LINE_NEEDS_SORT };

struct sink { /* takes events in order */
    struct xspace_reader *r;
    struct trace_line *line;
    struct trace_event *group; /* events of the row group being filled */
    uint32_t n;
    uint64_t *level_end_ps; /* per depth: end of the last event there */
    uint32_t n_levels;
    uint64_t busy_end_ps;
    uint64_t n_too_deep;
    struct trace_event last;
    bool has_last;
};

struct run_extent {
    uint64_t offset;
    uint32_t n;
};

struct line_work {
    struct xspace_reader *r;
    struct trace_line *line;
    struct sink sink;
    uint32_t n_run; /* events in r->run */
    struct run_extent runs[4096];
    uint32_t n_runs;
    uint64_t n_bad, n_unknown, n_aggregated, n_long;
    uint64_t last_id; /* of the event before: most lines repeat one id */
    uint32_t last_index;
    bool has_last_id;
};

static int event_order(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;
    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    if (x->dur_ps != y->dur_ps)
        return x->dur_ps > y->dur_ps ? -1 : 1;
    return x->src < y->src ? -1 : x->src > y->src;
}

static bool sink_flush(struct sink *s, struct err *e)
{
    if (s->n == 0)
        return true;
    if (!trace_groups_add(s->r->trace->groups, s->group, s->n, e))
        return false;
    s->line->n_groups++;
    s->n = 0;
    return true;
}

/* Depth: one more than the deepest event that still runs. */
static uint16_t sink_depth(struct sink *s, uint64_t start_ps, uint64_t end_ps)
{
    while (s->n_levels > 0 && s->level_end_ps[s->n_levels - 1] <= start_ps)
        s->n_levels--;
    for (uint32_t i = s->n_levels; i-- > 0 && !s->line->overlaps;)
        s->line->overlaps = s->level_end_ps[i] > start_ps && s->level_end_ps[i] < end_ps;
    if (s->n_levels == LIMIT_TRACE_DEPTH) {
        s->n_too_deep++;
        return (uint16_t)(LIMIT_TRACE_DEPTH - 1);
    }
    s->level_end_ps[s->n_levels++] = end_ps;
    return (uint16_t)(s->n_levels - 1);
}

static bool sink_put(struct sink *s, const struct trace_event *ev, struct err *e)
{
    struct trace_line *line = s->line;
    struct trace_event *out = &s->group[s->n++];
    *out = *ev;
    line->n_events++;
    if (ev->num_occurrences == 0) {
        const uint64_t end = ev->start_ps + ev->dur_ps;
        out->depth = sink_depth(s, ev->start_ps, end);
        line->max_depth = out->depth > line->max_depth ? out->depth : line->max_depth;
        line->start_ps = ev->start_ps < line->start_ps ? ev->start_ps : line->start_ps;
        line->end_ps = end > line->end_ps ? end : line->end_ps;
        if (end > s->busy_end_ps) {
            line->busy_ps += end - (ev->start_ps > s->busy_end_ps ? ev->start_ps : s->busy_end_ps);
            s->busy_end_ps = end;
        }
    }
    s->last = *ev;
    s->has_last = true;
    return s->n < LIMIT_TRACE_GROUP_EVENTS || sink_flush(s, e);
}

static uint32_t metadata_index(struct line_work *w, uint64_t id)
{
    if (w->has_last_id && id == w->last_id)
        return w->last_index;
    const struct trace_plane *plane = &w->r->trace->planes[w->line->plane_index];
    const uint32_t *at = map_u64_u32_get(&plane->metadata_by_id, id);
    w->has_last_id = true;
    w->last_id = id;
    w->last_index = at == NULL ? UINT32_MAX : *at;
    return w->last_index;
}

/* False only for broken bytes; an impossible event answers true with *keep false. */
static bool event_decode(struct line_work *w, str bytes, uint64_t pos, struct trace_event *ev,
                         bool *keep, struct err *e)
{
    struct wire in = wire_from(bytes, pos);
    int64_t offset = 0, duration = 0, occurrences = 0;
    uint64_t id = 0;
    while (wire_next(&in)) {
        if (in.type != WIRE_VARINT)
            continue;
        switch (in.field) {
        case 1:
            id = in.number;
            break;
        case 2:
            offset = (int64_t)in.number;
            occurrences = 0;
            break;
        case 3:
            duration = (int64_t)in.number;
            break;
        case 5:
            occurrences = (int64_t)in.number;
            offset = 0;
            break;
        default:
            break;
        }
    }
    if (!wire_ok(&in, e))
        return false;
    *keep = offset >= 0 && duration >= 0 && offset < TIME_MAX_PS && duration < TIME_MAX_PS &&
            occurrences >= 0 && bytes.n <= UINT32_MAX;
    w->n_bad += !*keep;
    *ev = (struct trace_event){
        .start_ps = (uint64_t)offset,
        .dur_ps = (uint64_t)duration,
        .src = pos,
        .src_bytes = (uint32_t)bytes.n,
        .metadata_index = metadata_index(w, id),
        .num_occurrences = occurrences > UINT32_MAX ? UINT32_MAX : (uint32_t)occurrences,
    };
    w->n_unknown += *keep && ev->metadata_index == UINT32_MAX;
    w->n_aggregated += *keep && occurrences > 0;
    return true;
}

static void run_sort(struct line_work *w)
{
    struct trace_event *run = w->r->run;
    for (uint32_t i = 1; i < w->n_run; i++)
        if (event_order(&run[i - 1], &run[i]) > 0) {
            for (uint32_t k = i; k < w->n_run && !w->line->was_unsorted; k++)
                w->line->was_unsorted = run[k].start_ps < run[k - 1].start_ps;
            qsort(run, w->n_run, sizeof *run, event_order);
            return;
        }
}

/* The buffer is full, or the line ends: hand its events on. */
static enum line_result run_emit(struct line_work *w, struct err *e)
{
    run_sort(w);
    if (w->n_run > 0 && w->sink.has_last && event_order(&w->sink.last, &w->r->run[0]) > 0)
        return LINE_NEEDS_SORT;
    for (uint32_t i = 0; i < w->n_run; i++)
        if (!sink_put(&w->sink, &w->r->run[i], e))
            return LINE_FAILED;
    w->n_run = 0;
    return LINE_DONE;
}

/* Writes the sorted buffer as one run into the spill file. */
static enum line_result run_spill(struct line_work *w, struct err *e)
{
    struct trace_groups *g = w->r->trace->groups;
    if (w->n_run == 0)
        return LINE_DONE;
    if (w->n_runs == sizeof w->runs / sizeof *w->runs) {
        err_set(e, ERR_LIMIT, "a line has more than %u unordered runs of events", w->n_runs);
        return LINE_FAILED;
    }
    run_sort(w);
    const size_t n = w->n_run * sizeof *w->r->run;
    if (!file_pwrite_all(g->spill_fd, w->r->run, n, g->spill_bytes, e))
        return LINE_FAILED;
    w->runs[w->n_runs++] = (struct run_extent){g->spill_bytes, w->n_run};
    g->spill_bytes += n;
    w->n_run = 0;
    return LINE_DONE;
}

static bool run_grow(struct xspace_reader *r)
{
    const uint32_t capacity = r->run_capacity == 0 ? 4096 : r->run_capacity * 2;
    struct trace_event *run = realloc(r->run, capacity * sizeof *run);
    if (run == NULL)
        return false;
    r->run = run;
    r->run_capacity = capacity;
    return true;
}

static enum line_result run_add(struct line_work *w, const struct trace_event *ev,
                                enum line_mode mode, struct err *e)
{
    struct xspace_reader *r = w->r;
    const bool may_spill = r->trace->groups->spill_fd >= 0;
    if (w->n_run >= RUN_EVENTS && (mode == LINE_STREAM || may_spill)) {
        const enum line_result done = mode == LINE_STREAM ? run_emit(w, e) : run_spill(w, e);
        if (done != LINE_DONE)
            return done;
    }
    if (w->n_run == r->run_capacity && (r->run_capacity > UINT32_MAX / 4 || !run_grow(r))) {
        err_set(e, ERR_LIMIT, "a line has more unordered events than fit in memory");
        return LINE_FAILED;
    }
    r->run[w->n_run++] = *ev;
    return LINE_DONE;
}

struct merge_run {
    struct run_extent left;
    struct trace_event *window;
    uint32_t at, n;
};

static bool merge_fill(struct line_work *w, struct merge_run *m, struct err *e)
{
    m->at = 0;
    m->n = m->left.n < MERGE_EVENTS ? m->left.n : MERGE_EVENTS;
    if (m->n == 0)
        return true;
    const size_t bytes = m->n * sizeof *m->window;
    if (!file_pread_all(w->r->trace->groups->spill_fd, m->window, bytes, m->left.offset, e))
        return false;
    m->left.offset += bytes;
    m->left.n -= m->n;
    return true;
}

static bool merge_all(struct line_work *w, struct merge_run *runs, struct err *e)
{
    for (;;) {
        struct merge_run *least = NULL;
        for (uint32_t i = 0; i < w->n_runs; i++)
            if (runs[i].at < runs[i].n &&
                (least == NULL ||
                 event_order(&runs[i].window[runs[i].at], &least->window[least->at]) < 0))
                least = &runs[i];
        if (least == NULL)
            return true;
        if (!sink_put(&w->sink, &least->window[least->at++], e))
            return false;
        if (least->at == least->n && !merge_fill(w, least, e))
            return false;
    }
}

static enum line_result line_merge(struct line_work *w, struct err *e)
{
    if (w->n_runs == 0)
        return run_emit(w, e);
    if (run_spill(w, e) != LINE_DONE)
        return LINE_FAILED;
    struct merge_run *runs = map_alloc(w->n_runs, sizeof *runs);
    bool ok = true;
    for (uint32_t i = 0; i < w->n_runs && ok; i++) {
        runs[i].left = w->runs[i];
        runs[i].window = map_alloc(MERGE_EVENTS, sizeof *runs[i].window);
        ok = merge_fill(w, &runs[i], e);
    }
    ok = ok && merge_all(w, runs, e);
    for (uint32_t i = 0; i < w->n_runs; i++)
        map_free(runs[i].window);
    map_free(runs);
    return ok ? LINE_DONE : LINE_FAILED;
}

static bool line_text(struct line_work *w, const struct field *f, str *out, struct err *e)
{
    struct xspace_reader *r = w->r;
    if (f->n > LIMIT_XSPACE_NAME_BYTES)
        return err_at(e, ERR_LIMIT, f->pos, "a line's name has %llu bytes",
                      (unsigned long long)f->n);
    const uint8_t *p = window_at(&r->window, f->pos, (size_t)f->n, e);
    if (p == NULL)
        return false;
    *out = arena_str(&r->trace->arena, (str){(const char *)p, (size_t)f->n});
    return out->p != NULL || out->n == 0 || arena_full(&r->trace->arena, e);
}

static enum line_result line_event(struct line_work *w, const struct field *f, enum line_mode mode,
                                   struct err *e)
{
    if (f->n > UINT32_MAX / 2) {
        w->n_long++;
        return LINE_DONE;
    }
    const uint8_t *p = window_at(&w->r->window, f->pos, (size_t)f->n, e);
    struct trace_event ev;
    bool keep;
    if (p == NULL || !event_decode(w, (str){(const char *)p, (size_t)f->n}, f->pos, &ev, &keep, e))
        return LINE_FAILED;
    return keep ? run_add(w, &ev, mode, e) : LINE_DONE;
}

static enum line_result line_fields(struct line_work *w, struct extent x, enum line_mode mode,
                                    struct err *e)
{
    struct trace_line *line = w->line;
    struct field f;
    enum field_result got;
    uint64_t pos = x.pos;
    while ((got = field_next(&w->r->window, &pos, x.pos + x.n, &f, e)) == FIELD_READ) {
        enum line_result done = LINE_DONE;
        if (f.number == 4 && f.type == WIRE_LEN)
            done = line_event(w, &f, mode, e);
        else if (f.number == 1 && f.type == WIRE_VARINT)
            line->id = (int64_t)f.value;
        else if (f.number == 2 && f.type == WIRE_LEN)
            done = line_text(w, &f, &line->name, e) ? LINE_DONE : LINE_FAILED;
        else if (f.number == 3 && f.type == WIRE_VARINT)
            line->timestamp_ns = (int64_t)f.value;
        else if (f.number == 9 && f.type == WIRE_VARINT)
            line->duration_ps = (int64_t)f.value < 0 ? 0 : f.value;
        else if (f.number == 10 && f.type == WIRE_VARINT)
            line->display_id = (int64_t)f.value;
        else if (f.number == 11 && f.type == WIRE_LEN)
            done = line_text(w, &f, &line->display_name, e) ? LINE_DONE : LINE_FAILED;
        if (done != LINE_DONE)
            return done;
    }
    if (got == FIELD_FAILED)
        return LINE_FAILED;
    return mode == LINE_STREAM ? run_emit(w, e) : line_merge(w, e);
}

static void line_reset(struct line_work *w, uint32_t first_group)
{
    const uint32_t plane = w->line->plane_index;
    struct sink *s = &w->sink;
    *w->line = (struct trace_line){
        .plane_index = plane, .start_ps = UINT64_MAX, .first_group = first_group};
    *s = (struct sink){
        .r = w->r, .line = w->line, .group = s->group, .level_end_ps = s->level_end_ps};
    w->n_run = w->n_runs = 0;
    w->n_bad = w->n_unknown = w->n_aggregated = w->n_long = 0;
    w->has_last_id = false;
}

static void line_notes(const struct line_work *w)
{
    struct trace *t = w->r->trace;
    if (w->n_bad > 0)
        trace_note(t, S("bad_event"), w->n_bad, "events with impossible times were left out");
    if (w->n_long > 0)
        trace_note(t, S("long_event"), w->n_long, "events of more than 2 GiB were left out");
    if (w->n_unknown > 0)
        trace_note(t, S("unknown_event_name"), w->n_unknown,
                   "events name an id that the file does not explain");
    if (w->n_aggregated > 0)
        trace_note(t, S("aggregated_event"), w->n_aggregated,
                   "events are sums of several and have no start");
    if (w->sink.n_too_deep > 0)
        trace_note(t, S("too_deep"), w->sink.n_too_deep, "events are nested deeper than is kept");
}

bool xspace_line_decode(struct xspace_reader *r, uint32_t line_index, struct err *e)
{
    struct line_work *w = map_alloc(1, sizeof *w);
    struct trace_groups *g = r->trace->groups;
    const uint32_t first = g->n;
    w->r = r;
    w->line = &r->trace->lines[line_index];
    w->sink.group = map_alloc(LIMIT_TRACE_GROUP_EVENTS, sizeof *w->sink.group);
    w->sink.level_end_ps = map_alloc(LIMIT_TRACE_DEPTH, sizeof(uint64_t));
    line_reset(w, first);
    enum line_result done = line_fields(w, r->line_extents[line_index], LINE_STREAM, e);
    if (done == LINE_NEEDS_SORT) {
        trace_groups_cut(g, first);
        line_reset(w, first);
        done = line_fields(w, r->line_extents[line_index], LINE_SORT, e);
        w->line->was_unsorted = true;
    }
    const bool ok = done == LINE_DONE && sink_flush(&w->sink, e);
    if (ok) {
        line_notes(w);
        if (w->line->start_ps > w->line->end_ps) {
            w->line->start_ps = 1;
            w->line->end_ps = 0;
        }
    }
    map_free(w->sink.group);
    map_free(w->sink.level_end_ps);
    map_free(w);
    return ok;
}
