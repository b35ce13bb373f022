/* SPDX-License-Identifier: Apache-2.0 */
/* host_stacks: where the time of the host's threads went, folded by call stack. A row's `stack` and its self
 * value are one line of folded text, as flame graph programs read it.
 *
 * Every moment of a thread belongs to the call that began last of those that run, so the self times of
 * a thread add up to the time in which it was in any call, also where the recorder's clock lets a
 * call end a little after the one around it.
 *
 * `device_ps` is what GPUs spent on the work that was launched inside the call: the sum over kernels and
 * copies of how long each ran, to be read beside other calls, not as elapsed time. */
#include <stdlib.h>

#include "analysis/frames.h"
#include "analysis/grouping.h"
#include "analysis/spans.h"
#include "analysis/tool.h"
#include "base/buf.h"
#include "model/stack_tree.h"

#define ROWS_SHOWN 1000

struct stacks {
    struct arena *arena;
    struct stack_tree raw; /* names as the profile has them */
    struct stack_tree tree;
    uint64_t *total_ps; /* of each node of tree, its own and what it called */
    double *total_weight;
    uint64_t *raw_device_ps; /* of each node of raw: launched by the call itself */
    uint32_t n_raw_device, raw_device_capacity;
    uint64_t *device_ps; /* of each node of tree: launched inside the call */
    bool has_launches;
};

/* ---- the tree ---- */

/* Lines that are not a thread's calls. */
static bool is_thread(const struct trace *t, const struct trace_line *line)
{
    return t->planes[line->plane_index].kind == TRACE_PLANE_HOST && line->n_events > 0 &&
           !str_starts(line->name, S("Async")) && !str_eq(line->name, S("_counters_")) &&
           !str_eq(line->name, S("PyTorch Profiler")); /* its window */
}

static str thread_name(const struct stacks *s, const struct profile *p, const struct trace *t,
                       const struct trace_line *line)
{
    const str name = line->display_name.n > 0 ? line->display_name : line->name;
    const str shown = name.n > 0 ? name : S("?");
    return p->n_traces == 1
               ? shown
               : arena_printf(s->arena, "%.*s %.*s", STR_ARG(trace_target(t)), STR_ARG(shown));
}

struct call {
    uint64_t end_ps;
    uint32_t node;
};

struct launched { /* by the calls of one trace */
    struct grouping grouping;
    uint64_t *device_ps; /* of each of grouping.launches */
};

struct thread { /* being walked */
    struct stacks *stacks;
    struct stack_tree *tree;
    const struct launched *launched;
    uint32_t launch;     /* the next of the line's calls that launch */
    uint32_t first_node; /* of the line in the grouping */
    struct call *open;
    uint32_t n_open, capacity;
    uint64_t now_ps;
};

/* Gives the time up to then to the calls that run in it. */
static void pass(struct thread *w, uint64_t to_ps)
{
    while (w->n_open > 0 && w->now_ps < to_ps) {
        const struct call *c = &w->open[w->n_open - 1];
        const uint64_t until = c->end_ps < to_ps ? c->end_ps : to_ps;
        if (until > w->now_ps) {
            w->tree->nodes[c->node].self_ps += until - w->now_ps;
            w->now_ps = until;
        }
        if (c->end_ps > to_ps)
            break;
        w->n_open--;
    }
    while (w->n_open > 0 && w->open[w->n_open - 1].end_ps <= to_ps)
        w->n_open--;
    w->now_ps = to_ps;
}

/* The innermost call that goes on for as long: one that ends sooner did not make this one. */
static uint32_t caller(const struct thread *w, uint32_t thread_node, uint64_t end_ps)
{
    for (uint32_t i = w->n_open; i-- > 0;)
        if (w->open[i].end_ps >= end_ps)
            return w->open[i].node;
    return thread_node;
}

static bool add_call(struct thread *w, uint32_t thread_node, str name, const struct trace_event *ev)
{
    pass(w, ev->start_ps);
    const uint32_t node =
        stack_tree_child(w->tree, caller(w, thread_node, ev->start_ps + ev->dur_ps), name);
    if (node == STACK_NONE || !ARENA_PUSH(w->tree->arena, w->open, w->n_open, w->capacity))
        return false;
    w->tree->nodes[node].n++;
    w->tree->has_slices = true;
    w->open[w->n_open - 1] = (struct call){ev->start_ps + ev->dur_ps, node};
    return true;
}

/* What the call launched, to its stack. Launches of a line are in the order of its events. */
static bool add_launch(struct thread *w, uint64_t event_index)
{
    const struct grouping *g = &w->launched->grouping;
    struct stacks *s = w->stacks;
    while (w->launch < g->n_launches && g->launches[w->launch] < w->first_node + event_index)
        w->launch++;
    if (w->launch >= g->n_launches || g->launches[w->launch] != w->first_node + event_index)
        return true;
    const uint32_t node = w->open[w->n_open - 1].node;
    while (s->n_raw_device <= node)
        if (!ARENA_PUSH(s->arena, s->raw_device_ps, s->n_raw_device, s->raw_device_capacity))
            return false;
    s->raw_device_ps[node] += w->launched->device_ps[w->launch];
    return true;
}

