/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "format/index_internal.h"

#define GROUP_BYTES 48 /* of one row group in the trace block */

static void walk_bytes(struct index_walk *w, void *p, size_t n)
{
    if (w->out != NULL) {
        w->bad = !buf_add(w->out, p, n) || w->bad;
        return;
    }
    w->bad = w->bad || w->in.n - w->at < n;
    if (w->bad) {
        memset(p, 0, n);
        return;
    }
    memcpy(p, w->in.p + w->at, n);
    w->at += n;
}

void index_walk_u64(struct index_walk *w, uint64_t *v)
{
    walk_bytes(w, v, sizeof *v);
}

void index_walk_u32(struct index_walk *w, uint32_t *v)
{
    walk_bytes(w, v, sizeof *v);
}

static void walk_i64(struct index_walk *w, int64_t *v)
{
    walk_bytes(w, v, sizeof *v);
}

static void walk_u16(struct index_walk *w, uint16_t *v)
{
    walk_bytes(w, v, sizeof *v);
}

static void walk_bool(struct index_walk *w, bool *v)
{
    uint8_t byte = *v;
    walk_bytes(w, &byte, 1);
    *v = byte != 0;
}

static void walk_str(struct index_walk *w, str *s)
{
    uint32_t n = (uint32_t)s->n;
    w->bad = w->bad || s->n > UINT32_MAX;
    index_walk_u32(w, &n);
    if (w->out != NULL) {
        w->bad = !buf_add(w->out, s->p, n) || w->bad;
        return;
    }
    w->bad = w->bad || w->in.n - w->at < n;
    *s = w->bad ? (str){0} : str_sub(w->in, w->at, w->at + n);
    w->at += s->n;
}

/* A count of elements that take at least `least` bytes each; reading makes the array. */
static void *walk_array(struct index_walk *w, const void *items, uint32_t *n, size_t least,
                        size_t size)
{
    index_walk_u32(w, n);
    void *array = (void *)(uintptr_t)items;
    if (w->out == NULL) {
        w->bad = w->bad || *n > (w->in.n - w->at) / least;
        array = w->bad ? NULL : arena_array(w->a, *n == 0 ? 1 : *n, size, 8);
        w->bad = w->bad || array == NULL;
        *n = w->bad ? 0 : *n;
    }
    return array;
}

bool index_walk_ok(const struct index_walk *w, const char *what, struct err *e)
{
    if (w->out != NULL)
        return buf_ok(w->out, what, e);
    if (w->a != NULL && w->a->overflow)
        return arena_full(w->a, e);
    return (!w->bad && w->at == w->in.n) ||
           err_at(e, ERR_PARSE, w->at, "%s of the index is damaged", what);
}

void index_walk_block(struct index_walk *w, struct index_block *b)
{
    index_walk_u32(w, &b->kind);
    index_walk_u32(w, &b->id);
    index_walk_u64(w, &b->offset);
    index_walk_u32(w, &b->packed_bytes);
    index_walk_u32(w, &b->raw_bytes);
    index_walk_u32(w, &b->crc);
}

void index_walk_footer(struct index_walk *w, struct index_footer *f)
{
    index_walk_u32(w, &f->version);
    index_walk_u32(w, &f->features);
    index_walk_u64(w, &f->of.size_bytes);
    walk_i64(w, &f->of.mtime_ns);
    index_walk_u32(w, &f->of.ends_crc);
    index_walk_u32(w, &f->n_blocks);
    index_walk_block(w, &f->directory);
}

static void walk_texts(struct index_walk *w, str **items, uint32_t *n)
{
    *items = walk_array(w, *items, n, 4, sizeof **items);
    for (uint32_t i = 0; i < *n; i++)
        walk_str(w, &(*items)[i]);
}

static void walk_notes(struct index_walk *w, struct trace *t)
{
    t->notes = walk_array(w, t->notes, &t->n_notes, 16, sizeof *t->notes);
    for (uint32_t i = 0; i < t->n_notes; i++) {
        walk_str(w, &t->notes[i].code);
        walk_str(w, &t->notes[i].message);
        index_walk_u64(w, &t->notes[i].count);
    }
    t->notes_capacity = t->n_notes;
}

