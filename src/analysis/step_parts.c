/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/step_parts.h"

#include "analysis/framework_op.h"
#include "analysis/memo.h"
#include "model/trace_pick.h"

struct group {
    struct spans classes[STEP_CLASSES];
    struct interval marker, device,
        on_device; /* longest device so far; that of the device at hand */
    bool has_marker, has_device;
};

struct splitter {
    const struct trace *trace;
    struct arena *arena;
    struct err *err;
    const struct grouping *grouping;
    struct group *groups;
    struct memo kernels, host;
    bool has_device;
};

static enum step_class class_of_kernel(str name)
{
    switch (copy_kind(name)) {
    case FRAMEWORK_COPY_H2D:
        return STEP_H2D;
    case FRAMEWORK_COPY_D2H:
        return STEP_D2H;
    case FRAMEWORK_COPY_D2D:
        return STEP_D2D;
    default:
        break;
    }
    if (str_starts(name, S("nccl")))
        return STEP_COLLECTIVE;
    return str_find(name, S("half")) >= 0 || str_find(name, S("fp16")) >= 0 ? STEP_COMPUTE_16
                                                                            : STEP_COMPUTE_32;
}

static bool add(struct splitter *s, struct group *g, enum step_class class,
                const struct trace_event *ev)
{
    return spans_add(&g->classes[class], s->arena, ev->start_ps, ev->start_ps + ev->dur_ps) ||
           arena_full(s->arena, s->err);
}

static void widen(struct interval *on, const struct trace_event *ev)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    if (on->end_ps == 0 || ev->start_ps < on->begin_ps)
        on->begin_ps = ev->start_ps;
    on->end_ps = end > on->end_ps ? end : on->end_ps;
}

static struct group *group_of(struct splitter *s, int32_t id)
{
    must(id >= 0 && (uint32_t)id < s->grouping->n_groups && s->groups != NULL);
    return &s->groups[id];
}

static bool add_stream(struct splitter *s, uint32_t line)
{
    const struct trace *t = s->trace;
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init_work(&c, t, line); ok && trace_cursor_next(&c);) {
        const int32_t group = group_at(s->grouping, line, c.index);
        if (group == GROUP_NONE)
            continue;
        struct group *g = group_of(s, group);
        widen(&g->on_device, &c.event);
        uint8_t *known = memo_at(&s->kernels, t, &t->lines[line], &c.event);
        if (*known == 0)
            *known = (uint8_t)(1 + class_of_kernel(trace_event_name(t, &t->lines[line], &c.event)));
        ok = add(s, g, (enum step_class)(*known - 1), &c.event);
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, s->err);
}

static bool add_device(struct splitter *s, const struct trace_plane *p)
{
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (!spans_is_derived(s->trace->lines[l].name) && !add_stream(s, l))
            return false;
    for (uint32_t i = 0; i < s->grouping->n_groups; i++) {
        struct group *g = &s->groups[i];
        if (g->on_device.end_ps - g->on_device.begin_ps > g->device.end_ps - g->device.begin_ps)
            g->device = g->on_device;
        g->has_device |= g->on_device.end_ps > 0;
        g->on_device = (struct interval){0};
    }
    return true;
}

/* What the host did itself; a runner that only encloses others did not. */
static bool is_host_work(str name)
{
    return !str_starts(name, S("EagerExecute")) && !str_starts(name, S("EagerLocalExecute")) &&
           !str_starts(name, S("EagerKernelExecute")) && !str_starts(name, S("FunctionRun"));
}

static enum step_class class_of_host(str name)
{
    if (!is_host_work(name))
        return STEP_CLASSES; /* none */
    if (copy_kind(name) == FRAMEWORK_COPY_H2D)
        return STEP_H2D;
    if (str_starts(name, S("ExecutorState::Process")))
        return STEP_LAUNCH;
    return str_starts(name, S("IteratorGetNext")) ? STEP_WAIT_INPUT : STEP_HOST;
}

