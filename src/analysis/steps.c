/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/steps.h"

#include <stdlib.h>

struct builder {
    const struct trace *trace;
    struct arena *arena;
    struct err *err;
    struct host_steps *out;
    struct map_u64_u32 by_number; /* of TPU steps, over cores */
};

static struct step *push(struct builder *b, struct step s)
{
    if (!ARENA_PUSH(b->arena, b->out->items, b->out->n, b->out->capacity)) {
        (void)arena_full(b->arena, b->err);
        return NULL;
    }
    b->out->items[b->out->n - 1] = s;
    return &b->out->items[b->out->n - 1];
}

/* The same step on another core: the longest marker is its time. */
static bool put_core_step(struct builder *b, struct step s)
{
    const uint32_t *at = map_u64_u32_get(&b->by_number, (uint64_t)s.number);
    if (at == NULL) {
        if (push(b, s) == NULL)
            return false;
        *map_u64_u32_put(&b->by_number, (uint64_t)s.number) = b->out->n - 1;
    } else if (s.dur_ps > b->out->items[*at].dur_ps) {
        b->out->items[*at] = s;
    }
    return true;
}

static bool keep_marker(struct builder *b, uint32_t line, uint64_t event, const struct step *s)
{
    struct host_steps *out = b->out;
    if (!ARENA_PUSH(b->arena, out->cores, out->n_cores, out->cores_capacity))
        return arena_full(b->arena, b->err);
    out->cores[out->n_cores - 1] =
        (struct step_core){.plane_index = b->trace->lines[line].plane_index,
                           .line_index = line,
                           .event_index = event,
                           .number = s->number,
                           .group = GROUP_NONE,
                           .begin_ps = s->start_ps,
                           .end_ps = s->start_ps + s->dur_ps};
    return true;
}

static bool add_core_line(struct builder *b, uint32_t line, bool numbered)
{
    const struct trace *t = b->trace;
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);) {
        struct step s = {.name = trace_event_name(t, &t->lines[line], &c.event),
                         .group = GROUP_NONE,
                         .start_ps = c.event.start_ps,
                         .dur_ps = c.event.dur_ps};
        s.has_number = numbered && str_to_i64(s.name, &s.number);
        if (!s.has_number)
            s.number = (int64_t)c.index;
        ok = put_core_step(b, s) && keep_marker(b, line, c.index, &s);
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, b->err);
}

/* Steps lines of the TPU cores; or, asked for, their modules. */
static bool add_cores(struct builder *b, bool modules)
{
    const struct trace *t = b->trace;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        if (t->planes[i].kind != TRACE_PLANE_TPU)
            continue;
        const uint32_t line = grouping_step_line(t, &t->planes[i]);
        if (line == UINT32_MAX || str_eq(t->lines[line].name, S("XLA Modules")) != modules)
            continue;
        if (!add_core_line(b, line, !modules))
            return false;
    }
    return true;
}

/* Per group, the longest span of its work on one GPU. */
struct span {
    uint64_t begin_ps, end_ps;
};

static void widen(struct span *s, const struct trace_event *ev)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    if (s->end_ps == 0 || ev->start_ps < s->begin_ps)
        s->begin_ps = ev->start_ps;
    s->end_ps = end > s->end_ps ? end : s->end_ps;
}

static bool widen_line(const struct builder *b, const struct grouping *g, uint32_t line,
                       struct span *spans)
{
    struct trace_cursor c;
    const struct trace_event *events;
    if (g->of_line[line] == NULL)
        return true;
    trace_cursor_init_work(&c, b->trace, line);
    trace_cursor_leave_src(&c);
    for (uint32_t n; (n = trace_cursor_take(&c, &events)) > 0;)
        for (uint32_t i = 0; i < n; i++) {
            const int32_t group = group_at(g, line, c.index + 1 - n + i);
            if (group != GROUP_NONE)
                widen(&spans[group], &events[i]);
        }
    return trace_cursor_ok(&c, b->err);
}

static bool gpu_spans(const struct builder *b, const struct grouping *g, struct span *longest)
{
    const struct trace *t = b->trace;
    struct span *own = ARENA_ARRAY(b->arena, struct span, g->n_groups);
    if (own == NULL && g->n_groups > 0)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind != TRACE_PLANE_GPU)
            continue;
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
            if (!spans_is_derived(t->lines[l].name) && !widen_line(b, g, l, own))
                return false;
        for (uint32_t k = 0; k < g->n_groups; k++) {
            if (own[k].end_ps - own[k].begin_ps > longest[k].end_ps - longest[k].begin_ps)
                longest[k] = own[k];
            own[k] = (struct span){0};
        }
    }
    return true;
}

