/* SPDX-License-Identifier: Apache-2.0 */
#include "format/perfetto_internal.h"

#define CLOCK_REALTIME_ID 1
#define CLOCK_BOOTTIME_ID 6
/* Ids from here to 127 belong to the sequence that uses them. */
#define SEQUENCE_CLOCK_LEAST 64
#define SEQUENCE_CLOCK_MOST 127

static uint64_t clock_key(const struct packet *k, uint64_t id)
{
    return id >= SEQUENCE_CLOCK_LEAST && id <= SEQUENCE_CLOCK_MOST ? k->sequence_id << 32 | id
                                                                   : id & UINT32_MAX;
}

struct reading {
    uint64_t id, value, unit_ns;
    bool incremental;
};

static struct reading reading_of(str message)
{
    struct reading r = {.unit_ns = 1};
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_VARINT)
            continue;
        if (w.field == 1)
            r.id = w.number;
        else if (w.field == 2)
            r.value = w.number;
        else if (w.field == 3)
            r.incremental = w.number != 0;
        else if (w.field == 4 && w.number > 0 && w.number <= INT32_MAX)
            r.unit_ns = w.number;
    }
    return r;
}

static bool value_ns(uint64_t value, uint64_t unit_ns, int64_t *out)
{
    return value <= INT64_MAX && !__builtin_mul_overflow((int64_t)value, (int64_t)unit_ns, out);
}

void perfetto_clock_snapshot(struct perfetto *p, const struct packet *k, str message)
{
    int64_t primary_ns = 0, at_ns;
    bool known = false;
    struct wire w = wire_from(message, 0);
    while (wire_next(&w))
        if (w.field == 2 && w.type == WIRE_VARINT && w.number > 0)
            p->primary_clock = (uint32_t)w.number;
    w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.field != 1 || w.type != WIRE_LEN)
            continue;
        const struct reading r = reading_of(w.bytes);
        if (r.id == p->primary_clock)
            known = value_ns(r.value, r.unit_ns, &primary_ns);
    }
    w = wire_from(message, 0);
    while (known && wire_next(&w)) {
        if (w.field != 1 || w.type != WIRE_LEN)
            continue;
        const struct reading r = reading_of(w.bytes);
        struct clock c = {
            .unit_ns = (int64_t)r.unit_ns, .incremental = r.incremental, .known = true};
        if (!value_ns(r.value, r.unit_ns, &at_ns) ||
            __builtin_sub_overflow(primary_ns, at_ns, &c.ahead_ns))
            continue;
        c.last_ns = at_ns;
        if (r.id == CLOCK_REALTIME_ID && !p->has_wall) {
            p->wall_ahead_ns = -c.ahead_ns;
            p->has_wall = true;
        }
        *clock_map_put(&p->clocks, clock_key(k, r.id)) = c;
    }
}

bool perfetto_time(struct perfetto *p, const struct packet *k, uint32_t clock, uint64_t value,
                   int64_t *out_ns)
{
    const uint32_t primary = p->primary_clock != 0 ? p->primary_clock : CLOCK_BOOTTIME_ID;
    struct clock *c = clock_map_get(&p->clocks, clock_key(k, clock));
    if (c == NULL || !c->known) {
        *out_ns = (int64_t)value;
        return clock == primary && value <= INT64_MAX;
    }
    int64_t at_ns;
    if (!value_ns(value, (uint64_t)c->unit_ns, &at_ns))
        return false;
    if (c->incremental && __builtin_add_overflow(c->last_ns, at_ns, &at_ns))
        return false;
    c->last_ns = at_ns;
    return !__builtin_add_overflow(at_ns, c->ahead_ns, out_ns);
}
