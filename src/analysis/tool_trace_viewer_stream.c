/* SPDX-License-Identifier: Apache-2.0 */
/* trace_viewer@: the part of a trace that a viewer draws, as XProf's streaming form: the events that touch
 * [start_time_ms, end_time_ms] and are worth a pixel when `resolution` of them cover it (trace_visible.h; a profile
 * of few events is sent whole); or the events whose names begin with search_prefix; or one event with all its
 * arguments, by event_name, start_time_ms, duration_ms and, where several are alike, unique_id (`uid`). */
#include <math.h>

#include "analysis/trace_view_json.h"

#define DEFAULT_RESOLUTION 8000
#define SENT_WHOLE 500000 /* events */
#define PS_PER_MS 1e9

struct asked {
    int64_t from_ps, to_ps; /* of the window */
    uint64_t resolution_ps;
    str prefix;
    bool single; /* one event: */
    str name;
    int64_t dur_ps;
    bool has_dur, has_uid;
    uint64_t uid;
};

static bool read_ms(const struct tool_request *r, str key, int64_t *out_ps, bool *given,
                    struct err *e)
{
    const str text = tool_param(r, key);
    double ms;
    *given = text.n > 0;
    if (!*given)
        return true;
    if (!str_to_f64(text, &ms) || !(fabs(ms) < 9e9))
        return err_set(e, ERR_USAGE, "%.*s '%.*s' is not a number of milliseconds", STR_ARG(key),
                       STR_ARG(text));
    *out_ps = (int64_t)llround(ms * PS_PER_MS);
    return true;
}

static bool pass_row(void *ctx, const struct view_row *row, struct err *e)
{
    (void)ctx;
    (void)row;
    (void)e;
    return true;
}

static bool count_to_limit(void *ctx, const struct view_event *ev, struct err *e)
{
    uint64_t *n = ctx;
    (void)ev;
    (void)e;
    return ++*n <= SENT_WHOLE;
}

/* Whether the trace has so few events, derived ones too, that all are sent. */
static bool is_small(const struct tool_request *r, bool *small, struct err *e)
{
    uint64_t n = 0;
    const struct view v = {.numbers = VIEW_ALL_HOSTS,
                           .from_ps = INT64_MIN,
                           .to_ps = INT64_MAX,
                           .with_async = true,
                           .row = pass_row,
                           .event = count_to_limit,
                           .ctx = &n};
    for (uint32_t i = 0; i < r->profile->n_traces; i++)
        n += r->profile->traces[i]->n_events;
    *small = n <= SENT_WHOLE;
    n = 0;
    if (*small && !view_walk(r, &v, e))
        return false;
    *small = *small && n <= SENT_WHOLE;
    return true;
}

static bool read_resolution(const struct tool_request *r, struct asked *q, struct err *e)
{
    const str text = tool_param(r, S("resolution"));
    double pixels = DEFAULT_RESOLUTION;
    int64_t from, to;
    bool small;
    if (text.n > 0 && (!str_to_f64(text, &pixels) || !(pixels >= 0 && pixels < 1e9)))
        return err_set(e, ERR_USAGE, "resolution '%.*s' is not a number of pixels", STR_ARG(text));
    if (pixels == 0 || q->single || q->prefix.n > 0)
        return true;
    if (!is_small(r, &small, e))
        return false;
    if (small || !view_span(r, &from, &to))
        return true;
    from = q->from_ps > from ? q->from_ps : from;
    to = q->to_ps < to ? q->to_ps : to;
    if (to > from)
        q->resolution_ps = (uint64_t)llround((double)(to - from) / pixels);
    return true;
}

static bool read_request(const struct tool_request *r, struct asked *q, struct err *e)
{
    bool has_from, has_to;
    const str uid = tool_param(r, S("unique_id"));
    *q = (struct asked){.from_ps = INT64_MIN,
                        .to_ps = INT64_MAX,
                        .prefix = tool_param(r, S("search_prefix")),
                        .name = tool_param(r, S("event_name")),
                        .has_uid = uid.n > 0};
    q->single = q->name.n > 0;
    if (!read_ms(r, S("start_time_ms"), &q->from_ps, &has_from, e) ||
        !read_ms(r, S("end_time_ms"), &q->to_ps, &has_to, e) ||
        !read_ms(r, S("duration_ms"), &q->dur_ps, &q->has_dur, e))
        return false;
    if (q->from_ps > q->to_ps)
        return err_set(e, ERR_USAGE, "end_time_ms is before start_time_ms");
    if (q->has_uid && !str_to_u64(uid, &q->uid))
        return err_set(e, ERR_USAGE, "unique_id '%.*s' is not a number", STR_ARG(uid));
    if (q->single && !has_from)
        return err_set(e, ERR_USAGE, "event_name needs start_time_ms, the event's own");
    if (q->single) /* milliseconds as a double hold a picosecond only just */
        q->to_ps = q->from_ps + 1, q->from_ps -= 1;
    return read_resolution(r, q, e);
}

struct search {
    struct view_json json;
    const struct asked *asked;
};

static bool next_to(int64_t a, int64_t b)
{
    return a - b <= 1 && b - a <= 1;
}

