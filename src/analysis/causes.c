/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/causes.h"

#include <stdlib.h>

#include "model/trace_pick.h"

enum asked {
    PRODUCER_TYPE = 0,
    PRODUCER_ID,
    CONSUMER_TYPE,
    CONSUMER_ID,
    ROOT,
    ASYNC,
    CORRELATION_ID,
    CORRELATION, /* as PyTorch's Kineto calls it */
    STEP_NUMBER,
    ITERATION,
    ASKED
};
static const str asked_names[ASKED] = {STR_INIT("_pt"),
                                       STR_INIT("_p"),
                                       STR_INIT("_ct"),
                                       STR_INIT("_c"),
                                       STR_INIT("_r"),
                                       STR_INIT("_a"),
                                       STR_INIT("correlation_id"),
                                       STR_INIT("correlation"),
                                       STR_INIT("step_num"),
                                       STR_INIT("iter_num")};

struct said {
    bool producer, consumer, correlation, async, root, number;
    int64_t producer_type, consumer_type, level, step;
    int64_t producer_id, consumer_id, correlation_id;
};

/* Ids may use all 64 bits. */
static bool id_of(const struct trace_stat *s, int64_t *out)
{
    if (s->type != TRACE_STAT_U64)
        return trace_stat_i64(s, out);
    *out = (int64_t)s->u64;
    return true;
}

static struct said said_of(const struct trace_stat *values)
{
    struct said c = {0};
    int64_t async = 0;
    c.producer = id_of(&values[PRODUCER_TYPE], &c.producer_type) &&
                 id_of(&values[PRODUCER_ID], &c.producer_id);
    c.consumer = id_of(&values[CONSUMER_TYPE], &c.consumer_type) &&
                 id_of(&values[CONSUMER_ID], &c.consumer_id);
    c.root = id_of(&values[ROOT], &c.level) && c.level > 0;
    c.async = id_of(&values[ASYNC], &async) && async != 0;
    c.correlation = id_of(&values[CORRELATION_ID], &c.correlation_id) ||
                    id_of(&values[CORRELATION], &c.correlation_id);
    c.number = id_of(&values[ITERATION], &c.step) || id_of(&values[STEP_NUMBER], &c.step);
    return c;
}

static bool add_root(struct causes *b, const struct trace_cursor *c, uint32_t line,
                     const struct said *k)
{
    struct grouping *g = b->out;
    if (!ARENA_PUSH(b->arena, g->roots, g->n_roots, g->roots_capacity))
        return arena_full(b->arena, b->err);
    g->roots[g->n_roots - 1] = (struct group_root){
        .line_index = line,
        .event_index = c->index,
        .group = GROUP_NONE,
        .level = k->level,
        .start_ps = c->event.start_ps,
        .dur_ps = c->event.dur_ps,
        .name = trace_event_name(b->trace, &b->trace->lines[line], &c->event),
        .has_number = k->number,
        .number = k->step,
    };
    return true;
}

/* Room for one more of a list that is millions long: an arena would keep each smaller copy. */
static void *grown(void *items, uint32_t n, uint32_t *capacity, size_t size)
{
    if (n < *capacity)
        return items;
    *capacity = n < 1024 ? 1024 : n + n / 2;
    void *more = realloc(items, *capacity * size);
    must(more != NULL);
    return more;
}

void causes_release(struct causes *b)
{
    free(b->ends);
    free(b->calls);
    free(b->launches);
    b->ends = NULL;
    b->calls = NULL;
    b->launches = NULL;
}

static void add_end(struct causes *b, struct cause_end end)
{
    b->ends = grown(b->ends, b->n_ends, &b->ends_capacity, sizeof *b->ends);
    b->ends[b->n_ends++] = end;
}

static void add_call(struct causes *b, uint64_t id, uint64_t start_ps, uint32_t node)
{
    b->calls = grown(b->calls, b->n_calls, &b->calls_capacity, sizeof *b->calls);
    b->launches = grown(b->launches, b->n_calls, &b->launches_capacity, sizeof *b->launches);
    b->launches[b->n_calls] = node;
    b->calls[b->n_calls] = (struct cause_call){id, start_ps, b->n_calls};
    b->n_calls++;
}