static void walk_line(struct index_walk *w, struct trace_line *l)
{
    walk_i64(w, &l->id);
    walk_i64(w, &l->display_id);
    walk_str(w, &l->name);
    walk_str(w, &l->display_name);
    index_walk_u32(w, &l->plane_index);
    walk_i64(w, &l->timestamp_ns);
    index_walk_u64(w, &l->duration_ps);
    index_walk_u64(w, &l->n_events);
    index_walk_u64(w, &l->start_ps);
    index_walk_u64(w, &l->end_ps);
    index_walk_u64(w, &l->busy_ps);
    walk_u16(w, &l->max_depth);
    walk_bool(w, &l->was_unsorted);
    walk_bool(w, &l->overlaps);
    index_walk_u32(w, &l->first_group);
    index_walk_u32(w, &l->n_groups);
    index_walk_u64(w, &l->base_ps);
    index_walk_u32(w, &l->first_level);
    index_walk_u32(w, &l->n_levels);
}

static void walk_level(struct index_walk *w, struct trace_level *l)
{
    index_walk_u32(w, &l->bucket_log2);
    index_walk_u32(w, &l->first_group);
    index_walk_u32(w, &l->n_groups);
    index_walk_u64(w, &l->n_rows);
}

static void walk_plane_head(struct index_walk *w, struct trace_plane *p)
{
    uint32_t kind = p->kind, ordinal = (uint32_t)p->ordinal;
    walk_i64(w, &p->id);
    walk_str(w, &p->name);
    index_walk_u32(w, &kind);
    index_walk_u32(w, &ordinal);
    index_walk_u32(w, &p->first_line);
    index_walk_u32(w, &p->n_lines);
    w->bad = w->bad || kind > TRACE_PLANE_ENVIRONMENT;
    p->kind = (enum trace_plane_kind)kind;
    p->ordinal = (int32_t)ordinal;
}

/* Where the row groups lie and what is in them; they are allocated as trace_groups_free() wants them. */
static void walk_groups(struct index_walk *w, struct trace_groups *g)
{
    uint32_t n = g->n;
    index_walk_u32(w, &n);
    if (w->out == NULL) {
        w->bad = w->bad || n > (w->in.n - w->at) / GROUP_BYTES;
        n = w->bad ? 0 : n;
        g->items = calloc(n == 0 ? 1 : n, sizeof *g->items);
        must(g->items != NULL);
        g->n = g->capacity = n;
    }
    for (uint32_t i = 0; i < n; i++) {
        index_walk_u32(w, &g->items[i].n_events);
        index_walk_u32(w, &g->items[i].n_bytes);
        index_walk_u64(w, &g->items[i].first_start_ps);
        index_walk_u64(w, &g->items[i].last_start_ps);
        index_walk_u64(w, &g->items[i].max_end_ps);
        index_walk_u64(w, &g->items[i].offset);
        index_walk_u32(w, &g->items[i].stored_bytes);
        index_walk_u32(w, &g->items[i].crc);
    }
}

void index_walk_trace(struct index_walk *w, struct trace *t)
{
    walk_i64(w, &t->origin_ns);
    walk_bool(w, &t->has_epoch);
    walk_i64(w, &t->profile_start_ns);
    walk_i64(w, &t->profile_stop_ns);
    index_walk_u64(w, &t->n_events);
    index_walk_u64(w, &t->start_ps);
    index_walk_u64(w, &t->end_ps);
    walk_texts(w, &t->errors, &t->n_errors);
    walk_texts(w, &t->warnings, &t->n_warnings);
    walk_texts(w, &t->hostnames, &t->n_hostnames);
    walk_notes(w, t);
    t->planes = walk_array(w, t->planes, &t->n_planes, 28, sizeof *t->planes);
    for (uint32_t i = 0; i < t->n_planes; i++)
        walk_plane_head(w, &t->planes[i]);
    t->lines = walk_array(w, t->lines, &t->n_lines, 100, sizeof *t->lines);
    for (uint32_t i = 0; i < t->n_lines; i++)
        walk_line(w, &t->lines[i]);
    t->levels = walk_array(w, t->levels, &t->n_levels, 20, sizeof *t->levels);
    for (uint32_t i = 0; i < t->n_levels; i++)
        walk_level(w, &t->levels[i]);
    walk_groups(w, t->groups);
}

static void walk_stats(struct index_walk *w, struct trace_stats *stats)
{
    struct trace_stat *items = walk_array(w, stats->items, &stats->n, 12, sizeof *items);
    for (uint32_t i = 0; i < stats->n; i++) {
        struct trace_stat *s = &items[i];
        uint32_t type = s->type;
        walk_str(w, &s->name);
        index_walk_u32(w, &type);
        w->bad = w->bad || type > TRACE_STAT_BYTES;
        s->type = type > TRACE_STAT_BYTES ? TRACE_STAT_NONE : (enum trace_stat_type)type;
        if (s->type == TRACE_STAT_STR || s->type == TRACE_STAT_BYTES)
            walk_str(w, &s->text);
        else if (s->type == TRACE_STAT_NONE)
            index_walk_u32(w, &(uint32_t){0});
        else
            index_walk_u64(w, &s->u64); /* the bits of doubles and signed numbers too */
    }
    stats->items = items;
}

