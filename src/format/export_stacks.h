/* SPDX-License-Identifier: Apache-2.0 */
/* The stack tree of what is exported, for folded and pprof. */
#ifndef TACHO_FORMAT_EXPORT_STACKS_H
#define TACHO_FORMAT_EXPORT_STACKS_H

#include "format/export_inside.h"
#include "model/stack_tree.h"

#define EXPORT_STACK_FRAMES 2048 /* deeper stacks lose the frames next to their root */

struct export_stacks {
    struct arena arena;
    struct stack_tree tree;
};

/* Over all that is wanted; counts events and what was left out. To be released also on failure. */
MUST_CHECK bool export_stacks_make(struct export_stacks *s, struct export_work *w, struct err *e);
void export_stacks_release(struct export_stacks *s);
/* Name ids from the node to its root. Returns how many. */
uint32_t export_stack_path(const struct stack_tree *s, uint32_t node,
                           uint32_t out[static EXPORT_STACK_FRAMES]);
/* The weight of a node's samples as a whole number. */
uint64_t export_stack_weight(const struct stack_node *n);

#endif
