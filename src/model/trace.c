/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace.h"

#include <stdarg.h>
#include <unistd.h>

#include "model/trace_groups.h"
#include "model/trace_mask.h"

bool trace_event_stats(const struct trace *t, const struct trace_line *line,
                       const struct trace_event *ev, struct arena *a, struct trace_stats *out,
                       struct err *e)
{
    *out = (struct trace_stats){0};
    if (t->source == NULL || t->fd < 0)
        return true;
    if (!t->source->event_stats(t, line, ev, a, out, e))
        return false;
    trace_mask_stats(*out, a);
    return true;
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
    va_list args;
    va_start(args, format);
    note_add(&t->arena, &t->notes, &t->n_notes, &t->notes_capacity, code, count, format, args);
    va_end(args);
}

void trace_free(struct trace *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        map_u64_u32_release(&t->planes[i].metadata_by_id);
        map_u64_u32_release(&t->planes[i].stat_name_by_id);
    }
    if (t->kept != NULL)
        t->kept_free(t->kept);
    trace_groups_free(t->groups);
    if (t->fd >= 0)
        close(t->fd);
    arena_release(&t->arena);
    map_free(t);
}

str trace_target(const struct trace *t)
{
    str name = t->file;
    for (size_t i = name.n; i-- > 0;)
        if (name.p[i] == '/') {
            name = str_sub(name, i + 1, name.n);
            break;
        }
    return str_ends(name, S(TRACE_FILE_ENDING)) ? str_sub(name, 0, name.n - TRACE_FILE_ENDING_BYTES)
                                                : name;
}

struct trace *profile_find_trace(const struct profile *p, str target)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (target.n == 0 || str_eq(target, trace_target(p->traces[i])))
            return p->traces[i];
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (str_eq(target, p->traces[i]->host))
            return p->traces[i];
    return NULL;
}

/* Furthest that two hosts of one session may be apart: beyond it their clocks cannot be trusted. */
#define SHIFT_MAX_NS (INT64_C(86400) * 1000000000)

void profile_align(struct profile *p)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    bool known = p->n_traces > 0;
    for (uint32_t i = 0; i < p->n_traces; i++) {
        const struct trace *t = p->traces[i];
        int64_t at = t->origin_ns;
        known = known && (t->has_epoch || t->profile_start_ns > 0) &&
                !__builtin_add_overflow(at, t->has_epoch ? 0 : t->profile_start_ns, &at);
        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    int64_t apart;
    known = known && !__builtin_sub_overflow(most, least, &apart) && apart <= SHIFT_MAX_NS;
    p->has_epoch = known;
    p->origin_ns = p->n_traces == 0 ? 0 : known ? least : p->traces[0]->origin_ns;
    for (uint32_t i = 0; i < p->n_traces && known; i++) {
        struct trace *t = p->traces[i];
        const int64_t at = t->origin_ns + (t->has_epoch ? 0 : t->profile_start_ns);
        t->shift_ps = (uint64_t)(at - least) * 1000;
    }
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
