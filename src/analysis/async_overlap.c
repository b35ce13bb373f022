/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/async_overlap.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/device_work.h"

struct collector {
    struct async_overlap *out;
    struct arena *arena;
    struct err *err;
    const struct trace *trace;
    struct spans other;         /* of the core at hand: in which it did something else */
    struct map_str_u32 open;    /* by name of the start: its window + 1; 0: none */
    struct map_str_u32 op_rows; /* by name of the operation */
    struct memo edges;
};

enum edge { EDGE_NONE = 0, EDGE_START, EDGE_DONE };

static str bare(str name)
{
    return str_starts(name, S("%")) ? str_sub(name, 1, name.n) : name;
}

/* "copy" of "copy-start.2"; empty when the name does not end so before its number. */
static str before(str name, str ending)
{
    const ptrdiff_t dot = str_find_char(name, '.');
    const str head = dot < 0 ? name : str_sub(name, 0, (size_t)dot);
    return str_ends(head, ending) ? str_sub(head, 0, head.n - ending.n) : (str){0};
}

static enum edge edge_of(str name)
{
    return before(name, S("-start")).n > 0                                      ? EDGE_START
           : before(name, S("-done")).n > 0 || before(name, S("-update")).n > 0 ? EDGE_DONE
                                                                                : EDGE_NONE;
}

static str name_of(const struct collector *c, uint32_t line, const struct trace_event *ev)
{
    return bare(trace_event_name(c->trace, &c->trace->lines[line], ev));
}

double async_overlap_ratio(uint64_t span_ps, uint64_t exposed_ps)
{
    return span_ps > 0 ? 1.0 - (double)exposed_ps / (double)span_ps : NAN;
}

enum async_class async_class_of(const struct async_window *w)
{
    const double ratio = async_overlap_ratio(w->span_ps, w->exposed_ps);
    return ratio >= ASYNC_HIDDEN_RATIO      ? ASYNC_HIDDEN
           : !(ratio > ASYNC_EXPOSED_RATIO) ? ASYNC_EXPOSED
                                            : ASYNC_PARTIAL;
}

const char *async_class_name(enum async_class c)
{
    static const char *const names[ASYNC_CLASSES] = {"hidden", "partial", "exposed"};
    return names[c];
}

static struct async_core *core_at_hand(const struct collector *c)
{
    return &c->out->cores[c->out->n_cores - 1];
}

static bool add_window(struct collector *c, str name, uint64_t start_ps, uint64_t span_ps)
{
    struct async_overlap *out = c->out;
    if (!ARENA_PUSH(c->arena, out->windows, out->n_windows, out->windows_capacity))
        return arena_full(c->arena, c->err);
    str op = before(name, S("-start"));
    out->windows[out->n_windows - 1] = (struct async_window){.core = out->n_cores - 1,
                                                             .name = name,
                                                             .op = op.n > 0 ? op : name,
                                                             .start_ps = start_ps,
                                                             .span_ps = span_ps};
    return true;
}

/* --- a core's line of operations ---------------------------------------------------------------- */

/* The operand of "%copy-done.2 = f32[8] copy-done(%copy-start.7)", else the start of the same number. */
static str start_of(struct collector *c, uint32_t line, const struct trace_event *ev, str name)
{
    const struct trace_event_metadata *md = trace_event_meta(c->trace, &c->trace->lines[line], ev);
    ptrdiff_t at = md == NULL ? -1 : str_find(md->name, S("-done("));
    if (at >= 0) {
        const str operand = bare(str_sub(md->name, (size_t)at + 6, md->name.n));
        size_t n = 0;
        while (n < operand.n && operand.p[n] != ')' && operand.p[n] != ',')
            n++;
        const str last = str_sub(operand, 0, n);
        const ptrdiff_t space = str_find_char(last, ' '); /* a type may stand before the name */
        return space < 0 ? last : bare(str_sub(last, (size_t)space + 1, last.n));
    }
    const str op = before(name, S("-done"));
    return arena_printf(c->arena, "%.*s-start%.*s", STR_ARG(op),
                        STR_ARG(str_sub(name, op.n + 5, name.n)));
}

