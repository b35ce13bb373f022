/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/trace_view.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/derived_lines.h"
#include "analysis/event_walk.h"
#include "analysis/group_follow.h"
#include "analysis/memo.h"
#include "analysis/spans.h"
#include "base/limits.h"

#define DERIVED_TID 0xdeadbeefu
#define STREAM_TIDS 7 /* a stream and its derived lines */
#define PLANES_PER_HOST 1000
#define CUSTOM_PID 501
#define HOST_PID 701
#define NUMBERS_SPARE (1ull << 33) /* beyond all that is wanted */
#define FLOWS_PER_HOST (1ull << 40)

struct numbers { /* of processes, or of the threads of one */
    struct map_u64_u32 used;
    uint64_t n_spare;
};

struct walk {
    const struct tool_request *request;
    const struct view *view;
    struct arena own; /* what is kept of one host */
    struct arena *arena;
    struct err *err;
    uint32_t host;
    const struct trace *trace;
    struct grouping grouping;
    struct flows flows;
    struct hlo_index hlo;
    struct trace_visible visible;
    struct memo shown; /* whether the name is one to show */
    struct numbers pids, tids;
    uint32_t n_host_planes, n_custom_planes; /* of the trace at hand */
    struct map_u64_u32 roots;                /* root_key() to a root that has a group */
    uint64_t first_uid;                      /* of the line at hand */
    bool stopped;
    struct derived_rows *derived; /* of the line at hand */
};

/* ---- clock ---- */

int64_t view_time_ps(const struct tool_request *r, const struct trace *t, uint64_t ps)
{
    const struct profile *p = r->profile;
    if (p->n_traces < 2 || !p->has_epoch)
        return event_written_ps(t, ps);
    const struct trace *first = p->traces[0];
    for (uint32_t i = 1; i < p->n_traces; i++)
        if (p->traces[i]->shift_ps < first->shift_ps)
            first = p->traces[i];
    int64_t at;
    return __builtin_add_overflow(event_written_ps(first, t->shift_ps - first->shift_ps), ps, &at)
               ? INT64_MAX
               : at;
}

bool view_span(const struct tool_request *r, int64_t *from_ps, int64_t *to_ps)
{
    *from_ps = INT64_MAX;
    *to_ps = INT64_MIN;
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        const struct trace *t = r->profile->traces[i];
        for (uint32_t l = 0; l < t->n_lines; l++) {
            if (t->lines[l].n_events == 0 || t->lines[l].start_ps > t->lines[l].end_ps)
                continue;
            const int64_t from = view_time_ps(r, t, t->lines[l].start_ps);
            const int64_t to = view_time_ps(r, t, t->lines[l].end_ps);
            *from_ps = from < *from_ps ? from : *from_ps;
            *to_ps = to > *to_ps ? to : *to_ps;
        }
    }
    return *from_ps <= *to_ps;
}

/* ---- what is shown ---- */

/* What recorders keep for other tools. Source: tsl's list of internal events. */
static bool is_internal(str name)
{
    static const char *const words[] = {"MemoryAllocation",
                                        "MemoryDeallocation",
                                        "PrefetchProduce",
                                        "PrefetchConsume",
                                        "ParallelInterleaveProduce",
                                        "ParallelInterleaveConsume",
                                        "ParallelMapProduce",
                                        "ParallelMapConsume",
                                        "MapAndBatchProduce",
                                        "MapAndBatchConsume",
                                        "ParseExampleProduce",
                                        "ParseExampleConsume",
                                        "ParallelInterleaveInitializeInput"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(name, str_from(words[i])))
            return true;
    return false;
}

enum shown { SHOWN_UNKNOWN = 0, SHOWN_NO, SHOWN_YES, SHOWN_REGION_BEGINS, SHOWN_REGION_ENDS };

static enum shown shown_as(struct walk *w, const struct trace_line *line,
                           const struct trace_event *ev)
{
    uint8_t *known = memo_at(&w->shown, w->trace, line, ev);
    if (*known != SHOWN_UNKNOWN)
        return *known;
    const str name = trace_event_name(w->trace, line, ev);
    if (is_internal(name))
        *known = SHOWN_NO;
    else if (str_eq(name, S("ThreadpoolListener::StartRegion")))
        *known = SHOWN_REGION_BEGINS;
    else if (str_eq(name, S("ThreadpoolListener::StopRegion")))
        *known = SHOWN_REGION_ENDS;
    else
        *known = SHOWN_YES;
    return *known;
}

