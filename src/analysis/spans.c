/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/spans.h"

#include <stdlib.h>

#include "analysis/device_work.h"
#include "analysis/op_metrics.h"
#include "model/trace_pick.h"

#define FOLD_LEAST 65536 /* intervals */

struct collector {
    const struct trace *trace;
    struct arena *arena;
    struct err *err;
    struct device_spans *out;
    struct span_list work, copies, waits;    /* work: but for copies from the host to a GPU */
    struct span_list any, parts[CORE_PARTS]; /* of the core at hand */
    device_core_fn on_core;
    void *ctx;
    struct memo names; /* of kernels; of what a core's operations are; of waits */
    bool operators;    /* PyTorch's are work */
    bool has_devices;  /* operations of XLA:CPU are none beside a TPU's or a GPU's work */
};

bool spans_add(struct spans *s, struct arena *a, uint64_t begin_ps, uint64_t end_ps)
{
    if (end_ps <= begin_ps)
        return true;
    if (s->n > 0) { /* lines come sorted: most events go on where the last one ended */
        struct interval *last = &s->items[s->n - 1];
        if (begin_ps >= last->begin_ps && begin_ps <= last->end_ps) {
            last->end_ps = end_ps > last->end_ps ? end_ps : last->end_ps;
            return true;
        }
    }
    if (!ARENA_PUSH(a, s->items, s->n, s->capacity))
        return false;
    s->items[s->n - 1] = (struct interval){begin_ps, end_ps};
    return true;
}

/* Two runs in order, [from, middle) and [middle, to), into `out` at `from`. */
static void merge_runs(const struct interval *in, uint32_t from, uint32_t middle, uint32_t to,
                       struct interval *out)
{
    uint32_t a = from, b = middle;
    for (uint32_t i = from; i < to; i++)
        out[i] = b >= to || (a < middle && in[a].begin_ps <= in[b].begin_ps) ? in[a++] : in[b++];
}

static uint32_t run_end(const struct interval *items, uint32_t from, uint32_t n)
{
    uint32_t i = from + 1;
    while (i < n && items[i - 1].begin_ps <= items[i].begin_ps)
        i++;
    return i > n ? n : i;
}

/* Sorts by begin: what came line by line is a few long runs in order, which are merged pair by pair. */
static void intervals_sort(struct interval *items, uint32_t n)
{
    if (n < 2 || run_end(items, 0, n) == n)
        return;
    struct interval *other = map_alloc(n, sizeof *other), *from = items, *to = other;
    for (bool merged = true; merged;) {
        merged = false;
        for (uint32_t first = 0; first < n;) {
            const uint32_t middle = run_end(from, first, n);
            const uint32_t end = middle < n ? run_end(from, middle, n) : n;
            merge_runs(from, first, middle, end, to);
            merged = merged || first > 0 || end < n;
            first = end;
        }
        struct interval *const swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, n * sizeof *items);
    map_free(other);
}

/* Sorts and joins; answers how many are left. */
static uint32_t intervals_close(struct interval *items, uint32_t n)
{
    uint32_t kept = 0;
    intervals_sort(items, n);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && items[i].begin_ps <= items[kept - 1].end_ps) {
            if (items[i].end_ps > items[kept - 1].end_ps)
                items[kept - 1].end_ps = items[i].end_ps;
        } else {
            items[kept++] = items[i];
        }
    }
    return kept;
}

void spans_close(struct spans *s)
{
    s->n = intervals_close(s->items, s->n);
}

void span_list_add(struct span_list *l, uint64_t begin_ps, uint64_t end_ps)
{
    struct interval *const last = l->n > 0 ? &l->items[l->n - 1] : NULL;
    if (end_ps <= begin_ps)
        return;
    if (last != NULL && begin_ps >= last->begin_ps && begin_ps <= last->end_ps) {
        last->end_ps = end_ps > last->end_ps ? end_ps : last->end_ps;
        return;
    }
    if (l->n == l->capacity) {
        l->capacity = l->capacity < 16 ? 16 : l->capacity + l->capacity / 2;
        l->items = realloc(l->items, l->capacity * sizeof *l->items);
        must(l->items != NULL);
    }
    l->items[l->n++] = (struct interval){begin_ps, end_ps};
}

void span_list_release(struct span_list *l)
{
    free(l->items);
    *l = (struct span_list){0};
}

