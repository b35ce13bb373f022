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
static bool id_of(const struct trace_numbers *n, uint32_t i, int64_t *out)
{
    if (!trace_numbers_has(n, i) || n->types[i] != TRACE_STAT_U64)
        return trace_number_i64(n, i, out);
    *out = (int64_t)n->bits[i];
    return true;
}

static struct said said_of(const struct trace_numbers *values, uint32_t i)
{
    struct said c = {0};
    int64_t async = 0;
    c.producer = id_of(&values[PRODUCER_TYPE], i, &c.producer_type) &&
                 id_of(&values[PRODUCER_ID], i, &c.producer_id);
    c.consumer = id_of(&values[CONSUMER_TYPE], i, &c.consumer_type) &&
                 id_of(&values[CONSUMER_ID], i, &c.consumer_id);
    c.root = id_of(&values[ROOT], i, &c.level) && c.level > 0;
    c.async = id_of(&values[ASYNC], i, &async) && async != 0;
    c.correlation = id_of(&values[CORRELATION_ID], i, &c.correlation_id) ||
                    id_of(&values[CORRELATION], i, &c.correlation_id);
    c.number = id_of(&values[ITERATION], i, &c.step) || id_of(&values[STEP_NUMBER], i, &c.step);
    return c;
}

static bool add_root(struct causes *b, uint32_t line, uint64_t index, const struct trace_event *ev,
                     const struct said *k)
{
    struct grouping *g = b->out;
    if (!ARENA_PUSH(b->arena, g->roots, g->n_roots, g->roots_capacity))
        return arena_full(b->arena, b->err);
    g->roots[g->n_roots - 1] = (struct group_root){
        .line_index = line,
        .event_index = index,
        .group = GROUP_NONE,
        .level = k->level,
        .start_ps = ev->start_ps,
        .dur_ps = ev->dur_ps,
        .name = trace_event_name(b->trace, &b->trace->lines[line], ev),
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

struct cause_mark *cause_mark(struct causes *b, uint32_t node)
{
    const uint32_t n = (uint32_t)b->mark_of.n;
    uint32_t *at = map_u64_u32_get(&b->mark_of, node);
    if (at == NULL) {
        b->marks = grown(b->marks, n, &b->marks_capacity, sizeof *b->marks);
        b->marks[n] = (struct cause_mark){0};
        at = map_u64_u32_put(&b->mark_of, node);
        *at = n;
    }
    return &b->marks[*at];
}

static void calls_release(struct causes *b)
{
    free(b->ends);
    free(b->call_ids);
    free(b->call_starts_ps);
    free(b->call_order);
    free(b->launches);
    b->ends = NULL;
    b->call_ids = b->call_starts_ps = NULL;
    b->call_order = b->launches = NULL;
}

void causes_release(struct causes *b)
{
    calls_release(b);
    free(b->marks);
    map_u64_u32_release(&b->mark_of);
    map_free(b->numbers);
    memo_release(&b->contexts);
    b->marks = NULL;
    b->numbers = NULL;
}

static void add_end(struct causes *b, struct cause_end end)
{
    b->ends = grown(b->ends, b->n_ends, &b->ends_capacity, sizeof *b->ends);
    b->ends[b->n_ends++] = end;
}

static void add_call(struct causes *b, uint64_t id, uint64_t start_ps, uint32_t node)
{
    const uint32_t n = b->n_calls++;
    b->call_ids = grown(b->call_ids, n, &b->ids_capacity, sizeof *b->call_ids);
    b->call_starts_ps = grown(b->call_starts_ps, n, &b->starts_capacity, sizeof *b->call_starts_ps);
    b->launches = grown(b->launches, n, &b->launches_capacity, sizeof *b->launches);
    b->call_ids[n] = id;
    b->call_starts_ps[n] = start_ps;
    b->launches[n] = node;
}

/* Keeps what the event causes or is caused by. */
static bool keep(struct causes *b, uint32_t line, uint32_t node, const struct trace_event *ev,
                 const struct said *k)
{
    const uint64_t start = ev->start_ps;
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
    cause_mark(b, node)->level = (int32_t)(k->level > INT32_MAX ? INT32_MAX : k->level);
    return add_root(b, line, node - b->out->first_node[line], ev, k);
}

static bool is_context(struct causes *b, uint32_t line, const struct trace_event *ev)
{
    enum { NO = 1, YES };
    const struct trace_line *l = &b->trace->lines[line];
    uint8_t *known = memo_at(&b->contexts, b->trace, l, ev);
    if (*known == 0)
        *known = str_starts(trace_event_name(b->trace, l, ev), S("TraceContext")) ? YES : NO;
    return *known == YES;
}

struct open_event {
    uint32_t node;
    uint64_t end_ps;
};

struct nest {
    struct open_event *items;
    uint32_t n, capacity;
};

static bool read_event(struct causes *b, uint32_t line, uint32_t node, const struct trace_event *ev,
                       const struct said *k, struct nest *open)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    b->nodes[node] = (struct cause_node){GROUP_NO_NODE, node + 1};
    b->groups[node] = GROUP_NONE;
    if (!k->async) {
        while (open->n > 0 && open->items[open->n - 1].end_ps < end)
            b->nodes[open->items[--open->n].node].subtree_end = node;
        if (open->n > 0)
            b->nodes[node].parent = open->items[open->n - 1].node;
        if (!ARENA_PUSH(b->scratch, open->items, open->n, open->capacity))
            return arena_full(b->scratch, b->err);
        open->items[open->n - 1] = (struct open_event){node, end};
    }
    return keep(b, line, node, ev, k);
}

/* Nests the events of one line and keeps what they cause. */
static bool read_line(struct causes *b, uint32_t line)
{
    struct nest open = {0};
    uint32_t node = b->out->first_node[line];
    struct trace_cursor c;
    struct trace_picker p;
    const struct trace_event *events;
    bool ok = true;
    trace_picker_init(&p, b->trace, line, asked_names, ASKED);
    trace_picker_follow(&p, &c);
    trace_cursor_init_work(&c, b->trace, line);
    trace_cursor_leave_src(&c);
    for (uint32_t n; ok && (n = trace_cursor_take(&c, &events)) > 0;) {
        ok = trace_pick_numbers(&p, events, n, b->numbers, b->err);
        for (uint32_t i = 0; ok && i < n; i++, node++) {
            struct said k = {0};
            if (p.any)
                k = said_of(b->numbers, i);
            if (p.any && !k.root && is_context(b, line, &events[i]))
                k.root = true, k.level = 1;
            ok = read_event(b, line, node, &events[i], &k, &open);
        }
    }
    while (open.n > 0)
        b->nodes[open.items[--open.n].node].subtree_end = node;
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
    b->numbers = map_alloc(ASKED, sizeof *b->numbers);
    b->nodes = ARENA_ARRAY(b->scratch, struct cause_node, n);
    if (b->nodes == NULL && n > 0)
        return arena_full(b->scratch, b->err);
    b->groups = ARENA_ARRAY(b->arena, int32_t, n);
    if (b->groups == NULL && n > 0)
        return arena_full(b->arena, b->err);
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
        hub = b->out->n_nodes + b->out->n_hubs++;
        if (!edges_to(b, hub, early) || !edges_to(b, hub, late))
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
    b->hub_groups = ARENA_ARRAY(b->scratch, int32_t, g->n_hubs);
    if (b->hub_groups == NULL && g->n_hubs > 0)
        return arena_full(b->scratch, b->err);
    for (uint32_t i = 0; i < g->n_hubs; i++)
        b->hub_groups[i] = GROUP_NONE;
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

/* Whether call y may stand behind x. */
static bool calls_in_order(const struct causes *b, uint32_t x, uint32_t y)
{
    if (b->call_ids[x] != b->call_ids[y])
        return b->call_ids[x] < b->call_ids[y];
    return b->call_starts_ps[x] <= b->call_starts_ps[y];
}

static uint32_t run_end(const struct causes *b, const uint32_t *order, uint32_t from)
{
    uint32_t i = from;
    while (i < b->n_calls && (i == from || calls_in_order(b, order[i - 1], order[i])))
        i++;
    return i;
}

/* Each thread's calls come in the order of their ids: these few runs are merged pair by pair. */
static void sort_calls(struct causes *b)
{
    const uint32_t n = b->n_calls;
    uint32_t i = 1;
    while (i < n && calls_in_order(b, i - 1, i))
        i++;
    if (i >= n)
        return;
    uint32_t *from = map_alloc(n, sizeof *from), *to = map_alloc(n, sizeof *to);
    for (i = 0; i < n; i++)
        from[i] = i;
    while (run_end(b, from, 0) < n) {
        for (uint32_t first = 0; first < n;) {
            const uint32_t middle = run_end(b, from, first), end = run_end(b, from, middle);
            for (uint32_t x = first, y = middle, k = first; k < end; k++)
                to[k] = y >= end || (x < middle && calls_in_order(b, from[x], from[y])) ? from[x++]
                                                                                        : from[y++];
            first = end;
        }
        uint32_t *const swap = from;
        from = to;
        to = swap;
    }
    map_free(to);
    b->call_order = from;
}

static uint32_t call_at(const struct causes *b, uint32_t i)
{
    return b->call_order == NULL ? i : b->call_order[i];
}

static uint64_t call_id(const struct causes *b, uint32_t i)
{
    return b->call_ids[call_at(b, i)];
}

/* The first call of that id, or n_calls. Most work comes in the order of its ids: `hint` is the
 * call found last. */
static uint32_t call_find(const struct causes *b, uint64_t id, uint32_t hint)
{
    for (uint32_t i = hint; i < b->n_calls && i < hint + 4; i++)
        if (call_id(b, i) == id && (i == 0 || call_id(b, i - 1) != id))
            return i;
    uint32_t low = 0, high = b->n_calls;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (call_id(b, mid) < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < b->n_calls && call_id(b, low) == id ? low : b->n_calls;
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
    b->out->n_early += b->call_starts_ps[call_at(b, at)] > start_ps;
    while (at + 1 < b->n_calls && call_id(b, at + 1) == id &&
           b->call_starts_ps[call_at(b, at + 1)] <= start_ps)
        at++;
    return call_at(b, at);
}

struct open_work {
    uint32_t launch;
    uint64_t end_ps;
};

struct works {
    struct open_work *items;
    uint32_t n, capacity;
};

/* What stands inside launched work and says no id of its own was launched with it. */
static bool read_work(struct causes *b, const struct trace_event *ev, bool has_id, uint64_t id,
                      struct works *open, uint32_t *hint, uint32_t *out)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    while (open->n > 0 && open->items[open->n - 1].end_ps < end)
        open->n--;
    *out = open->n > 0 ? open->items[open->n - 1].launch : GROUP_NO_LAUNCH;
    if (has_id)
        *out = launch_of(b, id, ev->start_ps, hint);
    if (!ARENA_PUSH(b->scratch, open->items, open->n, open->capacity))
        return arena_full(b->scratch, b->err);
    open->items[open->n - 1] = (struct open_work){*out, end};
    return true;
}

static bool read_stream(struct causes *b, uint32_t line, uint32_t *launches)
{
    enum { ID, KINETO_ID, N_IDS };
    static const str names[N_IDS] = {STR_INIT("correlation_id"), STR_INIT("correlation")};
    struct works open = {0};
    uint32_t hint = 0;
    struct trace_cursor c;
    struct trace_picker p;
    const struct trace_event *events;
    bool ok = true;
    trace_picker_init(&p, b->trace, line, names, N_IDS);
    trace_picker_follow(&p, &c);
    trace_cursor_init_work(&c, b->trace, line);
    trace_cursor_leave_src(&c);
    for (uint32_t n; ok && (n = trace_cursor_take(&c, &events)) > 0;) {
        ok = trace_pick_numbers(&p, events, n, b->numbers, b->err);
        for (uint32_t i = 0; ok && i < n; i++) {
            int64_t id = 0;
            const bool has_id =
                id_of(&b->numbers[ID], i, &id) || id_of(&b->numbers[KINETO_ID], i, &id);
            ok = read_work(b, &events[i], has_id, (uint64_t)id, &open, &hint,
                           &launches[c.index + 1 - n + i]);
        }
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
    sort_calls(b);
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
    calls_release(b); /* all that they tell is told */
    return true;
}