static bool add_edge(struct collector *c, uint32_t line, const struct trace_event *ev, str name,
                     enum edge edge)
{
    if (edge == EDGE_START) {
        if (!add_window(c, name, ev->start_ps, 0))
            return false;
        uint32_t *open = map_str_u32_put(&c->open, name);
        c->out->n_unpaired += *open > 0;
        *open = c->out->n_windows;
        return true;
    }
    if (before(name, S("-done")).n == 0)
        return true;
    uint32_t *open = map_str_u32_get(&c->open, start_of(c, line, ev, name));
    if (open == NULL || *open == 0) {
        c->out->n_unpaired++;
        return true;
    }
    struct async_window *w = &c->out->windows[*open - 1];
    w->span_ps = ev->start_ps + ev->dur_ps - w->start_ps;
    *open = 0;
    return true;
}

static bool add_operations(struct collector *c, uint32_t line)
{
    struct trace_cursor k;
    bool ok = true;
    for (trace_cursor_init(&k, c->trace, line); ok && trace_cursor_next(&k);) {
        uint8_t *known = memo_at(&c->edges, c->trace, &c->trace->lines[line], &k.event);
        if (*known == 0)
            *known = (uint8_t)(1 + edge_of(name_of(c, line, &k.event)));
        const enum edge edge = (enum edge)(*known - 1);
        if (edge == EDGE_NONE && spans_is_work(c->trace, line, &k.event))
            ok = spans_add(&c->other, c->arena, k.event.start_ps,
                           k.event.start_ps + k.event.dur_ps) ||
                 arena_full(c->arena, c->err);
        else if (edge != EDGE_NONE && core_at_hand(c)->paired)
            ok = add_edge(c, line, &k.event, name_of(c, line, &k.event), edge);
    }
    trace_cursor_release(&k);
    return ok && trace_cursor_ok(&k, c->err);
}

/* --- its line of windows ------------------------------------------------------------------------- */

static bool add_windows(struct collector *c, uint32_t line)
{
    struct trace_cursor k;
    bool ok = true;
    for (trace_cursor_init(&k, c->trace, line); ok && trace_cursor_next(&k);) {
        const str name = name_of(c, line, &k.event);
        const str async = S("-async");
        ok = add_window(c, str_ends(name, async) ? str_sub(name, 0, name.n - async.n) : name,
                        k.event.start_ps, k.event.dur_ps);
    }
    trace_cursor_release(&k);
    return ok && trace_cursor_ok(&k, c->err);
}

static void sum_add(struct async_sum *s, const struct async_window *w)
{
    s->count++;
    s->span_ps += w->span_ps;
    s->exposed_ps += w->exposed_ps;
    s->classes[async_class_of(w)]++;
}

static bool sum_window(struct collector *c, const struct async_window *w)
{
    struct async_overlap *out = c->out;
    const uint32_t *at = map_str_u32_get(&c->op_rows, w->op);
    if (at == NULL) {
        if (!ARENA_PUSH(c->arena, out->ops, out->n_ops, out->ops_capacity))
            return arena_full(c->arena, c->err);
        out->ops[out->n_ops - 1] = (struct async_op){.op = w->op};
        *map_str_u32_put(&c->op_rows, w->op) = out->n_ops - 1;
    }
    sum_add(&out->ops[at == NULL ? out->n_ops - 1 : *at].sum, w);
    sum_add(&core_at_hand(c)->sum, w);
    sum_add(&out->sum, w);
    return true;
}

