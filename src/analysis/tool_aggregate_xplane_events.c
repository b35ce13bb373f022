/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate_xplane_events: the events of each name, picked by name and time, with the spread of their durations.
 * Two passes: one counts, one keeps every duration (8 bytes an event), because percentiles are exact. An event that
 * stands for many occurrences counts as these, but its single durations are unknown. */
#include <math.h>

#include "analysis/event_walk.h"
#include "analysis/xprof_cli.h"

struct group { /* the events of one name */
    str name;
    uint64_t count, total_ps;
    uint64_t
        n; /* of those whose own duration is known; they stand in durations[first …] once kept */
    uint64_t first;
    uint32_t order; /* as first met */
};

struct aggregate {
    struct arena *arena;
    struct group *groups;
    uint32_t n_groups, capacity;
    struct map_str_u32 by_name;
    uint64_t *durations;
    uint64_t n_durations, n_scanned, limit;
};

static struct group *group_of(struct aggregate *x, str name)
{
    const uint32_t *known = map_str_u32_get(&x->by_name, name);
    if (known != NULL)
        return &x->groups[*known];
    if (!ARENA_PUSH(x->arena, x->groups, x->n_groups, x->capacity))
        return NULL;
    *map_str_u32_put(&x->by_name, name) = x->n_groups - 1;
    x->groups[x->n_groups - 1] = (struct group){.name = name, .order = x->n_groups - 1};
    return &x->groups[x->n_groups - 1];
}

static void add_event(struct aggregate *x, struct group *g, const struct trace_event *ev)
{
    const uint64_t total = g->total_ps + ev->dur_ps;
    g->total_ps = total < g->total_ps ? UINT64_MAX : total;
    g->count += ev->num_occurrences > 0 ? ev->num_occurrences : 1;
    g->n += ev->num_occurrences == 0;
    x->n_durations += ev->num_occurrences == 0;
}

static void keep_event(struct aggregate *x, struct group *g, const struct trace_event *ev)
{
    if (ev->num_occurrences == 0)
        x->durations[g->first + g->n++] = ev->dur_ps;
}

enum pass { COUNT = 0, KEEP };

static bool walk(struct aggregate *x, const struct tool_request *r, enum pass pass, struct err *e)
{
    struct event_walk w;
    bool ok = event_walk_init(&w, r, e);
    while (ok && event_walk_next(&w, e)) {
        struct group *g = group_of(x, event_full_name(w.trace, w.line, &w.cursor.event));
        if (g == NULL)
            ok = arena_full(x->arena, e);
        else if (pass == COUNT)
            add_event(x, g, &w.cursor.event);
        else
            keep_event(x, g, &w.cursor.event);
    }
    ok = ok && event_walk_ok(&w, e);
    x->n_scanned = w.n_scanned;
    event_walk_release(&w);
    return ok;
}

static int most_first(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->total_ps != y->total_ps)
        return x->total_ps > y->total_ps ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int shortest_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool aggregate(struct aggregate *x, const struct tool_request *r, struct arena *a,
                      struct err *e)
{
    *x = (struct aggregate){.arena = a, .limit = UINT64_MAX};
    if (!tool_param_count(r, S("max_events"), &x->limit, e) || !walk(x, r, COUNT, e))
        return false;
    x->durations = ARENA_ARRAY(a, uint64_t, x->n_durations);
    if (x->durations == NULL && x->n_durations > 0) {
        arena_full(a, e);
        return err_hint(e, "plane_regex, event_regex, start_time_ps and end_time_ps choose fewer");
    }
    uint64_t first = 0;
    for (uint32_t i = 0; i < x->n_groups; i++) {
        x->groups[i].first = first;
        first += x->groups[i].n;
        x->groups[i].n = 0;
    }
    if (!walk(x, r, KEEP, e))
        return false;
    if (x->n_groups > 0)
        qsort(x->groups, x->n_groups, sizeof *x->groups, most_first);
    for (uint32_t i = 0; i < x->n_groups; i++)
        if (x->groups[i].n > 0)
            qsort(x->durations + x->groups[i].first, x->groups[i].n, sizeof *x->durations,
                  shortest_first);
    return true;
}

static uint32_t n_returned(const struct aggregate *x)
{
    return x->limit < x->n_groups ? (uint32_t)x->limit : x->n_groups;
}

enum { AVG = 0, MIN, P50, P90, P99, MAX, DEVIATION, SPREAD };
static const char *const spread_names[SPREAD] = {
    "avg_duration_ps", "min_duration_ps", "p50_duration_ps", "p90_duration_ps",
    "p99_duration_ps", "max_duration_ps", "std_dev_ps"};