/* What the list has and more has too, in the arena; `more` may be empty. The list is empty afterwards. */
static bool list_keep(struct span_list *l, const struct spans *more, struct arena *a,
                      struct spans *out, struct err *e)
{
    for (uint32_t i = 0; i < more->n; i++)
        span_list_add(l, more->items[i].begin_ps, more->items[i].end_ps);
    const uint32_t n = intervals_close(l->items, l->n);
    out->items = ARENA_ARRAY(a, struct interval, (size_t)n + 1);
    out->n = out->capacity = n;
    if (out->items != NULL && n > 0)
        memcpy(out->items, l->items, n * sizeof *out->items);
    span_list_release(l);
    return out->items != NULL || arena_full(a, e);
}

uint32_t spans_first_after(const struct spans *s, uint64_t begin_ps)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (s->items[mid].end_ps <= begin_ps)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct interval clip(struct interval s, uint64_t begin_ps, uint64_t end_ps)
{
    return (struct interval){s.begin_ps > begin_ps ? s.begin_ps : begin_ps,
                             s.end_ps < end_ps ? s.end_ps : end_ps};
}

uint64_t spans_within(const struct spans *s, uint64_t begin_ps, uint64_t end_ps)
{
    uint64_t sum = 0;
    for (uint32_t i = spans_first_after(s, begin_ps); i < s->n && s->items[i].begin_ps < end_ps;
         i++) {
        const struct interval in = clip(s->items[i], begin_ps, end_ps);
        sum += in.end_ps - in.begin_ps;
    }
    return sum;
}

bool spans_add_within(struct spans *to, struct arena *a, const struct spans *from,
                      uint64_t begin_ps, uint64_t end_ps)
{
    for (uint32_t i = spans_first_after(from, begin_ps);
         i < from->n && from->items[i].begin_ps < end_ps; i++) {
        const struct interval in = clip(from->items[i], begin_ps, end_ps);
        if (!spans_add(to, a, in.begin_ps, in.end_ps))
            return false;
    }
    return true;
}

bool spans_is_derived(str name)
{
    static const char *const words[] = {
        "Steps",       "XLA Modules",  "XLA Ops",        "Framework Name Scope",  "Framework Ops",
        "Source code", "Launch Stats", "TensorFlow Ops", "TensorFlow Name Scope", "Source Code"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_starts(name, str_from(words[i])))
            return true;
    return false;
}

static enum trace_plane_kind plane_kind(const struct trace *t, uint32_t line_index)
{
    return t->planes[t->lines[line_index].plane_index].kind;
}

bool spans_is_work_line(const struct trace *t, uint32_t line_index)
{
    const enum trace_plane_kind kind = plane_kind(t, line_index);
    const str name = t->lines[line_index].name;
    return kind == TRACE_PLANE_TPU ? str_eq(name, S("XLA Ops"))
                                   : kind == TRACE_PLANE_GPU && !spans_is_derived(name);
}

/* Of an operation of a TPU; empty for all else. */
static str category_of(const struct trace *t, uint32_t line_index, const struct trace_event *ev)
{
    str category = {0};
    const struct trace_event_metadata *m = trace_event_meta(t, &t->lines[line_index], ev);
    if (m != NULL && plane_kind(t, line_index) == TRACE_PLANE_TPU)
        trace_stat_str(trace_stat_find(m->stats, S("hlo_category")), &category);
    return category;
}

/* A loop or call encloses its operations, waits among them: they tell, it does not. */
static bool encloses(str category)
{
    return str_eq(category, S("while")) || str_eq(category, S("conditional")) ||
           str_eq(category, S("call"));
}

static bool works(str category)
{
    return !op_is_off_duty(category) && !encloses(category);
}

/* Not the sum of many occurrences. */
static bool has_place(const struct trace_event *ev)
{
    return ev->num_occurrences == 0;
}

bool spans_is_work(const struct trace *t, uint32_t line_index, const struct trace_event *ev)
{
    return has_place(ev) && works(category_of(t, line_index, ev));
}

static void add(struct span_list *l, const struct trace_event *ev)
{
    span_list_add(l, ev->start_ps, ev->start_ps + ev->dur_ps);
}

static void add_work(struct collector *c, const struct trace_event *ev, bool is_input)
{
    c->out->has_work = true;
    c->out->has_input |= is_input;
    add(is_input ? &c->copies : &c->work, ev);
}

/* Of an operation: a part, or one of these. In a memo one more; 0 is not known yet. */
enum { CORE_WORK = CORE_PARTS, CORE_OTHER /* off duty, or encloses others */ };

