/* SPDX-License-Identifier: Apache-2.0 */
/* get_xspace_proto: the XSpace as JSON, with the names of xplane.proto in snake_case. Ids of stats are resolved:
 * `stats` is an object of name and value. The times of events are absolute (`start_ps`). Bytes stand as their number. */
#include "analysis/event_walk.h"
#include "analysis/xprof_cli.h"

struct dump {
    struct event_walk *walk;
    struct arena *scratch;
    uint64_t max_events; /* of a line */
    struct json *j;
    struct err *err;
};

static void put_stats(struct json *j, struct trace_stats stats)
{
    if (stats.n == 0)
        return;
    json_key(j, "stats");
    json_object(j);
    tool_print_stats(j, stats);
    json_end(j);
}

static bool put_event(struct dump *d, const struct trace *t, const struct trace_line *line,
                      const struct trace_event *ev)
{
    struct trace_stats stats;
    const struct arena_mark m = arena_mark(d->scratch);
    if (!trace_event_stats(t, line, ev, d->scratch, &stats, d->err))
        return false;
    const struct trace_event_metadata *md = trace_event_meta(t, line, ev);
    json_object(d->j);
    json_key(d->j, "metadata_id");
    if (md == NULL)
        json_null(d->j);
    else
        json_i64(d->j, md->id);
    json_ki64(d->j, "start_ps", event_written_ps(t, ev->start_ps));
    json_ku64(d->j, "duration_ps", ev->dur_ps);
    if (ev->num_occurrences > 0)
        json_ku64(d->j, "num_occurrences", ev->num_occurrences);
    put_stats(d->j, stats);
    json_end(d->j);
    arena_reset(d->scratch, m);
    return true;
}

static bool put_line(struct dump *d, const struct trace *t, uint32_t l)
{
    const struct trace_line *line = &t->lines[l];
    struct trace_cursor c;
    uint64_t matched = 0;
    bool ok = true;
    json_object(d->j);
    json_ki64(d->j, "id", line->id);
    json_kstr(d->j, "name", line->name);
    json_kstr(d->j, "display_name", line->display_name);
    json_ki64(d->j, "timestamp_ns", line->timestamp_ns);
    json_ku64(d->j, "duration_ps", line->duration_ps);
    json_key(d->j, "events");
    json_array(d->j);
    for (trace_cursor_init(&c, t, l); ok && !d->j->failed && trace_cursor_next(&c);)
        if (event_walk_takes(d->walk, t, line, &c.event) && matched++ < d->max_events)
            ok = put_event(d, t, line, &c.event);
    trace_cursor_release(&c);
    json_end(d->j);
    json_ku64(d->j, "events_matched", matched);
    json_end(d->j);
    return ok && (d->j->failed || trace_cursor_ok(&c, d->err));
}

static void put_metadata(struct json *j, const struct trace_plane *p)
{
    json_key(j, "event_metadata");
    json_array(j);
    for (uint32_t i = 0; i < p->n_event_metadata; i++) {
        const struct trace_event_metadata *m = &p->event_metadata[i];
        json_object(j);
        json_ki64(j, "id", m->id);
        json_kstr(j, "name", m->name);
        if (m->display_name.n > 0)
            json_kstr(j, "display_name", m->display_name);
        put_stats(j, m->stats);
        json_end(j);
    }
    json_end(j);
}

static bool put_plane(struct dump *d, const struct trace *t, const struct trace_plane *p)
{
    json_object(d->j);
    json_kstr(d->j, "host", t->host);
    json_ki64(d->j, "id", p->id);
    json_kstr(d->j, "name", p->name);
    put_stats(d->j, p->stats);
    put_metadata(d->j, p);
    json_key(d->j, "lines");
    json_array(d->j);
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (event_walk_takes_line(d->walk, &t->lines[l]) && !put_line(d, t, l))
            return false;
    json_end(d->j);
    json_end(d->j);
    return true;
}

enum said { SAID_ERRORS = 0, SAID_WARNINGS };

static void put_texts(struct json *j, const struct profile *p, enum said which)
{
    json_key(j, which == SAID_ERRORS ? "errors" : "warnings");
    json_array(j);
    for (uint32_t i = 0; i < p->n_traces; i++) {
        const struct trace *t = p->traces[i];
        const str *items = which == SAID_ERRORS ? t->errors : t->warnings;
        const uint32_t n = which == SAID_ERRORS ? t->n_errors : t->n_warnings;
        for (uint32_t k = 0; k < n; k++)
            json_str(j, items[k]);
    }
    json_end(j);
}

static bool put_all(struct dump *d, const struct tool_request *r)
{
    const struct profile *p = r->profile;
    xprof_cli_begin(d->j, r);
    json_key(d->j, "planes");
    json_array(d->j);
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            const struct trace_plane *plane = &p->traces[i]->planes[k];
            if (event_walk_takes_plane(d->walk, plane) && !put_plane(d, p->traces[i], plane))
                return false;
        }
    json_end(d->j);
    put_texts(d->j, p, SAID_ERRORS);
    put_texts(d->j, p, SAID_WARNINGS);
    return xprof_cli_end(d->j, d->err);
}

static bool proto_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                        struct err *e)
{
    struct event_walk w;
    struct json j;
    json_init_buf(&j, out);
    struct dump d = {.walk = &w, .scratch = a, .max_events = UINT64_MAX, .j = &j, .err = e};
    const bool ok = tool_param_count(r, S("max_events"), &d.max_events, e);
    const bool done = event_walk_init(&w, r, e) && ok && put_all(&d, r);
    event_walk_release(&w);
    return done;
}

static bool proto_run(const struct tool_request *r, struct arena *a, struct table **out,
                      struct err *e)
{
    struct event_walk w;
    struct table *t = *out = table_new(a, S("planes"), S("Planes"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("id"), S("Id"), CELL_I64, S(""));
    table_column(t, S("lines"), S("Lines"), CELL_U64, S(""));
    table_column(t, S("events"), S("Events"), CELL_U64, S(""));
    table_column(t, S("event_metadata"), S("Names of events"), CELL_U64, S(""));
    table_column(t, S("stat_metadata"), S("Names of statistics"), CELL_U64, S(""));
    uint64_t limit; /* of the events, which are not listed here */
    bool ok = event_walk_init(&w, r, e) && tool_param_count(r, S("max_events"), &limit, e);
    for (uint32_t i = 0; ok && i < r->profile->n_traces; i++) {
        const struct trace *tr = r->profile->traces[i];
        for (uint32_t k = 0; ok && k < tr->n_planes; k++) {
            const struct trace_plane *p = &tr->planes[k];
            struct cell *row;
            if (!event_walk_takes_plane(&w, p))
                continue;
            if ((row = table_row(t)) == NULL) {
                ok = arena_full(a, e);
                break;
            }
            uint64_t n = 0;
            for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
                n += tr->lines[l].n_events;
            row[0] = cell_text(trace_target(tr));
            row[1] = cell_text(p->name);
            row[2] = cell_i64(p->id);
            row[3] = cell_u64(p->n_lines);
            row[4] = cell_u64(n);
            row[5] = cell_u64(p->n_event_metadata);
            row[6] = cell_u64(p->n_stat_names);
        }
    }
    event_walk_release(&w);
    return ok;
}

const struct tool_functions tool_get_xspace_proto = {.run = proto_run, .xprof = proto_xprof};
