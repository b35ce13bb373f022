/* SPDX-License-Identifier: Apache-2.0 */
/* Where time went, by call stack: one tree over all lines of a profile. Its size is the number of
 * different stacks, not the number of events.
 *
 *   root ─ [host] ─ plane ─ line ─ frame ─ frame …
 *
 * A line of slices gives each event's self time (its own without those nested inside it) to the
 * stack of names that it stands on; where events overlap in part, model/nest.h says what stands on
 * what. A line of samples (metadata with the stat `stack`: frames from the root, `;` between) gives the
 * sample's `weight` to that stack; without a weight a sample counts 1. An event that stands for
 * many occurrences gives its whole time, as a frame of its own on its line.
 *
 *     stack_tree_init(&s, &arena);
 *     line = stack_tree_line(&s, plane, name);
 *     if (!stack_tree_add(&s, line, trace, line_index, from_ps, to_ps, e)) ...
 *     stack_tree_release(&s);
 *
 * A parent stands before its children; the nodes of a line stand together. Everything lives in the
 * arena. Thread: one at a time. */
#ifndef TACHO_MODEL_STACK_TREE_H
#define TACHO_MODEL_STACK_TREE_H

#include "model/trace.h"

#define STACK_NONE UINT32_MAX

struct stack_node {
    uint32_t parent;  /* STACK_NONE: a root */
    uint32_t name_id; /* of the tree's names */
    uint32_t line;    /* the node of its line; STACK_NONE above lines */
    uint64_t self_ps; /* of slices */
    double weight;    /* of samples */
    uint64_t n;       /* events or samples */
};

struct stack_tree {
    struct arena *arena;
    struct interner names;
    struct map_u64_u32 children; /* parent << 32 | name to node */
    struct stack_node *nodes;
    uint32_t n, capacity;
    uint64_t n_left_out; /* events without a place, see model/nest.h */
    bool has_samples, has_slices;
};

void stack_tree_init(struct stack_tree *s, struct arena *a);
void stack_tree_release(struct stack_tree *s);
/* The child of that name, made when new; parent may be STACK_NONE. STACK_NONE beyond the arena's cap. */
uint32_t stack_tree_child(struct stack_tree *s, uint32_t parent, str name);
/* A new node for a line: another one of the same name stays apart. */
uint32_t stack_tree_line(struct stack_tree *s, uint32_t parent, str name);
/* Adds the events of a line, cut to [from_ps, to_ps) of the trace's own time. */
MUST_CHECK bool stack_tree_add(struct stack_tree *s, uint32_t line_node, const struct trace *t,
                               uint32_t line_index, uint64_t from_ps, uint64_t to_ps,
                               struct err *e);

/* Whole nanoseconds of a node's self time such that those of a line add up to the line's (rounded
 * down): *carry_ps begins as 0 at each line node and is handed on in the order of nodes. */
uint64_t stack_tree_self_ns(const struct stack_node *n, uint64_t *carry_ps);

#endif
