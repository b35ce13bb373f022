/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/trace_visible.h"

#include "base/map.h"

#define NEVER INT64_MIN

void trace_visible_init(struct trace_visible *v, int64_t from_ps, int64_t to_ps,
                        uint64_t resolution_ps)
{
    *v = (struct trace_visible){.from_ps = from_ps, .to_ps = to_ps, .resolution_ps = resolution_ps};
}

void trace_visible_row(struct trace_visible *v)
{
    v->n_depths = 0;
    v->has_flow = false;
}

void trace_visible_release(struct trace_visible *v)
{
    map_free(v->flows);
    *v = (struct trace_visible){0};
}

static bool is_apart(const struct trace_visible *v, int64_t before, int64_t after)
{
    return after >= before && (uint64_t)after - (uint64_t)before >= v->resolution_ps;
}

static bool in_window(const struct trace_visible *v, int64_t begin_ps, int64_t end_ps)
{
    return begin_ps <= v->to_ps && end_ps >= v->from_ps;
}

static uint32_t depth_at(const struct trace_visible *v, int64_t begin_ps)
{
    uint32_t depth = 0;
    while (depth < v->n_depths && v->ends[depth] > begin_ps)
        depth++;
    return depth < TRACE_VISIBLE_DEPTHS ? depth : TRACE_VISIBLE_DEPTHS - 1;
}

static bool fits(const struct trace_visible *v, int64_t begin_ps, int64_t end_ps, uint32_t depth)
{
    return is_apart(v, begin_ps, end_ps) || depth >= v->n_depths || v->ends[depth] == NEVER ||
           is_apart(v, v->ends[depth], begin_ps);
}

/* Depths below one that was kept stay as they are; what lay deeper is over or starts anew. */
static void keep(struct trace_visible *v, int64_t end_ps, uint32_t depth)
{
    while (v->n_depths <= depth)
        v->ends[v->n_depths++] = NEVER;
    v->ends[depth] = end_ps;
    v->n_depths = depth + 1;
}

/* Whether the event is shown because of its arrow. */
static bool flow_keeps(struct trace_visible *v, int64_t end_ps, uint64_t flow, bool kept)
{
    if (v->flows == NULL)
        v->flows = map_alloc(TRACE_VISIBLE_FLOWS, sizeof *v->flows);
    struct visible_flow *f = &v->flows[map_hash_u64(flow) % TRACE_VISIBLE_FLOWS];
    if (f->id != flow)
        *f = (struct visible_flow){flow, kept || !v->has_flow || is_apart(v, v->flow_end, end_ps)};
    kept = kept || f->kept;
    if (kept) {
        v->flow_end = end_ps;
        v->has_flow = true;
    }
    return kept;
}

bool trace_visible_event(struct trace_visible *v, int64_t begin_ps, int64_t end_ps, uint64_t flow)
{
    if (!in_window(v, begin_ps, end_ps))
        return false;
    if (v->resolution_ps == 0)
        return true;
    const uint32_t depth = depth_at(v, begin_ps);
    bool kept = fits(v, begin_ps, end_ps, depth);
    if (flow != 0)
        kept = flow_keeps(v, end_ps, flow, kept);
    if (kept)
        keep(v, end_ps, depth);
    return kept;
}

bool trace_visible_at(struct trace_visible *v, int64_t begin_ps, int64_t end_ps, uint32_t depth)
{
    if (!in_window(v, begin_ps, end_ps))
        return false;
    if (v->resolution_ps == 0)
        return true;
    depth = depth < TRACE_VISIBLE_DEPTHS ? depth : TRACE_VISIBLE_DEPTHS - 1;
    if (!fits(v, begin_ps, end_ps, depth))
        return false;
    while (v->n_depths <= depth)
        v->ends[v->n_depths++] = NEVER;
    v->ends[depth] = end_ps;
    return true;
}
