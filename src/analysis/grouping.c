/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/grouping.h"

#include <stdlib.h>

#include "model/trace_pick.h"

/* Producers and consumers of one id: beyond this many of both, XLA's grouping gives up as well. */
#define CONTEXT_FAN_MAX 64
#define NO_NODE UINT32_MAX

struct node {             /* an event that takes part */
    uint32_t parent;      /* the innermost event around it, or NO_NODE */
    uint32_t subtree_end; /* nodes [self + 1, subtree_end) lie inside it */
    int32_t group;
    int32_t level; /* of a root, else 0 */
};

struct context { /* one end of a causal edge */
    int64_t type;
    uint64_t id;
    uint32_t node;
};

struct edge {
    uint32_t from, to;
};

struct list_context {
    struct context *items;
    uint32_t n, capacity;
};

struct list_edge {
    struct edge *items;
    uint32_t n, capacity;
};

struct builder {
    const struct trace *trace;
    struct arena *arena;
    struct err *err;
    struct grouping *out;
    struct node *nodes;
    uint32_t n_nodes;
    uint32_t *line_node; /* first node of a line, or NO_NODE */
    struct list_context producers, consumers, launches, executions;
    struct list_edge down, up; /* by from; by to */
    uint32_t *stack;           /* work list of nodes */
    uint32_t n_stack, stack_capacity;
};

uint32_t grouping_step_line(const struct trace *t, const struct trace_plane *plane)
{
    uint32_t step = UINT32_MAX, module = UINT32_MAX;
    for (uint32_t i = plane->first_line; i < plane->first_line + plane->n_lines; i++) {
        const struct trace_line *l = &t->lines[i];
        if (l->n_events == 0)
            continue;
        if (str_eq(l->name, S("Steps")) || str_eq(l->name, S("Sparse Core Steps")))
            step = i;
        else if (str_eq(l->name, S("XLA Modules")) || str_eq(l->name, S("Sparse Core Modules")))
            module = i;
    }
    return step != UINT32_MAX ? step : module;
}

static bool push_context(struct builder *b, struct list_context *l, int64_t type, uint64_t id,
                         uint32_t node)
{
    if (!ARENA_PUSH(b->arena, l->items, l->n, l->capacity))
        return arena_full(b->arena, b->err);
    l->items[l->n - 1] = (struct context){type, id, node};
    return true;
}

enum cause {
    PRODUCER_TYPE = 0,
    PRODUCER_ID,
    CONSUMER_TYPE,
    CONSUMER_ID,
    ROOT,
    ASYNC,
    CORRELATION_ID,
    STEP_NUMBER,
    ITERATION,
    CAUSES
};
static const str cause_names[CAUSES] = {STR_INIT("_pt"),
                                        STR_INIT("_p"),
                                        STR_INIT("_ct"),
                                        STR_INIT("_c"),
                                        STR_INIT("_r"),
                                        STR_INIT("_a"),
                                        STR_INIT("correlation_id"),
                                        STR_INIT("step_num"),
                                        STR_INIT("iter_num")};

struct causes {
    bool producer, consumer, correlation, async, root, number;
    int64_t producer_type, consumer_type, level, step;
    int64_t producer_id, consumer_id, correlation_id;
};

/* Ids may use all 64 bits. */
static bool id_of(const struct trace_stat *s, int64_t *out)
{
    if (s->type != TRACE_STAT_U64)
        return trace_stat_i64(s, out);
    *out = (int64_t)s->u64;
    return true;
}

static struct causes causes_of(const struct trace_stat *values)
{
    struct causes c = {0};
    int64_t async = 0;
    c.producer = id_of(&values[PRODUCER_TYPE], &c.producer_type) &&
                 id_of(&values[PRODUCER_ID], &c.producer_id);
    c.consumer = id_of(&values[CONSUMER_TYPE], &c.consumer_type) &&
                 id_of(&values[CONSUMER_ID], &c.consumer_id);
    c.root = id_of(&values[ROOT], &c.level) && c.level > 0;
    c.async = id_of(&values[ASYNC], &async) && async != 0;
    c.correlation = id_of(&values[CORRELATION_ID], &c.correlation_id);
    c.number = id_of(&values[ITERATION], &c.step) || id_of(&values[STEP_NUMBER], &c.step);
    return c;
}

static bool add_root(struct builder *b, const struct trace_cursor *c, uint32_t line,
                     const struct causes *k)
{
    struct grouping *g = b->out;
    if (!ARENA_PUSH(b->arena, g->roots, g->n_roots, g->roots_capacity))
        return arena_full(b->arena, b->err);
    g->roots[g->n_roots - 1] = (struct group_root){
        .line_index = line,
        .event_index = c->index,
        .group = GROUP_NONE,
        .level = k->level,
        .start_ps = c->event.start_ps,
        .dur_ps = c->event.dur_ps,
        .name = trace_event_name(b->trace, &b->trace->lines[line], &c->event),
        .has_number = k->number,
        .number = k->step,
    };
    return true;
}