static bool pass_on(struct walk *w, const struct view_event *ev)
{
    if (w->view->event(w->view->ctx, ev, w->err))
        return true;
    w->stopped = true;
    return false;
}

/* The arrow that begins at the event, else one that ends there. */
static void find_flow(const struct walk *w, uint32_t line, uint64_t index, struct view_event *ev)
{
    struct flow all[8];
    const uint32_t n = flows_at(&w->flows, line, index, all, 8);
    for (uint32_t i = 0; i < n && i < 8; i++)
        if (!ev->has_flow || (all[i].is_source && !ev->flow.is_source)) {
            ev->flow = all[i];
            ev->has_flow = true;
        }
    ev->flow.id += 1 + w->host * FLOWS_PER_HOST; /* 0 is none */
}

static bool row_begins(struct walk *w, const struct view_row *row)
{
    trace_visible_row(&w->visible);
    if (w->view->row(w->view->ctx, row, w->err))
        return true;
    w->stopped = true;
    return false;
}

static str full_name(const struct trace *t, const struct trace_line *line,
                     const struct trace_event *ev)
{
    const struct trace_event_metadata *m = trace_event_meta(t, line, ev);
    return m != NULL && m->display_name.n > 0 && !str_eq(m->name, m->display_name) ? m->name
                                                                                   : (str){0};
}

static uint64_t root_key(uint32_t line, uint64_t index)
{
    return (uint64_t)line << 40 | index;
}

/* "train 7": the name of a step, as its root has it. */
static str root_name(struct arena *a, const struct group_root *root)
{
    return root->has_number
               ? arena_printf(a, "%.*s %lld", STR_ARG(root->name), (long long)root->number)
               : root->name;
}

struct line_walk { /* of a recorded line */
    struct walk *walk;
    const struct view_row *row;
    uint32_t line;
    struct trace_cursor cursor;
    struct group_follow groups;
    bool in_region; /* of a thread pool, from one instant to another */
    int64_t region_start_ps;
};

static bool show(struct line_walk *x, struct view_event *ev)
{
    struct walk *w = x->walk;
    return !str_starts(ev->name, w->view->name_prefix) ||
           !trace_visible_event(&w->visible, ev->start_ps, ev->start_ps + ev->dur_ps,
                                ev->has_flow ? ev->flow.id : 0) ||
           pass_on(w, ev);
}

static bool show_region(struct line_walk *x, int64_t end_ps)
{
    struct walk *w = x->walk;
    struct view_event ev = {.row = x->row,
                            .name = S("ThreadpoolListener::Region"),
                            .start_ps = x->region_start_ps,
                            .dur_ps = end_ps - x->region_start_ps,
                            .uid = w->first_uid + x->cursor.index, /* of its last instant */
                            .group = GROUP_NONE};
    return show(x, &ev);
}

static bool show_recorded(struct line_walk *x, struct view_event *ev)
{
    struct walk *w = x->walk;
    const struct trace_cursor *c = &x->cursor;
    const struct arena_mark m = arena_mark(w->arena);
    const uint32_t *root = map_u64_u32_get(&w->roots, root_key(x->line, c->index));
    ev->group = group_follow_at(&x->groups, c->index, c->event.start_ps);
    ev->name = root == NULL ? trace_event_name(w->trace, x->row->line, &c->event)
                            : root_name(w->arena, &w->grouping.roots[*root]);
    ev->long_name = full_name(w->trace, x->row->line, &c->event);
    find_flow(w, x->line, c->index, ev);
    const bool ok = show(x, ev);
    arena_reset(w->arena, m);
    return ok;
}

