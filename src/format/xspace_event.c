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

/* The low seven bits of each byte, close together. */
static inline uint64_t sevens(uint64_t x, bool by_processor)
{
#ifdef __x86_64__
    if (by_processor) {
        __asm__("pextq %2, %1, %0" : "=r"(x) : "r"(x), "r"(UINT64_C(0x7f7f7f7f7f7f7f7f)));
        return x;
    }
#endif
    (void)by_processor;
    x = (x & UINT64_C(0x7f007f007f007f00)) >> 1 | (x & UINT64_C(0x007f007f007f007f));
    x = (x & UINT64_C(0xffff0000ffff0000)) >> 2 | (x & UINT64_C(0x0000ffff0000ffff));
    return (x & UINT64_C(0xffffffff00000000)) >> 4 | (x & UINT64_C(0x00000000ffffffff));
}

/* A varint, of which eight bytes are read at once; NULL when it has more. The caller looks where it ended. */
static inline const uint8_t *varint(const uint8_t *p, uint64_t *out, bool by_processor)
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
    *out = sevens(x & (stop ^ (stop - 1)), by_processor);
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

/* Always inlined below: the compiler makes one of each for both kinds of processor. */
#define INLINE static inline __attribute__((always_inline))

INLINE void stat_add(struct event_sink *s, struct event *ev, const uint8_t *p, size_t n,
                     bool by_processor)
{
    const uint8_t *const end = p + n;
    uint64_t id, value = 0;
    const uint8_t *at = n > 0 && *p == 0x08 ? varint(p + 1, &id, by_processor) : NULL;
    if (at == NULL || at >= end) {
        if (n > 0)
            stat_slow(s, ev, p, n);
        return;
    }
    const enum side_slot slot = slot_of(s, id);
    if (slot == SIDE_SLOTS)
        return;
    enum side_kind kind;
    const uint8_t tag = *at++;
    if (tag == 0x20 || tag == 0x18) {
        kind = tag == 0x20 ? SIDE_I64 : SIDE_U64;
        at = varint(at, &value, by_processor);
    } else if (tag == 0x38) {
        kind = SIDE_REFERENCE;
        at = varint(at, &value, by_processor);
        value = at == NULL ? 0 : name_index(s, value);
    } else if (tag == 0x11) {
        kind = SIDE_F64;
        memcpy(&value, at, 8);
        at += 8;
    } else {
        at = NULL;
    }
    if (at != end)
        stat_slow(s, ev, p, n);
    else
        stat_keep(s, ev, slot, kind, value);
}

/* One field, if it is the one expected; p stays where it is otherwise. NULL: not written in the usual way. */
INLINE const uint8_t *field_expect(const uint8_t *p, const uint8_t *end, uint8_t tag,
                                   int64_t *number, bool by_processor)
{
    uint64_t value = 0; /* gcc with its sanitizers does not see that it is set */
    if (p >= end || *p != tag)
        return p;
    p = varint(p + 1, &value, by_processor);
    *number = (int64_t)value;
    return p > end ? NULL : p;
}

/* False when the event is not written in the usual way: nothing is known of it then. */
INLINE bool event_fast(struct event_sink *s, const uint8_t *p, const uint8_t *end, struct event *ev,
                       bool by_processor)
{
    int64_t id = 0;
    if ((p = field_expect(p, end, 0x08, &id, by_processor)) == NULL ||
        (p = field_expect(p, end, 0x10, &ev->offset, by_processor)) == NULL ||
        (p = field_expect(p, end, 0x18, &ev->duration, by_processor)) == NULL)
        return false;
    ev->id = (uint64_t)id;
    while (p < end && *p == 0x22) {
        uint64_t n;
        p = varint(p + 1, &n, by_processor);
        if (p == NULL || p > end || n > (uint64_t)(end - p))
            return false;
        stat_add(s, ev, p, (size_t)n, by_processor);
        p += n;
    }
    return p == end;
}

static bool event_slow(struct event_sink *s, str bytes, uint64_t pos, struct event *ev,
                       struct err *e)
{
    struct wire in = wire_from(bytes, pos);
    while (wire_next(&in)) {
        if (in.field == 4 && in.type == WIRE_LEN)
            stat_add(s, ev, (const uint8_t *)in.bytes.p, in.bytes.n, false);
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

static bool event_keep(struct event_sink *s, const struct event *ev, size_t n, uint64_t pos)
{
    struct trace_rows *const r = &s->rows;
    const uint32_t i = r->n;
    const uint64_t start = (uint64_t)ev->offset, dur = (uint64_t)ev->duration;
    if (start >= TIME_MAX_PS || dur >= TIME_MAX_PS || ev->occurrences < 0) {
        side_table_clear(&r->side, i, 1);
        s->n_bad++;
        return true;
    }
    const uint32_t metadata = metadata_index(s, ev->id);
    r->start_ps[i] = start;
    r->dur_ps[i] = dur;
    r->src[i] = pos;
    r->src_bytes[i] = (uint32_t)n;
    r->metadata_index[i] = metadata;
    r->num_occurrences[i] = ev->occurrences > UINT32_MAX ? UINT32_MAX : (uint32_t)ev->occurrences;
    s->n_unknown += metadata == UINT32_MAX;
    s->n_aggregated += ev->occurrences > 0;
    if (i > 0 && start <= r->start_ps[i - 1] &&
        !trace_order(r->start_ps[i - 1], r->dur_ps[i - 1], r->src[i - 1], start, dur, pos)) {
        s->unsorted = true;
        s->goes_back = s->goes_back || start < r->start_ps[i - 1];
    }
    r->n = i + 1;
    return true;
}

INLINE bool event_add(struct event_sink *s, const uint8_t *p, size_t n, uint64_t pos,
                      bool by_processor, struct err *e)
{
    struct event ev = {0};
    if (!event_fast(s, p, p + n, &ev, by_processor)) {
        side_table_clear(&s->rows.side, s->rows.n, 1);
        ev = (struct event){0};
        if (!event_slow(s, (str){(const char *)p, n}, pos, &ev, e))
            return false;
    }
    return event_keep(s, &ev, n, pos);
}

bool xspace_event_by_processor(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") &&
           !__builtin_cpu_is("znver2"); /* these have it, in hundreds of steps */
#else
    return false;
#endif
}

bool xspace_event_add(struct event_sink *s, const uint8_t *p, size_t n, uint64_t pos, struct err *e)
{
    return s->by_processor ? event_add(s, p, n, pos, true, e) : event_add(s, p, n, pos, false, e);
}