/* Keeps what the event causes or is caused by. */
static bool note_causes(struct builder *b, const struct trace_cursor *c, uint32_t line,
                        uint32_t node, const struct causes *k)
{
    const struct trace_plane *plane = &b->trace->planes[b->trace->lines[line].plane_index];
    if (k->producer &&
        !push_context(b, &b->producers, k->producer_type, (uint64_t)k->producer_id, node))
        return false;
    if (k->consumer &&
        !push_context(b, &b->consumers, k->consumer_type, (uint64_t)k->consumer_id, node))
        return false;
    if (k->correlation &&
        !push_context(b, plane->kind == TRACE_PLANE_HOST ? &b->launches : &b->executions, 0,
                      (uint64_t)k->correlation_id, node))
        return false;
    if (k->root) {
        b->nodes[node].level = (int32_t)(k->level > INT32_MAX ? INT32_MAX : k->level);
        return add_root(b, c, line, k);
    }
    return true;
}

static bool read_causes(struct builder *b, struct trace_picker *p, const struct trace_event *ev,
                        uint32_t line, struct causes *out)
{
    if (!trace_pick(p, ev, b->err))
        return false;
    *out = causes_of(p->values);
    if (!out->root &&
        str_starts(trace_event_name(b->trace, &b->trace->lines[line], ev), S("TraceContext")))
        out->root = true, out->level = 1;
    return true;
}

struct open_event {
    uint32_t node;
    uint64_t end_ps;
};

/* Nests the events of one line and keeps their causes. */
static bool add_line(struct builder *b, uint32_t line)
{
    const uint32_t first = b->line_node[line];
    struct open_event *open = NULL;
    uint32_t n_open = 0, open_capacity = 0, node = first;
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, b->trace, line, cause_names, CAUSES);
    for (trace_cursor_init_work(&c, b->trace, line); ok && trace_cursor_next(&c); node++) {
        struct causes k = {0};
        ok = !p.any || read_causes(b, &p, &c.event, line, &k);
        b->nodes[node] = (struct node){NO_NODE, node + 1, GROUP_NONE, 0};
        const uint64_t end = c.event.start_ps + c.event.dur_ps;
        if (!k.async) {
            while (n_open > 0 && open[n_open - 1].end_ps < end)
                b->nodes[open[--n_open].node].subtree_end = node;
            if (n_open > 0)
                b->nodes[node].parent = open[n_open - 1].node;
            if (!ARENA_PUSH(b->arena, open, n_open, open_capacity)) {
                ok = arena_full(b->arena, b->err);
                break;
            }
            open[n_open - 1] = (struct open_event){node, end};
        }
        ok = ok && note_causes(b, &c, line, node, &k);
    }
    while (n_open > 0)
        b->nodes[open[--n_open].node].subtree_end = node;
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, b->err);
}

