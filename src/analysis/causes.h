/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by grouping.c and causes.c: the events that take part as nodes, and what they cause. Not
 * for others: they ask grouping_of(). */
#ifndef TACHO_ANALYSIS_CAUSES_H
#define TACHO_ANALYSIS_CAUSES_H

#include "analysis/grouping.h"

struct cause_node {       /* an event that takes part, or a hub */
    uint32_t parent;      /* the innermost event around it, or GROUP_NO_NODE */
    uint32_t subtree_end; /* nodes [self + 1, subtree_end) lie inside it */
    int32_t group;
    int32_t level;       /* of a root, else 0 */
    int32_t clear_level; /* no root of that level stands above it; 0 not known */
};

struct cause_end { /* one end of what producers and consumers have in common */
    int64_t type;
    uint64_t id;
    uint64_t start_ps;
    uint32_t node;
    bool consumes;
};

struct cause_call { /* of the host, with a correlation_id */
    uint64_t id, start_ps;
    uint32_t launch; /* index in grouping.launches */
};

struct causes {
    const struct trace *trace;
    struct arena *arena;   /* of the result */
    struct arena *scratch; /* until grouping_of is done */
    struct err *err;
    struct grouping *out;
    struct cause_node *nodes, *hubs;
    struct cause_end *ends; /* of nodes; owned, as calls and launches */
    uint32_t n_ends, ends_capacity;
    struct cause_call *calls;
    uint32_t *launches; /* the node of each call, before they are sorted */
    uint32_t n_calls, calls_capacity, launches_capacity;
    uint32_t hubs_capacity;
};

static inline struct cause_node *cause_node_at(const struct causes *b, uint32_t node)
{
    return node < b->out->n_nodes ? &b->nodes[node] : &b->hubs[node - b->out->n_nodes];
}
/* Nests the events of the lines that are nodes and keeps what they cause. */
MUST_CHECK bool causes_read_nodes(struct causes *b);
/* Joins producers with consumers: b->out->down and up. */
MUST_CHECK bool causes_connect(struct causes *b);
/* Joins the work of GPUs with the calls that launched it: b->out->launch_of_line. */
MUST_CHECK bool causes_read_launched(struct causes *b);
/* Frees what only the steps above need; may be called again. */
void causes_release(struct causes *b);

#endif