/* False at the end of the window, but for a region that goes on behind it, or when it is to stop. */
static bool walk_event(struct line_walk *x)
{
    struct walk *w = x->walk;
    const struct trace_event *recorded = &x->cursor.event;
    struct view_event ev = {.row = x->row,
                            .recorded = recorded,
                            .start_ps = view_time_ps(w->request, w->trace, recorded->start_ps),
                            .dur_ps = (int64_t)recorded->dur_ps,
                            .uid = w->first_uid + x->cursor.index};
    const bool over = ev.start_ps > w->view->to_ps;
    const enum shown shown = shown_as(w, x->row->line, recorded);
    if (over && !x->in_region)
        return false;
    if (shown == SHOWN_REGION_BEGINS && !over) {
        x->in_region = true;
        x->region_start_ps = ev.start_ps;
    }
    if (shown == SHOWN_REGION_ENDS && x->in_region) {
        x->in_region = false;
        if (!show_region(x, ev.start_ps))
            return false;
    }
    if (over || shown == SHOWN_NO || recorded->num_occurrences > 0 ||
        ev.start_ps + ev.dur_ps < w->view->from_ps)
        return true;
    return show_recorded(x, &ev);
}

static bool walk_events(struct walk *w, const struct view_row *row, uint32_t l)
{
    struct line_walk x = {.walk = w, .row = row, .line = l};
    group_follow_init(&x.groups, w->trace, &w->grouping, l);
    trace_cursor_init(&x.cursor, w->trace, l);
    while (trace_cursor_next(&x.cursor) && walk_event(&x))
        ;
    trace_cursor_release(&x.cursor);
    w->first_uid += row->line->n_events;
    const bool ok =
        !w->stopped && trace_cursor_ok(&x.cursor, w->err) && group_follow_ok(&x.groups, w->err);
    group_follow_release(&x.groups);
    return ok;
}

/* ---- derived lines ---- */

struct derived_rows {
    struct walk *walk;
    struct view_row rows[DERIVED_KINDS];
    char names[DERIVED_KINDS][64];
    bool begun[DERIVED_KINDS];
    struct trace_visible visible[DERIVED_KINDS];
    uint64_t n; /* events so far */
};

static bool derived_event(void *ctx, const struct derived_event *d, struct err *e)
{
    struct derived_rows *x = ctx;
    struct walk *w = x->walk;
    (void)e;
    if (!x->begun[d->kind]) {
        x->begun[d->kind] = true;
        if (!row_begins(w, &x->rows[d->kind]))
            return false;
    }
    const struct view_event ev = {.row = &x->rows[d->kind],
                                  .name = d->name,
                                  .long_name = d->long_name,
                                  .start_ps = view_time_ps(w->request, w->trace, d->start_ps),
                                  .dur_ps = (int64_t)(d->end_ps - d->start_ps),
                                  .uid = w->first_uid + x->n++,
                                  .group = d->group};
    return !str_starts(d->name, w->view->name_prefix) ||
           !trace_visible_at(&x->visible[d->kind], ev.start_ps, ev.start_ps + ev.dur_ps,
                             d->level) ||
           pass_on(w, &ev);
}

/* "Stream #13(Compute)" is 13. */
static str stream_number(str line_name)
{
    const str tail = str_sub(line_name, str_starts(line_name, S("Stream #")) ? 8 : 0, line_name.n);
    const ptrdiff_t end = str_find_char(tail, '(');
    return end < 0 ? tail : str_sub(tail, 0, (size_t)end);
}

static bool walk_derived(struct walk *w, const struct view_row *of, uint32_t l)
{
    static const uint8_t tpu_tids[DERIVED_KINDS] = {2, 3, 1, 4, 7};
    const bool gpu = of->plane->kind == TRACE_PLANE_GPU;
    struct derived_rows *x = w->derived;
    *x = (struct derived_rows){.walk = w};
    for (unsigned k = 0; k < DERIVED_KINDS; k++) {
        const str number = stream_number(of->name);
        const int n =
            gpu ? snprintf(x->names[k], sizeof x->names[k], "%s - from #%.*s", derived_names[k],
                           (int)(number.n < 20 ? number.n : 20), number.p)
                : snprintf(x->names[k], sizeof x->names[k], "%s", derived_names[k]);
        x->rows[k] = *of;
        x->rows[k].line = NULL;
        x->rows[k].tid = gpu ? of->tid + 1 + k : DERIVED_TID + tpu_tids[k];
        x->rows[k].name = (str){x->names[k], (size_t)n};
        trace_visible_init(&x->visible[k], w->visible.from_ps, w->visible.to_ps,
                           w->visible.resolution_ps);
    }
    const bool ok = derived_lines(w->trace, l, &w->grouping, &w->hlo, derived_event, x, w->err);
    w->first_uid += x->n;
    return ok;
}