/* Between neighbours in proportion. */
static double percentile(const uint64_t *sorted, uint64_t n, double share)
{
    const double at = share * (double)(n - 1);
    const uint64_t below = (uint64_t)at;
    const double low = (double)sorted[below];
    return below + 1 < n ? low + ((double)sorted[below + 1] - low) * (at - (double)below) : low;
}

/* NaN for what is unknown. */
static void spread_of(const struct aggregate *x, const struct group *g, double out[static SPREAD])
{
    const uint64_t *sorted = x->durations + g->first;
    out[AVG] = (double)g->total_ps / (double)g->count;
    for (unsigned i = MIN; i < SPREAD; i++)
        out[i] = NAN;
    if (g->n != g->count)
        return;
    double squares = 0;
    for (uint64_t i = 0; i < g->n; i++)
        squares += ((double)sorted[i] - out[AVG]) * ((double)sorted[i] - out[AVG]);
    out[MIN] = (double)sorted[0];
    out[P50] = percentile(sorted, g->n, 0.5);
    out[P90] = percentile(sorted, g->n, 0.9);
    out[P99] = percentile(sorted, g->n, 0.99);
    out[MAX] = (double)sorted[g->n - 1];
    out[DEVIATION] = g->n > 1 ? sqrt(squares / (double)(g->n - 1)) : 0;
}

static bool fill(struct table *t, const struct aggregate *x)
{
    for (uint32_t i = 0; i < n_returned(x); i++) {
        const struct group *g = &x->groups[i];
        struct cell *row = table_row(t);
        double spread[SPREAD];
        if (row == NULL)
            return false;
        spread_of(x, g, spread);
        row[0] = cell_text(g->name);
        row[1] = cell_u64(g->count);
        row[2] = cell_u64(g->total_ps);
        for (unsigned k = 0; k < SPREAD; k++)
            row[3 + k] = isnan(spread[k]) ? cell_unknown() : cell_f64(spread[k]);
    }
    return true;
}

static bool aggregate_run(const struct tool_request *r, struct arena *a, struct table **out,
                          struct err *e)
{
    struct aggregate x;
    struct table *t = *out = table_new(a, S("aggregate_xplane_events"), S("Events by name"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("event"), S("Event"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("total_duration_ps"), S("Total"), CELL_U64, S("ps"));
    table_column(t, S("avg_duration_ps"), S("Mean"), CELL_F64, S("ps"));
    table_column(t, S("min_duration_ps"), S("Least"), CELL_F64, S("ps"));
    table_column(t, S("p50_duration_ps"), S("Median"), CELL_F64, S("ps"));
    table_column(t, S("p90_duration_ps"), S("90 %"), CELL_F64, S("ps"));
    table_column(t, S("p99_duration_ps"), S("99 %"), CELL_F64, S("ps"));
    table_column(t, S("max_duration_ps"), S("Most"), CELL_F64, S("ps"));
    table_column(t, S("std_dev_ps"), S("Standard deviation"), CELL_F64, S("ps"));
    const bool ok = aggregate(&x, r, a, e) && (fill(t, &x) || arena_full(a, e));
    if (ok)
        table_value(t, S("events_scanned"), S("Events looked at"), cell_u64(x.n_scanned), S(""));
    map_str_u32_release(&x.by_name);
    return ok;
}

static bool aggregate_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                            struct err *e)
{
    struct aggregate x;
    struct json j;
    const bool ok = aggregate(&x, r, a, e);
    map_str_u32_release(&x.by_name);
    if (!ok)
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_key(&j, "aggregates");
    json_array(&j);
    for (uint32_t i = 0; i < n_returned(&x); i++) {
        const struct group *g = &x.groups[i];
        double spread[SPREAD];
        spread_of(&x, g, spread);
        json_object(&j);
        json_kstr(&j, "event", g->name);
        json_ku64(&j, "count", g->count);
        json_ku64(&j, "total_duration_ps", g->total_ps);
        for (unsigned k = 0; k < SPREAD; k++)
            json_kf64(&j, spread_names[k], spread[k]);
        json_end(&j);
    }
    json_end(&j);
    json_ku64(&j, "returned", n_returned(&x));
    json_ku64(&j, "total_matched", x.n_groups);
    json_ku64(&j, "events_scanned", x.n_scanned);
    json_kbool(&j, "truncated", n_returned(&x) < x.n_groups);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_aggregate_xplane_events = {.run = aggregate_run,
                                                            .xprof = aggregate_xprof};