/* Keeps what the event causes or is caused by. */
static bool keep(struct causes *b, const struct trace_cursor *c, uint32_t line, uint32_t node,
                 const struct said *k)
{
    const uint64_t start = c->event.start_ps;
    const struct trace_plane *plane = &b->trace->planes[b->trace->lines[line].plane_index];
    if (k->producer)
        add_end(b,
                (struct cause_end){k->producer_type, (uint64_t)k->producer_id, start, node, false});
    if (k->consumer)
        add_end(b,
                (struct cause_end){k->consumer_type, (uint64_t)k->consumer_id, start, node, true});
    if (k->correlation && plane->kind == TRACE_PLANE_HOST)
        add_call(b, (uint64_t)k->correlation_id, start, node);
    if (!k->root)
        return true;
    b->nodes[node].level = (int32_t)(k->level > INT32_MAX ? INT32_MAX : k->level);
    return add_root(b, c, line, k);
}

static bool read_said(struct causes *b, struct trace_picker *p, const struct trace_event *ev,
                      uint32_t line, struct said *out)
{
    if (!trace_pick(p, ev, b->err))
        return false;
    *out = said_of(p->values);
    if (!out->root &&
        str_starts(trace_event_name(b->trace, &b->trace->lines[line], ev), S("TraceContext")))
        out->root = true, out->level = 1;
    return true;
}

struct open_event {
    uint32_t node;
    uint64_t end_ps;
};

/* Nests the events of one line and keeps what they cause. */
static bool read_line(struct causes *b, uint32_t line)
{
    struct open_event *open = NULL;
    uint32_t n_open = 0, open_capacity = 0, node = b->out->first_node[line];
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, b->trace, line, asked_names, ASKED);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init_work(&c, b->trace, line); ok && trace_cursor_next(&c); node++) {
        struct said k = {0};
        ok = !p.any || read_said(b, &p, &c.event, line, &k);
        b->nodes[node] = (struct cause_node){GROUP_NO_NODE, node + 1, GROUP_NONE, 0, 0};
        const uint64_t end = c.event.start_ps + c.event.dur_ps;
        if (!k.async) {
            while (n_open > 0 && open[n_open - 1].end_ps < end)
                b->nodes[open[--n_open].node].subtree_end = node;
            if (n_open > 0)
                b->nodes[node].parent = open[n_open - 1].node;
            if (!ARENA_PUSH(b->scratch, open, n_open, open_capacity)) {
                ok = arena_full(b->scratch, b->err);
                break;
            }
            open[n_open - 1] = (struct open_event){node, end};
        }
        ok = ok && keep(b, &c, line, node, &k);
    }
    while (n_open > 0)
        b->nodes[open[--n_open].node].subtree_end = node;
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, b->err);
}

bool causes_read_nodes(struct causes *b)
{
    const struct trace *t = b->trace;
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        const struct trace_plane *p = &t->planes[t->lines[i].plane_index];
        const bool in = p->kind == TRACE_PLANE_HOST ||
                        (p->kind == TRACE_PLANE_TPU && grouping_step_line(t, p) == i);
        b->out->first_node[i] = in ? (uint32_t)n : GROUP_NO_NODE;
        if (in && t->lines[i].n_events > 0)
            b->out->node_lines[b->out->n_node_lines++] = i;
        n += in ? t->lines[i].n_events : 0;
        if (n >= INT32_MAX)
            return err_set(b->err, ERR_LIMIT, "more than %d events to group", INT32_MAX);
    }
    b->out->n_nodes = (uint32_t)n;
    b->nodes = ARENA_ARRAY(b->scratch, struct cause_node, n);
    if (b->nodes == NULL && n > 0)
        return arena_full(b->scratch, b->err);
    for (uint32_t i = 0; i < t->n_lines; i++)
        if (b->out->first_node[i] != GROUP_NO_NODE && !read_line(b, i))
            return false;
    return true;
}

/* --- producers and consumers ------------------------------------------------------------------ */

