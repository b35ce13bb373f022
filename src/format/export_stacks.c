/* SPDX-License-Identifier: Apache-2.0 */
#include "format/export_stacks.h"

#include "base/limits.h"

static bool add_line(struct export_stacks *s, struct export_work *w, const struct trace *t,
                     uint32_t plane_node, uint32_t l, struct err *e)
{
    const struct export_options *o = w->options;
    const uint32_t node = stack_tree_line(&s->tree, plane_node, export_line_name(&t->lines[l]));
    const uint64_t from = o->from_ps > t->shift_ps ? o->from_ps - t->shift_ps : 0;
    const uint64_t to = o->to_ps == 0            ? UINT64_MAX
                        : o->to_ps > t->shift_ps ? o->to_ps - t->shift_ps
                                                 : 0;
    if (node == STACK_NONE)
        return arena_full(&s->arena, e);
    if (!stack_tree_add(&s->tree, node, t, l, from, to, e))
        return false;
    w->counts->n_events += t->lines[l].n_events;
    if (o->progress != NULL)
        o->progress(o->progress_ctx, w->counts->n_events, w->n_total);
    return true;
}

static bool add_trace(struct export_stacks *s, struct export_work *w, const struct trace *t,
                      struct err *e)
{
    const bool several = w->profile->n_traces > 1;
    const uint32_t host =
        several ? stack_tree_child(&s->tree, STACK_NONE, trace_target(t)) : STACK_NONE;
    for (uint32_t k = 0; k < t->n_planes; k++) {
        const struct trace_plane *p = &t->planes[k];
        const uint32_t plane =
            p->n_lines == 0 ? STACK_NONE : stack_tree_child(&s->tree, host, export_plane_name(p));
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
            if (!add_line(s, w, t, plane, l, e))
                return false;
    }
    return true;
}

bool export_stacks_make(struct export_stacks *s, struct export_work *w, struct err *e)
{
    arena_init(&s->arena, "stacks", LIMIT_ARENA_TOOL_BYTES);
    stack_tree_init(&s->tree, &s->arena);
    for (const struct trace *t = NULL; (t = export_next_trace(w, t)) != NULL;)
        if (!add_trace(s, w, t, e))
            return false;
    w->counts->n_left_out = s->tree.n_left_out;
    return true;
}

void export_stacks_release(struct export_stacks *s)
{
    stack_tree_release(&s->tree);
    arena_release(&s->arena);
}

uint32_t export_stack_path(const struct stack_tree *s, uint32_t node,
                           uint32_t out[static EXPORT_STACK_FRAMES])
{
    uint32_t n = 0;
    for (; node != STACK_NONE && n < EXPORT_STACK_FRAMES; node = s->nodes[node].parent)
        out[n++] = s->nodes[node].name_id;
    return n;
}

uint64_t export_stack_weight(const struct stack_node *n)
{
    return n->weight >= 0 && n->weight < 9.2e18 ? (uint64_t)(n->weight + 0.5) : 0;
}
