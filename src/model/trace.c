/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace.h"

#include <stdarg.h>
#include <unistd.h>

#include "model/trace_groups.h"

bool trace_event_stats(const struct trace *t, const struct trace_line *line,
                       const struct trace_event *ev, struct arena *a, struct trace_stats *out,
                       struct err *e)
{
    *out = (struct trace_stats){0};
    if (t->source == NULL || t->fd < 0)
        return true;
    return t->source->event_stats(t, line, ev, a, out, e);
}

const struct trace_event_metadata *trace_event_meta(const struct trace *t,
                                                    const struct trace_line *line,
                                                    const struct trace_event *ev)
{
    const struct trace_plane *plane = &t->planes[line->plane_index];
    return ev->metadata_index < plane->n_event_metadata ? &plane->event_metadata[ev->metadata_index]
                                                        : NULL;
}

str trace_event_name(const struct trace *t, const struct trace_line *line,
                     const struct trace_event *ev)
{
    const struct trace_event_metadata *m = trace_event_meta(t, line, ev);
    if (m == NULL)
        return S("?");
    if (m->display_name.n > 0)
        return m->display_name;
    return m->name.n > 0 ? m->name : S("?");
}

const struct trace_stat *trace_stat_find(struct trace_stats stats, str name)
{
    for (uint32_t i = 0; i < stats.n; i++)
        if (str_eq(stats.items[i].name, name))
            return &stats.items[i];
    return NULL;
}

bool trace_stat_i64(const struct trace_stat *s, int64_t *out)
{
    if (s == NULL)
        return false;
    switch (s->type) {
    case TRACE_STAT_I64:
        *out = s->i64;
        return true;
    case TRACE_STAT_U64:
        *out = (int64_t)s->u64;
        return s->u64 <= INT64_MAX;
    case TRACE_STAT_F64:
        if (!(s->f64 > -9.2e18 && s->f64 < 9.2e18))
            return false;
        *out = (int64_t)s->f64;
        return (double)*out == s->f64;
    case TRACE_STAT_STR:
        return str_to_i64(s->text, out);
    case TRACE_STAT_NONE:
    case TRACE_STAT_BYTES:
        break;
    }
    return false;
}

bool trace_stat_f64(const struct trace_stat *s, double *out)
{
    if (s == NULL)
        return false;
    switch (s->type) {
    case TRACE_STAT_I64:
        *out = (double)s->i64;
        return true;
    case TRACE_STAT_U64:
        *out = (double)s->u64;
        return true;
    case TRACE_STAT_F64:
        *out = s->f64;
        return true;
    case TRACE_STAT_STR:
        return str_to_f64(s->text, out);
    case TRACE_STAT_NONE:
    case TRACE_STAT_BYTES:
        break;
    }
    return false;
}

bool trace_stat_str(const struct trace_stat *s, str *out)
{
    if (s == NULL || (s->type != TRACE_STAT_STR && s->type != TRACE_STAT_BYTES))
        return false;
    *out = s->text;
    return true;
}

void trace_note(struct trace *t, str code, uint64_t count, const char *format, ...)
{
    for (uint32_t i = 0; i < t->n_notes; i++)
        if (str_eq(t->notes[i].code, code)) {
            t->notes[i].count += count;
            return;
        }
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!ARENA_PUSH(&t->arena, t->notes, t->n_notes, t->notes_capacity))
        return;
    t->notes[t->n_notes - 1] = (struct trace_warning){
        arena_str(&t->arena, code), arena_str(&t->arena, str_from(text)), count};
}

void trace_free(struct trace *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        map_u64_u32_release(&t->planes[i].metadata_by_id);
        map_u64_u32_release(&t->planes[i].stat_name_by_id);
    }
    trace_groups_free(t->groups);
    if (t->fd >= 0)
        close(t->fd);
    arena_release(&t->arena);
    map_free(t);
}

void profile_free(struct profile *p)
{
    if (p == NULL)
        return;
    for (uint32_t i = 0; i < p->n_traces; i++)
        trace_free(p->traces[i]);
    arena_release(&p->arena);
    map_free(p);
}
