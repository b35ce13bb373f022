/* SPDX-License-Identifier: Apache-2.0 */
#include "format/xspace_write.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "format/wire_write.h"

void xspace_writer_init(struct xspace_writer *w)
{
    *w = (struct xspace_writer){0};
    arena_init(&w->arena, "XSpace writer", LIMIT_ARENA_TRACE_BYTES);
    w->planes_end = &w->planes;
}

void xspace_writer_release(struct xspace_writer *w)
{
    for (struct xspace_plane_out *p = w->planes; p != NULL; p = p->next) {
        for (struct xspace_line_out *l = p->lines; l != NULL; l = l->next) {
            free(l->events);
            buf_release(&l->stats);
        }
        for (uint32_t i = 0; i < p->n_names; i++)
            buf_release(&p->names[i].stats);
        buf_release(&p->stats);
        map_str_u32_release(&p->name_ids);
        interner_release(&p->stat_names);
    }
    arena_release(&w->arena);
    *w = (struct xspace_writer){0};
}

struct xspace_plane_out *xspace_writer_plane(struct xspace_writer *w)
{
    struct xspace_plane_out *p = ARENA_NEW(&w->arena, struct xspace_plane_out);
    if (p == NULL)
        return NULL;
    interner_init(&p->stat_names, &w->arena);
    buf_init(&p->stats, LIMIT_IMPORT_BYTES);
    p->lines_end = &p->lines;
    *w->planes_end = p;
    w->planes_end = &p->next;
    return p;
}

struct xspace_line_out *xspace_writer_line(struct xspace_writer *w, struct xspace_plane_out *p,
                                           int64_t id, str name)
{
    struct xspace_line_out *l = p == NULL ? NULL : ARENA_NEW(&w->arena, struct xspace_line_out);
    if (l == NULL)
        return NULL;
    l->plane = p;
    l->id = id;
    l->name = arena_str(&w->arena, name);
    buf_init(&l->stats, LIMIT_IMPORT_BYTES);
    *p->lines_end = l;
    p->lines_end = &l->next;
    p->n_lines++;
    return l;
}

/* -- names -- */

uint32_t xspace_writer_stat_id(struct xspace_writer *w, struct xspace_plane_out *p, str name)
{
    const uint32_t id = p == NULL ? UINT32_MAX : interner_id(&p->stat_names, name);
    w->full = w->full || id == UINT32_MAX;
    return id == UINT32_MAX ? 0 : id;
}

static uint32_t name_add(struct xspace_writer *w, struct xspace_plane_out *p, str name)
{
    const str kept = arena_str(&w->arena, name);
    if (kept.p == NULL || !ARENA_PUSH(&w->arena, p->names, p->n_names, p->names_capacity)) {
        w->full = true;
        return 0;
    }
    struct xspace_name_out *n = &p->names[p->n_names - 1];
    n->name = kept;
    buf_init(&n->stats, LIMIT_IMPORT_BYTES);
    return p->n_names;
}

uint32_t xspace_writer_name(struct xspace_writer *w, struct xspace_plane_out *p, str name)
{
    if (p == NULL)
        return 0;
    const uint32_t *known = map_str_u32_get(&p->name_ids, name);
    if (known != NULL)
        return *known;
    const uint32_t id = name_add(w, p, name);
    if (id != 0)
        *map_str_u32_put(&p->name_ids, p->names[id - 1].name) = id;
    return id;
}

static void put_stat_str(struct buf *b, uint32_t field, uint32_t stat_id, str value)
{
    wire_put_head(b, field, 1 + wire_varint_n(stat_id) + 1 + wire_varint_n(value.n) + value.n);
    wire_put_number(b, 1, stat_id);
    wire_put_bytes(b, 5, value);
}

static void put_stat_number(struct buf *b, uint32_t field, uint32_t stat_id, uint32_t kind,
                            uint64_t value)
{
    wire_put_head(b, field, 1 + wire_varint_n(stat_id) + 1 + wire_varint_n(value));
    wire_put_number(b, 1, stat_id);
    wire_put_number(b, kind, value);
}

uint32_t xspace_writer_name_with(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                                 str stat, str value)
{
    const uint32_t stat_id = xspace_writer_stat_id(w, p, stat);
    const uint32_t id = stat_id == 0 ? 0 : name_add(w, p, name);
    if (id != 0) {
        w->event_bytes += value.n;
        put_stat_str(&p->names[id - 1].stats, 5, stat_id, value);
        w->full = w->full || p->names[id - 1].stats.overflow;
    }
    return id;
}

/* -- stats and events -- */

enum { STAT_F64 = 2, STAT_U64 = 3, STAT_I64 = 4, STAT_STR = 5 }; /* fields of XStat */

void xspace_writer_plane_i64(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             int64_t value)
{
    const uint32_t id = xspace_writer_stat_id(w, p, name);
    if (id != 0)
        put_stat_number(&p->stats, 6, id, STAT_I64, (uint64_t)value);
}

void xspace_writer_plane_str(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             str value)
{
    const uint32_t id = xspace_writer_stat_id(w, p, name);
    if (id != 0)
        put_stat_str(&p->stats, 6, id, value);
}

