/* SPDX-License-Identifier: Apache-2.0 */
/* trace_viewer: every event as Chrome trace JSON ("Trace Event Format"), as XProf's tool of that
 * name. Times are microseconds from the profile's start; picoseconds are kept as decimals. */
#include "analysis/tool.h"
#include "analysis/trace_view_json.h"

static void write_meta(struct json *j, const char *what, uint64_t pid, const uint64_t *tid,
                       str name)
{
    json_object(j);
    json_kcstr(j, "ph", "M");
    json_kcstr(j, "name", what);
    json_ku64(j, "pid", pid);
    if (tid != NULL)
        json_ku64(j, "tid", *tid);
    json_key(j, "args");
    json_object(j);
    json_kstr(j, "name", name);
    json_end(j);
    json_end(j);
}

static bool write_event(struct json *j, const struct trace *t, const struct trace_line *line,
                        const struct trace_event *ev, uint64_t pid, uint64_t tid, struct arena *a,
                        struct err *e)
{
    struct trace_stats stats;
    const struct arena_mark m = arena_mark(a);
    if (!trace_event_stats(t, line, ev, a, &stats, e))
        return false;
    json_object(j);
    json_kcstr(j, "ph", "X");
    json_ku64(j, "pid", pid);
    json_ku64(j, "tid", tid);
    json_key(j, "ts");
    const int64_t since_start_ps = t->has_epoch ? 0 : t->origin_ns * 1000;
    json_fixed(j, (int64_t)ev->start_ps + since_start_ps, 6);
    json_key(j, "dur");
    json_fixed(j, (int64_t)ev->dur_ps, 6);
    json_kstr(j, "name", trace_event_name(t, line, ev));
    if (stats.n > 0) {
        json_key(j, "args");
        json_object(j);
        tool_print_stats(j, stats);
        json_end(j);
    }
    json_end(j);
    arena_reset(a, m);
    return true;
}

static bool write_line(struct json *j, const struct trace *t, uint32_t l, uint64_t pid,
                       struct arena *a, struct err *e)
{
    const struct trace_line *line = &t->lines[l];
    const uint64_t tid = l - t->planes[line->plane_index].first_line + 1;
    write_meta(j, "thread_name", pid, &tid,
               line->display_name.n > 0 ? line->display_name : line->name);
    struct trace_cursor c;
    for (trace_cursor_init(&c, t, l); trace_cursor_next(&c);)
        if (!write_event(j, t, line, &c.event, pid, tid, a, e)) {
            trace_cursor_release(&c);
            return false;
        }
    return trace_cursor_ok(&c, e);
}

static void begin_document(struct json *j)
{
    json_object(j);
    json_kcstr(j, "displayTimeUnit", "ns");
    json_key(j, "metadata");
    json_object(j);
    json_kbool(j, "highres-ticks", true);
    json_end(j);
    json_key(j, "traceEvents");
    json_array(j);
}

static bool write_all(const struct tool_request *r, struct arena *a, struct json *j, struct err *e)
{
    begin_document(j);
    uint64_t pid = 0;
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        const struct trace *t = r->profile->traces[i];
        for (uint32_t k = 0; k < t->n_planes; k++) {
            const struct trace_plane *p = &t->planes[k];
            if (p->n_lines == 0)
                continue;
            write_meta(j, "process_name", ++pid, NULL, p->name);
            for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
                if (!write_line(j, t, l, pid, a, e))
                    return false;
        }
    }
    json_end(j);
    json_end(j);
    return true;
}

/* As XProf's, which leaves out async operations and what recorders keep for other tools, and adds derived lines. */
static bool trace_viewer_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                               struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    struct view_json x = {.j = &j,
                          .scratch = a,
                          .instants = true,
                          .with_stats = true,
                          .with_host = r->profile->n_traces > 1};
    const struct view v = {.numbers = r->profile->n_traces > 1 ? VIEW_ALL_HOSTS : VIEW_ONE_HOST,
                           .from_ps = INT64_MIN,
                           .to_ps = INT64_MAX,
                           .row = view_json_row,
                           .event = view_json_event,
                           .ctx = &x};
    begin_document(&j);
    if (!view_walk(r, &v, e))
        return false;
    json_end(&j);
    json_end(&j);
    return json_done(&j, e);
}

static bool trace_viewer_json(const struct tool_request *r, struct arena *a, struct json *j,
                              struct err *e)
{
    return write_all(r, a, j, e);
}

static bool trace_viewer_run(const struct tool_request *r, struct arena *a, struct table **out,
                             struct err *e)
{
    struct table *t = table_new(a, S("trace_viewer"), S("Events"));
    *out = t;
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("name"), S("Event"), CELL_TEXT, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("dur_ps"), S("Duration"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        const struct trace *tr = r->profile->traces[i];
        for (uint32_t l = 0; l < tr->n_lines; l++) {
            struct trace_cursor c;
            for (trace_cursor_init(&c, tr, l); trace_cursor_next(&c);) {
                struct cell *row = table_row(t);
                if (row == NULL) {
                    trace_cursor_release(&c);
                    return arena_full(a, e);
                }
                row[0] = tr->host.n > 0 ? cell_text(tr->host) : cell_unknown();
                row[1] = cell_text(tr->planes[tr->lines[l].plane_index].name);
                row[2] = cell_text(tr->lines[l].name);
                row[3] = cell_text(trace_event_name(tr, &tr->lines[l], &c.event));
                row[4] = cell_u64(c.event.start_ps);
                row[5] = cell_u64(c.event.dur_ps);
            }
            if (!trace_cursor_ok(&c, e))
                return false;
        }
    }
    return true;
}

const struct tool_functions tool_trace_viewer = {
    .run = trace_viewer_run, .json = trace_viewer_json, .xprof = trace_viewer_xprof};