static bool add_calls(struct stacks *s, const struct launched *launched, uint32_t thread_node,
                      const struct trace *t, uint32_t line, struct err *e)
{
    struct thread w = {.stacks = s,
                       .tree = &s->raw,
                       .launched = launched,
                       .first_node = launched->grouping.first_node[line]};
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);) {
        if (c.event.num_occurrences > 0)
            continue;
        const str name = trace_event_name(t, &t->lines[line], &c.event);
        ok = (add_call(&w, thread_node, name, &c.event) &&
              (w.first_node == GROUP_NO_NODE || add_launch(&w, c.index))) ||
             arena_full(s->arena, e);
    }
    trace_cursor_release(&c);
    pass(&w, UINT64_MAX);
    return ok && trace_cursor_ok(&c, e);
}

/* What each launching call of the trace had its GPUs do. */
static bool find_launched(struct stacks *s, const struct trace *t, struct launched *out,
                          struct err *e)
{
    if (!grouping_of(t, s->arena, &out->grouping, e))
        return false;
    const struct grouping *g = &out->grouping;
    out->device_ps = ARENA_ARRAY(s->arena, uint64_t, (size_t)g->n_launches + 1);
    if (out->device_ps == NULL)
        return arena_full(s->arena, e);
    for (uint32_t l = 0; l < t->n_lines; l++) {
        if (!spans_is_work_line(t, l) || g->launch_of_line[l] == NULL)
            continue;
        struct trace_cursor c;
        s->has_launches = true;
        for (trace_cursor_init_work(&c, t, l); trace_cursor_next(&c);) {
            const uint32_t launch = launch_at(g, l, c.index);
            if (launch != GROUP_NO_LAUNCH && c.event.num_occurrences == 0)
                out->device_ps[launch] += c.event.dur_ps;
        }
        if (!trace_cursor_ok(&c, e))
            return false;
    }
    return true;
}

/* Whether the plane's line holds samples of stacks: its first event tells. */
static bool has_samples(const struct trace *t, uint32_t line)
{
    struct trace_cursor c;
    trace_cursor_init(&c, t, line);
    const struct trace_event_metadata *m =
        trace_cursor_next(&c) ? trace_event_meta(t, &t->lines[line], &c.event) : NULL;
    const bool samples = m != NULL && trace_stat_find(m->stats, S("stack")) != NULL;
    trace_cursor_release(&c);
    return samples;
}

static bool add_thread(struct stacks *s, const struct launched *launched, const struct trace *t,
                       uint32_t line, str name, struct err *e)
{
    const uint32_t node = stack_tree_line(&s->raw, STACK_NONE, name);
    if (node == STACK_NONE)
        return arena_full(s->arena, e);
    return has_samples(t, line) ? stack_tree_add(&s->raw, node, t, line, 0, UINT64_MAX, e)
                                : add_calls(s, launched, node, t, line, e);
}

static bool add_threads(struct stacks *s, const struct profile *p, str wanted, struct err *e)
{
    for (uint32_t i = 0; i < p->n_traces; i++) {
        const struct trace *t = p->traces[i];
        struct launched launched = {0};
        if (!find_launched(s, t, &launched, e))
            return false;
        for (uint32_t l = 0; l < t->n_lines; l++) {
            const str name = thread_name(s, p, t, &t->lines[l]);
            if (is_thread(t, &t->lines[l]) && str_find(name, wanted) >= 0 &&
                !add_thread(s, &launched, t, l, name, e))
                return false;
        }
    }
    return true;
}

/* The same with names by which equal stacks are one. Parents stand before children. */
static bool fold(struct stacks *s, struct err *e)
{
    uint32_t *at = ARENA_ARRAY(s->arena, uint32_t, (size_t)s->raw.n + 1);
    for (uint32_t i = 0; at != NULL && i < s->raw.n; i++) {
        const struct stack_node *n = &s->raw.nodes[i];
        const str name = frame_clean(s->raw.names.strings[n->name_id], s->arena);
        at[i] = n->parent == STACK_NONE ? stack_tree_line(&s->tree, STACK_NONE, name)
                                        : stack_tree_child(&s->tree, at[n->parent], name);
        if (at[i] == STACK_NONE)
            return arena_full(s->arena, e);
        s->tree.nodes[at[i]].self_ps += n->self_ps;
        s->tree.nodes[at[i]].weight += n->weight;
        s->tree.nodes[at[i]].n += n->n;
    }
    s->total_ps = ARENA_ARRAY(s->arena, uint64_t, (size_t)s->tree.n + 1);
    s->device_ps = ARENA_ARRAY(s->arena, uint64_t, (size_t)s->tree.n + 1);
    s->total_weight = ARENA_ARRAY(s->arena, double, (size_t)s->tree.n + 1);
    if (at == NULL || s->total_ps == NULL || s->device_ps == NULL || s->total_weight == NULL)
        return arena_full(s->arena, e);
    for (uint32_t i = 0; i < s->n_raw_device; i++)
        s->device_ps[at[i]] += s->raw_device_ps[i];
    return true;
}

