/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/tiles_internal.h"

#include "base/limits.h"
#include "model/trace_groups.h"

bool tiles_view_find(str word, enum tiles_view *out)
{
    static const str words[] = {{"", 0},
                                STR_INIT("tile"),
                                STR_INIT("event"),
                                STR_INIT("search"),
                                STR_INIT("select"),
                                STR_INIT("flows")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(word, words[i])) {
            *out = (enum tiles_view)i;
            return true;
        }
    return false;
}

bool tiles_u64(const struct tool_request *r, str key, uint64_t fallback, uint64_t *out,
               struct err *e)
{
    const str text = tool_param(r, key);
    *out = fallback;
    return text.n == 0 || str_to_u64(text, out) ||
           err_set(e, ERR_USAGE, "'%.*s' must be a whole number, not '%.*s'", STR_ARG(key),
                   STR_ARG(text));
}

bool tiles_target(const struct tool_request *r, struct trace **out, struct err *e)
{
    const str name = tool_param(r, S("target"));
    *out = profile_find_trace(r->profile, name);
    return *out != NULL ||
           err_set(e, ERR_NOT_FOUND, "the session has no target '%.*s'", STR_ARG(name));
}

bool tiles_lines(const struct tool_request *r, const struct trace *t, bool all, struct arena *a,
                 uint32_t **out, uint32_t *n, struct err *e)
{
    str head, rest = tool_param(r, S("lines"));
    *n = 0;
    *out = ARENA_ARRAY(a, uint32_t, t->n_lines + 1);
    if (*out == NULL)
        return arena_full(a, e);
    if (rest.n == 0 && !all)
        return err_set(e, ERR_USAGE, "'lines' is missing");
    for (uint32_t i = 0; rest.n == 0 && i < t->n_lines; i++)
        (*out)[(*n)++] = i;
    while (str_cut(rest, ',', &head, &rest)) {
        uint64_t line;
        if (!str_to_u64(head, &line))
            return err_set(e, ERR_USAGE, "a line is a number, not '%.*s'", STR_ARG(head));
        if (line >= t->n_lines)
            return err_set(e, ERR_NOT_FOUND, "there is no line %llu", (unsigned long long)line);
        if (*n == t->n_lines)
            return err_set(e, ERR_USAGE, "more lines than the target has");
        (*out)[(*n)++] = (uint32_t)line;
    }
    return true;
}

static const char *kind_word(enum trace_plane_kind kind)
{
    switch (kind) {
    case TRACE_PLANE_HOST:
        return "host";
    case TRACE_PLANE_TPU:
        return "tpu";
    case TRACE_PLANE_TPU_SPARSE:
        return "tpu_sparse";
    case TRACE_PLANE_GPU:
        return "gpu";
    case TRACE_PLANE_CUSTOM:
        return "custom";
    case TRACE_PLANE_METADATA:
        return "metadata";
    case TRACE_PLANE_ENVIRONMENT:
        return "environment";
    case TRACE_PLANE_OTHER:
        break;
    }
    return "other";
}

static bool is_device(const struct trace_plane *p)
{
    return p->kind == TRACE_PLANE_TPU || p->kind == TRACE_PLANE_TPU_SPARSE ||
           p->kind == TRACE_PLANE_GPU || p->kind == TRACE_PLANE_CUSTOM;
}

static void write_note(struct json *j, str code, str message, uint64_t count)
{
    json_object(j);
    json_kstr(j, "code", code);
    json_kstr(j, "message", message);
    json_ku64(j, "count", count);
    json_end(j);
}

/* What the reader repaired, guessed or left out, and what the profiler itself said. */
static void write_notes(struct json *j, const struct trace *t)
{
    json_key(j, "notes");
    json_array(j);
    for (uint32_t i = 0; i < t->n_notes; i++)
        write_note(j, t->notes[i].code, t->notes[i].message, t->notes[i].count);
    for (uint32_t i = 0; i < t->n_errors; i++)
        write_note(j, S("profiler_error"), t->errors[i], 1);
    for (uint32_t i = 0; i < t->n_warnings; i++)
        write_note(j, S("profiler_warning"), t->warnings[i], 1);
    json_end(j);
}

static void write_target(struct json *j, const struct trace *t)
{
    json_object(j);
    json_kstr(j, "target", trace_target(t));
    json_kstr(j, "host", t->host);
    json_key(j, "planes");
    json_array(j);
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        json_object(j);
        json_kstr(j, "name", p->name);
        json_kcstr(j, "kind", kind_word(p->kind));
        json_key(j, "lines");
        json_array(j);
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
            const struct trace_line *line = &t->lines[l];
            json_object(j);
            json_ku64(j, "line", l);
            json_kstr(j, "name", line->display_name.n > 0 ? line->display_name : line->name);
            json_ku64(j, "events", line->n_events);
            json_ku64(j, "max_depth", line->max_depth);
            json_ku64(j, "busy_ps", line->busy_ps);
            json_kbool(j, "partial", line->is_partial);
            json_end(j);
        }
        json_end(j);
        json_end(j);
    }
    json_end(j);
    write_notes(j, t);
    json_end(j);
}