static int by_end(const void *x, const void *y)
{
    const struct cause_end *a = x, *b = y;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    if (a->consumes != b->consumes) /* who produces at the same time produces first */
        return a->consumes ? 1 : -1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int by_from(const void *x, const void *y)
{
    const struct group_edge *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static int by_to(const void *x, const void *y)
{
    const struct group_edge *a = x, *b = y;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* Most lists come in order: ids count up with time. */
static void sort(void *items, uint32_t n, size_t size, int (*compare)(const void *, const void *))
{
    for (uint32_t i = 1; i < n; i++)
        if (compare((const char *)items + (i - 1) * size, (const char *)items + i * size) > 0) {
            qsort(items, n, size, compare);
            return;
        }
}

static bool push_edge(struct causes *b, uint32_t from, uint32_t to)
{
    struct grouping *g = b->out;
    if (!ARENA_PUSH(b->arena, g->down, g->n_edges, g->down_capacity))
        return arena_full(b->arena, b->err);
    g->down[g->n_edges - 1] = (struct group_edge){from, to};
    return true;
}

static bool push_hub(struct causes *b, uint32_t *node)
{
    if (!ARENA_PUSH(b->scratch, b->hubs, b->out->n_hubs, b->hubs_capacity))
        return arena_full(b->scratch, b->err);
    *node = b->out->n_nodes + b->out->n_hubs - 1;
    b->hubs[b->out->n_hubs - 1] = (struct cause_node){GROUP_NO_NODE, *node + 1, GROUP_NONE, 0, 0};
    return true;
}

/* Of b->ends. */
struct range {
    uint32_t from, to;
};

static bool edges_to(struct causes *b, uint32_t producer, struct range consumers)
{
    for (uint32_t i = consumers.from; i < consumers.to; i++)
        if (!push_edge(b, producer, b->ends[i].node))
            return false;
    return true;
}

/* Producers of one id with the consumers before and behind them. */
static bool join(struct causes *b, struct range early, struct range producers, struct range late)
{
    const uint32_t n = producers.to - producers.from;
    const uint32_t n_consumers = early.to - early.from + late.to - late.from;
    uint32_t hub = GROUP_NO_NODE;
    if (n == 0 || n_consumers == 0)
        return true;
    if (n > 1 && n_consumers > 1) { /* not each with each */
        if (!push_hub(b, &hub) || !edges_to(b, hub, early) || !edges_to(b, hub, late))
            return false;
        for (uint32_t i = producers.from; i < producers.to; i++)
            if (!push_edge(b, b->ends[i].node, hub))
                return false;
        return true;
    }
    for (uint32_t i = producers.from; i < producers.to; i++)
        if (!edges_to(b, b->ends[i].node, early) || !edges_to(b, b->ends[i].node, late))
            return false;
    return true;
}

static struct range run_of(const struct causes *b, uint32_t from, uint32_t to, bool consumes)
{
    struct range r = {from, from};
    while (r.to < to && b->ends[r.to].consumes == consumes)
        r.to++;
    return r;
}

/* All ends [from, to) of one id, in time: producers, consumers, producers, … Consumers that begin
 * before all producers go to the first ones: threads are not timed to the picosecond. */
static bool join_id(struct causes *b, uint32_t from, uint32_t to)
{
    struct range early = run_of(b, from, to, true);
    for (uint32_t at = early.to; at < to;) {
        const struct range producers = run_of(b, at, to, false);
        const struct range late = run_of(b, producers.to, to, true);
        if (!join(b, early, producers, late))
            return false;
        early = (struct range){0};
        at = late.to;
    }
    return true;
}

static bool join_all(struct causes *b)
{
    for (uint32_t from = 0, to; from < b->n_ends; from = to) {
        to = from + 1;
        while (to < b->n_ends && b->ends[to].type == b->ends[from].type &&
               b->ends[to].id == b->ends[from].id)
            to++;
        if (!join_id(b, from, to))
            return false;
    }
    return true;
}

bool causes_connect(struct causes *b)
{
    struct grouping *g = b->out;
    sort(b->ends, b->n_ends, sizeof *b->ends, by_end);
    if (!join_all(b))
        return false;
    if (g->n_edges == 0)
        return true;
    g->up = ARENA_ARRAY(b->arena, struct group_edge, g->n_edges);
    if (g->up == NULL)
        return arena_full(b->arena, b->err);
    memcpy(g->up, g->down, g->n_edges * sizeof *g->up);
    sort(g->down, g->n_edges, sizeof *g->down, by_from);
    sort(g->up, g->n_edges, sizeof *g->up, by_to);
    return true;
}

/* --- calls and the work that they launched ---------------------------------------------------- */

static int by_call(const void *x, const void *y)
{
    const struct cause_call *a = x, *b = y;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    if (a->start_ps != b->start_ps)
        return a->start_ps < b->start_ps ? -1 : 1;
    return a->launch < b->launch ? -1 : a->launch > b->launch;
}

/* The first call of that id, or n_calls. Most work comes in the order of its ids: `hint` is the
 * call found last. */
static uint32_t call_find(const struct causes *b, uint64_t id, uint32_t hint)
{
    for (uint32_t i = hint; i < b->n_calls && i < hint + 4; i++)
        if (b->calls[i].id == id && (i == 0 || b->calls[i - 1].id != id))
            return i;
    uint32_t low = 0, high = b->n_calls;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (b->calls[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < b->n_calls && b->calls[low].id == id ? low : b->n_calls;
}

/* The last call of the id that began before the work did, else the first. */
static uint32_t launch_of(struct causes *b, uint64_t id, uint64_t start_ps, uint32_t *hint)
{
    uint32_t at = call_find(b, id, *hint);
    if (at == b->n_calls) {
        b->out->n_unlaunched++;
        return GROUP_NO_LAUNCH;
    }
    *hint = at;
    b->out->n_early += b->calls[at].start_ps > start_ps;
    while (at + 1 < b->n_calls && b->calls[at + 1].id == id &&
           b->calls[at + 1].start_ps <= start_ps)
        at++;
    return b->calls[at].launch;
}

struct open_work {
    uint32_t launch;
    uint64_t end_ps;
};

/* What stands inside launched work and says no id of its own was launched with it. */
static bool read_stream(struct causes *b, uint32_t line, uint32_t *launches)
{
    enum { ID, KINETO_ID, N_IDS };
    static const str names[N_IDS] = {STR_INIT("correlation_id"), STR_INIT("correlation")};
    struct open_work *open = NULL;
    uint32_t n_open = 0, open_capacity = 0, hint = 0;
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, b->trace, line, names, N_IDS);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init_work(&c, b->trace, line); ok && trace_cursor_next(&c);) {
        const uint64_t end = c.event.start_ps + c.event.dur_ps;
        int64_t id = 0;
        while (n_open > 0 && open[n_open - 1].end_ps < end)
            n_open--;
        uint32_t launch = n_open > 0 ? open[n_open - 1].launch : GROUP_NO_LAUNCH;
        ok = !p.any || trace_pick(&p, &c.event, b->err);
        if (ok && p.any && (id_of(&p.values[ID], &id) || id_of(&p.values[KINETO_ID], &id)))
            launch = launch_of(b, (uint64_t)id, c.event.start_ps, &hint);
        launches[c.index] = launch;
        if (!ARENA_PUSH(b->scratch, open, n_open, open_capacity))
            ok = arena_full(b->scratch, b->err);
        else
            open[n_open - 1] = (struct open_work){launch, end};
    }
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, b->err);
}

/* The calls' nodes, in the order in which they were read. */
static bool keep_launches(struct causes *b)
{
    struct grouping *g = b->out;
    g->n_launches = b->n_calls;
    g->launches = ARENA_ARRAY(b->arena, uint32_t, (size_t)b->n_calls + 1);
    if (g->launches == NULL)
        return arena_full(b->arena, b->err);
    if (b->n_calls > 0)
        memcpy(g->launches, b->launches, b->n_calls * sizeof *g->launches);
    free(b->launches);
    b->launches = NULL;
    return true;
}

bool causes_read_launched(struct causes *b)
{
    const struct trace *t = b->trace;
    if (!keep_launches(b))
        return false;
    sort(b->calls, b->n_calls, sizeof *b->calls, by_call);
    for (uint32_t i = 0; i < t->n_lines; i++) {
        if (t->planes[t->lines[i].plane_index].kind != TRACE_PLANE_GPU || t->lines[i].n_events == 0)
            continue;
        uint32_t *launches = ARENA_ARRAY(b->arena, uint32_t, t->lines[i].n_events);
        if (launches == NULL)
            return arena_full(b->arena, b->err);
        if (!read_stream(b, i, launches))
            return false;
        b->out->launch_of_line[i] = launches;
    }
    causes_release(b); /* all that they tell is told */
    return true;
}
