/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/step_lanes.h"

#include <stdlib.h>

#include "analysis/spans.h"
#include "analysis/step_period.h"

#define NO_STEP UINT32_MAX

struct builder {
    const struct trace *trace;
    const struct grouping *grouping;
    struct arena *arena;
    struct err *err;
    struct step_lanes *out;
    uint32_t *step_of_group; /* index on the host's lane, or NO_STEP */
};

/* Where the work of each step of the host lies on one stream or device. */
struct extents {
    uint64_t *first_ps, *last_ps; /* one a step; first UINT64_MAX: the step has none */
};

static struct step_lane *add_lane(struct builder *b, uint32_t plane_index, enum step_mark mark)
{
    struct step_lanes *out = b->out;
    if (!ARENA_PUSH(b->arena, out->items, out->n, out->capacity))
        return arena_full(b->arena, b->err), NULL;
    struct step_lane *lane = &out->items[out->n - 1];
    *lane = (struct step_lane){.plane_index = plane_index, .mark = mark};
    return lane;
}

static bool add_window(struct builder *b, struct step_lane *lane, struct step_window w)
{
    if (!ARENA_PUSH(b->arena, lane->items, lane->n, lane->capacity))
        return arena_full(b->arena, b->err);
    lane->items[lane->n - 1] = w;
    return true;
}

static int by_begin(const void *x, const void *y)
{
    const struct step_window *a = x, *b = y;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static uint64_t last_end(const struct step_window *w)
{
    return w->own_end_ps > w->begin_ps ? w->own_end_ps : w->begin_ps;
}

/* Sorts, numbers and joins what was added: each window ends where the next begins. */
static void close_lane(struct step_lane *lane, bool numbered)
{
    if (lane->n > 1)
        qsort(lane->items, lane->n, sizeof *lane->items, by_begin);
    for (uint32_t i = 1; i < lane->n; i++) {
        numbered = numbered && lane->items[i - 1].number < lane->items[i].number;
        lane->items[i - 1].end_ps = lane->items[i].begin_ps;
    }
    if (lane->n > 0)
        lane->items[lane->n - 1].end_ps = last_end(&lane->items[lane->n - 1]);
    lane->counted = !numbered;
    for (uint32_t i = 0; i < lane->n && !numbered; i++)
        lane->items[i].number = i;
}

static bool host_lane(struct builder *b)
{
    const struct grouping *g = b->grouping;
    struct step_lane *lane = add_lane(b, STEP_LANE_HOST, STEP_MARK_MARKER);
    bool numbered = true;
    if (lane == NULL)
        return false;
    for (uint32_t i = 0; i < g->n_roots; i++) {
        const struct group_root *r = &g->roots[i];
        if (!grouping_is_step(r))
            continue;
        numbered = numbered && r->has_number;
        if (!add_window(b, lane,
                        (struct step_window){.number = r->number,
                                             .name = r->name,
                                             .begin_ps = r->start_ps,
                                             .end_ps = (uint64_t)r->group, /* until it is closed */
                                             .own_end_ps = r->start_ps + r->dur_ps}))
            return false;
    }
    if (lane->n > 1)
        qsort(lane->items, lane->n, sizeof *lane->items, by_begin);
    for (uint32_t i = 0; i < lane->n; i++)
        b->step_of_group[lane->items[i].end_ps] = i;
    close_lane(lane, numbered);
    return true;
}

static bool new_extents(struct builder *b, struct extents *x, uint32_t n)
{
    x->first_ps = ARENA_ARRAY(b->arena, uint64_t, n);
    x->last_ps = ARENA_ARRAY(b->arena, uint64_t, n);
    if (x->first_ps == NULL || x->last_ps == NULL)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < n; i++)
        x->first_ps[i] = UINT64_MAX;
    return true;
}

static void widen(struct extents *x, uint32_t step, uint64_t first_ps, uint64_t last_ps)
{
    if (first_ps < x->first_ps[step])
        x->first_ps[step] = first_ps;
    if (last_ps > x->last_ps[step])
        x->last_ps[step] = last_ps;
}

static bool measure_stream(const struct builder *b, uint32_t line, struct extents *x)
{
    struct trace_cursor c;
    for (trace_cursor_init_work(&c, b->trace, line); trace_cursor_next(&c);) {
        const int32_t group = group_at(b->grouping, line, c.index);
        if (group == GROUP_NONE || b->step_of_group[group] == NO_STEP)
            continue;
        widen(x, b->step_of_group[group], c.event.start_ps, c.event.start_ps + c.event.dur_ps);
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, b->err);
}

/* Whether each step begins after the one before, as they were launched, and not while the main stream still works on
 * that one. */
static bool follows(const struct extents *all, const struct extents *main, uint32_t n)
{
    uint64_t begun = 0, worked = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (all->first_ps[i] == UINT64_MAX)
            continue;
        if (all->first_ps[i] < begun || all->first_ps[i] < worked)
            return false;
        begun = all->first_ps[i];
        worked = main->last_ps[i] > worked ? main->last_ps[i] : worked;
    }
    return true;
}

