/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/event_walk.h"

static bool read_time(const struct tool_request *r, str key, int64_t *out, struct err *e)
{
    const str text = tool_param(r, key);
    return text.n == 0 || str_to_i64(text, out) ||
           err_set(e, ERR_USAGE, "%.*s '%.*s' is not a number of picoseconds", STR_ARG(key),
                   STR_ARG(text));
}

bool tool_param_count(const struct tool_request *r, str key, uint64_t *out, struct err *e)
{
    const str text = tool_param(r, key);
    return text.n == 0 || str_to_u64(text, out) ||
           err_set(e, ERR_USAGE, "%.*s '%.*s' is not a count", STR_ARG(key), STR_ARG(text));
}

bool event_walk_init(struct event_walk *w, const struct tool_request *r, struct err *e)
{
    *w = (struct event_walk){.profile = r->profile, .from_ps = INT64_MIN, .to_ps = INT64_MAX};
    return pattern_compile(&w->plane, S("plane_regex"), tool_param(r, S("plane_regex")), e) &&
           pattern_compile(&w->line_name, S("line_regex"), tool_param(r, S("line_regex")), e) &&
           pattern_compile(&w->event, S("event_regex"), tool_param(r, S("event_regex")), e) &&
           read_time(r, S("start_time_ps"), &w->from_ps, e) &&
           read_time(r, S("end_time_ps"), &w->to_ps, e);
}

bool event_walk_takes_plane(const struct event_walk *w, const struct trace_plane *p)
{
    return pattern_fits(&w->plane, p->name);
}

bool event_walk_takes_line(const struct event_walk *w, const struct trace_line *l)
{
    return pattern_fits(&w->line_name, l->name);
}

bool event_walk_next_line(struct event_walk *w)
{
    if (w->open)
        trace_cursor_release(&w->cursor);
    w->open = false;
    for (; w->next_trace < w->profile->n_traces; w->next_trace++, w->next_line = 0) {
        const struct trace *t = w->profile->traces[w->next_trace];
        while (w->next_line < t->n_lines) {
            const uint32_t line = w->next_line++;
            const struct trace_line *l = &t->lines[line];
            if (!event_walk_takes_plane(w, &t->planes[l->plane_index]) ||
                !event_walk_takes_line(w, l))
                continue;
            w->trace = t;
            w->line = l;
            w->line_index = line;
            return true;
        }
    }
    return false;
}

bool event_walk_takes(struct event_walk *w, const struct trace *t, const struct trace_line *l,
                      const struct trace_event *ev)
{
    enum { NO = 1, YES };
    if (w->from_ps != INT64_MIN || w->to_ps != INT64_MAX) {
        const int64_t at = event_written_ps(t, ev->start_ps);
        if (at < w->from_ps || at >= w->to_ps)
            return false;
    }
    if (!w->event.given)
        return true;
    uint8_t *known = memo_at(&w->names, t, l, ev);
    if (*known == 0)
        *known = pattern_fits(&w->event, event_full_name(t, l, ev)) ||
                         pattern_fits(&w->event, trace_event_name(t, l, ev))
                     ? YES
                     : NO;
    return *known == YES;
}

bool event_walk_next(struct event_walk *w, struct err *e)
{
    for (;;) {
        while (w->open && trace_cursor_next(&w->cursor)) {
            w->n_scanned++;
            if (event_walk_takes(w, w->trace, w->line, &w->cursor.event))
                return true;
        }
        if (w->open && !trace_cursor_ok(&w->cursor, e)) {
            w->failed = true;
            return false;
        }
        if (!event_walk_next_line(w))
            return false;
        trace_cursor_init(&w->cursor, w->trace, w->line_index);
        w->open = true;
    }
}

bool event_walk_ok(const struct event_walk *w, struct err *e)
{
    return !w->failed || (e->code == ERR_NONE && trace_cursor_ok(&w->cursor, e));
}

void event_walk_release(struct event_walk *w)
{
    if (w->open)
        trace_cursor_release(&w->cursor);
    pattern_release(&w->plane);
    pattern_release(&w->line_name);
    pattern_release(&w->event);
    memo_release(&w->names);
    *w = (struct event_walk){0};
}

int64_t event_written_ps(const struct trace *t, uint64_t ps)
{
    int64_t origin_ps = 0, at;
    if (!t->has_epoch && __builtin_mul_overflow(t->origin_ns, 1000, &origin_ps))
        origin_ps = 0;
    if (__builtin_add_overflow(origin_ps, ps, &at))
        return INT64_MAX;
    return at;
}

str event_full_name(const struct trace *t, const struct trace_line *line,
                    const struct trace_event *ev)
{
    const struct trace_event_metadata *m = trace_event_meta(t, line, ev);
    return m != NULL && m->name.n > 0 ? m->name : trace_event_name(t, line, ev);
}