static int by_time(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

/* How many windows were open at once; begins and ends apart, each sorted. */
static bool count_at_once(struct collector *c, uint32_t from)
{
    const uint32_t n = c->out->n_windows - from;
    uint64_t *begins = ARENA_ARRAY(c->arena, uint64_t, n),
             *ends = ARENA_ARRAY(c->arena, uint64_t, n);
    if (n == 0)
        return true;
    if (begins == NULL || ends == NULL)
        return arena_full(c->arena, c->err);
    for (uint32_t i = 0; i < n; i++) {
        begins[i] = c->out->windows[from + i].start_ps;
        ends[i] = begins[i] + c->out->windows[from + i].span_ps;
    }
    qsort(begins, n, sizeof *begins, by_time);
    qsort(ends, n, sizeof *ends, by_time);
    for (uint32_t i = 0, done = 0; i < n; i++) {
        while (ends[done] <= begins[i] && done < i)
            done++;
        if (i - done + 1 > core_at_hand(c)->most_at_once)
            core_at_hand(c)->most_at_once = i - done + 1;
    }
    return true;
}

/* Windows that never ended go. */
static bool finish_core(struct collector *c, uint32_t from)
{
    struct async_overlap *out = c->out;
    uint32_t kept = from;
    bool ok = true;
    spans_close(&c->other);
    for (uint32_t i = from; i < out->n_windows; i++)
        if (out->windows[i].span_ps > 0)
            out->windows[kept++] = out->windows[i];
    for (size_t i = 0; map_str_u32_next(&c->open, &i);)
        out->n_unpaired += c->open.values[i - 1] > 0;
    out->n_windows = kept;
    for (uint32_t i = from; ok && i < kept; i++) {
        struct async_window *w = &out->windows[i];
        w->exposed_ps = w->span_ps - spans_within(&c->other, w->start_ps, w->start_ps + w->span_ps);
        ok = sum_window(c, w);
    }
    return ok && count_at_once(c, from);
}

static bool add_core(struct collector *c, uint32_t plane_index)
{
    const struct trace_plane *p = &c->trace->planes[plane_index];
    const uint32_t from = c->out->n_windows;
    uint64_t n_operations = 0, n_async = 0;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        n_operations += spans_is_work_line(c->trace, l) ? c->trace->lines[l].n_events : 0;
        n_async += work_is_async_line(c->trace, l) ? c->trace->lines[l].n_events : 0;
    }
    if (n_operations == 0 && n_async == 0)
        return true;
    if (!ARENA_PUSH(c->arena, c->out->cores, c->out->n_cores, c->out->cores_capacity))
        return arena_full(c->arena, c->err);
    *core_at_hand(c) =
        (struct async_core){.trace = c->trace, .plane_index = plane_index, .paired = n_async == 0};
    c->other = (struct spans){0};
    map_str_u32_release(&c->open);
    bool ok = true;
    for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(c->trace, l))
            ok = add_operations(c, l);
        else if (work_is_async_line(c->trace, l))
            ok = add_windows(c, l);
    return ok && finish_core(c, from);
}

static int by_exposed(const void *x, const void *y)
{
    const struct async_window *a = x, *b = y;
    if (a->exposed_ps != b->exposed_ps)
        return a->exposed_ps > b->exposed_ps ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    return str_cmp(a->name, b->name);
}

bool async_overlap_of(const struct profile *p, struct arena *a, struct async_overlap *out,
                      struct err *e)
{
    struct collector c = {.out = out, .arena = a, .err = e};
    bool ok = true;
    *out = (struct async_overlap){0};
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        c.trace = p->traces[i];
        for (uint32_t k = 0; ok && k < c.trace->n_planes; k++)
            if (c.trace->planes[k].kind == TRACE_PLANE_TPU)
                ok = add_core(&c, k);
    }
    memo_release(&c.edges);
    map_str_u32_release(&c.open);
    map_str_u32_release(&c.op_rows);
    if (ok && out->n_windows > 1)
        qsort(out->windows, out->n_windows, sizeof *out->windows, by_exposed);
    return ok;
}