static bool add_host(struct builder *b, const struct grouping *g)
{
    struct span *device = ARENA_ARRAY(b->arena, struct span, g->n_groups);
    if (device == NULL && g->n_groups > 0)
        return arena_full(b->arena, b->err);
    if (!gpu_spans(b, g, device))
        return false;
    for (uint32_t i = 0; i < g->n_roots; i++) {
        const struct group_root *r = &g->roots[i];
        if (!grouping_is_step(r))
            continue;
        struct step s = {.name = r->name,
                         .has_number = r->has_number,
                         .group = r->group,
                         .start_ps = r->start_ps,
                         .dur_ps = r->dur_ps,
                         .number = r->has_number ? r->number : (int64_t)b->out->n};
        const struct span *d = &device[r->group];
        if (d->end_ps > d->begin_ps &&
            (d->begin_ps < s.start_ps || d->end_ps > s.start_ps + s.dur_ps)) {
            s.start_ps = d->begin_ps;
            s.dur_ps = d->end_ps - d->begin_ps;
        }
        if (push(b, s) == NULL)
            return false;
    }
    return true;
}

static int by_start(const void *x, const void *y)
{
    const struct step *a = x, *b = y;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool detect(struct builder *b, const struct grouping *known)
{
    struct grouping own = {0};
    const struct grouping *g = known == NULL ? &own : known;
    if (!add_cores(b, false))
        return false;
    b->out->source = b->out->n > 0 ? STEPS_DEVICE : STEPS_NONE;
    if (known == NULL && !grouping_of(b->trace, b->arena, &own, b->err))
        return false;
    if (b->out->n == 0 && !add_host(b, g))
        return false;
    if (b->out->source == STEPS_NONE && b->out->n > 0)
        b->out->source = STEPS_HOST;
    if (b->out->n == 0 && !add_cores(b, true))
        return false;
    if (b->out->source == STEPS_NONE && b->out->n > 0)
        b->out->source = STEPS_IMPLICIT;
    for (uint32_t i = 0; i < b->out->n_cores; i++)
        b->out->cores[i].group =
            group_at(g, b->out->cores[i].line_index, b->out->cores[i].event_index);
    if (b->out->n > 1)
        qsort(b->out->items, b->out->n, sizeof *b->out->items, by_start);
    return true;
}

static void measure_core(struct step_core *m, const struct core_spans *core)
{
    for (uint32_t i = 0; i < CORE_PARTS; i++)
        m->part_ps[i] = spans_within(&core->parts[i], m->begin_ps, m->end_ps);
    const uint64_t any = spans_within(&core->any, m->begin_ps, m->end_ps);
    const uint64_t waits = m->part_ps[CORE_INFEED] + m->part_ps[CORE_OUTFEED] +
                           step_core_transfer_ps(m); /* overlap only in damaged files */
    m->active_ps = any > waits ? any - waits : 0;
}

/* The step's wait is that of the core that waits longest, each in its own window. */
static void measure_cores(void *ctx, const struct core_spans *core)
{
    struct builder *b = ctx;
    for (uint32_t i = 0; b->out->source != STEPS_HOST && i < b->out->n_cores; i++) {
        struct step_core *m = &b->out->cores[i];
        if (core->plane_index != m->plane_index)
            continue;
        measure_core(m, core);
        struct fact_ps *input =
            &b->out->items[*map_u64_u32_get(&b->by_number, (uint64_t)m->number)].input_ps;
        input->ps = m->part_ps[CORE_INFEED] > input->ps ? m->part_ps[CORE_INFEED] : input->ps;
    }
}

static bool measure(struct builder *b)
{
    struct device_spans d;
    for (uint32_t i = 0; i < b->out->n; i++)
        *map_u64_u32_put(&b->by_number, (uint64_t)b->out->items[i].number) = i; /* sorted by now */
    if (!device_spans_of(b->trace, b->arena, measure_cores, b, &d, b->err))
        return false;
    for (uint32_t i = 0; i < b->out->n; i++) {
        struct step *s = &b->out->items[i];
        const uint64_t end = s->start_ps + s->dur_ps;
        s->device_busy_ps.known = d.has_work;
        s->device_busy_ps.ps = spans_within(&d.busy, s->start_ps, end);
        s->input_ps.known = d.has_input;
        if (!d.has_infeed) /* what input adds to the time in which something computes */
            s->input_ps.ps = spans_within(&d.busy_or_input, s->start_ps, end) -
                             spans_within(&d.compute, s->start_ps, end);
    }
    return true;
}

bool steps_of(const struct trace *t, const struct grouping *g, struct arena *a,
              struct host_steps *out, struct err *e)
{
    struct builder b = {.trace = t, .arena = a, .err = e, .out = out};
    *out = (struct host_steps){0};
    const bool ok = detect(&b, g) && (out->n == 0 || measure(&b));
    map_u64_u32_release(&b.by_number);
    return ok;
}
