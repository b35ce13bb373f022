/* SPDX-License-Identifier: Apache-2.0 */
/* Events by their name, on all lines of all targets. Names are looked at once, then only one column of the row groups
 * is read; of what fits the rest. */
#include "analysis/pattern.h"
#include "analysis/tiles_internal.h"

#include "base/limits.h"
#include "model/trace_groups.h"

enum mode { SUBSTRING = 0, PREFIX, REGEX };

struct search {
    str q;
    enum mode mode;
    struct pattern pattern;
    uint64_t limit, total, least_ps;
    struct json *j;
    struct trace_group_view view;
};

static bool name_fits(const struct search *s, str name)
{
    switch (s->mode) {
    case SUBSTRING:
        return str_find_nocase(name, s->q) >= 0;
    case PREFIX:
        return str_starts(name, s->q);
    case REGEX:
        return pattern_fits(&s->pattern, name);
    }
    return false;
}

static void write_hit(struct search *s, const struct trace *t, uint32_t l, uint64_t index,
                      uint32_t row)
{
    const struct trace_line *line = &t->lines[l];
    const struct trace_event ev = {
        .start_ps = trace_column_at(&s->view.columns[TRACE_COLUMN_START], row) + line->base_ps,
        .metadata_index =
            (uint32_t)trace_column_at(&s->view.columns[TRACE_COLUMN_METADATA], row) - 1};
    json_object(s->j);
    json_kstr(s->j, "target", trace_target(t));
    json_ku64(s->j, "line", l);
    json_ku64(s->j, "index", index);
    json_kstr(s->j, "name", trace_event_name(t, line, &ev));
    json_ku64(s->j, "start_ps", ev.start_ps + t->shift_ps);
    json_ku64(s->j, "dur_ps", trace_column_at(&s->view.columns[TRACE_COLUMN_DURATION], row));
    json_end(s->j);
}

/* Hits of one line, whose plane's fitting names are in `match`, by metadata index + 1. */
static bool search_line(struct search *s, const struct trace *t, uint32_t l, const uint8_t *match,
                        uint32_t n_match, struct err *e)
{
    const struct trace_line *line = &t->lines[l];
    uint64_t index = 0;
    for (uint32_t g = line->first_group; g < line->first_group + line->n_groups; g++) {
        if (!trace_group_view_open(&s->view, t->groups, g, e))
            return false;
        const struct trace_column *names = &s->view.columns[TRACE_COLUMN_METADATA];
        const struct trace_column *durations = &s->view.columns[TRACE_COLUMN_DURATION];
        for (uint32_t row = 0; row < s->view.n_rows; row++, index++) {
            const uint64_t name = trace_column_at(names, row);
            if (name >= n_match || !match[name] ||
                (s->least_ps > 0 && trace_column_at(durations, row) < s->least_ps))
                continue;
            if (s->total++ < s->limit)
                write_hit(s, t, l, index, row);
        }
    }
    return true;
}

static bool search_plane(struct search *s, const struct trace *t, const struct trace_plane *p,
                         struct arena *a, struct err *e)
{
    const struct arena_mark m = arena_mark(a);
    const uint32_t n = p->n_event_metadata + 1;
    uint8_t *match = ARENA_ARRAY(a, uint8_t, n);
    if (match == NULL)
        return arena_full(a, e);
    bool any = false;
    for (uint32_t i = 1; i < n; i++) {
        const struct trace_event_metadata *em = &p->event_metadata[i - 1];
        match[i] = name_fits(s, em->display_name.n > 0 ? em->display_name : em->name) ||
                   (em->display_name.n > 0 && name_fits(s, em->name));
        any = any || match[i];
    }
    for (uint32_t l = p->first_line; any && l < p->first_line + p->n_lines; l++)
        if (!search_line(s, t, l, match, n, e))
            return false;
    arena_reset(a, m);
    return true;
}

static bool search_all(struct search *s, const struct profile *p, struct arena *a, struct err *e)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        s->view.n_rows = 0; /* of another trace */
        for (uint32_t k = 0; ok && k < p->traces[i]->n_planes; k++)
            ok = search_plane(s, p->traces[i], &p->traces[i]->planes[k], a, e);
    }
    trace_group_view_release(&s->view);
    return ok;
}

static bool mode_of(const struct tool_request *r, enum mode *out, struct err *e)
{
    const str word = tool_param(r, S("mode"));
    *out = str_eq(word, S("prefix")) ? PREFIX : str_eq(word, S("regex")) ? REGEX : SUBSTRING;
    return *out != SUBSTRING || word.n == 0 || str_eq(word, S("substring")) ||
           err_set(e, ERR_USAGE, "'mode' is substring, prefix or regex, not '%.*s'", STR_ARG(word));
}

bool tiles_search(const struct tool_request *r, struct arena *a, struct json *j, struct err *e)
{
    struct search s = {.q = tool_param(r, S("q")), .j = j};
    if (!tiles_u64(r, S("limit"), 100, &s.limit, e) ||
        !tiles_u64(r, S("min_dur_ps"), 0, &s.least_ps, e) || !mode_of(r, &s.mode, e))
        return false;
    if (s.q.n == 0)
        return err_set(e, ERR_USAGE, "'q' is missing");
    if (s.mode == REGEX && !pattern_compile(&s.pattern, S("q"), s.q, e))
        return false;
    s.limit = s.limit > LIMIT_HTTP_PAGE_SIZE ? LIMIT_HTTP_PAGE_SIZE : s.limit;
    json_object(j);
    json_key(j, "hits");
    json_array(j);
    const bool ok = search_all(&s, r->profile, a, e);
    json_end(j);
    json_ku64(j, "total", s.total);
    json_end(j);
    pattern_release(&s.pattern);
    return ok;
}