static uint8_t core_part(str category, str name)
{
    if (str_eq(category, S("infeed")))
        return CORE_INFEED;
    if (str_eq(category, S("outfeed")))
        return CORE_OUTFEED;
    if (str_starts(category, S("host send")))
        return CORE_HOST_SEND;
    if (str_starts(category, S("host recv")))
        return CORE_HOST_RECV;
    if (str_starts(category, S("send")) || str_starts(category, S("recv")))
        return CORE_DEVICE;
    if (work_collective(str_starts(category, S("async-")) ? name : category).n > 0)
        return CORE_COLLECTIVE;
    return works(category) ? CORE_WORK : CORE_OTHER;
}

static uint8_t core_part_at(struct collector *c, uint32_t line_index, const struct trace_event *ev)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    uint8_t *known = memo_at(&c->names, c->trace, line, ev);
    if (*known == 0)
        *known = (uint8_t)(1 + core_part(category_of(c->trace, line_index, ev),
                                         trace_event_name(c->trace, line, ev)));
    return (uint8_t)(*known - 1);
}

struct spans span_list_close(struct span_list *l)
{
    l->n = l->n_joined = intervals_close(l->items, l->n);
    return (struct spans){l->items, l->n, l->capacity};
}

void span_list_fold(struct span_list *l)
{
    const uint32_t added = l->n - l->n_joined;
    if (added < FOLD_LEAST || added < l->n_joined / 4)
        return;
    span_list_close(l);
    l->capacity = l->n + 1;
    l->items = realloc(l->items, l->capacity * sizeof *l->items);
    must(l->items != NULL);
}

/* Tells of the core at hand, and forgets it. */
static void end_core(struct collector *c, uint32_t plane_index)
{
    struct core_spans core = {.plane_index = plane_index, .any = span_list_close(&c->any)};
    for (uint32_t i = 0; i < CORE_PARTS; i++)
        core.parts[i] = span_list_close(&c->parts[i]);
    if (core.parts[CORE_INFEED].n > 0)
        c->out->has_infeed = c->out->has_input = true;
    if (c->on_core != NULL)
        c->on_core(c->ctx, &core);
    c->any.n = c->any.n_joined = 0;
    for (uint32_t i = 0; i < CORE_PARTS; i++)
        c->parts[i].n = c->parts[i].n_joined = 0;
    span_list_fold(&c->work);
}

static void add_operation(struct collector *c, uint32_t line_index, const struct trace_event *ev)
{
    const uint8_t part = core_part_at(c, line_index, ev);
    c->out->has_work = true;
    add(&c->any, ev);
    if (part < CORE_PARTS)
        add(&c->parts[part], ev);
    if ((part == CORE_WORK || part == CORE_COLLECTIVE) && has_place(ev))
        add_work(c, ev, false);
}

