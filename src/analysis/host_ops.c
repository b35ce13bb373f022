/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/host_ops.h"

#include <stdlib.h>

#include "analysis/framework_op.h"
#include "analysis/memo.h"

enum event_kind { KIND_UNKNOWN = 0, KIND_OTHER, KIND_OPERATION, KIND_EAGER };

static enum event_kind kind_of_name(str name, bool operators)
{
    if (str_eq(name, S("EagerKernelExecute")))
        return KIND_EAGER;
    const enum framework_kind kind = framework_op_parse(name).kind;
    const bool is_device = kind == FRAMEWORK_TORCH && operators; /* they stand for the device's */
    return kind == FRAMEWORK_UNKNOWN || is_device ? KIND_OTHER : KIND_OPERATION;
}

static enum event_kind kind_of(struct memo *m, const struct trace *t, const struct trace_line *line,
                               const struct trace_event *ev, bool operators)
{
    uint8_t *known = memo_at(m, t, line, ev);
    if (*known == KIND_UNKNOWN) {
        const struct trace_event_metadata *md = trace_event_meta(t, line, ev);
        *known = md == NULL ? KIND_OTHER : (uint8_t)kind_of_name(md->name, operators);
    }
    return (enum event_kind) * known;
}

struct open_op { /* an operation that is still running, or an eager kernel around some */
    uint64_t begin_ps, end_ps, children_ps;
    uint32_t item; /* UINT32_MAX: an eager kernel */
};

struct thread {
    struct host_ops *out;
    const struct trace *trace;
    const struct trace_line *line;
    struct open_op *open;
    uint32_t n_open, open_capacity, n_eager; /* of the open ones, eager kernels */
    uint64_t first_ps, last_ps;
};

static void close_op(struct thread *th)
{
    const struct open_op *o = &th->open[--th->n_open];
    const uint64_t time = o->end_ps - o->begin_ps;
    if (o->item == UINT32_MAX) {
        th->n_eager--;
    } else {
        struct host_op *x = &th->out->items[o->item];
        x->time_ps = op_add(x->time_ps, time);
        x->self_ps = op_add(x->self_ps, time > o->children_ps ? time - o->children_ps : 0);
    }
    const uint64_t inside = o->item == UINT32_MAX ? o->children_ps : time;
    if (th->n_open > 0)
        th->open[th->n_open - 1].children_ps += inside;
}

static bool find_item(struct thread *th, const struct trace_event *ev, uint32_t *at)
{
    struct host_ops *h = th->out;
    const struct framework_op op =
        framework_op_parse(trace_event_meta(th->trace, th->line, ev)->name);
    const struct op_key key = {0, op.name};
    const uint32_t *known = op_map_get(&h->by_name, key);
    if (known == NULL) {
        if (!ARENA_PUSH(h->arena, h->items, h->n, h->capacity))
            return false;
        h->items[h->n - 1] = (struct host_op){.name = op.name, .type = op.type, .is_eager = true};
        *op_map_put(&h->by_name, key) = h->n - 1;
    }
    *at = known == NULL ? h->n - 1 : *known;
    h->items[*at].occurrences++;
    h->items[*at].is_eager &= th->n_eager > 0;
    return true;
}

static bool begin_op(struct thread *th, const struct trace_event *ev, enum event_kind kind)
{
    struct open_op o = {
        .begin_ps = ev->start_ps, .end_ps = ev->start_ps + ev->dur_ps, .item = UINT32_MAX};
    if (th->out->arena == NULL)
        return true;
    while (th->n_open > 0 && th->open[th->n_open - 1].end_ps < o.end_ps)
        close_op(th);
    while (th->n_open > 0 && th->open[th->n_open - 1].end_ps <= o.begin_ps)
        close_op(th);
    if (kind == KIND_OPERATION && !find_item(th, ev, &o.item))
        return false;
    if (!ARENA_PUSH(th->out->arena, th->open, th->n_open, th->open_capacity))
        return false;
    th->n_eager += kind == KIND_EAGER;
    th->open[th->n_open - 1] = o;
    return true;
}

/* Events come by start: what reaches beyond all that came before is new. */
static void measure(struct thread *th, const struct trace_event *ev)
{
    const uint64_t begin = ev->start_ps, end = begin + ev->dur_ps;
    const uint64_t from = begin > th->last_ps ? begin : th->last_ps;
    th->first_ps = begin < th->first_ps ? begin : th->first_ps;
    th->out->occurrences++;
    if (end > from)
        th->out->busy_ps = op_add(th->out->busy_ps, end - from);
    th->last_ps = end > th->last_ps ? end : th->last_ps;
}

static bool add_thread(struct host_ops *h, const struct trace *t, uint32_t line_index,
                       bool operators, struct memo *kinds, struct err *e)
{
    struct thread th = {
        .out = h, .trace = t, .line = &t->lines[line_index], .first_ps = UINT64_MAX};
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init(&c, t, line_index); ok && trace_cursor_next(&c);) {
        const enum event_kind kind = kind_of(kinds, t, th.line, &c.event, operators);
        if (kind == KIND_OTHER)
            continue;
        h->says_eager |= kind == KIND_EAGER;
        if (kind == KIND_OPERATION)
            measure(&th, &c.event);
        ok = begin_op(&th, &c.event, kind) || arena_full(h->arena, e);
    }
    while (th.n_open > 0)
        close_op(&th);
    trace_cursor_release(&c);
    if (th.last_ps > th.first_ps)
        h->total_ps = op_add(h->total_ps, th.last_ps - th.first_ps);
    return ok && trace_cursor_ok(&c, e);
}

bool host_ops_add(struct host_ops *h, const struct trace *t, struct err *e)
{
    const bool operators = spans_has_operators(t);
    struct memo kinds = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_lines; i++)
        if (t->planes[t->lines[i].plane_index].kind == TRACE_PLANE_HOST)
            ok = add_thread(h, t, i, operators, &kinds, e);
    memo_release(&kinds);
    return ok;
}

static int by_self(const void *x, const void *y)
{
    const struct host_op *a = x, *b = y;
    if (a->self_ps != b->self_ps)
        return a->self_ps > b->self_ps ? -1 : 1;
    return str_cmp(a->name, b->name);
}

void host_ops_finish(struct host_ops *h)
{
    if (h->n > 1)
        qsort(h->items, h->n, sizeof *h->items, by_self);
    op_map_release(&h->by_name);
}
