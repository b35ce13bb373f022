/* SPDX-License-Identifier: Apache-2.0 */
#include "format/xspace_write.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"

#define FLUSH_BYTES 1048576

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
        buf_release(&p->stats);
        interner_release(&p->names);
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
    interner_init(&p->names, &w->arena);
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

/* -- wire format -- */

static void put_varint(struct buf *b, uint64_t v)
{
    char bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    buf_add(b, bytes, n);
}

static void put_number(struct buf *b, uint32_t field, uint64_t v)
{
    put_varint(b, field << 3);
    put_varint(b, v);
}

static void put_head(struct buf *b, uint32_t field, uint64_t n)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, n);
}

static void put_bytes(struct buf *b, uint32_t field, str s)
{
    put_head(b, field, s.n);
    buf_add_str(b, s);
}

static uint64_t varint_n(uint64_t v)
{
    uint64_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

/* -- stats and events -- */

static bool plane_stat_begin(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             struct buf *body)
{
    if (p == NULL || w->full)
        return false;
    const uint32_t id = interner_id(&p->stat_names, name);
    buf_init(body, LIMIT_JSON_STRING_BYTES + 64);
    put_number(body, 1, id);
    return id != UINT32_MAX;
}

void xspace_writer_plane_i64(struct xspace_writer *w, struct xspace_plane_out *p, str name,
                             int64_t value)
{
    struct buf body;
    if (!plane_stat_begin(w, p, name, &body))
        return;
    put_number(&body, 4, (uint64_t)value);
    put_bytes(&p->stats, 6, buf_str(&body));
    w->full = w->full || body.overflow || p->stats.overflow;
    buf_release(&body);
}

static bool stat_begin(struct xspace_writer *w, struct xspace_line_out *l, str name,
                       struct buf *body)
{
    return l != NULL && plane_stat_begin(w, l->plane, name, body);
}

static void stat_end(struct xspace_writer *w, struct xspace_line_out *l, struct buf *body)
{
    const uint64_t before = l->stats.n;
    put_bytes(&l->stats, 4, buf_str(body));
    w->event_bytes += l->stats.n - before;
    w->full = w->full || body->overflow || l->stats.overflow;
    buf_release(body);
}

void xspace_writer_stat_i64(struct xspace_writer *w, struct xspace_line_out *l, str name,
                            int64_t value)
{
    struct buf body;
    if (!stat_begin(w, l, name, &body))
        return;
    put_number(&body, 4, (uint64_t)value);
    stat_end(w, l, &body);
}

void xspace_writer_stat_f64(struct xspace_writer *w, struct xspace_line_out *l, str name,
                            double value)
{
    struct buf body;
    if (!stat_begin(w, l, name, &body))
        return;
    put_varint(&body, 2 << 3 | 1);
    buf_add(&body, &value, sizeof value);
    stat_end(w, l, &body);
}

void xspace_writer_stat_str(struct xspace_writer *w, struct xspace_line_out *l, str name, str value)
{
    struct buf body;
    if (!stat_begin(w, l, name, &body))
        return;
    put_bytes(&body, 5, value);
    stat_end(w, l, &body);
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

void xspace_writer_event(struct xspace_writer *w, struct xspace_line_out *l, str name,
                         int64_t start_ns, uint32_t sub_ps, uint64_t dur_ps)
{
    if (l == NULL || w->full) {
        w->full = true;
        return;
    }
    const uint32_t id = interner_id(&l->plane->names, name);
    w->event_bytes += sizeof *l->events;
    if (id == UINT32_MAX || w->event_bytes > LIMIT_IMPORT_BYTES || !line_grow(l)) {
        w->full = true;
        return;
    }
    l->events[l->n_events++] =
        (struct xspace_event_out){.start_ns = start_ns,
                                  .sub_ps = sub_ps,
                                  .name_id = id,
                                  .dur_ps = dur_ps,
                                  .stats_from = l->stats_from,
                                  .stats_n = (uint32_t)(l->stats.n - l->stats_from)};
    l->stats_from = l->stats.n;
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

/* -- saving -- */

static int64_t line_start_ns(const struct xspace_line_out *l)
{
    int64_t first = l->n_events == 0 ? 0 : INT64_MAX;
    for (uint64_t i = 0; i < l->n_events; i++)
        if (l->events[i].start_ns < first)
            first = l->events[i].start_ns;
    return first;
}

/* The event's own fields; its stats follow them. */
static void put_event(struct buf *b, const struct xspace_event_out *ev, int64_t base_ns)
{
    put_number(b, 1, ev->name_id);
    put_number(b, 2, ((uint64_t)ev->start_ns - (uint64_t)base_ns) * 1000 + ev->sub_ps);
    put_number(b, 3, ev->dur_ps);
}

static void put_line_head(struct buf *b, const struct xspace_line_out *l, int64_t timestamp_ns)
{
    put_number(b, 1, (uint64_t)l->id);
    put_bytes(b, 2, l->name);
    put_number(b, 3, (uint64_t)timestamp_ns);
}

static void put_line_events(struct buf *b, struct buf *scratch, const struct xspace_line_out *l,
                            int64_t base_ns, const struct xspace_event_out *ev)
{
    buf_clear(scratch);
    put_event(scratch, ev, base_ns);
    put_head(b, 4, scratch->n + ev->stats_n);
    buf_add_str(b, buf_str(scratch));
    if (ev->stats_n > 0)
        buf_add(b, l->stats.p + ev->stats_from, ev->stats_n);
}

static uint64_t line_n(const struct xspace_line_out *l, int64_t shift_ns, struct buf *scratch)
{
    const int64_t base_ns = line_start_ns(l);
    buf_clear(scratch);
    put_line_head(scratch, l, base_ns + shift_ns);
    uint64_t n = scratch->n;
    for (uint64_t i = 0; i < l->n_events; i++) {
        buf_clear(scratch);
        put_event(scratch, &l->events[i], base_ns);
        const uint64_t body = scratch->n + l->events[i].stats_n;
        n += 1 + varint_n(body) + body;
    }
    return n;
}

static bool flush(struct buf *b, size_t least, int fd, struct err *e)
{
    if (b->n < least)
        return true;
    const bool ok = buf_ok(b, "an XSpace", e) && file_write_all(fd, b->p, b->n, e);
    buf_clear(b);
    return ok;
}

static bool save_line(const struct xspace_line_out *l, int64_t shift_ns, struct buf *b,
                      struct buf *scratch, int fd, struct err *e)
{
    const int64_t base_ns = line_start_ns(l);
    put_head(b, 3, line_n(l, shift_ns, scratch));
    put_line_head(b, l, base_ns + shift_ns);
    for (uint64_t i = 0; i < l->n_events; i++) {
        put_line_events(b, scratch, l, base_ns, &l->events[i]);
        if (!flush(b, FLUSH_BYTES, fd, e))
            return false;
    }
    return true;
}

/* A map entry (1 = id, 2 = metadata) for each name that was interned. */
static void put_names(struct buf *b, struct buf *scratch, uint32_t field,
                      const struct interner *names)
{
    for (uint32_t id = 0; id < names->n; id++) {
        const str name = interner_str(names, id);
        buf_clear(scratch);
        put_number(scratch, 1, id);
        put_head(scratch, 2, 1 + varint_n(id) + 1 + varint_n(name.n) + name.n);
        put_number(scratch, 1, id);
        put_bytes(scratch, 2, name);
        put_bytes(b, field, buf_str(scratch));
    }
}

static bool save_plane(const struct xspace_plane_out *p, int64_t id, int64_t shift_ns,
                       struct buf *b, struct buf *scratch, int fd, struct err *e)
{
    struct buf head;
    buf_init(&head, LIMIT_ARENA_TRACE_BYTES);
    put_number(&head, 1, (uint64_t)id);
    put_bytes(&head, 2, p->name);
    put_names(&head, scratch, 4, &p->names);
    put_names(&head, scratch, 5, &p->stat_names);
    buf_add_str(&head, buf_str(&p->stats));
    uint64_t n = head.n;
    for (const struct xspace_line_out *l = p->lines; l != NULL; l = l->next) {
        const uint64_t body = line_n(l, shift_ns, scratch);
        n += 1 + varint_n(body) + body;
    }
    put_head(b, 1, n);
    bool ok =
        buf_ok(&head, "the names of an XSpace", e) && flush(b, 1, fd, e) && flush(&head, 1, fd, e);
    buf_release(&head);
    for (const struct xspace_line_out *l = p->lines; ok && l != NULL; l = l->next)
        ok = save_line(l, shift_ns, b, scratch, fd, e);
    return ok;
}

bool xspace_writer_save(struct xspace_writer *w, int fd, struct err *e)
{
    if (w->full || w->arena.overflow)
        return err_set(e, ERR_LIMIT, "the imported trace has more than %" PRIu64 " bytes of events",
                       (uint64_t)LIMIT_IMPORT_BYTES);
    struct buf b, scratch;
    buf_init(&b, LIMIT_IMPORT_BYTES);
    buf_init(&scratch, LIMIT_IMPORT_BYTES);
    bool ok = true;
    int64_t id = 0;
    for (const struct xspace_plane_out *p = w->planes; ok && p != NULL; p = p->next)
        ok = save_plane(p, ++id, w->shift_ns, &b, &scratch, fd, e);
    for (uint32_t i = 0; i < w->n_warnings; i++)
        put_bytes(&b, 3, w->warnings[i]);
    for (uint32_t i = 0; i < w->n_hostnames; i++)
        put_bytes(&b, 4, w->hostnames[i]);
    ok = ok && flush(&b, 1, fd, e);
    buf_release(&b);
    buf_release(&scratch);
    return ok;
}