/* The one event, then no more. */
static bool single_event(void *ctx, const struct view_event *ev, struct err *e)
{
    struct search *s = ctx;
    const struct asked *q = s->asked;
    if (!str_eq(ev->name, q->name) || !next_to(ev->start_ps, q->from_ps + 1) ||
        (q->has_dur && !next_to(ev->dur_ps, q->dur_ps)) || (q->has_uid && ev->uid != q->uid))
        return true;
    (void)!view_json_event(&s->json, ev, e);
    return false;
}

static bool any_row(void *ctx, const struct view_row *row, struct err *e)
{
    struct search *s = ctx;
    return view_json_row(&s->json, row, e);
}

static bool any_event(void *ctx, const struct view_event *ev, struct err *e)
{
    struct search *s = ctx;
    return view_json_event(&s->json, ev, e);
}

static void put_head(struct json *j, const struct tool_request *r)
{
    int64_t from, to;
    json_kcstr(j, "displayTimeUnit", "ns");
    json_key(j, "metadata");
    json_object(j);
    json_kbool(j, "highres-ticks", true);
    json_end(j);
    json_kcstr(j, "codeLink", "");
    json_kbool(j, "useNewBackend", false);
    json_key(j, "details");
    json_array(j);
    json_end(j);
    json_key(j, "fullTimespan");
    json_array(j);
    if (view_span(r, &from, &to)) {
        json_fixed(j, from, 9);
        json_fixed(j, to, 9);
    }
    json_end(j);
    json_key(j, "stackFrames");
    json_object(j);
    json_end(j);
    json_kcstr(j, "showCounterMessage", "");
}

static bool stream_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                         struct err *e)
{
    struct asked q;
    struct json j;
    if (!read_request(r, &q, e))
        return false;
    json_init_buf(&j, out);
    struct search s = {.json = {.j = &j,
                                .scratch = a,
                                .counters = true,
                                .with_host = true,
                                .with_stats = q.single},
                       .asked = &q};
    const struct view v = {.numbers = VIEW_ALL_HOSTS,
                           .from_ps = q.from_ps,
                           .to_ps = q.to_ps,
                           .resolution_ps = q.resolution_ps,
                           .name_prefix = q.prefix,
                           .with_async = true,
                           .row = any_row,
                           .event = q.single ? single_event : any_event,
                           .ctx = &s};
    json_object(&j);
    put_head(&j, r);
    json_key(&j, "traceEvents");
    json_array(&j);
    if (!view_walk(r, &v, e))
        return false;
    json_end(&j);
    json_ku64(&j, "returnedEventsSize", s.json.n_events + s.json.n_counters);
    json_ku64(&j, "totalCounterEvents", s.json.n_counters);
    json_kbool(&j, "filteredByVisibility", q.resolution_ps > 0);
    json_end(&j);
    return json_done(&j, e);
}

/* ---- how much of each line is shown ---- */

struct counts {
    struct table *table;
    const struct view_row **rows; /* of the line at hand, by row of the table */
    uint32_t n_rows, capacity;
};

static bool count_row(void *ctx, const struct view_row *row, struct err *e)
{
    struct counts *c = ctx;
    struct cell *cells = table_row(c->table);
    if (cells == NULL || !ARENA_PUSH(c->table->arena, c->rows, c->n_rows, c->capacity))
        return arena_full(c->table->arena, e);
    c->rows[c->n_rows - 1] = row;
    cells[0] = cell_text(trace_target(row->trace));
    cells[1] = cell_text(row->plane->name);
    cells[2] = cell_text(arena_str(c->table->arena, row->name));
    cells[3] = row->line == NULL ? cell_unknown() : cell_u64(row->line->n_events);
    cells[4] = cell_u64(0);
    return true;
}

/* Lines that are derived from one line take turns: the event's is among the last. */
static bool count_event(void *ctx, const struct view_event *ev, struct err *e)
{
    struct counts *c = ctx;
    uint32_t row = c->n_rows;
    (void)e;
    while (row > 0 && c->rows[--row] != ev->row)
        ;
    table_cell(c->table, row, 4)->u64++;
    return true;
}

static bool stream_run(const struct tool_request *r, struct arena *a, struct table **out,
                       struct err *e)
{
    struct asked q;
    struct table *t = *out = table_new(a, S("lines"), S("Lines as they are drawn"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("events"), S("Events"), CELL_U64, S(""));
    table_column(t, S("shown"), S("Shown"), CELL_U64, S(""));
    if (!read_request(r, &q, e))
        return false;
    struct counts c = {.table = t};
    const struct view v = {.numbers = VIEW_ALL_HOSTS,
                           .from_ps = q.from_ps,
                           .to_ps = q.to_ps,
                           .resolution_ps = q.resolution_ps,
                           .name_prefix = q.prefix,
                           .with_async = true,
                           .row = count_row,
                           .event = count_event,
                           .ctx = &c};
    table_value(t, S("resolution_ps"), S("Shortest event that is always shown"),
                cell_u64(q.resolution_ps), S("ps"));
    return view_walk(r, &v, e);
}

const struct tool_functions tool_trace_viewer_stream = {.run = stream_run, .xprof = stream_xprof};
