/* SPDX-License-Identifier: Apache-2.0 */
/* host_stacks: where the time of the host's threads went, folded by call stack. A row's `stack` and its self
 * value are one line of folded text, as flame graph programs read it.
 *
 * Every moment of a thread belongs to the call that began last of those that run, so the self times of
 * a thread add up to the time in which it was in any call, also where the recorder's clock lets a
 * call end a little after the one around it. */
#include <stdlib.h>

#include "analysis/frames.h"
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

struct thread { /* being walked */
    struct stack_tree *tree;
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

static bool add_calls(struct stack_tree *tree, uint32_t thread_node, const struct trace *t,
                      uint32_t line, struct err *e)
{
    struct thread w = {.tree = tree};
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);)
        if (c.event.num_occurrences == 0)
            ok = add_call(&w, thread_node, trace_event_name(t, &t->lines[line], &c.event),
                          &c.event) ||
                 arena_full(tree->arena, e);
    trace_cursor_release(&c);
    pass(&w, UINT64_MAX);
    return ok && trace_cursor_ok(&c, e);
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

static bool add_threads(struct stacks *s, const struct profile *p, str wanted, struct err *e)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t l = 0; l < p->traces[i]->n_lines; l++) {
            const struct trace *t = p->traces[i];
            const str name = thread_name(s, p, t, &t->lines[l]);
            if (!is_thread(t, &t->lines[l]) || str_find(name, wanted) < 0)
                continue;
            const uint32_t node = stack_tree_line(&s->raw, STACK_NONE, name);
            if (node == STACK_NONE)
                return arena_full(s->arena, e);
            if (!(has_samples(t, l) ? stack_tree_add(&s->raw, node, t, l, 0, UINT64_MAX, e)
                                    : add_calls(&s->raw, node, t, l, e)))
                return false;
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
    s->total_weight = ARENA_ARRAY(s->arena, double, (size_t)s->tree.n + 1);
    if (at == NULL || s->total_ps == NULL || s->total_weight == NULL)
        return arena_full(s->arena, e);
    for (uint32_t i = s->tree.n; i-- > 0;) {
        const struct stack_node *n = &s->tree.nodes[i];
        s->total_ps[i] += n->self_ps;
        s->total_weight[i] += n->weight;
        if (n->parent != STACK_NONE) {
            s->total_ps[n->parent] += s->total_ps[i];
            s->total_weight[n->parent] += s->total_weight[i];
        }
    }
    return true;
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

/* Time where the profile has events, weight where it has samples. */
static void measured(struct cell *cells, const struct stacks *s, uint64_t self_ps,
                     uint64_t total_ps, double self_weight, double total_weight)
{
    if (s->raw.has_slices) {
        cells[0] = cell_u64(self_ps);
        cells[1] = cell_u64(total_ps);
    }
    if (s->raw.has_samples) {
        cells[2] = cell_f64(self_weight);
        cells[3] = cell_f64(total_weight);
    }
}

static void declare_measured(struct table *t)
{
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("self_ps"), S("Self"), CELL_U64, S("ps"));
    table_column(t, S("total_ps"), S("Total"), CELL_U64, S("ps"));
    table_column(t, S("self_samples"), S("Self samples"), CELL_F64, S(""));
    table_column(t, S("total_samples"), S("Total samples"), CELL_F64, S(""));
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
        const struct stack_node *node = &s->tree.nodes[order[i]];
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        stack_text(s, order[i], &text);
        row[0] = cell_text(name_of(s, node->line));
        row[1] = cell_u64(node->n);
        measured(&row[2], s, node->self_ps, s->total_ps[order[i]], node->weight,
                 s->total_weight[order[i]]);
        row[6] = cell_text(arena_str(s->arena, buf_str(&text)));
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
    for (uint32_t i = 0; i < s->tree.n; i++) {
        if (s->tree.nodes[i].line != i || (s->total_ps[i] == 0 && s->total_weight[i] <= 0))
            continue;
        struct cell *row = table_row(t), cells[4] = {0};
        if (row == NULL)
            return NULL;
        measured(cells, s, 0, s->total_ps[i], 0, s->total_weight[i]);
        row[0] = cell_text(name_of(s, i));
        row[1] = cells[1];
        row[2] = cells[3];
    }
    return t;
}

struct function { /* by name, over all stacks */
    uint64_t n, self_ps, total_ps;
    double weight, total_weight;
};

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
    struct function *of = ARENA_ARRAY(s->arena, struct function, (size_t)s->tree.names.n + 1);
    if (t == NULL || of == NULL)
        return NULL;
    table_column(t, S("function"), S("Function"), CELL_TEXT, S(""));
    declare_measured(t);
    for (uint32_t i = 0; i < s->tree.n; i++) {
        const struct stack_node *node = &s->tree.nodes[i];
        struct function *f = &of[node->name_id];
        if (node->line == i)
            continue;
        f->n += node->n;
        f->self_ps += node->self_ps;
        f->weight += node->weight;
        if (is_inside_itself(s, i))
            continue;
        f->total_ps += s->total_ps[i];
        f->total_weight += s->total_weight[i];
    }
    for (uint32_t i = 0; i < s->tree.names.n; i++) {
        const struct function *f = &of[i];
        if (f->total_ps == 0 && f->total_weight <= 0)
            continue;
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = cell_text(s->tree.names.strings[i]);
        row[1] = cell_u64(f->n);
        measured(&row[2], s, f->self_ps, f->total_ps, f->weight, f->total_weight);
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
    const bool ok = add_threads(&s, r->profile, tool_param(r, S("thread")), e) && fold(&s, e) &&
                    make_tables(&s, limit, out, e);
    stack_tree_release(&s.raw);
    stack_tree_release(&s.tree);
    return ok;
}

const struct tool_functions tool_host_stacks = {.run = host_stacks_run};
