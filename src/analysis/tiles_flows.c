/* SPDX-License-Identifier: Apache-2.0 */
/* What one event has to do with others (analysis/flows.h). The flows of a trace are found out once and kept with it: a
 * parser that stays answers the next question from them. */
#include "analysis/flows.h"
#include "analysis/tiles_internal.h"

#include "base/limits.h"

#define FLOWS_MOST 256 /* in one answer */

struct kept_flows {
    struct arena arena;
    struct grouping grouping;
    struct flows flows;
};

static void kept_free(void *kept)
{
    struct kept_flows *k = kept;
    arena_release(&k->arena);
    map_free(k);
}

static const struct flows *flows_kept(struct trace *t, struct err *e)
{
    if (t->kept != NULL)
        return &((struct kept_flows *)t->kept)->flows;
    struct kept_flows *k = map_alloc(1, sizeof *k);
    arena_init(&k->arena, "flows", LIMIT_ARENA_TOOL_BYTES);
    if (!grouping_of(t, &k->arena, &k->grouping, e) ||
        !flows_of(t, &k->grouping, &k->arena, &k->flows, e)) {
        kept_free(k);
        return NULL;
    }
    t->kept = k;
    t->kept_free = kept_free;
    return &k->flows;
}

static const char *kind_word(enum flow_kind kind)
{
    switch (kind) {
    case FLOW_LAUNCH:
        return "launch";
    case FLOW_CAUSE:
        return "cause";
    case FLOW_ASYNC:
        return "async";
    }
    return "?";
}

static bool write_flow(const struct trace *t, const struct flow *f, struct json *j, struct err *e)
{
    const struct trace_line *line = &t->lines[f->other.line_index];
    struct trace_event ev;
    if (!tiles_event_at(t, line, f->other.event_index, &ev, e))
        return false;
    json_object(j);
    json_kcstr(j, "kind", kind_word(f->kind));
    json_kbool(j, "begins_here", f->is_source);
    json_ku64(j, "line", f->other.line_index);
    json_ku64(j, "index", f->other.event_index);
    json_kstr(j, "name", trace_event_name(t, line, &ev));
    json_ku64(j, "start_ps", ev.start_ps + t->shift_ps);
    json_ku64(j, "dur_ps", ev.dur_ps);
    json_ku64(j, "depth", ev.depth);
    json_end(j);
    return true;
}

bool tiles_flows(const struct tool_request *r, struct arena *a, struct json *j, struct err *e)
{
    struct trace *t;
    uint64_t l, index;
    if (!tiles_target(r, &t, e) || !tiles_place(r, t, &l, &index, e))
        return false;
    const struct flows *flows = flows_kept(t, e);
    struct flow *ends = ARENA_ARRAY(a, struct flow, FLOWS_MOST);
    if (flows == NULL)
        return false;
    if (ends == NULL)
        return arena_full(a, e);
    const uint32_t n = flows_at(flows, (uint32_t)l, index, ends, FLOWS_MOST);
    json_object(j);
    json_key(j, "flows");
    json_array(j);
    bool ok = true;
    for (uint32_t i = 0; ok && i < n && i < FLOWS_MOST; i++)
        ok = write_flow(t, &ends[i], j, e);
    json_end(j);
    json_ku64(j, "total", n);
    json_end(j);
    return ok;
}