static int by_context(const void *x, const void *y)
{
    const struct context *a = x, *b = y;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int by_from(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static int by_to(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* Most lists come in order: ids count up with time. */
static void sort_contexts(struct list_context *l)
{
    for (uint32_t i = 1; i < l->n; i++)
        if (by_context(&l->items[i - 1], &l->items[i]) > 0) {
            qsort(l->items, l->n, sizeof *l->items, by_context);
            return;
        }
}

static void sort_edges(struct list_edge *l, int (*compare)(const void *, const void *))
{
    for (uint32_t i = 1; i < l->n; i++)
        if (compare(&l->items[i - 1], &l->items[i]) > 0) {
            qsort(l->items, l->n, sizeof *l->items, compare);
            return;
        }
}

static bool push_edge(struct builder *b, uint32_t from, uint32_t to)
{
    if (!ARENA_PUSH(b->arena, b->down.items, b->down.n, b->down.capacity))
        return arena_full(b->arena, b->err);
    b->down.items[b->down.n - 1] = (struct edge){from, to};
    return true;
}

static bool same(const struct context *a, const struct context *b)
{
    return a->type == b->type && a->id == b->id;
}

/* Joins two sorted lists by type and id. `last_only`: of equal producers only the last counts. */
static bool join(struct builder *b, const struct list_context *from, const struct list_context *to,
                 bool last_only)
{
    for (uint32_t i = 0, k = 0; i < from->n && k < to->n;) {
        const struct context *x = &from->items[i], *y = &to->items[k];
        if (!same(x, y)) {
            const bool x_first = x->type != y->type ? x->type < y->type : x->id < y->id;
            i += x_first;
            k += !x_first;
            continue;
        }
        uint32_t i_end = i, k_end = k;
        while (i_end < from->n && same(&from->items[i_end], x))
            i_end++;
        while (k_end < to->n && same(&to->items[k_end], y))
            k_end++;
        if (last_only || i_end - i < CONTEXT_FAN_MAX || k_end - k < CONTEXT_FAN_MAX)
            for (uint32_t p = last_only ? i_end - 1 : i; p < i_end; p++)
                for (uint32_t q = k; q < k_end; q++)
                    if (!push_edge(b, from->items[p].node, to->items[q].node))
                        return false;
        i = i_end;
        k = k_end;
    }
    return true;
}

static bool connect_causes(struct builder *b)
{
    sort_contexts(&b->producers);
    sort_contexts(&b->consumers);
    sort_contexts(&b->launches);
    sort_contexts(&b->executions);
    if (!join(b, &b->producers, &b->consumers, false) ||
        !join(b, &b->launches, &b->executions, true))
        return false;
    b->up.n = b->down.n;
    if (b->down.n == 0)
        return true;
    b->up.items = ARENA_ARRAY(b->arena, struct edge, b->down.n);
    if (b->up.items == NULL)
        return arena_full(b->arena, b->err);
    memcpy(b->up.items, b->down.items, b->down.n * sizeof *b->up.items);
    sort_edges(&b->down, by_from);
    sort_edges(&b->up, by_to);
    return true;
}

/* First edge whose key (from, or to) is at least `node`. */
static uint32_t edge_at(const struct list_edge *l, uint32_t node, bool by_target)
{
    uint32_t low = 0, high = l->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const uint32_t key = by_target ? l->items[mid].to : l->items[mid].from;
        if (key < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool push_work(struct builder *b, uint32_t node)
{
    if (!ARENA_PUSH(b->arena, b->stack, b->n_stack, b->stack_capacity))
        return arena_full(b->arena, b->err);
    b->stack[b->n_stack - 1] = node;
    return true;
}

/* Gives the group to one subtree, leaving out what another group holds, and lists what the new
 * members caused elsewhere. */
static bool spread_subtree(struct builder *b, uint32_t top, int32_t group)
{
    const uint32_t end = b->nodes[top].subtree_end;
    for (uint32_t i = top; i < end;) {
        const bool inside = i == top || b->nodes[i].parent != NO_NODE; /* else asynchronous */
        if (b->nodes[i].group != GROUP_NONE || !inside) {
            i = b->nodes[i].subtree_end;
            continue;
        }
        b->nodes[i].group = group;
        for (uint32_t k = edge_at(&b->down, i, false); k < b->down.n && b->down.items[k].from == i;
             k++)
            if (b->nodes[b->down.items[k].to].group == GROUP_NONE &&
                !push_work(b, b->down.items[k].to))
                return false;
        i++;
    }
    return true;
}

static bool spread(struct builder *b, uint32_t root, int32_t group)
{
    b->n_stack = 0;
    if (!push_work(b, root))
        return false;
    while (b->n_stack > 0)
        if (!spread_subtree(b, b->stack[--b->n_stack], group))
            return false;
    return true;
}

/* True when a root of the same level stands above the node: that one will group it. Follows causes
 * upwards, each node once; `seen` is a mark list in the scratch arena. */
static bool has_root_above(struct builder *b, uint32_t node, int32_t level, bool *found)
{
    struct map_u64_u32 seen = {0};
    bool ok = true;
    b->n_stack = 0;
    *found = false;
    ok = push_work(b, node);
    while (ok && b->n_stack > 0 && !*found) {
        const uint32_t at = b->stack[--b->n_stack];
        if (map_u64_u32_get(&seen, at) != NULL)
            continue;
        *map_u64_u32_put(&seen, at) = 1;
        *found = at != node && b->nodes[at].level == level;
        if (b->nodes[at].parent != NO_NODE)
            ok = push_work(b, b->nodes[at].parent);
        for (uint32_t k = edge_at(&b->up, at, true); ok && k < b->up.n && b->up.items[k].to == at;
             k++)
            ok = push_work(b, b->up.items[k].from);
    }
    map_u64_u32_release(&seen);
    return ok;
}

static int by_root(const void *x, const void *y)
{
    const struct group_root *a = x, *b = y;
    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    if (a->dur_ps != b->dur_ps)
        return a->dur_ps > b->dur_ps ? -1 : 1;
    return a->line_index < b->line_index ? -1 : a->line_index > b->line_index;
}

static bool group_roots(struct builder *b)
{
    struct grouping *g = b->out;
    if (g->n_roots > 1)
        qsort(g->roots, g->n_roots, sizeof *g->roots, by_root);
    for (uint32_t i = 0; i < g->n_roots; i++) {
        struct group_root *r = &g->roots[i];
        const uint32_t node = b->line_node[r->line_index] + (uint32_t)r->event_index;
        bool above;
        if (b->nodes[node].group != GROUP_NONE)
            continue;
        if (!has_root_above(b, node, b->nodes[node].level, &above))
            return false;
        if (above)
            continue;
        r->group = (int32_t)g->n_groups++;
        if (!spread(b, node, r->group))
            return false;
    }
    return true;
}

static bool index_roots(struct builder *b)
{
    struct grouping *g = b->out;
    g->n_host_groups = g->n_groups;
    g->root_of_group = ARENA_ARRAY(b->arena, uint32_t, g->n_groups);
    if (g->root_of_group == NULL && g->n_groups > 0)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < g->n_roots; i++)
        if (g->roots[i].group != GROUP_NONE)
            g->root_of_group[g->roots[i].group] = i;
    return true;
}

static bool is_device_line(const struct trace *t, uint32_t line)
{
    return t->planes[t->lines[line].plane_index].kind == TRACE_PLANE_TPU;
}

/* Where no host root reached a TPU core, its own steps are groups, aligned over the cores. */
static void group_device_steps(struct builder *b)
{
    const struct trace *t = b->trace;
    uint32_t most = 0;
    for (uint32_t l = 0; l < t->n_lines; l++)
        for (uint64_t i = 0;
             is_device_line(t, l) && b->line_node[l] != NO_NODE && i < t->lines[l].n_events; i++)
            if (b->nodes[b->line_node[l] + i].group != GROUP_NONE)
                return;
    for (uint32_t l = 0; l < t->n_lines; l++) {
        if (!is_device_line(t, l) || b->line_node[l] == NO_NODE)
            continue;
        const uint32_t n = (uint32_t)t->lines[l].n_events;
        for (uint32_t i = 0; i < n; i++)
            b->nodes[b->line_node[l] + i].group = (int32_t)(b->out->n_groups + i);
        most = n > most ? n : most;
    }
    b->out->n_groups += most;
}

/* Lines that take part: all of the host and of GPUs; of a TPU core its steps. */
static bool takes_part(const struct trace *t, uint32_t line)
{
    const struct trace_plane *p = &t->planes[t->lines[line].plane_index];
    if (p->kind == TRACE_PLANE_TPU)
        return grouping_step_line(t, p) == line;
    return p->kind == TRACE_PLANE_HOST || p->kind == TRACE_PLANE_GPU;
}

static bool add_lines(struct builder *b)
{
    const struct trace *t = b->trace;
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        const bool in = takes_part(t, i);
        b->line_node[i] = in ? (uint32_t)n : NO_NODE;
        n += in ? t->lines[i].n_events : 0;
    }
    if (n >= NO_NODE)
        return err_set(b->err, ERR_LIMIT, "more than %u events to group", NO_NODE - 1);
    b->n_nodes = (uint32_t)n;
    b->nodes = ARENA_ARRAY(b->arena, struct node, n);
    if (b->nodes == NULL && n > 0)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < t->n_lines; i++)
        if (b->line_node[i] != NO_NODE && !add_line(b, i))
            return false;
    return true;
}

static bool keep_groups(struct builder *b)
{
    const struct trace *t = b->trace;
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const uint64_t n = t->lines[l].n_events;
        if (b->line_node[l] == NO_NODE || n == 0)
            continue;
        int32_t *groups = ARENA_ARRAY(b->arena, int32_t, n);
        if (groups == NULL)
            return arena_full(b->arena, b->err);
        for (uint64_t i = 0; i < n; i++)
            groups[i] = b->nodes[b->line_node[l] + i].group;
        b->out->of_line[l] = groups;
    }
    return true;
}

bool grouping_of(const struct trace *t, struct arena *a, struct grouping *out, struct err *e)
{
    struct builder b = {.trace = t, .arena = a, .err = e, .out = out};
    *out = (struct grouping){0};
    out->of_line = ARENA_ARRAY(a, int32_t *, t->n_lines);
    b.line_node = ARENA_ARRAY(a, uint32_t, t->n_lines);
    if (t->n_lines > 0 && (out->of_line == NULL || b.line_node == NULL))
        return arena_full(a, e);
    bool ok = add_lines(&b) && connect_causes(&b) && group_roots(&b) && index_roots(&b);
    if (ok)
        group_device_steps(&b);
    return ok && keep_groups(&b);
}

const struct group_root *grouping_root(const struct grouping *g, int32_t group)
{
    return group >= 0 && (uint32_t)group < g->n_host_groups ? &g->roots[g->root_of_group[group]]
                                                            : NULL;
}

bool grouping_is_step(const struct group_root *r)
{
    return r->group != GROUP_NONE &&
           (r->has_number || str_starts(r->name, S("train")) || str_starts(r->name, S("test")) ||
            str_starts(r->name, S("TraceContext")));
}
