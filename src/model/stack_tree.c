/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stack_tree.h"

#include "model/nest.h"
#include "model/trace_pick.h"

void stack_tree_init(struct stack_tree *s, struct arena *a)
{
    *s = (struct stack_tree){.arena = a};
    interner_init(&s->names, a);
}

void stack_tree_release(struct stack_tree *s)
{
    interner_release(&s->names);
    map_u64_u32_release(&s->children);
}

static uint32_t node_add(struct stack_tree *s, uint32_t parent, uint32_t name_id)
{
    if (name_id == UINT32_MAX || !ARENA_PUSH(s->arena, s->nodes, s->n, s->capacity))
        return STACK_NONE;
    s->nodes[s->n - 1] =
        (struct stack_node){.parent = parent,
                            .name_id = name_id,
                            .line = parent == STACK_NONE ? STACK_NONE : s->nodes[parent].line};
    return s->n - 1;
}

uint32_t stack_tree_child(struct stack_tree *s, uint32_t parent, str name)
{
    const uint32_t name_id = interner_id(&s->names, name);
    const uint64_t key = (uint64_t)(parent + 1) << 32 | name_id; /* STACK_NONE + 1 is 0 */
    const uint32_t *known = map_u64_u32_get(&s->children, key);
    if (known != NULL)
        return *known;
    const uint32_t node = node_add(s, parent, name_id);
    if (node != STACK_NONE)
        *map_u64_u32_put(&s->children, key) = node;
    return node;
}

uint32_t stack_tree_line(struct stack_tree *s, uint32_t parent, str name)
{
    const uint32_t node = node_add(s, parent, interner_id(&s->names, name));
    if (node != STACK_NONE)
        s->nodes[node].line = node;
    return node;
}

struct walk {
    struct stack_tree *tree;
    uint32_t line_node;
    struct nest nest;
    uint64_t from_ps, to_ps;
};

static void end_one(struct walk *w, uint32_t lane, const struct nest_open *ended)
{
    const uint64_t dur_ps = ended->end_ps - ended->start_ps;
    struct nest_open *outer = nest_top(&w->nest, lane);
    w->tree->nodes[ended->tag].self_ps += dur_ps - ended->inner_ps;
    if (outer != NULL)
        outer->inner_ps += dur_ps;
}

static bool add_slice(struct walk *w, uint64_t start_ps, uint64_t end_ps, str name)
{
    struct nest_open ended;
    const uint32_t lane = nest_find(&w->nest, start_ps, end_ps);
    if (lane == NEST_NONE) {
        w->tree->n_left_out++;
        return true;
    }
    while (nest_pop(&w->nest, lane, start_ps, &ended))
        end_one(w, lane, &ended);
    const struct nest_open *outer = nest_top(&w->nest, lane);
    const uint32_t node =
        stack_tree_child(w->tree, outer == NULL ? w->line_node : outer->tag, name);
    if (node == STACK_NONE)
        return false;
    w->tree->nodes[node].n++;
    w->tree->has_slices = true;
    nest_push(&w->nest, lane,
              (struct nest_open){.start_ps = start_ps, .end_ps = end_ps, .tag = node});
    return true;
}

static bool add_whole(struct walk *w, uint64_t dur_ps, uint32_t n, str name)
{
    const uint32_t node = stack_tree_child(w->tree, w->line_node, name);
    if (node == STACK_NONE)
        return false;
    w->tree->nodes[node].self_ps += dur_ps;
    w->tree->nodes[node].n += n;
    w->tree->has_slices = true;
    return true;
}

static bool add_sample(struct walk *w, str stack, const struct trace_stat *weight)
{
    uint32_t node = w->line_node;
    str frame;
    double v;
    while (node != STACK_NONE && str_cut(stack, ';', &frame, &stack))
        node = stack_tree_child(w->tree, node, frame);
    if (node == STACK_NONE)
        return false;
    w->tree->nodes[node].weight += trace_stat_f64(weight, &v) ? v : 1;
    w->tree->nodes[node].n++;
    w->tree->has_samples = true;
    return true;
}

/* The stack of a sample's metadata, or NULL for a slice. */
static const struct trace_stat *sample_stack(const struct trace *t, const struct trace_line *line,
                                             const struct trace_event *ev)
{
    const struct trace_event_metadata *meta = trace_event_meta(t, line, ev);
    const struct trace_stat *s = meta == NULL ? NULL : trace_stat_find(meta->stats, S("stack"));
    return s != NULL && s->type == TRACE_STAT_STR ? s : NULL;
}

static bool add_event(struct walk *w, const struct trace *t, const struct trace_line *line,
                      const struct trace_event *ev, struct trace_picker *p, struct err *e)
{
    const uint64_t end_ps = ev->start_ps + ev->dur_ps;
    const bool windowed = w->from_ps > 0 || w->to_ps < UINT64_MAX;
    bool ok = true;
    if (ev->num_occurrences > 0) {
        ok = windowed ||
             add_whole(w, ev->dur_ps, ev->num_occurrences, trace_event_name(t, line, ev));
    } else if (ev->start_ps < w->to_ps && (end_ps > w->from_ps || ev->start_ps >= w->from_ps)) {
        const struct trace_stat *stack = sample_stack(t, line, ev);
        const uint64_t from = ev->start_ps > w->from_ps ? ev->start_ps : w->from_ps;
        if (stack != NULL && !trace_pick(p, ev, e))
            return false;
        ok = stack != NULL ? add_sample(w, stack->text, &p->values[0])
                           : add_slice(w, from, end_ps < w->to_ps ? end_ps : w->to_ps,
                                       trace_event_name(t, line, ev));
    }
    return ok || arena_full(w->tree->arena, e);
}

bool stack_tree_add(struct stack_tree *s, uint32_t line_node, const struct trace *t,
                    uint32_t line_index, uint64_t from_ps, uint64_t to_ps, struct err *e)
{
    static const str names[] = {STR_INIT("weight")};
    struct walk w = {.tree = s, .line_node = line_node, .from_ps = from_ps, .to_ps = to_ps};
    struct trace_picker p;
    struct trace_cursor c;
    bool ok = true;
    trace_picker_init(&p, t, line_index, names, 1);
    trace_cursor_init(&c, t, line_index);
    if (from_ps > 0)
        trace_cursor_seek(&c, from_ps);
    while (ok && trace_cursor_next(&c) && c.event.start_ps < to_ps)
        ok = add_event(&w, t, &t->lines[line_index], &c.event, &p, e);
    ok = ok && trace_cursor_ok(&c, e);
    for (uint32_t lane = 0; lane < w.nest.n; lane++)
        for (struct nest_open ended; nest_pop(&w.nest, lane, UINT64_MAX, &ended);)
            end_one(&w, lane, &ended);
    trace_cursor_release(&c);
    trace_picker_release(&p);
    nest_release(&w.nest);
    return ok;
}

uint64_t stack_tree_self_ns(const struct stack_node *n, uint64_t *carry_ps)
{
    const uint64_t ps = n->self_ps + *carry_ps;
    *carry_ps = ps % 1000;
    return ps / 1000;
}
