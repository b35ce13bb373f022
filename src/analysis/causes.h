/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by grouping.c and causes.c: the events that take part as nodes, and what they cause. Not
 * for others: they ask grouping_of(). */
#ifndef TACHO_ANALYSIS_CAUSES_H
#define TACHO_ANALYSIS_CAUSES_H

#include "analysis/grouping.h"
#include "analysis/memo.h"
#include "model/trace_pick.h"

struct cause_node {       /* an event that takes part */
    uint32_t parent;      /* the innermost event around it, or GROUP_NO_NODE */
    uint32_t subtree_end; /* nodes [self + 1, subtree_end) lie inside it */
};

struct cause_mark {      /* of roots, and of nodes that a search for roots came by; few have one */
    int32_t level;       /* of a root, else 0 */
    int32_t clear_level; /* no root of that level stands above it; 0 not known */
    uint32_t seen;       /* the search that came by last */
};

struct cause_end { /* one end of what producers and consumers have in common */
    int64_t type;
    uint64_t id;
    uint64_t start_ps;
    uint32_t node;
    bool consumes;
};

struct causes {
    const struct trace *trace;
    struct arena *arena;   /* of the result */
    struct arena *scratch; /* until grouping_of is done */
    struct err *err;
    struct grouping *out;
    struct cause_node *nodes;
    int32_t *groups, *hub_groups; /* of nodes, in the result; of hubs */
    struct map_u64_u32 mark_of;   /* by node */
    struct cause_mark *marks;
    struct cause_end *ends;        /* of nodes; owned, as all below */
    struct trace_numbers *numbers; /* of the events at hand */
    struct memo contexts;          /* whether a name is TraceContext's */
    /* Calls of the host with a correlation_id, as they were read: id, start and node of each. */
    uint64_t *call_ids, *call_starts_ps;
    uint32_t *launches;
    uint32_t *call_order; /* by id, then start; NULL: they are so */
    uint32_t n_ends, ends_capacity, marks_capacity;
    uint32_t n_calls, ids_capacity, starts_capacity, launches_capacity;
};

static inline uint32_t cause_parent(const struct causes *b, uint32_t node)
{
    return node < b->out->n_nodes ? b->nodes[node].parent : GROUP_NO_NODE;
}
static inline uint32_t cause_subtree_end(const struct causes *b, uint32_t node)
{
    return node < b->out->n_nodes ? b->nodes[node].subtree_end : node + 1;
}
static inline int32_t *cause_group(const struct causes *b, uint32_t node)
{
    return node < b->out->n_nodes ? &b->groups[node] : &b->hub_groups[node - b->out->n_nodes];
}
/* The node's mark, made when it has none. Valid until the next one is made. */
struct cause_mark *cause_mark(struct causes *b, uint32_t node);
/* Nests the events of the lines that are nodes and keeps what they cause. */
MUST_CHECK bool causes_read_nodes(struct causes *b);
/* Joins producers with consumers: b->out->down and up. */
MUST_CHECK bool causes_connect(struct causes *b);
/* Joins the work of GPUs with the calls that launched it: b->out->launch_of_line. */
MUST_CHECK bool causes_read_launched(struct causes *b);
/* Frees what only the steps above need; may be called again. */
void causes_release(struct causes *b);

#endif
