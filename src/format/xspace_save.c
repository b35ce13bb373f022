/* SPDX-License-Identifier: Apache-2.0 */
/* The writing half of format/xspace_write.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"
#include "format/wire_write.h"
#include "format/xspace_write.h"

#define FLUSH_BYTES 1048576
#define EVENT_BYTES 64 /* more than an event's own fields take */

struct saver {
    struct xspace_writer *w;
    struct buf out, scratch;
    int fd;
    struct err *e;
};

static int64_t line_start_ns(const struct xspace_line_out *l)
{
    int64_t first = INT64_MAX;
    for (uint64_t i = 0; i < l->n_events; i++)
        if (l->events[i].dur_ps != XSPACE_OPEN && l->events[i].start_ns < first)
            first = l->events[i].start_ns;
    return first == INT64_MAX ? 0 : first;
}

static uint64_t offset_ps(const struct xspace_event_out *ev, int64_t base_ns)
{
    return ((uint64_t)ev->start_ns - (uint64_t)base_ns) * 1000 + ev->sub_ps;
}

static uint64_t event_n(const struct xspace_event_out *ev, int64_t base_ns)
{
    return 3 + wire_varint_n(ev->name_id) + wire_varint_n(offset_ps(ev, base_ns)) +
           wire_varint_n(ev->dur_ps) + ev->stats_n;
}

static int late_order(const void *a, const void *b)
{
    const struct xspace_late_out *x = a, *y = b;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->stats_from < y->stats_from ? -1 : x->stats_from > y->stats_from;
}

/* Bytes of the late stats of an event, of which the first is at *next. */
static uint64_t late_n(const struct xspace_line_out *l, uint64_t event, uint32_t *next)
{
    uint64_t n = 0;
    for (; *next < l->n_late && l->late[*next].event == event; ++*next)
        n += l->late[*next].stats_n;
    return n;
}

static void put_line_head(struct buf *b, const struct xspace_line_out *l, int64_t timestamp_ns)
{
    wire_put_number(b, 1, (uint64_t)l->id);
    wire_put_bytes(b, 2, l->name);
    wire_put_number(b, 3, (uint64_t)timestamp_ns);
}

static uint64_t line_n(struct saver *s, const struct xspace_line_out *l, int64_t base_ns)
{
    buf_clear(&s->scratch);
    put_line_head(&s->scratch, l, base_ns + s->w->shift_ns);
    uint64_t n = s->scratch.n;
    uint32_t next = 0;
    for (uint64_t i = 0; i < l->n_events; i++) {
        const uint64_t late = next < l->n_late ? late_n(l, i, &next) : 0;
        if (l->events[i].dur_ps == XSPACE_OPEN)
            continue;
        const uint64_t body = event_n(&l->events[i], base_ns) + late;
        n += 1 + wire_varint_n(body) + body;
    }
    return n;
}

static bool flush(struct saver *s, size_t least)
{
    if (s->out.n < least)
        return true;
    const bool ok =
        buf_ok(&s->out, "an XSpace", s->e) && file_write_all(s->fd, s->out.p, s->out.n, s->e);
    buf_clear(&s->out);
    return ok;
}

static void put_event(struct buf *b, const struct xspace_line_out *l, uint64_t i, int64_t base_ns,
                      uint32_t *next)
{
    const struct xspace_event_out *ev = &l->events[i];
    const uint32_t first = *next;
    const uint64_t late = *next < l->n_late ? late_n(l, i, next) : 0;
    uint8_t *p =
        ev->dur_ps == XSPACE_OPEN ? NULL : (uint8_t *)buf_reserve(b, EVENT_BYTES + ev->stats_n);
    if (p == NULL)
        return;
    uint8_t *const from = p;
    *p++ = 4 << 3 | 2;
    p = wire_set_varint(p, event_n(ev, base_ns) + late);
    *p++ = 1 << 3;
    p = wire_set_varint(p, ev->name_id);
    *p++ = 2 << 3;
    p = wire_set_varint(p, offset_ps(ev, base_ns));
    *p++ = 3 << 3;
    p = wire_set_varint(p, ev->dur_ps);
    if (ev->stats_n > 0)
        memcpy(p, l->stats.p + ev->stats_from, ev->stats_n);
    b->n += (size_t)(p - from) + ev->stats_n;
    for (uint32_t k = first; k < *next; k++)
        buf_add(b, l->stats.p + l->late[k].stats_from, l->late[k].stats_n);
}

static bool save_line(struct saver *s, const struct xspace_line_out *l)
{
    const int64_t base_ns = line_start_ns(l);
    wire_put_head(&s->out, 3, line_n(s, l, base_ns));
    put_line_head(&s->out, l, base_ns + s->w->shift_ns);
    uint32_t next = 0;
    for (uint64_t i = 0; i < l->n_events; i++) {
        put_event(&s->out, l, i, base_ns, &next);
        if (!flush(s, FLUSH_BYTES))
            return false;
    }
    return true;
}