/* The extents of all streams of a device, and those of the one that was busy most. */
static bool measure_device(struct builder *b, const struct trace_plane *p, struct extents *all,
                           struct extents *main)
{
    const uint32_t n = b->out->items[0].n;
    struct extents own;
    uint64_t most_ps = 0;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        if (!spans_is_work_line(b->trace, l))
            continue;
        if (!new_extents(b, &own, n) || !measure_stream(b, l, &own))
            return false;
        for (uint32_t i = 0; i < n; i++)
            widen(all, i, own.first_ps[i], own.last_ps[i]);
        if (b->trace->lines[l].busy_ps > most_ps) {
            most_ps = b->trace->lines[l].busy_ps;
            *main = own;
        }
    }
    return true;
}

/* What is copied ahead for a later step starts before an earlier step's kernels, or among them: then the stream
 * that is busy most tells where steps begin. */
static bool gpu_lane(struct builder *b, uint32_t plane_index)
{
    const uint32_t n = b->out->items[0].n;
    const bool counted = b->out->items[0].counted;
    struct extents all, main;
    if (n == 0)
        return true;
    if (!new_extents(b, &all, n) || !new_extents(b, &main, n) ||
        !measure_device(b, &b->trace->planes[plane_index], &all, &main))
        return false;
    const struct extents *x = follows(&all, &main, n) ? &all : &main;
    struct step_lane *lane = add_lane(b, plane_index, STEP_MARK_LAUNCHED);
    if (lane == NULL)
        return false;
    uint64_t begin_ps = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct step_window *host = &b->out->items[0].items[i];
        if (x->first_ps[i] == UINT64_MAX)
            continue;
        begin_ps = x->first_ps[i] > begin_ps ? x->first_ps[i] : begin_ps;
        if (!add_window(b, lane,
                        (struct step_window){.number = host->number,
                                             .name = host->name,
                                             .begin_ps = begin_ps,
                                             .own_end_ps = all.last_ps[i]}))
            return false;
    }
    close_lane(lane, true);
    lane->counted = counted;
    if (lane->n == 0)
        b->out->n--; /* nothing of it was launched inside a marker */
    return true;
}

/* --- where nothing is marked ------------------------------------------------------------------ */

/* When anything of the device ran. */
static bool busy_of(struct builder *b, const struct trace_plane *p, struct spans *busy)
{
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        struct trace_cursor c;
        bool ok = true;
        if (!spans_is_work_line(b->trace, l))
            continue;
        for (trace_cursor_init_work(&c, b->trace, l); ok && trace_cursor_next(&c);)
            ok = c.event.num_occurrences > 0 ||
                 spans_add(busy, b->arena, c.event.start_ps, c.event.start_ps + c.event.dur_ps);
        trace_cursor_release(&c);
        if (!ok)
            return arena_full(b->arena, b->err);
        if (!trace_cursor_ok(&c, b->err))
            return false;
    }
    spans_close(busy);
    return true;
}

/* The begin of the work after the device's longest idle between both times; `to` where it was busy. */
static uint64_t after_idle(const struct spans *busy, uint32_t *at, uint64_t from_ps, uint64_t to_ps)
{
    uint64_t best_ps = to_ps, most_ps = 0, reached_ps = from_ps;
    while (*at < busy->n && busy->items[*at].end_ps <= from_ps)
        ++*at;
    for (uint32_t i = *at; i < busy->n && busy->items[i].begin_ps <= to_ps; i++) {
        const uint64_t begin_ps = busy->items[i].begin_ps;
        if (begin_ps > reached_ps && begin_ps - reached_ps > most_ps) {
            most_ps = begin_ps - reached_ps;
            best_ps = begin_ps;
        }
        reached_ps = busy->items[i].end_ps;
    }
    return best_ps;
}

static bool period_lane(struct builder *b, uint32_t plane_index)
{
    const struct trace_plane *p = &b->trace->planes[plane_index];
    struct step_period period;
    struct spans busy = {0};
    uint32_t main = UINT32_MAX, at = 0;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(b->trace, l) &&
            (main == UINT32_MAX || b->trace->lines[l].busy_ps > b->trace->lines[main].busy_ps))
            main = l;
    if (main == UINT32_MAX || b->trace->lines[main].n_events == 0)
        return true;
    if (!step_period_of(b->trace, main, b->arena, &period, b->err))
        return false;
    if (period.n == 0)
        return true;
    struct step_lane *lane = add_lane(b, plane_index, STEP_MARK_PERIOD);
    if (lane == NULL || !busy_of(b, p, &busy))
        return false;
    const uint64_t end_ps = busy.n > 0 ? busy.items[busy.n - 1].end_ps : period.end_ps;
    for (uint32_t i = 0; i < period.n; i++) {
        const struct period_begin *begin = &period.items[i];
        const uint64_t begin_ps = after_idle(&busy, &at, begin->idle_from_ps, begin->begin_ps);
        if (!add_window(b, lane, (struct step_window){.begin_ps = begin_ps, .own_end_ps = end_ps}))
            return false;
    }
    for (uint32_t i = 0; i + 1 < lane->n; i++)
        lane->items[i].own_end_ps = lane->items[i + 1].begin_ps;
    close_lane(lane, false);
    return true;
}

