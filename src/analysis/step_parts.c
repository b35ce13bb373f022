/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/step_parts.h"

#include "analysis/device_work.h"
#include "analysis/framework_op.h"
#include "base/limits.h"
#include "model/trace_pick.h"

struct work { /* of one device in one step */
    struct span_list classes[STEP_CLASSES];
    struct interval span;
};

struct group {
    struct span_list host[STEP_CLASSES];
    struct interval marker;
    bool has_marker;
};

struct splitter {
    const struct trace *trace;
    struct arena *arena;   /* of the result */
    struct arena *scratch; /* until the steps are split */
    struct err *err;
    const struct grouping *grouping;
    struct group *groups;
    const uint32_t *planes; /* of the devices */
    uint32_t n_devices;
    struct work **works;   /* by group, then device; NULL: it did nothing in that step */
    struct spans cpu_work; /* without devices: in which operations of XLA:CPU ran */
    struct span_list all;  /* of the step at hand */
    struct memo kernels, host;
};

/* A type of at most 16 bits, in the words of CUDA's, ROCm's and CUTLASS's kernels. */
static bool is_16_bit(str name)
{
    static const char *const words[] = {
        "half",   "f16",   "fp16",  "e4m3",  "e5m2",  "fp8", "h884",    "h1688",   "h16816",
        "_hgemm", "_HHS_", "_HSS_", "_BBS_", "_BSS_", "_F8", "nvjet_h", "nvjet_t", "nvjet_q"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_find(name, str_from(words[i])) >= 0)
            return true;
    return false;
}

static enum step_class class_of_kernel(str name)
{
    switch (copy_kind(name)) {
    case FRAMEWORK_COPY_H2D:
        return STEP_COPY_IN;
    case FRAMEWORK_COPY_D2H:
        return STEP_D2H;
    case FRAMEWORK_COPY_D2D:
        return STEP_D2D;
    default:
        break;
    }
    if (work_kind_of_kernel(name) == WORK_COMM)
        return STEP_COLLECTIVE;
    return is_16_bit(name) ? STEP_COMPUTE_16 : STEP_COMPUTE_32;
}

static void add(struct span_list *to, const struct trace_event *ev)
{
    span_list_add(to, ev->start_ps, ev->start_ps + ev->dur_ps);
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

static struct work **works_of(const struct splitter *s, uint32_t group)
{
    return &s->works[(size_t)group * s->n_devices];
}

static bool add_kernel(struct splitter *s, uint32_t device, uint32_t line, uint32_t group,
                       const struct trace_event *ev)
{
    struct work **w = &works_of(s, group)[device];
    if (*w == NULL && (*w = ARENA_NEW(s->scratch, struct work)) == NULL)
        return arena_full(s->scratch, s->err);
    widen(&(*w)->span, ev);
    const struct trace_line *l = &s->trace->lines[line];
    uint8_t *known = memo_at(&s->kernels, s->trace, l, ev);
    if (*known == 0)
        *known = (uint8_t)(1 + class_of_kernel(trace_event_name(s->trace, l, ev)));
    add(&(*w)->classes[*known - 1], ev);
    return true;
}

static bool add_stream(struct splitter *s, uint32_t device, uint32_t line)
{
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init_work(&c, s->trace, line); ok && trace_cursor_next(&c);) {
        const int32_t group = group_at(s->grouping, line, c.index);
        if (group == GROUP_NONE)
            continue;
        must(group >= 0 && (uint32_t)group < s->grouping->n_groups);
        ok = add_kernel(s, device, line, (uint32_t)group, &c.event);
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, s->err);
}

static bool add_device(struct splitter *s, uint32_t device)
{
    const struct trace_plane *p = &s->trace->planes[s->planes[device]];
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (!spans_is_derived(s->trace->lines[l].name) && !add_stream(s, device, l))
            return false;
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
    if (s->n_devices > 0 && class != STEP_H2D) {
        if (!trace_pick(p, &c->event, s->err))
            return false;
        if (p->values[0].type != TRACE_STAT_NONE)
            class = STEP_LAUNCH;
    }
    add(&g->host[class], &c->event);
    return true;
}

static bool add_thread(struct splitter *s, uint32_t line)
{
    static const str launched = STR_INIT("correlation_id");
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, s->trace, line, &launched, 1);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init(&c, s->trace, line); ok && trace_cursor_next(&c);)
        ok = add_host_event(s, line, &c, &p);
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, s->err);
}

static void join(struct span_list *all, const struct span_list *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        span_list_add(all, more->items[i].begin_ps, more->items[i].end_ps);
}

static void join_within(struct span_list *all, const struct spans *more, struct interval in)
{
    for (uint32_t i = spans_first_after(more, in.begin_ps);
         i < more->n && more->items[i].begin_ps < in.end_ps; i++) {
        const struct interval *m = &more->items[i];
        span_list_add(all, m->begin_ps > in.begin_ps ? m->begin_ps : in.begin_ps,
                      m->end_ps < in.end_ps ? m->end_ps : in.end_ps);
    }
}

/* The union grows by one class after the other: what each adds is its own. Of the devices, one or
 * all count. */
