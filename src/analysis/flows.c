/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/flows.h"

#include <stdlib.h>

#include "analysis/spans.h"
#include "model/trace_pick.h"

struct event_ref flows_event(const struct grouping *g, uint32_t node)
{
    uint32_t low = 0, high = g->n_node_lines; /* the last line that begins at the node or before */
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->first_node[g->node_lines[mid]] <= node)
            low = mid;
        else
            high = mid;
    }
    const uint32_t line = g->node_lines[low];
    return (struct event_ref){line, node - g->first_node[line]};
}

/* --- work of GPUs by launch ------------------------------------------------------------------- */

static bool index_launched(struct flows *f, struct arena *a, struct err *e)
{
    const struct grouping *g = f->grouping;
    uint64_t n = 0;
    f->first_launched = ARENA_ARRAY(a, uint32_t, (size_t)g->n_launches + 2);
    if (f->first_launched == NULL)
        return arena_full(a, e);
    for (uint32_t l = 0; l < g->n_lines; l++)
        for (uint64_t i = 0; g->launch_of_line[l] != NULL && i < f->trace->lines[l].n_events; i++)
            if (g->launch_of_line[l][i] != GROUP_NO_LAUNCH) {
                f->first_launched[g->launch_of_line[l][i] + 2]++;
                n++;
            }
    if (n >= UINT32_MAX)
        return err_set(e, ERR_LIMIT, "more than %u launched events", UINT32_MAX - 1);
    f->launched = ARENA_ARRAY(a, struct event_ref, n);
    if (f->launched == NULL && n > 0)
        return arena_full(a, e);
    for (uint32_t i = 2; i < g->n_launches + 2; i++)
        f->first_launched[i] += f->first_launched[i - 1];
    for (uint32_t l = 0; l < g->n_lines; l++)
        for (uint64_t i = 0; g->launch_of_line[l] != NULL && i < f->trace->lines[l].n_events; i++)
            if (g->launch_of_line[l][i] != GROUP_NO_LAUNCH)
                f->launched[f->first_launched[g->launch_of_line[l][i] + 1]++] =
                    (struct event_ref){l, i};
    return true;
}

/* --- links that the grouping does not know ---------------------------------------------------- */

struct linker {
    const struct trace *trace;
    struct arena *arena;
    struct err *err;
    struct flows *out;
};

static bool add_link(struct linker *b, struct flow_link link)
{
    struct flows *f = b->out;
    if (!ARENA_PUSH(b->arena, f->by_source, f->n_links, f->links_capacity))
        return arena_full(b->arena, b->err);
    f->by_source[f->n_links - 1] = link;
    return true;
}

/* "%all-gather-done.1 = f32[8] all-gather-done(%all-gather-start.1)": what a done waits for. */
static str started_by(str text)
{
    ptrdiff_t at = str_find(text, S("-done("));
    if (at < 0)
        return (str){0};
    str rest = str_sub(text, (size_t)at + 6, text.n);
    at = str_find_char(rest, '%');
    if (at < 0)
        return (str){0};
    rest = str_sub(rest, (size_t)at + 1, rest.n);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != ')' && rest.p[n] != ',' && rest.p[n] != ' ')
        n++;
    return str_sub(rest, 0, n);
}

/* Of each metadata of a core's plane: 1 + the metadata that starts what it ends, or 0. */
static bool starts_of(struct linker *b, const struct trace_plane *p, uint32_t **out, bool *any)
{
    struct map_str_u32 by_name = {0};
    *any = false;
    *out = ARENA_ARRAY(b->arena, uint32_t, p->n_event_metadata);
    if (*out == NULL && p->n_event_metadata > 0)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < p->n_event_metadata; i++) {
        const struct trace_event_metadata *m = &p->event_metadata[i];
        *map_str_u32_put(&by_name, m->display_name.n > 0 ? m->display_name : m->name) = i;
    }
    for (uint32_t i = 0; i < p->n_event_metadata; i++) {
        const str name = started_by(p->event_metadata[i].name);
        const uint32_t *start = name.n > 0 ? map_str_u32_get(&by_name, name) : NULL;
        if (start == NULL)
            continue;
        (*out)[i] = 1 + *start;
        *any = true;
    }
    map_str_u32_release(&by_name);
    return true;
}