static bool add_core(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    const struct trace_event *events;
    trace_cursor_init(&cursor, c->trace, line_index);
    trace_cursor_leave_src(&cursor);
    for (uint32_t n; (n = trace_cursor_take(&cursor, &events)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            add_operation(c, line_index, &events[i]);
    if (!trace_cursor_ok(&cursor, c->err))
        return false;
    end_core(c, c->trace->lines[line_index].plane_index);
    return true;
}

enum { NO_INPUT = 1, IS_INPUT };

static void add_kernel(struct collector *c, const struct trace_line *line,
                       const struct trace_event *ev)
{
    if (!has_place(ev))
        return;
    uint8_t *known = memo_at(&c->names, c->trace, line, ev);
    if (*known == 0) {
        const str name = trace_event_name(c->trace, line, ev);
        *known = str_starts(name, S("MemcpyH2D")) || str_starts(name, S("MemcpyHtoD"))
                     ? IS_INPUT /* both spellings are in use */
                     : NO_INPUT;
    }
    add_work(c, ev, *known == IS_INPUT);
}

static bool add_stream(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    const struct trace_event *events;
    trace_cursor_init_work(&cursor, c->trace, line_index);
    trace_cursor_leave_src(&cursor);
    for (uint32_t n; (n = trace_cursor_take(&cursor, &events)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            add_kernel(c, &c->trace->lines[line_index], &events[i]);
    span_list_fold(&c->work);
    span_list_fold(&c->copies);
    return trace_cursor_ok(&cursor, c->err);
}

bool spans_plane_names(const struct trace_plane *p, str name)
{
    for (uint32_t i = 0; i < p->n_stat_names; i++)
        if (str_eq(p->stat_names[i], name))
            return true;
    return false;
}

bool spans_has_operators(const struct trace *t)
{
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind == TRACE_PLANE_TPU || p->kind == TRACE_PLANE_GPU)
            return false;
        if (p->kind == TRACE_PLANE_HOST && spans_plane_names(p, S("hlo_op")))
            return false;
    }
    return true;
}

bool spans_is_operator(const struct trace_stat *category)
{
    str is = {0};
    return trace_stat_str(category, &is) && str_eq(is, S("cpu_op"));
}

/* A thread of the host: operations of XLA:CPU or PyTorch, and where it steps, its waits for the iterator. */
static bool add_thread(struct collector *c, uint32_t line_index)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    enum { HLO_OP, CATEGORY, ROOT, ASKED };
    static const str asked[ASKED] = {STR_INIT("hlo_op"), STR_INIT("category"), STR_INIT("_r")};
    struct trace_cursor cursor;
    struct trace_picker p;
    struct span_list waits = {0};
    bool ok = true, steps = false;
    trace_picker_init(&p, c->trace, line_index, asked, ASKED);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        ok = trace_pick(&p, &cursor.event, c->err);
        if (ok && !c->has_devices &&
            (p.values[HLO_OP].type != TRACE_STAT_NONE ||
             (c->operators && spans_is_operator(&p.values[CATEGORY]))))
            add_work(c, &cursor.event, false);
        steps = steps || p.values[ROOT].type != TRACE_STAT_NONE;
        uint8_t *known = memo_at(&c->names, c->trace, line, &cursor.event);
        if (*known == 0) {
            const str name = trace_event_name(c->trace, line, &cursor.event);
            *known = str_starts(name, S("IteratorGetNext")) ? IS_INPUT : NO_INPUT;
        }
        if (*known == IS_INPUT)
            add(&waits, &cursor.event);
    }
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    for (uint32_t i = 0; ok && steps && i < waits.n; i++) {
        c->out->has_input = true;
        span_list_add(&c->waits, waits.items[i].begin_ps, waits.items[i].end_ps);
    }
    span_list_release(&waits);
    span_list_fold(&c->work);
    span_list_fold(&c->waits);
    return ok && trace_cursor_ok(&cursor, c->err);
}

static bool has_devices(const struct trace *t)
{
    for (uint32_t i = 0; i < t->n_lines; i++)
        if (t->lines[i].n_events > 0 && spans_is_work_line(t, i))
            return true;
    return false;
}

static bool collect(struct collector *c)
{
    const struct trace *t = c->trace;
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_lines; i++) {
        if (t->lines[i].n_events == 0)
            continue;
        switch (plane_kind(t, i)) {
        case TRACE_PLANE_TPU:
            ok = !spans_is_work_line(t, i) || add_core(c, i);
            break;
        case TRACE_PLANE_GPU:
            ok = !spans_is_work_line(t, i) || add_stream(c, i);
            break;
        case TRACE_PLANE_HOST:
            ok = add_thread(c, i);
            break;
        default:
            break;
        }
    }
    return ok;
}

/* The lists into the arena; one where two are the same. */
static bool keep_all(struct collector *c)
{
    struct device_spans *out = c->out;
    const struct spans none = {0};
    if (!list_keep(&c->work, &none, c->arena, &out->compute, c->err))
        return false;
    out->busy = out->compute;
    if (c->copies.n > 0 && !list_keep(&c->copies, &out->compute, c->arena, &out->busy, c->err))
        return false;
    out->busy_or_input = out->busy;
    return c->waits.n == 0 ||
           list_keep(&c->waits, &out->busy, c->arena, &out->busy_or_input, c->err);
}

bool device_spans_of(const struct trace *t, struct arena *a, device_core_fn on_core, void *ctx,
                     struct device_spans *out, struct err *e)
{
    struct collector c = {.trace = t,
                          .arena = a,
                          .err = e,
                          .out = out,
                          .on_core = on_core,
                          .ctx = ctx,
                          .operators = spans_has_operators(t),
                          .has_devices = has_devices(t)};
    *out = (struct device_spans){0};
    const bool ok = collect(&c) && keep_all(&c);
    memo_release(&c.names);
    span_list_release(&c.work);
    span_list_release(&c.copies);
    span_list_release(&c.waits);
    span_list_release(&c.any);
    for (uint32_t i = 0; i < CORE_PARTS; i++)
        span_list_release(&c.parts[i]);
    return ok;
}