static void walk_metadata(struct index_walk *w, struct trace_event_metadata *m)
{
    walk_i64(w, &m->id);
    walk_str(w, &m->name);
    walk_str(w, &m->display_name);
    walk_str(w, &m->metadata);
    walk_stats(w, &m->stats);
    int64_t *ids = walk_array(w, m->child_ids, &m->n_child_ids, 8, sizeof *ids);
    for (uint32_t i = 0; i < m->n_child_ids; i++)
        walk_i64(w, &ids[i]);
    m->child_ids = ids;
}

/* Pairs of a map; values that point beyond `limit` are damage. */
static void walk_map(struct index_walk *w, struct map_u64_u32 *m, uint32_t limit)
{
    uint32_t n = (uint32_t)m->n;
    index_walk_u32(w, &n);
    if (w->out != NULL) {
        for (size_t i = 0; map_u64_u32_next(m, &i);) {
            index_walk_u64(w, &m->keys[i - 1]);
            index_walk_u32(w, &m->values[i - 1]);
        }
        return;
    }
    for (uint32_t i = 0; i < n && !w->bad; i++) {
        uint64_t key;
        uint32_t value;
        index_walk_u64(w, &key);
        index_walk_u32(w, &value);
        w->bad = w->bad || value >= limit;
        if (!w->bad)
            *map_u64_u32_put(m, key) = value;
    }
}

void index_walk_plane(struct index_walk *w, struct trace_plane *p)
{
    p->event_metadata =
        walk_array(w, p->event_metadata, &p->n_event_metadata, 28, sizeof *p->event_metadata);
    for (uint32_t i = 0; i < p->n_event_metadata; i++)
        walk_metadata(w, &p->event_metadata[i]);
    walk_stats(w, &p->stats);
    walk_texts(w, &p->stat_names, &p->n_stat_names);
    walk_map(w, &p->metadata_by_id, p->n_event_metadata);
    walk_map(w, &p->stat_name_by_id, p->n_stat_names);
}

/* The events of groups [first, first + n), or UINT64_MAX when these are not there. */
static uint64_t groups_events(const struct trace *t, uint32_t first, uint32_t n)
{
    uint64_t events = 0;
    if (first > t->groups->n || n > t->groups->n - first)
        return UINT64_MAX;
    for (uint32_t g = 0; g < n; g++)
        events += t->groups->items[first + g].n_events;
    return events;
}

static bool line_check(const struct trace *t, uint32_t l)
{
    const struct trace_line *line = &t->lines[l];
    if (line->plane_index >= t->n_planes || line->first_level > t->n_levels ||
        line->n_levels > t->n_levels - line->first_level)
        return false;
    const struct trace_plane *p = &t->planes[line->plane_index];
    for (uint32_t i = line->first_level; i < line->first_level + line->n_levels; i++)
        if (t->levels[i].bucket_log2 > 63 ||
            groups_events(t, t->levels[i].first_group, t->levels[i].n_groups) !=
                t->levels[i].n_rows)
            return false;
    return groups_events(t, line->first_group, line->n_groups) == line->n_events &&
           l >= p->first_line && l - p->first_line < p->n_lines;
}

bool index_trace_check(const struct trace *t, struct err *e)
{
    bool ok = true;
    uint64_t n_lines = 0, n_events = 0;
    for (uint32_t i = 0; i < t->groups->n; i++) {
        const struct trace_group *g = &t->groups->items[i];
        ok = ok && g->n_events > 0 && g->n_events <= LIMIT_TRACE_GROUP_EVENTS &&
             g->n_bytes <= LIMIT_INDEX_BLOCK_BYTES && g->stored_bytes > 0 &&
             g->stored_bytes <= g->n_bytes;
    }
    for (uint32_t i = 0; i < t->n_planes; i++) {
        ok = ok && t->planes[i].first_line <= t->n_lines &&
             t->planes[i].n_lines <= t->n_lines - t->planes[i].first_line;
        n_lines += t->planes[i].n_lines;
    }
    for (uint32_t i = 0; ok && i < t->n_lines; i++) {
        ok = line_check(t, i);
        n_events += t->lines[i].n_events;
    }
    return (ok && n_lines == t->n_lines && n_events == t->n_events) ||
           err_set(e, ERR_PARSE, "the index is damaged: its counts do not agree");
}