struct started { /* the last execution of a start that no done has ended */
    bool open;
    uint64_t event_index, start_ps, end_ps;
};

/* A done belongs to the last start of what it names; each start to one done. */
static bool link_async(struct linker *b, uint32_t line)
{
    const struct trace *t = b->trace;
    const struct trace_plane *p = &t->planes[t->lines[line].plane_index];
    uint32_t *starts;
    bool any, ok = starts_of(b, p, &starts, &any);
    if (!ok || !any)
        return ok;
    struct started *last = ARENA_ARRAY(b->arena, struct started, p->n_event_metadata);
    if (last == NULL)
        return arena_full(b->arena, b->err);
    struct trace_cursor c;
    for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);) {
        const uint32_t m = c.event.metadata_index;
        const uint64_t end_ps = c.event.start_ps + c.event.dur_ps;
        if (m >= p->n_event_metadata)
            continue;
        last[m] = (struct started){true, c.index, c.event.start_ps, end_ps};
        struct started *start = starts[m] > 0 ? &last[starts[m] - 1] : NULL;
        if (start == NULL || !start->open)
            continue;
        ok = add_link(b, (struct flow_link){.from = {line, start->event_index},
                                            .to = {line, c.index},
                                            .from_start_ps = start->start_ps,
                                            .from_end_ps = start->end_ps,
                                            .to_start_ps = c.event.start_ps,
                                            .to_end_ps = end_ps,
                                            .from_metadata_index = starts[m] - 1,
                                            .kind = FLOW_ASYNC});
        start->open = false;
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, b->err);
}

struct run { /* an event of the host or a core that says run_id */
    uint64_t id, start_ps, end_ps;
    struct event_ref event;
    uint32_t metadata_index;
};

struct runs {
    struct run *items;
    uint32_t n, capacity;
};

static bool add_runs(struct linker *b, uint32_t line, struct runs *out)
{
    static const str name = STR_INIT("run_id");
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, b->trace, line, &name, 1);
    trace_picker_follow(&p, &c);
    if (!p.any)
        return true;
    for (trace_cursor_init(&c, b->trace, line); ok && trace_cursor_next(&c);) {
        int64_t id;
        ok = trace_pick(&p, &c.event, b->err);
        const bool says = ok && p.values[0].type == TRACE_STAT_U64
                              ? (id = (int64_t)p.values[0].u64, true)
                              : ok && trace_stat_i64(&p.values[0], &id);
        if (!says)
            continue;
        if (!ARENA_PUSH(b->arena, out->items, out->n, out->capacity))
            ok = arena_full(b->arena, b->err);
        else
            out->items[out->n - 1] = (struct run){(uint64_t)id,
                                                  c.event.start_ps,
                                                  c.event.start_ps + c.event.dur_ps,
                                                  {line, c.index},
                                                  c.event.metadata_index};
    }
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, b->err);
}

static int by_run(const void *x, const void *y)
{
    const struct run *a = x, *b = y;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->start_ps < b->start_ps ? -1 : a->start_ps > b->start_ps;
}