/* ---- the steps of a GPU: what its streams did of each group ---- */

struct step_span {
    uint64_t start_ps, end_ps;
};

static bool measure_steps(struct walk *w, const struct trace_plane *p, struct step_span *steps,
                          bool *any)
{
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        struct trace_cursor c;
        if (!spans_is_work_line(w->trace, l) || w->grouping.of_line[l] == NULL)
            continue;
        for (trace_cursor_init(&c, w->trace, l); trace_cursor_next(&c);) {
            const int32_t group = group_at(&w->grouping, l, c.index);
            if (group < 0 || (uint32_t)group >= w->grouping.n_groups)
                continue;
            struct step_span *s = &steps[group];
            const uint64_t end = c.event.start_ps + c.event.dur_ps;
            if (s->end_ps == 0 || c.event.start_ps < s->start_ps)
                s->start_ps = c.event.start_ps;
            s->end_ps = end > s->end_ps ? end : s->end_ps;
            *any = true;
        }
        if (!trace_cursor_ok(&c, w->err))
            return false;
    }
    return true;
}

static str step_name(struct walk *w, uint32_t group)
{
    const struct group_root *root = grouping_root(&w->grouping, (int32_t)group);
    return root == NULL ? arena_printf(w->arena, "%u", group) : root_name(w->arena, root);
}

static bool walk_steps(struct walk *w, const struct trace_plane *p, uint64_t pid)
{
    bool any = false;
    struct step_span *steps = ARENA_ARRAY(w->arena, struct step_span, w->grouping.n_groups);
    const struct view_row row = {
        .trace = w->trace, .plane = p, .pid = pid, .tid = DERIVED_TID, .name = S("Steps")};
    if (steps == NULL && w->grouping.n_groups > 0)
        return arena_full(w->arena, w->err);
    if (!measure_steps(w, p, steps, &any))
        return false;
    if (!any)
        return true;
    if (!row_begins(w, &row))
        return false;
    for (uint32_t g = 0; g < w->grouping.n_groups; g++) {
        if (steps[g].end_ps == 0)
            continue;
        const str name = step_name(w, g);
        const struct view_event ev = {.row = &row,
                                      .name = name,
                                      .start_ps =
                                          view_time_ps(w->request, w->trace, steps[g].start_ps),
                                      .dur_ps = (int64_t)(steps[g].end_ps - steps[g].start_ps),
                                      .uid = w->first_uid++,
                                      .group = (int32_t)g};
        if (str_starts(name, w->view->name_prefix) &&
            trace_visible_event(&w->visible, ev.start_ps, ev.start_ps + ev.dur_ps, 0) &&
            !pass_on(w, &ev))
            return false;
    }
    return true;
}

/* ---- planes and lines ---- */

static void numbers_clear(struct numbers *n)
{
    map_u64_u32_release(&n->used);
    n->n_spare = 0;
}

/* The number wanted, or one that nobody wants: files may give the same id to a million lines. */
static uint64_t take_number(struct numbers *n, uint64_t wanted)
{
    if (map_u64_u32_get(&n->used, wanted) != NULL)
        wanted = NUMBERS_SPARE + n->n_spare++;
    *map_u64_u32_put(&n->used, wanted) = 1;
    return wanted;
}

static uint64_t plane_pid(struct walk *w, const struct trace_plane *p)
{
    const bool has_id = p->id >= 0 && p->id < CUSTOM_PID - 1;
    uint64_t wanted = has_id ? (uint64_t)p->id + 1 : 1;
    if (p->kind == TRACE_PLANE_HOST)
        wanted = HOST_PID + w->n_host_planes++;
    else if (p->kind == TRACE_PLANE_CUSTOM)
        wanted = CUSTOM_PID + w->n_custom_planes++;
    if (w->view->numbers == VIEW_ALL_HOSTS)
        wanted += (w->host + 1ull) * PLANES_PER_HOST;
    return take_number(&w->pids, wanted);
}

struct stream {
    uint64_t n_events;
    uint32_t line;
};

static int busiest_first(const void *a, const void *b)
{
    const struct stream *x = a, *y = b;
    if (x->n_events != y->n_events)
        return x->n_events > y->n_events ? -1 : 1;
    return x->line < y->line ? -1 : 1;
}

