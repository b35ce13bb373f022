/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a GPU that a graph launched (CUDA graphs, XLA's command buffers): its kernels name no operation but
 * carry the id of their graph, and one correlation id for all that one launch ran. Each launch is one
 * execution of the operation "CUDA graph 11", on whatever streams it ran; its time is the sum of what it
 * ran. A kernel without a correlation id goes on with the last launch of its graph on the same line, when
 * nothing else ran between.
 *
 *     struct op_graphs g = {.arena = a};              of one device
 *     ... if (!op_graphs_add(&g, &work, e)) return false; ...
 *     for (i < g.n) ... g.items[i] ...;  op_graphs_release(&g);
 *
 * Launches live in the arena. Not for others than op_collect. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_OP_GRAPHS_H
#define TACHO_ANALYSIS_OP_GRAPHS_H

#include "base/arena.h"
#include "base/map.h"

struct op_graph_key {
    int64_t graph, launch;
    bool has_launch; /* launch is a correlation id, else a number of our own */
};
static inline uint64_t op_graph_key_hash(struct op_graph_key k)
{
    return map_hash_u64((uint64_t)k.graph ^ map_hash_u64((uint64_t)k.launch + k.has_launch));
}
static inline bool op_graph_key_eq(struct op_graph_key a, struct op_graph_key b)
{
    return a.graph == b.graph && a.launch == b.launch && a.has_launch == b.has_launch;
}
MAP_DEFINE(op_graph_map, struct op_graph_key, uint32_t, op_graph_key_hash, op_graph_key_eq);

struct op_graph_launch {
    int64_t graph;
    int32_t group; /* of its first kernel */
    uint64_t time_ps, matrix_ps;
};

struct op_graphs {
    struct arena *arena;
    struct op_graph_launch *items; /* as they come */
    uint32_t n, capacity;
    struct op_graph_map by_key;
    int64_t n_runs; /* launches that had no correlation id */
};

struct op_graph_work { /* a kernel or copy of a graph */
    int64_t graph, correlation;
    bool has_correlation,
        goes_on; /* goes_on: the event before it on its line was of the same graph */
    int32_t group;
    uint64_t time_ps, matrix_ps;
};

MUST_CHECK bool op_graphs_add(struct op_graphs *g, const struct op_graph_work *w, struct err *e);
void op_graphs_release(struct op_graphs *g);
/* "CUDA graph 11", in a. */
str op_graph_name(int64_t graph, struct arena *a);

#endif