/* Each module of a core with the last event of the host that said its run_id before. */
static bool link_runs(struct linker *b)
{
    const struct trace *t = b->trace;
    struct runs host = {0}, cores = {0};
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const struct trace_plane *p = &t->planes[t->lines[l].plane_index];
        if (p->kind == TRACE_PLANE_TPU && str_eq(t->lines[l].name, S("XLA Modules")) &&
            !add_runs(b, l, &cores))
            return false;
    }
    for (uint32_t l = 0; l < t->n_lines && cores.n > 0; l++)
        if (t->planes[t->lines[l].plane_index].kind == TRACE_PLANE_HOST && !add_runs(b, l, &host))
            return false;
    if (host.n == 0 || cores.n == 0)
        return true;
    qsort(host.items, host.n, sizeof *host.items, by_run);
    qsort(cores.items, cores.n, sizeof *cores.items, by_run);
    for (uint32_t i = 0, k = 0; i < cores.n; i++) {
        const struct run *core = &cores.items[i];
        while (k + 1 < host.n && by_run(&host.items[k + 1], core) <= 0)
            k++;
        const struct run *call = &host.items[k];
        if (call->id == core->id && call->start_ps <= core->start_ps &&
            !add_link(b, (struct flow_link){.from = call->event,
                                            .to = core->event,
                                            .from_start_ps = call->start_ps,
                                            .from_end_ps = call->end_ps,
                                            .to_start_ps = core->start_ps,
                                            .to_end_ps = core->end_ps,
                                            .from_metadata_index = call->metadata_index,
                                            .kind = FLOW_LAUNCH}))
            return false;
    }
    return true;
}

static int by_ref(struct event_ref a, struct event_ref b)
{
    if (a.line_index != b.line_index)
        return a.line_index < b.line_index ? -1 : 1;
    return a.event_index < b.event_index ? -1 : a.event_index > b.event_index;
}

static int by_source(const void *x, const void *y)
{
    const struct flow_link *a = x, *b = y;
    const int order = by_ref(a->from, b->from);
    return order != 0 ? order : by_ref(a->to, b->to);
}

static int by_target(const void *x, const void *y)
{
    const struct flow_link *a = x, *b = y;
    const int order = by_ref(a->to, b->to);
    return order != 0 ? order : by_ref(a->from, b->from);
}

/* Sorts the links and numbers them: those of one source alike. */
static bool close_links(struct linker *b)
{
    struct flows *f = b->out;
    if (f->n_links == 0)
        return true;
    const uint64_t first =
        (uint64_t)f->grouping->n_launches + f->grouping->n_edges + f->grouping->n_hubs;
    f->by_target = ARENA_ARRAY(b->arena, struct flow_link, f->n_links);
    if (f->by_target == NULL)
        return arena_full(b->arena, b->err);
    qsort(f->by_source, f->n_links, sizeof *f->by_source, by_source);
    for (uint32_t i = 0; i < f->n_links; i++)
        f->by_source[i].id = i > 0 && by_ref(f->by_source[i - 1].from, f->by_source[i].from) == 0
                                 ? f->by_source[i - 1].id
                                 : first + i;
    memcpy(f->by_target, f->by_source, f->n_links * sizeof *f->by_target);
    qsort(f->by_target, f->n_links, sizeof *f->by_target, by_target);
    return true;
}

bool flows_of(const struct trace *t, const struct grouping *g, struct arena *a, struct flows *out,
              struct err *e)
{
    *out = (struct flows){.trace = t, .grouping = g};
    struct linker b = {.trace = t, .arena = a, .err = e, .out = out};
    if (!index_launched(out, a, e))
        return false;
    for (uint32_t l = 0; l < t->n_lines; l++)
        if (t->planes[t->lines[l].plane_index].kind == TRACE_PLANE_TPU &&
            spans_is_work_line(t, l) && !link_async(&b, l))
            return false;
    return link_runs(&b) && close_links(&b);
}

/* --- the flows of one event ------------------------------------------------------------------- */

struct found {
    struct flow *out;
    uint32_t n, room;
};

static void found_add(struct found *f, struct flow flow)
{
    if (f->n < f->room)
        f->out[f->n] = flow;
    f->n++;
}

