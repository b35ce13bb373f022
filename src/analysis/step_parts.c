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

struct event_range { /* of a line */
    uint64_t from, to;
};

/* The steps are split some at a time, so that memory is that of the intervals of a few: these groups, and where on
 * each line their events stand. Lines are nearly in the order of the groups, so ranges overlap little. */
struct batch {
    uint32_t first_group, end_group;
    struct event_range *ranges; /* [lines] */
};
#define BATCH_EVENTS (UINT32_C(1) << 20)

struct splitter {
    const struct trace *trace;
    struct arena *arena;   /* of the result */
    struct arena *scratch; /* until the steps are split */
    struct err *err;
    const struct grouping *grouping;
    const uint32_t *planes; /* of the devices */
    uint32_t n_devices;
    struct batch *batches;
    uint32_t n_batches, batches_capacity;
    const struct batch *batch; /* at hand; its: */
    struct group *groups;
    struct work **works;   /* by group, then device; NULL: it did nothing in that step */
    struct spans cpu_work; /* without devices: in which operations of XLA:CPU ran */
    struct span_list all, more, joined; /* of the step at hand: classes so far, one class, both */
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

static bool is_at_hand(const struct splitter *s, int32_t group)
{
    return group >= 0 && (uint32_t)group >= s->batch->first_group &&
           (uint32_t)group < s->batch->end_group;
}

static struct group *group_of(const struct splitter *s, uint32_t group)
{
    return &s->groups[group - s->batch->first_group];
}

static struct work **works_of(const struct splitter *s, uint32_t group)
{
    return &s->works[(size_t)(group - s->batch->first_group) * s->n_devices];
}

/* The events of the batch at hand, and few others. False: there are none. */
static bool begin_line(const struct splitter *s, uint32_t line, struct trace_cursor *c)
{
    const struct event_range range = s->batch->ranges[line];
    if (range.from >= range.to)
        return false;
    trace_cursor_init_work(c, s->trace, line);
    trace_cursor_leave_src(c);
    trace_cursor_skip(c, range.from);
    return true;
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
    const struct trace_event *events;
    bool ok = true;
    if (!begin_line(s, line, &c))
        return true;
    for (uint32_t n;
         ok && c.index + 1 < s->batch->ranges[line].to && (n = trace_cursor_take(&c, &events)) > 0;)
        for (uint32_t i = 0; ok && i < n; i++) {
            const int32_t group = group_at(s->grouping, line, c.index + 1 - n + i);
            if (is_at_hand(s, group))
                ok = add_kernel(s, device, line, (uint32_t)group, &events[i]);
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

static void add_host_event(struct splitter *s, uint32_t line, uint64_t index,
                           const struct trace_event *ev, bool launches)
{
    const struct trace_line *l = &s->trace->lines[line];
    const int32_t group = group_at(s->grouping, line, index);
    if (!is_at_hand(s, group))
        return;
    struct group *g = group_of(s, (uint32_t)group);
    const struct group_root *root = grouping_root(s->grouping, group);
    if (root != NULL && root->line_index == line && root->event_index == index) {
        g->marker = (struct interval){ev->start_ps, ev->start_ps + ev->dur_ps};
        g->has_marker = true;
        return;
    }
    uint8_t *known = memo_at(&s->host, s->trace, l, ev);
    if (*known == 0)
        *known = (uint8_t)(1 + class_of_host(trace_event_name(s->trace, l, ev)));
    enum step_class class = (enum step_class)(*known - 1);
    if (class == STEP_CLASSES)
        return;
    if (s->n_devices > 0 && class != STEP_H2D && launches)
        class = STEP_LAUNCH;
    add(&g->host[class], ev);
}

static bool add_thread(struct splitter *s, uint32_t line)
{
    static const str launched = STR_INIT("correlation_id");
    struct trace_cursor c;
    struct trace_picker p;
    struct trace_numbers ids;
    const struct trace_event *events;
    bool ok = true;
    if (!begin_line(s, line, &c))
        return true;
    trace_picker_init(&p, s->trace, line, &launched, 1);
    trace_picker_follow(&p, &c);
    for (uint32_t n; ok && c.index + 1 < s->batch->ranges[line].to &&
                     (n = trace_cursor_take(&c, &events)) > 0;) {
        ok = trace_pick_numbers(&p, events, n, &ids, s->err);
        for (uint32_t i = 0; ok && i < n; i++)
            add_host_event(s, line, c.index + 1 - n + i, &events[i], trace_numbers_has(&ids, i));
    }
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

/* Joins b into `all`, both closed; answers how much of the union lies within. */
static uint64_t unite(struct splitter *s, const struct span_list *b, struct interval in)
{
    const struct span_list *const a = &s->all;
    struct span_list *const to = &s->joined;
    uint64_t within = 0;
    to->n = 0;
    for (uint32_t i = 0, k = 0; i < a->n || k < b->n;) {
        const bool first = k >= b->n || (i < a->n && a->items[i].begin_ps <= b->items[k].begin_ps);
        const struct interval *const next = first ? &a->items[i++] : &b->items[k++];
        span_list_add(to, next->begin_ps, next->end_ps);
    }
    for (uint32_t i = 0; i < to->n; i++) {
        const struct interval *const x = &to->items[i];
        const uint64_t begin = x->begin_ps > in.begin_ps ? x->begin_ps : in.begin_ps;
        const uint64_t end = x->end_ps < in.end_ps ? x->end_ps : in.end_ps;
        within += end > begin ? end - begin : 0;
    }
    const struct span_list swap = s->all;
    s->all = s->joined;
    s->joined = swap;
    return within;
}

/* What the host and the devices did of a class, closed: the list of one of them where the others did nothing. */
static const struct span_list *of_class(struct splitter *s, const struct group *g,
                                        struct work *const *works, uint32_t n, struct interval in,
                                        enum step_class class)
{
    const struct span_list *only = &g->host[class];
    uint32_t n_lists = g->host[class].n > 0;
    for (uint32_t i = 0; i < n; i++)
        if (works[i] != NULL && works[i]->classes[class].n > 0) {
            only = &works[i]->classes[class];
            n_lists++;
        }
    if (n_lists <= 1 && (class != STEP_COMPUTE_32 || s->cpu_work.n == 0))
        return only;
    s->more.n = 0;
    join(&s->more, &g->host[class]);
    if (class == STEP_COMPUTE_32)
        join_within(&s->more, &s->cpu_work, in);
    for (uint32_t i = 0; i < n; i++)
        if (works[i] != NULL)
            join(&s->more, &works[i]->classes[class]);
    span_list_close(&s->more);
    return &s->more;
}

/* The union grows by one class after the other: what each adds is its own. Of the devices, one or
 * all count. */
static void split(struct splitter *s, const struct group *g, struct work *const *works, uint32_t n,
                  struct interval in, uint64_t class_ps[STEP_CLASSES], uint64_t *other_ps)
{
    uint64_t before = 0;
    s->all.n = 0;
    for (uint32_t class = 0; class < STEP_CLASSES; class ++) {
        const struct span_list *const of = of_class(s, g, works, n, in, (enum step_class) class);
        class_ps[class] = 0;
        if (of->n == 0)
            continue;
        const uint64_t within = unite(s, of, in);
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

static void close_group(struct splitter *s, uint32_t group)
{
    struct work *const *works = works_of(s, group);
    for (uint32_t class = 0; class < STEP_CLASSES; class ++) {
        span_list_close(&group_of(s, group)->host[class]);
        for (uint32_t i = 0; i < s->n_devices; i++)
            if (works[i] != NULL)
                span_list_close(&works[i]->classes[class]);
    }
}

static bool write_steps(struct splitter *s, struct steps_parts *out)
{
    for (uint32_t i = s->batch->first_group; i < s->batch->end_group; i++) {
        const struct group *g = group_of(s, i);
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
        close_group(s, i);
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
    if (planes == NULL && t->n_planes > 0)
        return arena_full(s->scratch, s->err);
    for (uint32_t i = 0; i < t->n_planes; i++)
        if (t->planes[i].kind == TRACE_PLANE_GPU)
            planes[s->n_devices++] = i;
    s->planes = planes;
    return true;
}

static bool takes_part(const struct splitter *s, uint32_t line)
{
    const struct trace *t = s->trace;
    const enum trace_plane_kind kind = t->planes[t->lines[line].plane_index].kind;
    return s->grouping->of_line[line] != NULL &&
           (kind == TRACE_PLANE_HOST ||
            (kind == TRACE_PLANE_GPU && !spans_is_derived(t->lines[line].name)));
}

/* Groups that follow each other, of BATCH_EVENTS events and fewer where a group has not more. */
static bool cut_batches(struct splitter *s, const uint32_t *n_events, uint32_t *batch_of)
{
    uint64_t n = 0;
    for (uint32_t g = 0; g < s->grouping->n_groups; g++) {
        if (s->n_batches == 0 || n + n_events[g] > BATCH_EVENTS) {
            if (!ARENA_PUSH(s->scratch, s->batches, s->n_batches, s->batches_capacity))
                return arena_full(s->scratch, s->err);
            struct batch *b = &s->batches[s->n_batches - 1];
            *b = (struct batch){.first_group = g,
                                .ranges =
                                    ARENA_ARRAY(s->scratch, struct event_range, s->trace->n_lines)};
            if (b->ranges == NULL && s->trace->n_lines > 0)
                return arena_full(s->scratch, s->err);
            n = 0;
        }
        n += n_events[g];
        batch_of[g] = s->n_batches - 1;
        s->batches[s->n_batches - 1].end_group = g + 1;
    }
    return true;
}

static bool find_batches(struct splitter *s)
{
    const struct trace *t = s->trace;
    const uint32_t n_groups = s->grouping->n_groups;
    uint32_t *n_events = ARENA_ARRAY(s->scratch, uint32_t, n_groups);
    uint32_t *batch_of = ARENA_ARRAY(s->scratch, uint32_t, n_groups);
    if ((n_events == NULL || batch_of == NULL) && n_groups > 0)
        return arena_full(s->scratch, s->err);
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const uint64_t n = takes_part(s, l) ? t->lines[l].n_events : 0;
        for (uint64_t i = 0; i < n; i++) {
            const int32_t group = s->grouping->of_line[l][i];
            must(group < (int32_t)n_groups);
            if (group != GROUP_NONE)
                n_events[group]++;
        }
    }
    if (!cut_batches(s, n_events, batch_of))
        return false;
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const uint64_t n = takes_part(s, l) ? t->lines[l].n_events : 0;
        for (uint64_t i = 0; i < n; i++) {
            const int32_t group = s->grouping->of_line[l][i];
            if (group == GROUP_NONE)
                continue;
            struct event_range *r = &s->batches[batch_of[group]].ranges[l];
            r->from = r->to == 0 ? i : r->from;
            r->to = i + 1;
        }
    }
    return true;
}

/* Intervals of the groups at hand. */
static bool collect(struct splitter *s)
{
    const struct trace *t = s->trace;
    const size_t n = s->batch->end_group - s->batch->first_group;
    s->groups = ARENA_ARRAY(s->scratch, struct group, n);
    s->works = ARENA_ARRAY(s->scratch, struct work *, n * s->n_devices);
    bool ok = (s->groups != NULL && (s->works != NULL || s->n_devices == 0)) ||
              arena_full(s->scratch, s->err);
    for (uint32_t i = 0; ok && i < s->n_devices; i++)
        ok = add_device(s, i);
    for (uint32_t i = 0; ok && i < t->n_lines; i++)
        if (t->planes[t->lines[i].plane_index].kind == TRACE_PLANE_HOST)
            ok = add_thread(s, i);
    return ok;
}

static void batch_release(struct splitter *s)
{
    const uint32_t n = s->groups == NULL ? 0 : s->batch->end_group - s->batch->first_group;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t class = 0; class < STEP_CLASSES; class ++) {
            span_list_release(&s->groups[i].host[class]);
            for (uint32_t d = 0; s->works != NULL && d < s->n_devices; d++)
                if (s->works[(size_t)i * s->n_devices + d] != NULL)
                    span_list_release(&s->works[(size_t)i * s->n_devices + d]->classes[class]);
        }
    s->groups = NULL;
    s->works = NULL;
}

static bool split_batches(struct splitter *s, struct steps_parts *out)
{
    struct device_spans spans = {0};
    bool ok = find_devices(s) && find_batches(s);
    if (ok && s->n_devices == 0)
        ok = device_spans_of(s->trace, s->scratch, NULL, NULL, &spans, s->err);
    s->cpu_work = spans.compute;
    out->items = ARENA_ARRAY(s->arena, struct step_parts, s->grouping->n_groups);
    if (out->items == NULL && s->grouping->n_groups > 0)
        return arena_full(s->arena, s->err);
    for (uint32_t i = 0; ok && i < s->n_batches; i++) {
        const struct arena_mark mark = arena_mark(s->scratch);
        s->batch = &s->batches[i];
        ok = collect(s) && write_steps(s, out);
        batch_release(s);
        arena_reset(s->scratch, mark);
    }
    return ok;
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
    const bool ok = (g != NULL || grouping_of(t, a, &own, e)) && split_batches(&s, out);
    memo_release(&s.kernels);
    memo_release(&s.host);
    span_list_release(&s.all);
    span_list_release(&s.more);
    span_list_release(&s.joined);
    arena_release(&scratch);
    return ok;
}
