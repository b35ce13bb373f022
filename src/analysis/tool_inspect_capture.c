/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_capture, list_xplane_lines: the planes and lines of every host, and what they are good for. */
#include "analysis/event_walk.h"
#include "analysis/spans.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

struct capture_use { /* for which analyses the profile has the events */
    bool device, llo, counters;
};

static bool is_llo_line(str name)
{
    return str_find_nocase(name, S("LLO ")) >= 0 || str_find_nocase(name, S("Pallas")) >= 0;
}

static void look(struct capture_use *u, const struct trace *t, uint32_t line)
{
    const str name = t->lines[line].name;
    if (t->lines[line].n_events == 0)
        return;
    u->device = u->device || spans_is_work_line(t, line);
    u->llo = u->llo || is_llo_line(name);
    u->counters = u->counters || str_eq(name, S("_counters_"));
}

static bool inspect_run(const struct tool_request *r, struct arena *a, struct table **out,
                        struct err *e)
{
    struct capture_use use = {0};
    struct event_walk w;
    struct table *t = *out = table_new(a, S("lines"), S("Lines"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("events"), S("Events"), CELL_U64, S(""));
    table_column(t, S("start_ps"), S("First start"), CELL_I64, S("ps"));
    table_column(t, S("end_ps"), S("Last end"), CELL_I64, S("ps"));
    table_column(t, S("busy_ps"), S("Covered"), CELL_U64, S("ps"));
    table_column(t, S("levels"), S("Levels"), CELL_U64, S(""));
    bool ok = event_walk_init(&w, r, e);
    while (ok && event_walk_next_line(&w)) {
        struct cell *row = table_row(t);
        if (row == NULL) {
            ok = arena_full(a, e);
            break;
        }
        look(&use, w.trace, w.line_index);
        row[0] = cell_text(trace_target(w.trace));
        row[1] = cell_text(w.trace->planes[w.line->plane_index].name);
        row[2] = cell_text(w.line->name);
        row[3] = cell_u64(w.line->n_events);
        if (w.line->n_events == 0 || w.line->start_ps > w.line->end_ps)
            continue;
        row[4] = cell_i64(event_written_ps(w.trace, w.line->start_ps));
        row[5] = cell_i64(event_written_ps(w.trace, w.line->end_ps));
        row[6] = cell_u64(w.line->busy_ps);
        row[7] = cell_u64((uint64_t)w.line->max_depth + 1);
    }
    event_walk_release(&w);
    table_value(t, S("valid_for_device_analysis"), S("Device operations"), cell_bool(use.device),
                S(""));
    table_value(t, S("valid_for_llo_analysis"), S("Kernel internals"), cell_bool(use.llo), S(""));
    table_value(t, S("valid_for_counter_sampling"), S("Counters"), cell_bool(use.counters), S(""));
    return ok;
}

static void put_plane(struct json *j, const struct trace *t, const struct trace_plane *p,
                      struct capture_use *use)
{
    uint64_t n = 0;
    json_object(j);
    json_kstr(j, "name", p->name);
    json_key(j, "lines");
    json_array(j);
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        look(use, t, l);
        n += t->lines[l].n_events;
        json_object(j);
        json_kstr(j, "name", t->lines[l].name);
        json_ku64(j, "event_count", t->lines[l].n_events);
        json_end(j);
    }
    json_end(j);
    json_ku64(j, "total_events", n);
    json_end(j);
}

static bool inspect_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                          struct err *e)
{
    struct json j;
    struct capture_use use = {0};
    (void)a;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_kstr(&j, "session_id", r->profile->name);
    json_key(&j, "planes");
    json_array(&j);
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        const struct trace *t = r->profile->traces[i];
        for (uint32_t k = 0; k < t->n_planes; k++)
            put_plane(&j, t, &t->planes[k], &use);
    }
    json_end(&j);
    json_kbool(&j, "capture_valid_for_device_analysis", use.device);
    json_kbool(&j, "capture_valid_for_llo_analysis", use.llo);
    json_kbool(&j, "capture_valid_for_counter_sampling", use.counters);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_inspect_capture = {.run = inspect_run, .xprof = inspect_xprof};
const struct tool_functions tool_list_xplane_lines = {.run = inspect_run, .xprof = inspect_xprof};