/* The module that a core ran longest, or UINT32_MAX. */
static bool main_module(struct builder *b, uint32_t line, uint32_t *out)
{
    const struct trace_plane *p = &b->trace->planes[b->trace->lines[line].plane_index];
    uint64_t *sum_ps = ARENA_ARRAY(b->arena, uint64_t, (size_t)p->n_event_metadata + 1);
    struct trace_cursor c;
    if (sum_ps == NULL)
        return arena_full(b->arena, b->err);
    *out = UINT32_MAX;
    for (trace_cursor_init(&c, b->trace, line); trace_cursor_next(&c);) {
        const uint32_t m = c.event.metadata_index;
        if (m >= p->n_event_metadata)
            continue;
        sum_ps[m] += c.event.dur_ps;
        if (*out == UINT32_MAX || sum_ps[m] > sum_ps[*out])
            *out = m;
    }
    return trace_cursor_ok(&c, b->err);
}

static bool core_lane(struct builder *b, uint32_t plane_index, uint32_t line, bool modules)
{
    const struct trace *t = b->trace;
    struct step_lane *lane =
        add_lane(b, plane_index, modules ? STEP_MARK_MODULE : STEP_MARK_MARKER);
    uint32_t module = UINT32_MAX;
    bool numbered = !modules, ok = lane != NULL && (!modules || main_module(b, line, &module));
    struct trace_cursor c;
    for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);) {
        if (modules && c.event.metadata_index != module)
            continue;
        struct step_window w = {.name = trace_event_name(t, &t->lines[line], &c.event),
                                .begin_ps = c.event.start_ps,
                                .own_end_ps = c.event.start_ps + c.event.dur_ps};
        numbered = numbered && str_to_i64(w.name, &w.number);
        ok = add_window(b, lane, w);
    }
    trace_cursor_release(&c);
    if (!ok || !trace_cursor_ok(&c, b->err))
        return false;
    close_lane(lane, numbered);
    return true;
}

static bool is_step_line(str name)
{
    return str_eq(name, S("Steps")) || str_eq(name, S("Sparse Core Steps"));
}

static bool device_lanes(struct builder *b)
{
    const struct trace *t = b->trace;
    const bool marked = b->out->items[0].n > 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind == TRACE_PLANE_GPU)
            ok = marked ? gpu_lane(b, i) : period_lane(b, i);
        if (p->kind != TRACE_PLANE_TPU && p->kind != TRACE_PLANE_TPU_SPARSE)
            continue;
        const uint32_t line = grouping_step_line(t, p);
        if (line == UINT32_MAX)
            continue;
        const bool steps = is_step_line(t->lines[line].name);
        if (steps || !marked)
            ok = core_lane(b, i, line, !steps);
    }
    return ok;
}

/* A host that marks nothing goes with its first device. */
static void borrow_for_host(struct step_lanes *out)
{
    if (out->items[0].n > 0 || out->n < 2)
        return;
    out->items[0] = out->items[1];
    out->items[0].plane_index = STEP_LANE_HOST;
    out->items[0].borrowed = true;
}

bool step_lanes_of(const struct trace *t, const struct grouping *g, struct arena *a,
                   struct step_lanes *out, struct err *e)
{
    struct builder b = {.trace = t, .grouping = g, .arena = a, .err = e, .out = out};
    *out = (struct step_lanes){0};
    b.step_of_group = ARENA_ARRAY(a, uint32_t, g->n_groups);
    if (b.step_of_group == NULL && g->n_groups > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < g->n_groups; i++)
        b.step_of_group[i] = NO_STEP;
    if (!host_lane(&b) || !device_lanes(&b))
        return false;
    borrow_for_host(out);
    return true;
}

const struct step_lane *step_lanes_for(const struct step_lanes *l, uint32_t plane_index)
{
    for (uint32_t i = 1; i < l->n; i++)
        if (l->items[i].plane_index == plane_index)
            return &l->items[i];
    return l->n > 0 && l->items[0].n > 0 ? &l->items[0] : NULL;
}

const struct step_window *step_lane_find(const struct step_lane *l, int64_t number)
{
    uint32_t low = 0, high = l->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (l->items[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->n && l->items[low].number == number ? &l->items[low] : NULL;
}

const char *step_mark_word(enum step_mark m)
{
    static const char *const words[] = {"none", "marker", "launched", "module", "period"};
    return words[m];
}

const char *step_mark_confidence(enum step_mark m, bool borrowed)
{
    switch (m) {
    case STEP_MARK_MARKER:
    case STEP_MARK_LAUNCHED:
        return borrowed ? "medium" : "high";
    case STEP_MARK_MODULE:
    case STEP_MARK_PERIOD:
        return "medium";
    case STEP_MARK_NONE:
        break;
    }
    return "low";
}
