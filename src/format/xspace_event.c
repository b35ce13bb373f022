/* SPDX-License-Identifier: Apache-2.0 */
/* One XEvent into a row. Nearly all events are written in one way: its fields in order, each tag one byte. Those are
 * decoded here without a loop over bytes; whatever looks otherwise is decoded field by field (wire.h), which also
 * says what is wrong with it. */
#include "format/xspace_internal.h"

#define TIME_MAX_PS (INT64_MAX / 2)

struct event {
    uint64_t id;
    int64_t offset, duration, occurrences;
    uint32_t seen; /* bits of side slots */
};
_Static_assert(SIDE_SLOTS <= 32, "seen has a bit for each side slot");

/* A varint, of which eight bytes are read at once; NULL when it has more. The caller looks where it ended. */
static inline const uint8_t *varint(const uint8_t *p, uint64_t *out)
{
    if (*p < 0x80) {
        *out = *p;
        return p + 1;
    }
    uint64_t x;
    memcpy(&x, p, 8);
    const uint64_t stop = ~x & UINT64_C(0x8080808080808080);
    if (stop == 0)
        return NULL;
    x &= stop ^ (stop - 1);
    x = (x & UINT64_C(0x7f007f007f007f00)) >> 1 | (x & UINT64_C(0x007f007f007f007f));
    x = (x & UINT64_C(0xffff0000ffff0000)) >> 2 | (x & UINT64_C(0x0000ffff0000ffff));
    x = (x & UINT64_C(0xffffffff00000000)) >> 4 | (x & UINT64_C(0x00000000ffffffff));
    *out = x;
    return p + (__builtin_ctzll(stop) >> 3) + 1;
}

static uint32_t name_index(const struct event_sink *s, uint64_t id)
{
    if (id < s->ids->n_names)
        return s->ids->names[id];
    const uint32_t *at = map_u64_u32_get(&s->plane->stat_name_by_id, id);
    return at == NULL ? UINT32_MAX : *at;
}

static enum side_slot slot_of(const struct event_sink *s, uint64_t id)
{
    if (id < s->ids->n_names)
        return (enum side_slot)s->ids->slots[id];
    const uint32_t index = s->ids->has_large_slot ? name_index(s, id) : UINT32_MAX;
    return index == UINT32_MAX ? SIDE_SLOTS : side_find(s->plane->stat_names[index]);
}

static void stat_keep(struct event_sink *s, struct event *ev, enum side_slot slot,
                      enum side_kind kind, uint64_t value)
{
    if ((ev->seen >> slot & 1) != 0) /* the first of a name counts */
        return;
    ev->seen |= UINT32_C(1) << slot;
    side_table_set(&s->rows.side, s->rows.n, slot, kind, value);
}

/* A stat that is written in an unusual way. */
static void stat_slow(struct event_sink *s, struct event *ev, const uint8_t *p, size_t n)
{
    struct wire w = wire_from((str){(const char *)p, n}, 0);
    uint64_t id = 0, value = 0;
    uint32_t field = 0;
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_VARINT)
            id = w.number;
        else if (w.field <= 8) {
            field = w.field;
            value = w.number;
        }
    if (w.wrong != NULL) {
        s->n_bad_stats++;
        return;
    }
    const enum side_slot slot = slot_of(s, id);
    if (slot == SIDE_SLOTS || field == 0)
        return;
    static const enum side_kind kinds[] = {0,
                                           0,
                                           SIDE_F64,
                                           SIDE_U64,
                                           SIDE_I64,
                                           SIDE_ELSEWHERE,
                                           SIDE_ELSEWHERE,
                                           SIDE_REFERENCE,
                                           SIDE_ELSEWHERE};
    stat_keep(s, ev, slot, kinds[field],
              kinds[field] == SIDE_REFERENCE ? name_index(s, value) : value);
}

static inline void stat_add(struct event_sink *s, struct event *ev, const uint8_t *p, size_t n)
{
    const uint8_t *const end = p + n;
    uint64_t id, value = 0;
    const uint8_t *at = n > 0 && *p == 0x08 ? varint(p + 1, &id) : NULL;
    if (at == NULL || at >= end) {
        if (n > 0)
            stat_slow(s, ev, p, n);
        return;
    }
    const enum side_slot slot = slot_of(s, id);
    if (slot == SIDE_SLOTS)
        return;
    enum side_kind kind;
    switch (*at++) {
    case 0x11:
        kind = SIDE_F64;
        memcpy(&value, at, 8);
        at += 8;
        break;
    case 0x18:
        kind = SIDE_U64;
        at = varint(at, &value);
        break;
    case 0x20:
        kind = SIDE_I64;
        at = varint(at, &value);
        break;
    case 0x38:
        kind = SIDE_REFERENCE;
        at = varint(at, &value);
        value = at == NULL ? 0 : name_index(s, value);
        break;
    default:
        at = NULL;
        break;
    }
    if (at != end)
        stat_slow(s, ev, p, n);
    else
        stat_keep(s, ev, slot, kind, value);
}