static bool walk_line(struct walk *w, const struct trace_plane *p, uint64_t pid, uint64_t tid,
                      uint32_t l)
{
    const struct trace_line *line = &w->trace->lines[l];
    const struct view_row row = {.trace = w->trace,
                                 .plane = p,
                                 .line = line,
                                 .pid = pid,
                                 .tid = take_number(&w->tids, tid),
                                 .name =
                                     line->display_name.n > 0 ? line->display_name : line->name};
    if (!w->view->with_async && str_eq(line->name, S("Async XLA Ops")))
        return true;
    if (!row_begins(w, &row) || !walk_events(w, &row, l))
        return false;
    return !derived_from(w->trace, l) || walk_derived(w, &row, l);
}

static bool walk_gpu(struct walk *w, const struct trace_plane *p, uint64_t pid)
{
    struct stream *streams = ARENA_ARRAY(w->arena, struct stream, p->n_lines);
    uint32_t n = 0;
    if (streams == NULL && p->n_lines > 0)
        return arena_full(w->arena, w->err);
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(w->trace, l) && w->trace->lines[l].n_events > 0)
            streams[n++] = (struct stream){w->trace->lines[l].n_events, l};
    if (n > 0)
        qsort(streams, n, sizeof *streams, busiest_first);
    for (uint32_t i = 0; i < n; i++)
        if (!walk_line(w, p, pid, 1 + (uint64_t)i * STREAM_TIDS, streams[i].line))
            return false;
    return walk_steps(w, p, pid);
}

static bool walk_plane(struct walk *w, const struct trace_plane *p)
{
    uint64_t n = 0;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        n += w->trace->lines[l].n_events;
    if (n == 0)
        return true;
    const uint64_t pid = plane_pid(w, p);
    numbers_clear(&w->tids);
    if (p->kind == TRACE_PLANE_GPU)
        return walk_gpu(w, p, pid);
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        const struct trace_line *line = &w->trace->lines[l];
        const int64_t id = line->display_id != 0 ? line->display_id : line->id;
        if (line->n_events > 0 && !walk_line(w, p, pid, (uint32_t)id, l))
            return false;
    }
    return true;
}

static bool walk_trace(struct walk *w, const struct trace *t)
{
    w->trace = t;
    w->first_uid = 0;
    w->n_host_planes = w->n_custom_planes = 0;
    w->hlo = (struct hlo_index){0};
    bool ok = grouping_of(t, w->arena, &w->grouping, w->err) &&
              flows_of(t, &w->grouping, w->arena, &w->flows, w->err) &&
              hlo_index_add(&w->hlo, t, w->arena, w->err);
    for (uint32_t i = 0; ok && i < w->grouping.n_roots; i++)
        if (w->grouping.roots[i].group != GROUP_NONE)
            *map_u64_u32_put(&w->roots, root_key(w->grouping.roots[i].line_index,
                                                 w->grouping.roots[i].event_index)) = i;
    for (uint32_t k = 0; ok && k < t->n_planes; k++)
        ok = walk_plane(w, &t->planes[k]);
    map_u64_u32_release(&w->roots);
    hlo_index_release(&w->hlo);
    numbers_clear(&w->tids);
    return ok;
}

bool view_walk(const struct tool_request *r, const struct view *v, struct err *e)
{
    struct walk *w = map_alloc(1, sizeof *w);
    w->derived = map_alloc(1, sizeof *w->derived);
    w->request = r;
    w->view = v;
    w->arena = &w->own;
    w->err = e;
    trace_visible_init(&w->visible, v->from_ps, v->to_ps, v->resolution_ps);
    bool ok = true;
    for (w->host = 0; ok && w->host < r->profile->n_traces; w->host++) {
        arena_init(&w->own, "trace view", LIMIT_ARENA_TOOL_BYTES);
        ok = walk_trace(w, r->profile->traces[w->host]);
        arena_release(&w->own);
    }
    ok = ok || (w->stopped && e->code == ERR_NONE);
    numbers_clear(&w->pids);
    memo_release(&w->shown);
    trace_visible_release(&w->visible);
    map_free(w->derived);
    map_free(w);
    return ok;
}
