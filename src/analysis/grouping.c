/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/grouping.h"

#include <stdlib.h>

#include "analysis/causes.h"
#include "base/limits.h"

struct builder {
    struct causes causes;
    uint32_t *stack; /* work list of nodes */
    uint32_t n_stack, stack_capacity;
    uint32_t n_searches;
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

/* First edge whose key (from, or to) is at least `node`. */
static uint32_t edge_from(const struct grouping *g, uint32_t node)
{
    uint32_t low = 0, high = g->n_edges;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->down[mid].from < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t edge_to(const struct grouping *g, uint32_t node)
{
    uint32_t low = 0, high = g->n_edges;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->up[mid].to < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool push_work(struct builder *b, uint32_t node)
{
    if (!ARENA_PUSH(b->causes.scratch, b->stack, b->n_stack, b->stack_capacity))
        return arena_full(b->causes.scratch, b->causes.err);
    b->stack[b->n_stack - 1] = node;
    return true;
}

/* Gives the group to one subtree, leaving out what another group holds, and lists what the new
 * members caused elsewhere. */
static bool spread_subtree(struct builder *b, uint32_t top, int32_t group)
{
    const struct grouping *g = b->causes.out;
    const uint32_t end = cause_subtree_end(&b->causes, top);
    uint32_t edge = edge_from(g, top);
    for (uint32_t i = top; i < end;) {
        int32_t *const own = cause_group(&b->causes, i);
        const bool inside =
            i == top || cause_parent(&b->causes, i) != GROUP_NO_NODE; /* else asynchronous */
        if (*own != GROUP_NONE || !inside) {
            i = cause_subtree_end(&b->causes, i);
            continue;
        }
        *own = group;
        while (edge < g->n_edges && g->down[edge].from < i)
            edge++;
        for (; edge < g->n_edges && g->down[edge].from == i; edge++)
            if (*cause_group(&b->causes, g->down[edge].to) == GROUP_NONE &&
                !push_work(b, g->down[edge].to))
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

/* Lists a node for the search at hand, unless it was, or is known to have no such root above. */
static bool look_at(struct builder *b, uint32_t node, int32_t level, uint32_t root)
{
    struct cause_mark *m = cause_mark(&b->causes, node);
    if (m->seen == b->n_searches || (m->clear_level == level && m->level != level && node != root))
        return true;
    m->seen = b->n_searches;
    return push_work(b, node);
}

/* True when a root of the same level stands above the node: that one will group it. Follows causes
 * upwards; the work list is kept whole, so that what was looked at in vain is not again. */
static bool has_root_above(struct builder *b, uint32_t root, int32_t level, bool *found)
{
    const struct grouping *g = b->causes.out;
    b->n_stack = 0;
    b->n_searches++;
    *found = false;
    bool ok = look_at(b, root, level, root);
    for (uint32_t i = 0; ok && i < b->n_stack && !*found; i++) {
        const uint32_t at = b->stack[i];
        const uint32_t parent = cause_parent(&b->causes, at);
        *found = at != root && cause_mark(&b->causes, at)->level == level;
        if (parent != GROUP_NO_NODE)
            ok = look_at(b, parent, level, root);
        for (uint32_t k = edge_to(g, at); ok && k < g->n_edges && g->up[k].to == at; k++)
            ok = look_at(b, g->up[k].from, level, root);
    }
    for (uint32_t i = 0; ok && !*found && i < b->n_stack; i++)
        cause_mark(&b->causes, b->stack[i])->clear_level = level;
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
    struct grouping *g = b->causes.out;
    if (g->n_roots > 1)
        qsort(g->roots, g->n_roots, sizeof *g->roots, by_root);
    for (uint32_t i = 0; i < g->n_roots; i++) {
        struct group_root *r = &g->roots[i];
        const uint32_t node = g->first_node[r->line_index] + (uint32_t)r->event_index;
        bool above;
        if (*cause_group(&b->causes, node) != GROUP_NONE)
            continue;
        if (!has_root_above(b, node, cause_mark(&b->causes, node)->level, &above))
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
    struct grouping *g = b->causes.out;
    g->n_host_groups = g->n_groups;
    g->root_of_group = ARENA_ARRAY(b->causes.arena, uint32_t, g->n_groups);
    if (g->root_of_group == NULL && g->n_groups > 0)
        return arena_full(b->causes.arena, b->causes.err);
    for (uint32_t i = 0; i < g->n_roots; i++)
        if (g->roots[i].group != GROUP_NONE)
            g->root_of_group[g->roots[i].group] = i;
    return true;
}

static bool is_core_line(const struct builder *b, uint32_t line)
{
    const struct trace *t = b->causes.trace;
    return t->planes[t->lines[line].plane_index].kind == TRACE_PLANE_TPU &&
           b->causes.out->first_node[line] != GROUP_NO_NODE;
}

/* Where no host root reached a TPU core, its own steps are groups, aligned over the cores. */
static void group_device_steps(struct builder *b)
{
    const struct trace *t = b->causes.trace;
    struct grouping *g = b->causes.out;
    uint32_t most = 0;
    for (uint32_t l = 0; l < t->n_lines; l++)
        for (uint64_t i = 0; is_core_line(b, l) && i < t->lines[l].n_events; i++)
            if (b->causes.groups[g->first_node[l] + i] != GROUP_NONE)
                return;
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const uint32_t n = is_core_line(b, l) ? (uint32_t)t->lines[l].n_events : 0;
        for (uint32_t i = 0; i < n; i++)
            b->causes.groups[g->first_node[l] + i] = (int32_t)(g->n_groups + i);
        most = n > most ? n : most;
    }
    g->n_groups += most;
}

/* The group of each event of a line, by its node or by the call that launched it. */
static bool keep_groups(const struct builder *b)
{
    const struct trace *t = b->causes.trace;
    struct grouping *g = b->causes.out;
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const uint64_t n = t->lines[l].n_events;
        const uint32_t *launches = g->launch_of_line[l];
        if (g->first_node[l] != GROUP_NO_NODE && n > 0)
            g->of_line[l] = b->causes.groups + g->first_node[l];
        if (launches == NULL || n == 0)
            continue;
        int32_t *groups = ARENA_ARRAY(b->causes.arena, int32_t, n);
        if (groups == NULL)
            return arena_full(b->causes.arena, b->causes.err);
        for (uint64_t i = 0; i < n; i++)
            groups[i] = launches[i] == GROUP_NO_LAUNCH ? GROUP_NONE
                                                       : b->causes.groups[g->launches[launches[i]]];
        g->of_line[l] = groups;
    }
    return true;
}

static bool build(struct builder *b)
{
    if (!causes_read_nodes(&b->causes) || !causes_connect(&b->causes) ||
        !causes_read_launched(&b->causes) || !group_roots(b) || !index_roots(b))
        return false;
    group_device_steps(b);
    return keep_groups(b);
}

bool grouping_of(const struct trace *t, struct arena *a, struct grouping *out, struct err *e)
{
    struct arena scratch;
    struct builder b = {
        .causes = {.trace = t, .arena = a, .scratch = &scratch, .err = e, .out = out}};
    *out = (struct grouping){.n_lines = t->n_lines};
    out->of_line = ARENA_ARRAY(a, int32_t *, t->n_lines);
    out->first_node = ARENA_ARRAY(a, uint32_t, t->n_lines);
    out->launch_of_line = ARENA_ARRAY(a, uint32_t *, t->n_lines);
    out->node_lines = ARENA_ARRAY(a, uint32_t, t->n_lines);
    if (t->n_lines > 0 && (out->of_line == NULL || out->first_node == NULL ||
                           out->launch_of_line == NULL || out->node_lines == NULL))
        return arena_full(a, e);
    arena_init(&scratch, "grouping", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = build(&b);
    causes_release(&b.causes);
    arena_release(&scratch);
    return ok;
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