static bool add_host_event(struct splitter *s, uint32_t line, const struct trace_cursor *c,
                           struct trace_picker *p)
{
    const struct trace_line *l = &s->trace->lines[line];
    const int32_t group = group_at(s->grouping, line, c->index);
    if (group == GROUP_NONE)
        return true;
    struct group *g = group_of(s, group);
    const struct group_root *root = grouping_root(s->grouping, group);
    if (root != NULL && root->line_index == line && root->event_index == c->index) {
        g->marker = (struct interval){c->event.start_ps, c->event.start_ps + c->event.dur_ps};
        g->has_marker = true;
        return true;
    }
    uint8_t *known = memo_at(&s->host, s->trace, l, &c->event);
    if (*known == 0)
        *known = (uint8_t)(1 + class_of_host(trace_event_name(s->trace, l, &c->event)));
    enum step_class class = (enum step_class)(*known - 1);
    if (class == STEP_CLASSES)
        return true;
    if (s->has_device && class != STEP_H2D) {
        if (!trace_pick(p, &c->event, s->err))
            return false;
        if (p->values[0].type != TRACE_STAT_NONE)
            class = STEP_LAUNCH;
    }
    return add(s, g, class, &c->event);
}

static bool add_thread(struct splitter *s, uint32_t line)
{
    static const str launched = STR_INIT("correlation_id");
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, s->trace, line, &launched, 1);
    for (trace_cursor_init(&c, s->trace, line); ok && trace_cursor_next(&c);)
        ok = add_host_event(s, line, &c, &p);
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, s->err);
}

/* The union grows by one class after the other: what each adds is its own. */
static bool split(struct splitter *s, const struct group *g, struct step_parts *p)
{
    struct spans all = {0};
    uint64_t before = 0;
    for (uint32_t class = 0; class < STEP_CLASSES; class ++) {
        for (uint32_t i = 0; i < g->classes[class].n; i++)
            if (!spans_add(&all, s->arena, g->classes[class].items[i].begin_ps,
                           g->classes[class].items[i].end_ps))
                return arena_full(s->arena, s->err);
        spans_close(&all);
        const uint64_t within = spans_within(&all, p->begin_ps, p->end_ps);
        p->class_ps[class] = within - before;
        before = within;
    }
    p->other_ps = p->end_ps - p->begin_ps - before;
    return true;
}

static bool write_steps(struct splitter *s, struct steps_parts *out)
{
    out->items = ARENA_ARRAY(s->arena, struct step_parts, s->grouping->n_groups);
    if (out->items == NULL && s->grouping->n_groups > 0)
        return arena_full(s->arena, s->err);
    for (uint32_t i = 0; i < s->grouping->n_groups; i++) {
        const struct group *g = &s->groups[i];
        const struct group_root *root = grouping_root(s->grouping, (int32_t)i);
        if (!g->has_marker || root == NULL || (s->has_device && !g->has_device))
            continue;
        const struct interval in = g->has_device ? g->device : g->marker;
        struct step_parts *p = &out->items[out->n++];
        *p = (struct step_parts){.group = (int32_t)i,
                                 .name = root->name,
                                 .number = root->number,
                                 .has_number = root->has_number,
                                 .begin_ps = in.begin_ps,
                                 .end_ps = in.end_ps};
        if (!split(s, g, p))
            return false;
    }
    return true;
}

static bool collect(struct splitter *s)
{
    const struct trace *t = s->trace;
    s->groups = ARENA_ARRAY(s->arena, struct group, s->grouping->n_groups);
    bool ok = s->groups != NULL || s->grouping->n_groups == 0 || arena_full(s->arena, s->err);
    for (uint32_t i = 0; ok && i < t->n_planes; i++)
        if (t->planes[i].kind == TRACE_PLANE_GPU) {
            s->has_device = true;
            ok = add_device(s, &t->planes[i]);
        }
    for (uint32_t i = 0; ok && i < t->n_lines; i++)
        if (t->planes[t->lines[i].plane_index].kind == TRACE_PLANE_HOST)
            ok = add_thread(s, i);
    return ok;
}

bool step_parts_of(const struct trace *t, const struct grouping *g, struct arena *a,
                   struct steps_parts *out, struct err *e)
{
    struct grouping own;
    struct splitter s = {.trace = t, .arena = a, .err = e, .grouping = g == NULL ? &own : g};
    *out = (struct steps_parts){0};
    const bool ok =
        (g != NULL || grouping_of(t, a, &own, e)) && collect(&s) && write_steps(&s, out);
    memo_release(&s.kernels);
    memo_release(&s.host);
    return ok;
}