static void add_up(struct stacks *s)
{
    for (uint32_t i = s->tree.n; i-- > 0;) {
        const struct stack_node *n = &s->tree.nodes[i];
        s->total_ps[i] += n->self_ps;
        s->total_weight[i] += n->weight;
        if (n->parent == STACK_NONE)
            continue;
        s->total_ps[n->parent] += s->total_ps[i];
        s->total_weight[n->parent] += s->total_weight[i];
        s->device_ps[n->parent] += s->device_ps[i];
    }
}

/* ---- rows ---- */

static str name_of(const struct stacks *s, uint32_t node)
{
    return s->tree.names.strings[s->tree.nodes[node].name_id];
}

/* Frames from the outermost, without the thread. */
static void stack_text(const struct stacks *s, uint32_t node, struct buf *out)
{
    uint32_t depth = 0;
    for (uint32_t i = node; s->tree.nodes[i].parent != STACK_NONE; i = s->tree.nodes[i].parent)
        depth++;
    buf_clear(out);
    for (uint32_t up = depth; up-- > 0;) {
        uint32_t at = node;
        for (uint32_t k = 0; k < up; k++)
            at = s->tree.nodes[at].parent;
        if (out->n > 0)
            buf_add_char(out, ';');
        buf_add_str(out, name_of(s, at));
    }
}

struct measure {
    uint64_t n, self_ps, total_ps, device_ps;
    double weight, total_weight;
};

/* Time where the profile has events, weight where it has samples, launched work where it has GPUs. */
static void fill_measured(struct cell *cells, const struct stacks *s, const struct measure *m)
{
    cells[0] = cell_u64(m->n);
    if (s->raw.has_slices) {
        cells[1] = cell_u64(m->self_ps);
        cells[2] = cell_u64(m->total_ps);
    }
    if (s->raw.has_samples) {
        cells[3] = cell_f64(m->weight);
        cells[4] = cell_f64(m->total_weight);
    }
    if (s->has_launches)
        cells[5] = cell_u64(m->device_ps);
}

static struct measure measure_of(const struct stacks *s, uint32_t i)
{
    const struct stack_node *n = &s->tree.nodes[i];
    return (struct measure){n->n,      n->self_ps,        s->total_ps[i], s->device_ps[i],
                            n->weight, s->total_weight[i]};
}

static void declare_measured(struct table *t)
{
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("self_ps"), S("Self"), CELL_U64, S("ps"));
    table_column(t, S("total_ps"), S("Total"), CELL_U64, S("ps"));
    table_column(t, S("self_samples"), S("Self samples"), CELL_F64, S(""));
    table_column(t, S("total_samples"), S("Total samples"), CELL_F64, S(""));
    table_column(t, S("device_ps"), S("Launched work"), CELL_U64, S("ps"));
}

static int by_self(const void *x, const void *y, void *ctx)
{
    const struct stacks *s = ctx;
    const uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    const struct stack_node *a = &s->tree.nodes[i], *b = &s->tree.nodes[k];
    if (a->self_ps != b->self_ps)
        return a->self_ps < b->self_ps ? 1 : -1;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    return i < k ? -1 : i > k;
}

