/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/spans.h"

#include <stdlib.h>

#include "analysis/device_work.h"
#include "analysis/op_metrics.h"
#include "model/trace_pick.h"

struct collector {
    const struct trace *trace;
    struct arena *arena;
    struct err *err;
    struct device_spans *out;
    struct memo names; /* of kernels; of what a core's operations are; of waits */
    bool operators;    /* PyTorch's are work */
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

static int by_begin(const void *x, const void *y)
{
    const struct interval *a = x, *b = y;
    return a->begin_ps < b->begin_ps ? -1 : a->begin_ps > b->begin_ps;
}

void spans_close(struct spans *s)
{
    uint32_t kept = 0;
    if (s->n > 1)
        qsort(s->items, s->n, sizeof *s->items, by_begin);
    for (uint32_t i = 0; i < s->n; i++) {
        if (kept > 0 && s->items[i].begin_ps <= s->items[kept - 1].end_ps) {
            if (s->items[i].end_ps > s->items[kept - 1].end_ps)
                s->items[kept - 1].end_ps = s->items[i].end_ps;
        } else {
            s->items[kept++] = s->items[i];
        }
    }
    s->n = kept;
}

/* The first that ends after begin. */
static uint32_t first_after(const struct spans *s, uint64_t begin_ps)
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
    for (uint32_t i = first_after(s, begin_ps); i < s->n && s->items[i].begin_ps < end_ps; i++) {
        const struct interval in = clip(s->items[i], begin_ps, end_ps);
        sum += in.end_ps - in.begin_ps;
    }
    return sum;
}

bool spans_add_within(struct spans *to, struct arena *a, const struct spans *from,
                      uint64_t begin_ps, uint64_t end_ps)
{
    for (uint32_t i = first_after(from, begin_ps); i < from->n && from->items[i].begin_ps < end_ps;
         i++) {
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

static bool add(struct collector *c, struct spans *s, const struct trace_event *ev)
{
    return spans_add(s, c->arena, ev->start_ps, ev->start_ps + ev->dur_ps) ||
           arena_full(c->arena, c->err);
}

static bool add_work(struct collector *c, const struct trace_event *ev, bool is_input)
{
    c->out->has_work = true;
    c->out->has_input |= is_input;
    return add(c, &c->out->busy, ev) && add(c, &c->out->busy_or_input, ev) &&
           (is_input || add(c, &c->out->compute, ev));
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

static bool keep_core(struct collector *c, struct core_spans *core)
{
    spans_close(&core->any);
    for (uint32_t i = 0; i < CORE_PARTS; i++)
        spans_close(&core->parts[i]);
    if (core->parts[CORE_INFEED].n > 0)
        c->out->has_infeed = c->out->has_input = true;
    if (!ARENA_PUSH(c->arena, c->out->cores, c->out->n_cores, c->out->cores_capacity))
        return arena_full(c->arena, c->err);
    c->out->cores[c->out->n_cores - 1] = *core;
    return true;
}

static bool add_core(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    struct core_spans core = {.plane_index = c->trace->lines[line_index].plane_index};
    bool ok = true;
    for (trace_cursor_init(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        const uint8_t part = core_part_at(c, line_index, &cursor.event);
        c->out->has_work = true;
        ok = add(c, &core.any, &cursor.event) &&
             (part >= CORE_PARTS || add(c, &core.parts[part], &cursor.event));
        if (ok && (part == CORE_WORK || part == CORE_COLLECTIVE) && has_place(&cursor.event))
            ok = add_work(c, &cursor.event, false);
    }
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err) && keep_core(c, &core);
}

enum { NO_INPUT = 1, IS_INPUT };

static bool add_stream(struct collector *c, uint32_t line_index)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    struct trace_cursor cursor;
    bool ok = true;
    for (trace_cursor_init_work(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        if (!has_place(&cursor.event))
            continue;
        uint8_t *known = memo_at(&c->names, c->trace, line, &cursor.event);
        if (*known == 0) {
            const str name = trace_event_name(c->trace, line, &cursor.event);
            *known = str_starts(name, S("MemcpyH2D")) || str_starts(name, S("MemcpyHtoD"))
                         ? IS_INPUT /* both spellings are in use */
                         : NO_INPUT;
        }
        ok = add_work(c, &cursor.event, *known == IS_INPUT);
    }
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
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
    struct spans waits = {0};
    bool ok = true, steps = false;
    trace_picker_init(&p, c->trace, line_index, asked, ASKED);
    for (trace_cursor_init(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        ok = trace_pick(&p, &cursor.event, c->err);
        if (ok && (p.values[HLO_OP].type != TRACE_STAT_NONE ||
                   (c->operators && spans_is_operator(&p.values[CATEGORY]))))
            ok = add_work(c, &cursor.event, false);
        if (ok && p.values[ROOT].type != TRACE_STAT_NONE)
            steps = true;
        if (ok && str_starts(trace_event_name(c->trace, line, &cursor.event), S("IteratorGetNext")))
            ok = add(c, &waits, &cursor.event);
    }
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    if (!ok || !trace_cursor_ok(&cursor, c->err))
        return false;
    for (uint32_t i = 0; steps && i < waits.n; i++) {
        c->out->has_input = true;
        if (!spans_add(&c->out->busy_or_input, c->arena, waits.items[i].begin_ps,
                       waits.items[i].end_ps))
            return arena_full(c->arena, c->err);
    }
    return true;
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

bool device_spans_of(const struct trace *t, struct arena *a, struct device_spans *out,
                     struct err *e)
{
    struct collector c = {
        .trace = t, .arena = a, .err = e, .out = out, .operators = spans_has_operators(t)};
    *out = (struct device_spans){0};
    const bool ok = collect(&c);
    memo_release(&c.names);
    spans_close(&out->busy);
    spans_close(&out->compute);
    spans_close(&out->busy_or_input);
    return ok;
}
