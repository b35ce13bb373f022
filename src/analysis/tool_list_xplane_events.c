/* SPDX-License-Identifier: Apache-2.0 */
/* list_xplane_events: single events, picked by name and time. Times are exact: XProf's pass through doubles. */
#include "analysis/event_walk.h"
#include "analysis/xprof_cli.h"

#define DEFAULT_EVENTS 100

struct page { /* which of the events that match are listed */
    uint64_t offset, limit;
    uint64_t matched, listed;
};

static bool page_init(struct page *p, const struct tool_request *r, struct err *e)
{
    *p = (struct page){.limit = DEFAULT_EVENTS};
    return tool_param_count(r, S("offset"), &p->offset, e) &&
           tool_param_count(r, S("max_events"), &p->limit, e);
}

static bool page_takes(struct page *p)
{
    const bool takes = p->matched++ >= p->offset && p->listed < p->limit;
    p->listed += takes;
    return takes;
}

static bool add_row(struct table *t, const struct event_walk *w)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    const struct trace_event *ev = &w->cursor.event;
    row[0] = cell_text(trace_target(w->trace));
    row[1] = cell_text(w->trace->planes[w->line->plane_index].name);
    row[2] = cell_text(w->line->name);
    row[3] = cell_text(event_full_name(w->trace, w->line, ev));
    row[4] = cell_i64(event_written_ps(w->trace, ev->start_ps));
    row[5] = cell_u64(ev->dur_ps);
    row[6] = cell_u64(ev->num_occurrences > 0 ? ev->num_occurrences : 1);
    return true;
}

static bool list_run(const struct tool_request *r, struct arena *a, struct table **out,
                     struct err *e)
{
    struct page page;
    struct event_walk w;
    struct table *t = *out = table_new(a, S("list_xplane_events"), S("Events"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("event"), S("Event"), CELL_TEXT, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_I64, S("ps"));
    table_column(t, S("duration_ps"), S("Duration"), CELL_U64, S("ps"));
    table_column(t, S("occurrences"), S("Occurrences"), CELL_U64, S(""));
    if (!page_init(&page, r, e))
        return false;
    bool ok = event_walk_init(&w, r, e);
    while (ok && event_walk_next(&w, e))
        if (page_takes(&page) && !add_row(t, &w))
            ok = arena_full(a, e);
    ok = ok && event_walk_ok(&w, e);
    event_walk_release(&w);
    table_value(t, S("total_matched"), S("Events that match"), cell_u64(page.matched), S(""));
    return ok;
}

static void put_event(struct json *j, const struct event_walk *w)
{
    const struct trace_event *ev = &w->cursor.event;
    json_object(j);
    json_kstr(j, "plane", w->trace->planes[w->line->plane_index].name);
    json_kstr(j, "line_id", w->line->name);
    json_kstr(j, "event", event_full_name(w->trace, w->line, ev));
    json_ki64(j, "offset_ps", event_written_ps(w->trace, ev->start_ps));
    json_ku64(j, "duration_ps", ev->dur_ps);
    json_end(j);
}

static bool list_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                       struct err *e)
{
    struct page page;
    struct event_walk w;
    struct json j;
    (void)a;
    if (!page_init(&page, r, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_key(&j, "events");
    json_array(&j);
    bool ok = event_walk_init(&w, r, e);
    while (ok && event_walk_next(&w, e))
        if (page_takes(&page))
            put_event(&j, &w);
    ok = ok && event_walk_ok(&w, e);
    event_walk_release(&w);
    json_end(&j);
    json_ku64(&j, "returned", page.listed);
    json_ku64(&j, "total_matched", page.matched);
    json_kbool(&j, "truncated", page.listed < page.matched);
    return ok && xprof_cli_end(&j, e);
}

const struct tool_functions tool_list_xplane_events = {.run = list_run, .xprof = list_xprof};