/* An XStat with a number is at most 18 bytes: tag, length, tag, id, tag, value. */
static void stat_number(struct xspace_line_out *l, uint32_t stat_id, uint8_t kind, uint64_t value)
{
    uint8_t *p = l == NULL || stat_id == 0 ? NULL : (uint8_t *)buf_reserve(&l->stats, 24);
    if (p == NULL)
        return;
    uint8_t *const from = p;
    p[0] = 4 << 3 | 2;
    p[2] = 1 << 3;
    p = wire_set_varint(p + 3, stat_id);
    *p++ = (uint8_t)(kind << 3);
    p = wire_set_varint(p, value);
    from[1] = (uint8_t)(p - from - 2);
    l->stats.n += (size_t)(p - from);
}

void xspace_writer_stat_i64(struct xspace_line_out *l, uint32_t stat_id, int64_t value)
{
    stat_number(l, stat_id, STAT_I64, (uint64_t)value);
}

void xspace_writer_stat_u64(struct xspace_line_out *l, uint32_t stat_id, uint64_t value)
{
    stat_number(l, stat_id, STAT_U64, value);
}

void xspace_writer_stat_f64(struct xspace_line_out *l, uint32_t stat_id, double value)
{
    uint8_t *p = l == NULL || stat_id == 0 ? NULL : (uint8_t *)buf_reserve(&l->stats, 24);
    if (p == NULL)
        return;
    uint8_t *const from = p;
    p[0] = 4 << 3 | 2;
    p[2] = 1 << 3;
    p = wire_set_varint(p + 3, stat_id);
    *p++ = STAT_F64 << 3 | 1;
    memcpy(p, &value, sizeof value);
    p += sizeof value;
    from[1] = (uint8_t)(p - from - 2);
    l->stats.n += (size_t)(p - from);
}

void xspace_writer_stat_str(struct xspace_line_out *l, uint32_t stat_id, str value)
{
    uint8_t *p = l == NULL || stat_id == 0 ? NULL : (uint8_t *)buf_reserve(&l->stats, value.n + 40);
    if (p == NULL)
        return;
    uint8_t *const from = p;
    *p++ = 4 << 3 | 2;
    p = wire_set_varint(p, 1 + wire_varint_n(stat_id) + 1 + wire_varint_n(value.n) + value.n);
    *p++ = 1 << 3;
    p = wire_set_varint(p, stat_id);
    *p++ = STAT_STR << 3 | 2;
    p = wire_set_varint(p, value.n);
    if (value.n > 0)
        memcpy(p, value.p, value.n);
    l->stats.n += (size_t)(p - from) + value.n;
}

static bool line_grow(struct xspace_line_out *l)
{
    if (l->n_events < l->capacity)
        return true;
    const uint64_t capacity = l->capacity == 0 ? 64 : l->capacity * 2;
    struct xspace_event_out *grown = realloc(l->events, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    l->events = grown;
    l->capacity = capacity;
    return true;
}

/* Counts the stats since the last event. False when there is no room for more. */
static bool stats_taken(struct xspace_writer *w, struct xspace_line_out *l, size_t more)
{
    const uint64_t n = l->stats.n - l->stats_from;
    w->event_bytes += n + more;
    w->full = w->full || l->stats.overflow || n > UINT32_MAX || w->event_bytes > LIMIT_IMPORT_BYTES;
    return !w->full;
}

void xspace_writer_event(struct xspace_writer *w, struct xspace_line_out *l, uint32_t name_id,
                         int64_t start_ns, uint32_t sub_ps, uint64_t dur_ps)
{
    if (l == NULL || name_id == 0 || !stats_taken(w, l, sizeof *l->events) || !line_grow(l)) {
        w->full = true;
        return;
    }
    l->events[l->n_events++] =
        (struct xspace_event_out){.start_ns = start_ns,
                                  .sub_ps = sub_ps,
                                  .name_id = name_id,
                                  .dur_ps = dur_ps,
                                  .stats_from = l->stats_from,
                                  .stats_n = (uint32_t)(l->stats.n - l->stats_from)};
    l->stats_from = l->stats.n;
}

void xspace_writer_late(struct xspace_writer *w, struct xspace_line_out *l, uint64_t event)
{
    if (l == NULL || l->stats.n == l->stats_from)
        return;
    if (!stats_taken(w, l, sizeof *l->late) ||
        !ARENA_PUSH(&w->arena, l->late, l->n_late, l->late_capacity)) {
        w->full = true;
        return;
    }
    l->late[l->n_late - 1] =
        (struct xspace_late_out){event, l->stats_from, (uint32_t)(l->stats.n - l->stats_from)};
    l->stats_from = l->stats.n;
}

void xspace_writer_lend(struct xspace_writer *w, struct xspace_line_out *l, uint64_t from,
                        uint64_t to)
{
    const struct xspace_event_out *ev = &l->events[from];
    if (ev->stats_n == 0)
        return;
    if (ARENA_PUSH(&w->arena, l->late, l->n_late, l->late_capacity))
        l->late[l->n_late - 1] = (struct xspace_late_out){to, ev->stats_from, ev->stats_n};
    else
        w->full = true;
}

static void add_text(struct xspace_writer *w, str **list, uint32_t *n, uint32_t *capacity, str text)
{
    if (ARENA_PUSH(&w->arena, *list, *n, *capacity))
        (*list)[*n - 1] = arena_str(&w->arena, text);
}

void xspace_writer_warn(struct xspace_writer *w, str text)
{
    add_text(w, &w->warnings, &w->n_warnings, &w->warnings_capacity, text);
}

void xspace_writer_host(struct xspace_writer *w, str name)
{
    add_text(w, &w->hostnames, &w->n_hostnames, &w->hostnames_capacity, name);
}