static void split(struct splitter *s, const struct group *g, struct work *const *works, uint32_t n,
                  struct interval in, uint64_t class_ps[STEP_CLASSES], uint64_t *other_ps)
{
    struct span_list *const all = &s->all;
    uint64_t before = 0;
    all->n = 0;
    for (uint32_t class = 0; class < STEP_CLASSES; class ++) {
        const uint64_t had = all->n == 0 ? 0 : all->items[all->n - 1].end_ps;
        const uint32_t n_before = all->n;
        join(all, &g->host[class]);
        if (class == STEP_COMPUTE_32)
            join_within(all, &s->cpu_work, in);
        for (uint32_t i = 0; i < n; i++)
            if (works[i] != NULL)
                join(all, &works[i]->classes[class]);
        class_ps[class] = 0;
        if (all->n == n_before && (n_before == 0 || all->items[all->n - 1].end_ps == had))
            continue; /* nothing came */
        const struct spans closed = span_list_close(all);
        const uint64_t within = spans_within(&closed, in.begin_ps, in.end_ps);
        class_ps[class] = within - before;
        before = within;
    }
    *other_ps = in.end_ps - in.begin_ps - before;
}

/* The devices of a step; the longest of their spans is the step's. False: beyond the arena. */
static bool split_devices(struct splitter *s, const struct group *g, struct work *const *works,
                          struct step_parts *p)
{
    p->devices = ARENA_ARRAY(s->arena, struct step_device, s->n_devices);
    if (p->devices == NULL && s->n_devices > 0)
        return arena_full(s->arena, s->err);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        if (works[i] == NULL)
            continue;
        const struct interval in = works[i]->span;
        struct step_device *d = &p->devices[p->n_devices++];
        *d = (struct step_device){
            .plane_index = s->planes[i], .begin_ps = in.begin_ps, .end_ps = in.end_ps};
        split(s, g, &works[i], 1, in, d->class_ps, &d->other_ps);
        if (p->n_devices == 1 || in.end_ps - in.begin_ps > p->end_ps - p->begin_ps) {
            p->begin_ps = in.begin_ps;
            p->end_ps = in.end_ps;
        }
    }
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
        if (!g->has_marker || root == NULL)
            continue;
        struct step_parts *p = &out->items[out->n];
        *p = (struct step_parts){.group = (int32_t)i,
                                 .name = root->name,
                                 .number = root->number,
                                 .has_number = root->has_number,
                                 .begin_ps = g->marker.begin_ps,
                                 .end_ps = g->marker.end_ps};
        if (!split_devices(s, g, works_of(s, i), p))
            return false;
        if (s->n_devices > 0 && p->n_devices == 0)
            continue;
        split(s, g, works_of(s, i), s->n_devices, (struct interval){p->begin_ps, p->end_ps},
              p->class_ps, &p->other_ps);
        out->n++;
    }
    return true;
}

static bool find_devices(struct splitter *s)
{
    const struct trace *t = s->trace;
    uint32_t *planes = ARENA_ARRAY(s->scratch, uint32_t, t->n_planes);
    bool ok = planes != NULL || t->n_planes == 0;
    for (uint32_t i = 0; ok && i < t->n_planes; i++)
        if (t->planes[i].kind == TRACE_PLANE_GPU)
            planes[s->n_devices++] = i;
    s->planes = planes;
    const size_t n = (size_t)s->grouping->n_groups * s->n_devices;
    s->groups = ARENA_ARRAY(s->scratch, struct group, s->grouping->n_groups);
    s->works = ARENA_ARRAY(s->scratch, struct work *, n);
    ok = ok && (s->groups != NULL || s->grouping->n_groups == 0) && (s->works != NULL || n == 0);
    return ok || arena_full(s->scratch, s->err);
}

static bool collect(struct splitter *s)
{
    const struct trace *t = s->trace;
    struct device_spans spans = {0};
    bool ok = find_devices(s);
    if (ok && s->n_devices == 0)
        ok = device_spans_of(t, s->scratch, NULL, NULL, &spans, s->err);
    s->cpu_work = spans.compute;
    for (uint32_t i = 0; ok && i < s->n_devices; i++)
        ok = add_device(s, i);
    for (uint32_t i = 0; ok && i < t->n_lines; i++)
        if (t->planes[t->lines[i].plane_index].kind == TRACE_PLANE_HOST)
            ok = add_thread(s, i);
    return ok;
}

static void lists_release(struct splitter *s)
{
    const uint32_t n_groups = s->groups == NULL ? 0 : s->grouping->n_groups;
    span_list_release(&s->all);
    for (uint32_t i = 0; i < n_groups; i++)
        for (uint32_t class = 0; class < STEP_CLASSES; class ++) {
            span_list_release(&s->groups[i].host[class]);
            for (uint32_t d = 0; s->works != NULL && d < s->n_devices; d++)
                if (works_of(s, i)[d] != NULL)
                    span_list_release(&works_of(s, i)[d]->classes[class]);
        }
}

bool step_parts_of(const struct trace *t, const struct grouping *g, struct arena *a,
                   struct steps_parts *out, struct err *e)
{
    struct grouping own;
    struct arena scratch;
    struct splitter s = {
        .trace = t, .arena = a, .scratch = &scratch, .err = e, .grouping = g == NULL ? &own : g};
    *out = (struct steps_parts){0};
    arena_init(&scratch, "parts of steps", LIMIT_ARENA_TOOL_BYTES);
    const bool ok =
        (g != NULL || grouping_of(t, a, &own, e)) && collect(&s) && write_steps(&s, out);
    memo_release(&s.kernels);
    memo_release(&s.host);
    lists_release(&s);
    arena_release(&scratch);
    return ok;
}