static void write_span(struct json *j, const struct profile *p, const char *from_key,
                       const char *to_key, bool device_only)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (uint32_t i = 0; i < p->n_traces; i++) {
        const struct trace *t = p->traces[i];
        for (uint32_t l = 0; l < t->n_lines; l++) {
            const struct trace_line *line = &t->lines[l];
            if (line->n_events == 0 || line->start_ps > line->end_ps ||
                (device_only && !is_device(&t->planes[line->plane_index])))
                continue;
            from = line->start_ps + t->shift_ps < from ? line->start_ps + t->shift_ps : from;
            to = line->end_ps + t->shift_ps > to ? line->end_ps + t->shift_ps : to;
        }
    }
    if (from > to) {
        json_knull(j, from_key);
        json_knull(j, to_key);
        return;
    }
    json_ku64(j, from_key, from);
    json_ku64(j, to_key, to);
}

static bool view_summary(const struct tool_request *r, struct json *j)
{
    json_object(j);
    json_key(j, "origin_ns"); /* text, as every moment: docs/formats/api.md */
    json_strf(j, "%lld", (long long)r->profile->origin_ns);
    write_span(j, r->profile, "start_ps", "end_ps", false);
    write_span(j, r->profile, "device_start_ps", "device_end_ps", true);
    bool partial = false;
    for (uint32_t i = 0; i < r->profile->n_traces; i++)
        partial = partial || r->profile->traces[i]->is_partial;
    json_kbool(j, "partial", partial);
    json_key(j, "targets");
    json_array(j);
    for (uint32_t i = 0; i < r->profile->n_traces; i++)
        write_target(j, r->profile->traces[i]);
    json_end(j);
    json_end(j);
    return true;
}

bool tiles_event_at(const struct trace *t, const struct trace_line *line, uint64_t index,
                    struct trace_event *out, struct err *e)
{
    if (index >= line->n_events)
        return err_set(e, ERR_NOT_FOUND, "the line has no event %llu", (unsigned long long)index);
    uint32_t g = line->first_group;
    while (g < line->first_group + line->n_groups && index >= t->groups->items[g].n_events)
        index -= t->groups->items[g++].n_events;
    struct trace_group_view v = {0};
    const bool ok = trace_group_view_open(&v, t->groups, g, e);
    if (ok) {
        uint64_t src_end = trace_group_src_end(&v, (uint32_t)index);
        trace_group_unpack(&v, (uint32_t)index, 1, &src_end, out);
        out->start_ps += line->base_ps;
    }
    trace_group_view_release(&v);
    return ok;
}

bool tiles_place(const struct tool_request *r, const struct trace *t, uint64_t *line,
                 uint64_t *index, struct err *e)
{
    if (!tiles_u64(r, S("line"), UINT64_MAX, line, e) ||
        !tiles_u64(r, S("index"), UINT64_MAX, index, e))
        return false;
    if (*line >= t->n_lines)
        return err_set(e, ERR_NOT_FOUND, "the target has no such line");
    return *index < t->lines[*line].n_events ||
           err_set(e, ERR_NOT_FOUND, "the line has no event %llu", (unsigned long long)*index);
}

static bool view_event(const struct tool_request *r, struct arena *a, struct json *j, struct err *e)
{
    struct trace *t;
    uint64_t l, index;
    struct trace_event ev;
    struct trace_stats stats;
    if (!tiles_target(r, &t, e) || !tiles_place(r, t, &l, &index, e))
        return false;
    const struct trace_line *line = &t->lines[l];
    if (!tiles_event_at(t, line, index, &ev, e) || !trace_event_stats(t, line, &ev, a, &stats, e))
        return false;
    const struct trace_event_metadata *m = trace_event_meta(t, line, &ev);
    json_object(j);
    json_kstr(j, "name", trace_event_name(t, line, &ev));
    json_ku64(j, "start_ps", ev.start_ps + t->shift_ps);
    json_ku64(j, "dur_ps", ev.dur_ps);
    json_ku64(j, "depth", ev.depth);
    if (m != NULL && m->display_name.n > 0)
        json_kstr(j, "long_name", m->name);
    json_key(j, "stats");
    json_object(j);
    tool_print_stats(j, stats);
    json_end(j);
    json_key(j, "metadata");
    json_object(j);
    tool_print_stats(j, m == NULL ? (struct trace_stats){0} : m->stats);
    json_end(j);
    json_end(j);
    return true;
}

bool tiles_answer(enum tiles_view view, const struct tool_request *r, struct arena *a,
                  struct buf *out, struct err *e)
{
    if (r->profile->n_traces == 0)
        return err_set(e, ERR_NOT_FOUND, "the session has no target");
    if (view == TILES_TILE)
        return tiles_tile(r, a, out, e);
    struct json j;
    json_init_buf(&j, out);
    bool ok = false;
    switch (view) {
    case TILES_SUMMARY:
        ok = view_summary(r, &j);
        break;
    case TILES_EVENT:
        ok = view_event(r, a, &j, e);
        break;
    case TILES_SEARCH:
        ok = tiles_search(r, a, &j, e);
        break;
    case TILES_SELECT:
        ok = tiles_select(r, a, &j, e);
        break;
    case TILES_FLOWS:
        ok = tiles_flows(r, a, &j, e);
        break;
    case TILES_TILE:
        break;
    }
    return ok && json_done(&j, e) && buf_ok(out, "the answer", e);
}