static struct table *stacks_table(struct stacks *s, uint64_t limit)
{
    struct table *t = table_new(s->arena, S("host_stacks"), S("Stacks"));
    uint32_t *order = ARENA_ARRAY(s->arena, uint32_t, (size_t)s->tree.n + 1), n = 0;
    struct buf text;
    if (t == NULL || order == NULL)
        return NULL;
    table_column(t, S("thread"), S("Thread"), CELL_TEXT, S(""));
    declare_measured(t);
    table_column(t, S("stack"), S("Stack"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < s->tree.n; i++)
        if (s->tree.nodes[i].self_ps > 0 || s->tree.nodes[i].weight > 0)
            order[n++] = i;
    if (n > 1)
        qsort_r(order, n, sizeof *order, by_self, s);
    buf_init(&text, s->arena->cap_bytes);
    for (uint32_t i = 0; i < n && i < limit; i++) {
        const struct measure m = measure_of(s, order[i]);
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        stack_text(s, order[i], &text);
        row[0] = cell_text(name_of(s, s->tree.nodes[order[i]].line));
        fill_measured(&row[1], s, &m);
        row[7] = cell_text(arena_str(s->arena, buf_str(&text)));
    }
    buf_release(&text);
    if (n > limit)
        table_note(t, S("left_out"), n - limit,
                   "stacks of less self time are left out (limit=N shows more)");
    return t;
}

/* ---- by thread and by function ---- */

static struct table *threads_table(struct stacks *s)
{
    struct table *t = table_new(s->arena, S("threads"), S("Threads"));
    if (t == NULL)
        return NULL;
    table_column(t, S("thread"), S("Thread"), CELL_TEXT, S(""));
    table_column(t, S("total_ps"), S("Total"), CELL_U64, S("ps"));
    table_column(t, S("total_samples"), S("Total samples"), CELL_F64, S(""));
    table_column(t, S("device_ps"), S("Launched work"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < s->tree.n; i++) {
        if (s->tree.nodes[i].line != i || (s->total_ps[i] == 0 && s->total_weight[i] <= 0))
            continue;
        const struct measure m = measure_of(s, i);
        struct cell *row = table_row(t), cells[6] = {0};
        if (row == NULL)
            return NULL;
        fill_measured(cells, s, &m);
        row[0] = cell_text(name_of(s, i));
        row[1] = cells[2];
        row[2] = cells[4];
        row[3] = cells[5];
    }
    return t;
}

static bool is_inside_itself(const struct stacks *s, uint32_t node)
{
    const struct stack_node *nodes = s->tree.nodes;
    for (uint32_t up = nodes[node].parent; up != STACK_NONE; up = nodes[up].parent)
        if (nodes[up].name_id == nodes[node].name_id && nodes[up].line != up)
            return true;
    return false;
}

/* A function that calls itself is counted once. */
static struct table *functions_table(struct stacks *s, uint64_t limit)
{
    struct table *t = table_new(s->arena, S("functions"), S("Functions"));
    struct measure *of = ARENA_ARRAY(s->arena, struct measure, (size_t)s->tree.names.n + 1);
    if (t == NULL || of == NULL)
        return NULL;
    table_column(t, S("function"), S("Function"), CELL_TEXT, S(""));
    declare_measured(t);
    for (uint32_t i = 0; i < s->tree.n; i++) {
        const struct stack_node *node = &s->tree.nodes[i];
        struct measure *f = &of[node->name_id];
        if (node->line == i)
            continue;
        f->n += node->n;
        f->self_ps += node->self_ps;
        f->weight += node->weight;
        if (is_inside_itself(s, i))
            continue;
        f->total_ps += s->total_ps[i];
        f->total_weight += s->total_weight[i];
        f->device_ps += s->device_ps[i];
    }
    for (uint32_t i = 0; i < s->tree.names.n; i++) {
        const struct measure *f = &of[i];
        if (f->total_ps == 0 && f->total_weight <= 0)
            continue;
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = cell_text(s->tree.names.strings[i]);
        fill_measured(&row[1], s, f);
    }
    table_sort(t, table_find_column(t, S("self_samples")), TABLE_DESCENDING);
    table_sort(t, table_find_column(t, S("self_ps")), TABLE_DESCENDING);
    if (t->n_rows > limit) {
        table_note(t, S("left_out"), t->n_rows - limit,
                   "functions of less self time are left out (limit=N shows more)");
        t->n_rows = (uint32_t)limit;
    }
    return t;
}

static bool make_tables(struct stacks *s, uint64_t limit, struct table **out, struct err *e)
{
    struct table *stacks = stacks_table(s, limit), *functions = functions_table(s, limit),
                 *threads = threads_table(s);
    if (stacks == NULL || functions == NULL || threads == NULL)
        return arena_full(s->arena, e);
    stacks->next = functions;
    functions->next = threads;
    *out = stacks;
    return true;
}

static bool host_stacks_run(const struct tool_request *r, struct arena *a, struct table **out,
                            struct err *e)
{
    struct stacks s = {.arena = a};
    uint64_t limit = ROWS_SHOWN;
    const str asked = tool_param(r, S("limit"));
    if (asked.n > 0 && !str_to_u64(asked, &limit))
        return err_set(e, ERR_USAGE, "limit is a number, not '%.*s'", STR_ARG(asked));
    stack_tree_init(&s.raw, a);
    stack_tree_init(&s.tree, a);
    bool ok = add_threads(&s, r->profile, tool_param(r, S("thread")), e) && fold(&s, e);
    if (ok) {
        add_up(&s);
        ok = make_tables(&s, limit, out, e);
    }
    stack_tree_release(&s.raw);
    stack_tree_release(&s.tree);
    return ok;
}

const struct tool_functions tool_host_stacks = {.run = host_stacks_run};