/* False when the event is not written in the usual way: nothing is known of it then. */
static inline bool event_fast(struct event_sink *s, const uint8_t *p, const uint8_t *end,
                              struct event *ev)
{
    uint64_t number;
    while (p < end) {
        const uint8_t tag = *p++;
        p = varint(p, &number);
        if (p == NULL || p > end)
            return false;
        switch (tag) {
        case 0x08:
            ev->id = number;
            break;
        case 0x10:
            ev->offset = (int64_t)number;
            ev->occurrences = 0;
            break;
        case 0x18:
            ev->duration = (int64_t)number;
            break;
        case 0x22:
            if (number > (uint64_t)(end - p))
                return false;
            stat_add(s, ev, p, (size_t)number);
            p += number;
            break;
        case 0x28:
            ev->occurrences = (int64_t)number;
            ev->offset = 0;
            break;
        default:
            return false;
        }
    }
    return true;
}

static bool event_slow(struct event_sink *s, str bytes, uint64_t pos, struct event *ev,
                       struct err *e)
{
    struct wire in = wire_from(bytes, pos);
    while (wire_next(&in)) {
        if (in.field == 4 && in.type == WIRE_LEN)
            stat_add(s, ev, (const uint8_t *)in.bytes.p, in.bytes.n);
        if (in.type != WIRE_VARINT)
            continue;
        if (in.field == 1) {
            ev->id = in.number;
        } else if (in.field == 2) {
            ev->offset = (int64_t)in.number;
            ev->occurrences = 0;
        } else if (in.field == 3) {
            ev->duration = (int64_t)in.number;
        } else if (in.field == 5) {
            ev->occurrences = (int64_t)in.number;
            ev->offset = 0;
        }
    }
    return wire_ok(&in, e);
}

static uint32_t metadata_index(struct event_sink *s, uint64_t id)
{
    if (id < s->ids->n_metadata)
        return s->ids->metadata[id];
    if (!s->has_last_id || id != s->last_id) {
        const uint32_t *at = map_u64_u32_get(&s->plane->metadata_by_id, id);
        s->has_last_id = true;
        s->last_id = id;
        s->last_index = at == NULL ? UINT32_MAX : *at;
    }
    return s->last_index;
}

bool xspace_event_add(struct event_sink *s, const uint8_t *p, size_t n, uint64_t pos, struct err *e)
{
    struct trace_rows *const r = &s->rows;
    const uint32_t i = r->n;
    struct event ev = {0};
    if (!event_fast(s, p, p + n, &ev)) {
        side_table_clear(&r->side, i, 1);
        ev = (struct event){0};
        if (!event_slow(s, (str){(const char *)p, n}, pos, &ev, e))
            return false;
    }
    if (ev.offset < 0 || ev.duration < 0 || ev.offset >= TIME_MAX_PS ||
        ev.duration >= TIME_MAX_PS || ev.occurrences < 0) {
        side_table_clear(&r->side, i, 1);
        s->n_bad++;
        return true;
    }
    r->start_ps[i] = (uint64_t)ev.offset;
    r->dur_ps[i] = (uint64_t)ev.duration;
    r->src[i] = pos;
    r->src_bytes[i] = (uint32_t)n;
    r->metadata_index[i] = metadata_index(s, ev.id);
    r->num_occurrences[i] = ev.occurrences > UINT32_MAX ? UINT32_MAX : (uint32_t)ev.occurrences;
    s->n_unknown += r->metadata_index[i] == UINT32_MAX;
    s->n_aggregated += ev.occurrences > 0;
    if (i > 0 && !trace_order(r->start_ps[i - 1], r->dur_ps[i - 1], r->src[i - 1], r->start_ps[i],
                              r->dur_ps[i], pos)) {
        s->unsorted = true;
        s->goes_back = s->goes_back || r->start_ps[i] < r->start_ps[i - 1];
    }
    r->n = i + 1;
    return true;
}
