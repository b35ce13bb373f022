/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_graphs.h"

#include "analysis/op_metrics.h"

bool op_graphs_add(struct op_graphs *g, const struct op_graph_work *w, struct err *e)
{
    if (!w->has_correlation && !w->goes_on)
        g->n_runs++;
    const struct op_graph_key key = {.graph = w->graph,
                                     .launch = w->has_correlation ? w->correlation : g->n_runs,
                                     .has_launch = w->has_correlation};
    uint32_t *at = op_graph_map_get(&g->by_key, key);
    if (at == NULL) {
        if (!ARENA_PUSH(g->arena, g->items, g->n, g->capacity))
            return arena_full(g->arena, e);
        g->items[g->n - 1] = (struct op_graph_launch){.graph = w->graph, .group = w->group};
        at = op_graph_map_put(&g->by_key, key);
        *at = g->n - 1;
    }
    struct op_graph_launch *launch = &g->items[*at];
    launch->time_ps = op_add(launch->time_ps, w->time_ps);
    launch->matrix_ps = op_add(launch->matrix_ps, w->matrix_ps);
    return true;
}

void op_graphs_release(struct op_graphs *g)
{
    op_graph_map_release(&g->by_key);
    *g = (struct op_graphs){0};
}

str op_graph_name(int64_t graph, struct arena *a)
{
    return arena_printf(a, "CUDA graph %lld", (long long)graph);
}