/* The first of a sorted array whose key is not below. */
static uint32_t launch_find(const struct grouping *g, uint32_t node)
{
    uint32_t low = 0, high = g->n_launches;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->launches[mid] < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t edge_find(const struct group_edge *edges, uint32_t n, uint32_t key, bool target)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if ((target ? edges[mid].to : edges[mid].from) < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Where an edge stands in down: it is its number. */
static uint64_t edge_number(const struct grouping *g, struct group_edge edge)
{
    uint32_t i = edge_find(g->down, g->n_edges, edge.from, false);
    while (i < g->n_edges && g->down[i].from == edge.from && g->down[i].to < edge.to)
        i++;
    return i;
}

static void add_launched(const struct flows *f, uint32_t node, struct found *out)
{
    const struct grouping *g = f->grouping;
    const uint32_t launch = launch_find(g, node);
    if (launch >= g->n_launches || g->launches[launch] != node)
        return;
    for (uint32_t i = f->first_launched[launch]; i < f->first_launched[launch + 1]; i++)
        found_add(out, (struct flow){FLOW_LAUNCH, true, launch, f->launched[i]});
}

static void add_causes(const struct flows *f, uint32_t node, struct found *out)
{
    const struct grouping *g = f->grouping;
    const uint64_t edges = g->n_launches, hubs = edges + g->n_edges - g->n_nodes;
    uint32_t i = edge_find(g->down, g->n_edges, node, false);
    for (; i < g->n_edges && g->down[i].from == node; i++) {
        const uint32_t to = g->down[i].to;
        const uint32_t end =
            to < g->n_nodes ? to : g->down[edge_find(g->down, g->n_edges, to, false)].to;
        found_add(out, (struct flow){FLOW_CAUSE, true, to < g->n_nodes ? edges + i : hubs + to,
                                     flows_event(g, end)});
    }
    i = edge_find(g->up, g->n_edges, node, true);
    for (; i < g->n_edges && g->up[i].to == node; i++) {
        const uint32_t from = g->up[i].from;
        const uint32_t end =
            from < g->n_nodes ? from : g->up[edge_find(g->up, g->n_edges, from, true)].from;
        found_add(out,
                  (struct flow){FLOW_CAUSE, false,
                                from < g->n_nodes ? edges + edge_number(g, g->up[i]) : hubs + from,
                                flows_event(g, end)});
    }
}

static uint32_t link_find(const struct flow_link *links, uint32_t n, struct event_ref key,
                          bool target)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (by_ref(target ? links[mid].to : links[mid].from, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void add_links(const struct flows *f, struct event_ref at, struct found *out)
{
    uint32_t i = link_find(f->by_source, f->n_links, at, false);
    for (; i < f->n_links && by_ref(f->by_source[i].from, at) == 0; i++)
        found_add(
            out, (struct flow){f->by_source[i].kind, true, f->by_source[i].id, f->by_source[i].to});
    i = link_find(f->by_target, f->n_links, at, true);
    for (; i < f->n_links && by_ref(f->by_target[i].to, at) == 0; i++)
        found_add(out, (struct flow){f->by_target[i].kind, false, f->by_target[i].id,
                                     f->by_target[i].from});
}

uint32_t flows_at(const struct flows *f, uint32_t line_index, uint64_t event_index,
                  struct flow *out, uint32_t room)
{
    const struct grouping *g = f->grouping;
    struct found found = {out, 0, room};
    if (g->first_node[line_index] != GROUP_NO_NODE) {
        const uint32_t node = g->first_node[line_index] + (uint32_t)event_index;
        add_launched(f, node, &found);
        add_causes(f, node, &found);
    }
    const uint32_t launch = launch_at(g, line_index, event_index);
    if (launch != GROUP_NO_LAUNCH)
        found_add(&found,
                  (struct flow){FLOW_LAUNCH, false, launch, flows_event(g, g->launches[launch])});
    add_links(f, (struct event_ref){line_index, event_index}, &found);
    return found.n;
}

bool flows_launch(const struct flows *f, uint32_t line_index, uint64_t event_index,
                  struct event_ref *out)
{
    const struct event_ref at = {line_index, event_index};
    const uint32_t launch = launch_at(f->grouping, line_index, event_index);
    if (launch != GROUP_NO_LAUNCH) {
        *out = flows_event(f->grouping, f->grouping->launches[launch]);
        return true;
    }
    for (uint32_t i = link_find(f->by_target, f->n_links, at, true);
         i < f->n_links && by_ref(f->by_target[i].to, at) == 0; i++)
        if (f->by_target[i].kind == FLOW_LAUNCH) {
            *out = f->by_target[i].from;
            return true;
        }
    return false;
}