/* Map entries (1 = id, 2 = metadata: 1 = id, 2 = name, 5 = stats). */
static void put_names(struct buf *b, const struct xspace_plane_out *p)
{
    for (uint32_t i = 0; i < p->n_names; i++) {
        const struct xspace_name_out *n = &p->names[i];
        const uint64_t id = i + 1;
        const uint64_t body =
            1 + wire_varint_n(id) + 1 + wire_varint_n(n->name.n) + n->name.n + n->stats.n;
        wire_put_head(b, 4, 1 + wire_varint_n(id) + 1 + wire_varint_n(body) + body);
        wire_put_number(b, 1, id);
        wire_put_head(b, 2, body);
        wire_put_number(b, 1, id);
        wire_put_bytes(b, 2, n->name);
        buf_add_str(b, buf_str(&n->stats));
    }
}

static void put_stat_names(struct buf *b, const struct interner *names)
{
    for (uint32_t id = 1; id < names->n; id++) {
        const str name = interner_str(names, id);
        const uint64_t body = 1 + wire_varint_n(id) + 1 + wire_varint_n(name.n) + name.n;
        wire_put_head(b, 5, 1 + wire_varint_n(id) + 1 + wire_varint_n(body) + body);
        wire_put_number(b, 1, id);
        wire_put_head(b, 2, body);
        wire_put_number(b, 1, id);
        wire_put_bytes(b, 2, name);
    }
}

struct placed {
    int64_t order;
    uint32_t made;
    void *what;
};

static int placed_order(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->made < y->made ? -1 : x->made > y->made;
}

static struct placed *lines_placed(struct saver *s, const struct xspace_plane_out *p)
{
    struct placed *all = ARENA_ARRAY(&s->w->arena, struct placed, p->n_lines);
    uint32_t n = 0;
    for (struct xspace_line_out *l = p->lines; all != NULL && l != NULL; l = l->next, n++)
        all[n] = (struct placed){l->order, n, l};
    if (n > 1)
        qsort(all, n, sizeof *all, placed_order);
    return all;
}

static bool save_plane(struct saver *s, const struct xspace_plane_out *p, int64_t id)
{
    const struct placed *lines = lines_placed(s, p);
    if (lines == NULL && p->n_lines > 0)
        return arena_full(&s->w->arena, s->e);
    struct buf head;
    buf_init(&head, LIMIT_ARENA_TRACE_BYTES);
    wire_put_number(&head, 1, (uint64_t)id);
    wire_put_bytes(&head, 2, p->name);
    put_names(&head, p);
    put_stat_names(&head, &p->stat_names);
    buf_add_str(&head, buf_str(&p->stats));
    uint64_t n = head.n;
    for (uint32_t i = 0; i < p->n_lines; i++) {
        const struct xspace_line_out *l = lines[i].what;
        if (l->n_late > 1)
            qsort(l->late, l->n_late, sizeof *l->late, late_order);
        const uint64_t body = line_n(s, l, line_start_ns(l));
        n += 1 + wire_varint_n(body) + body;
    }
    wire_put_head(&s->out, 1, n);
    bool ok = buf_ok(&head, "the names of an XSpace", s->e) && flush(s, 1) &&
              file_write_all(s->fd, head.p, head.n, s->e);
    buf_release(&head);
    for (uint32_t i = 0; ok && i < p->n_lines; i++)
        ok = save_line(s, lines[i].what);
    return ok;
}

static bool save_planes(struct saver *s)
{
    struct placed *all = NULL;
    uint32_t n = 0, capacity = 0;
    for (struct xspace_plane_out *p = s->w->planes; p != NULL; p = p->next) {
        if (!ARENA_PUSH(&s->w->arena, all, n, capacity))
            return arena_full(&s->w->arena, s->e);
        all[n - 1] = (struct placed){p->order, n, p};
    }
    if (n > 1)
        qsort(all, n, sizeof *all, placed_order);
    for (uint32_t i = 0; i < n; i++)
        if (!save_plane(s, all[i].what, (int64_t)i + 1))
            return false;
    return true;
}

bool xspace_writer_save(struct xspace_writer *w, int fd, struct err *e)
{
    if (w->full || w->arena.overflow)
        return err_set(e, ERR_LIMIT, "the imported trace has more than %" PRIu64 " bytes of events",
                       (uint64_t)LIMIT_IMPORT_BYTES);
    struct saver s = {.w = w, .fd = fd, .e = e};
    buf_init(&s.out, LIMIT_IMPORT_BYTES);
    buf_init(&s.scratch, LIMIT_IMPORT_BYTES);
    bool ok = save_planes(&s);
    for (uint32_t i = 0; i < w->n_warnings; i++)
        wire_put_bytes(&s.out, 3, w->warnings[i]);
    for (uint32_t i = 0; i < w->n_hostnames; i++)
        wire_put_bytes(&s.out, 4, w->hostnames[i]);
    ok = ok && flush(&s, 1);
    buf_release(&s.out);
    buf_release(&s.scratch);
    return ok;
}
