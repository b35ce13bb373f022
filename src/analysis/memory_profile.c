/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/memory_profile.h"

#include <math.h>
#include <stdlib.h>

#define NO_SLOT UINT32_MAX
#define LEAST_REBUILD 4096 /* addresses */

MAP_DEFINE(allocator_map, str, uint32_t, str_hash, str_eq);

struct tracker {               /* of one allocator while its events are read again */
    uint64_t n_events, n_seen; /* that say a heap */
    uint64_t peak_index;       /* of those */
    uint64_t n_wide;           /* runs of the timeline before those that are one longer */
    uint64_t width, run_end;
    struct memory_sample best; /* of the run at hand */
    bool has_best;
    int64_t last_step;
    struct map_u64_u32 by_address; /* to a slot, or NO_SLOT once taken back */
    struct memory_piece *slots;
    bool *used;
    uint32_t n_slots, slots_capacity, used_capacity, n_used, n_live;
    uint32_t *free_slots;
    uint32_t n_free, free_capacity;
};

struct builder {
    const struct trace *trace;
    const struct grouping *grouping;
    struct arena *arena;
    struct memory_profile *out;
    struct tracker *trackers; /* one an allocator of the trace at hand */
    uint32_t first, tracker_capacity, n_trackers;
    struct allocator_map by_name;
    struct err *err;
};

/* --- the first reading: allocators and their peaks --------------------------------------------- */

static bool allocator_at(struct builder *b, str name, uint32_t *index)
{
    struct memory_profile *out = b->out;
    const uint32_t *at = allocator_map_get(&b->by_name, name);
    if (at != NULL) {
        *index = *at;
        return true;
    }
    if (!ARENA_PUSH(b->arena, out->allocators, out->n_allocators, out->capacity) ||
        !ARENA_PUSH(b->arena, b->trackers, b->n_trackers, b->tracker_capacity))
        return arena_full(b->arena, b->err);
    struct memory_allocator *m = &out->allocators[out->n_allocators - 1];
    *m = (struct memory_allocator){.trace = b->trace,
                                   .name = arena_str(b->arena, name),
                                   .peak = {.heap = MEMORY_UNKNOWN},
                                   .lifetime_peak_bytes = MEMORY_UNKNOWN,
                                   .most_fragmentation_ratio = NAN,
                                   .before_bytes = MEMORY_UNKNOWN};
    if (m->name.p == NULL && name.n > 0)
        return arena_full(b->arena, b->err);
    b->trackers[b->n_trackers - 1] = (struct tracker){.last_step = GROUP_NONE};
    *allocator_map_put(&b->by_name, m->name) = *index = b->n_trackers - 1;
    return true;
}

static void note_peak(struct memory_allocator *m, struct tracker *t, const struct memory_event *ev)
{
    const struct memory_use *u = &ev->use;
    if (u->lifetime_peak > m->lifetime_peak_bytes) /* the unknown is the least */
        m->lifetime_peak_bytes = u->lifetime_peak;
    if (!(u->fragmentation_ratio <= m->most_fragmentation_ratio) && !isnan(u->fragmentation_ratio))
        m->most_fragmentation_ratio = u->fragmentation_ratio;
    if (u->heap == MEMORY_UNKNOWN)
        return;
    if (t->n_events == 0 || memory_in_use(u) >= memory_in_use(&m->peak)) {
        m->peak = *u;
        m->peak_time_ps = ev->at.start_ps;
        t->peak_index = t->n_events;
    }
    t->n_events++;
}

static bool find_peaks(struct builder *b)
{
    struct memory_events s;
    bool ok = memory_events_open(&s, b->trace, b->arena, b->err);
    while (ok && memory_events_next(&s)) {
        uint32_t i = 0;
        ok = allocator_at(b, s.event.allocator, &i);
        if (!ok)
            break;
        struct memory_allocator *m = &b->out->allocators[b->first + i];
        m->n_allocations += !s.event.is_release;
        m->n_releases += s.event.is_release;
        note_peak(m, &b->trackers[i], &s.event);
    }
    return memory_events_close(&s, ok ? b->err : NULL) && ok;
}

/* --- what is live ------------------------------------------------------------------------------ */

/* Addresses of what was taken back stay in the map until they outnumber the live by far. */
static void forget_taken_back(struct tracker *t)
{
    if (t->by_address.n < LEAST_REBUILD || t->by_address.n / 4 < t->n_live)
        return;
    map_u64_u32_release(&t->by_address);
    for (uint32_t i = 0; i < t->n_slots; i++)
        if (t->used[i])
            *map_u64_u32_put(&t->by_address, t->slots[i].address) = i;
}

static bool free_slot(struct builder *b, struct tracker *t, uint32_t slot)
{
    t->used[slot] = false;
    t->n_live--;
    if (!ARENA_PUSH(b->arena, t->free_slots, t->n_free, t->free_capacity))
        return arena_full(b->arena, b->err);
    t->free_slots[t->n_free - 1] = slot;
    return true;
}

static bool hand_out(struct builder *b, struct tracker *t, const struct memory_piece *piece)
{
    uint32_t *at = map_u64_u32_get(&t->by_address, piece->address);
    uint32_t slot = at == NULL ? NO_SLOT : *at;
    if (slot == NO_SLOT && t->n_free > 0) {
        slot = t->free_slots[--t->n_free];
    } else if (slot == NO_SLOT) {
        if (!ARENA_PUSH(b->arena, t->slots, t->n_slots, t->slots_capacity) ||
            !ARENA_PUSH(b->arena, t->used, t->n_used, t->used_capacity))
            return arena_full(b->arena, b->err);
        slot = t->n_slots - 1;
    }
    t->n_live += !t->used[slot]; /* handed out twice: its release was lost */
    t->used[slot] = true;
    t->slots[slot] = *piece;
    *map_u64_u32_put(&t->by_address, piece->address) = slot;
    return true;
}

/* Follows the pieces; *match is the slot of what a release takes back. */
static bool follow(struct builder *b, struct memory_allocator *m, struct tracker *t,
                   const struct memory_event *ev, int64_t step, struct memory_sample *sample)
{
    sample->has_piece = !ev->is_release;
    sample->piece = sample->event;
    if (!ev->has_address)
        return true;
    if (!ev->is_release) {
        const struct memory_piece piece = {.time_ps = ev->at.start_ps,
                                           .address = ev->address,
                                           .bytes = ev->bytes,
                                           .step = step,
                                           .use = ev->use,
                                           .event = sample->event};
        return hand_out(b, t, &piece);
    }
    uint32_t *at = map_u64_u32_get(&t->by_address, ev->address);
    if (at == NULL || *at == NO_SLOT) {
        m->n_unmatched++;
        return true;
    }
    const uint32_t slot = *at;
    sample->has_piece = true;
    sample->piece = t->slots[slot].event;
    *at = NO_SLOT;
    if (!free_slot(b, t, slot))
        return false;
    forget_taken_back(t);
    return true;
}

static int by_bytes(const void *x, const void *y)
{
    const struct memory_piece *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static bool keep_live(struct builder *b, struct memory_allocator *m, const struct tracker *t)
{
    int64_t explained = 0;
    bool known = true;
    m->live = ARENA_ARRAY(b->arena, struct memory_piece, (size_t)t->n_live + 1);
    if (m->live == NULL)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < t->n_slots; i++) {
        if (!t->used[i])
            continue;
        m->live[m->n_live++] = t->slots[i];
        known = known && t->slots[i].bytes != MEMORY_UNKNOWN &&
                !__builtin_add_overflow(explained, t->slots[i].bytes, &explained);
    }
    if (m->n_live > 1)
        qsort(m->live, m->n_live, sizeof *m->live, by_bytes);
    if (known)
        m->before_bytes = m->peak.heap > explained ? m->peak.heap - explained : 0;
    return true;
}

/* --- the timeline ------------------------------------------------------------------------------ */

static bool begin_timeline(struct builder *b, struct memory_allocator *m, struct tracker *t)
{
    const uint64_t n = t->n_events, runs = n < MEMORY_TIMELINE ? n : MEMORY_TIMELINE;
    m->timeline = ARENA_ARRAY(b->arena, struct memory_sample, runs + 1);
    if (m->timeline == NULL)
        return arena_full(b->arena, b->err);
    t->width = runs == 0 ? 0 : n / runs;
    t->n_wide = runs * (t->width + 1) - n;
    t->run_end = t->width;
    return true;
}

static void sample_timeline(struct memory_allocator *m, struct tracker *t,
                            const struct memory_sample *s)
{
    if (!t->has_best || memory_in_use(&s->use) > memory_in_use(&t->best.use))
        t->best = *s;
    t->has_best = true;
    if (t->n_seen < t->run_end)
        return;
    m->timeline[m->n_timeline++] = t->best;
    t->has_best = false;
    t->run_end += m->n_timeline < t->n_wide ? t->width : t->width + 1;
}

static int64_t step_of(const struct builder *b, struct tracker *t, const struct memory_event *ev)
{
    const int32_t group =
        b->grouping == NULL ? GROUP_NONE : group_at(b->grouping, ev->line, ev->index);
    if (group == GROUP_NONE)
        return t->last_step + 1;
    return t->last_step = group;
}

static bool read_event(struct builder *b, const struct memory_event *ev)
{
    uint32_t i = 0;
    if (!allocator_at(b, ev->allocator, &i))
        return false;
    struct memory_allocator *m = &b->out->allocators[b->first + i];
    struct tracker *t = &b->trackers[i];
    struct memory_sample s = {.time_ps = ev->at.start_ps,
                              .is_release = ev->is_release,
                              .use = ev->use,
                              .event = {ev->line, ev->at},
                              .step = step_of(b, t, ev)};
    if (!follow(b, m, t, ev, s.step, &s))
        return false;
    if (ev->use.heap == MEMORY_UNKNOWN)
        return true;
    if (t->n_seen++ == t->peak_index) {
        m->peak_step = s.step;
        if (!keep_live(b, m, t))
            return false;
    }
    sample_timeline(m, t, &s);
    return true;
}

static bool read_again(struct builder *b)
{
    struct memory_events s;
    for (uint32_t i = 0; i < b->n_trackers; i++)
        if (!begin_timeline(b, &b->out->allocators[b->first + i], &b->trackers[i]))
            return false;
    bool ok = memory_events_open(&s, b->trace, b->arena, b->err);
    while (ok && memory_events_next(&s))
        ok = read_event(b, &s.event);
    return memory_events_close(&s, ok ? b->err : NULL) && ok;
}

/* ------------------------------------------------------------------------------------------------ */

static int by_name(const void *x, const void *y)
{
    const struct memory_allocator *a = x, *b = y;
    return str_cmp(a->name, b->name);
}

static bool read_trace(struct builder *b)
{
    b->first = b->out->n_allocators;
    b->n_trackers = 0;
    const bool ok = find_peaks(b) && read_again(b);
    for (uint32_t i = 0; i < b->n_trackers; i++)
        map_u64_u32_release(&b->trackers[i].by_address);
    allocator_map_release(&b->by_name);
    if (b->n_trackers > 1)
        qsort(&b->out->allocators[b->first], b->n_trackers, sizeof *b->out->allocators, by_name);
    return ok;
}

bool memory_profile_of(const struct profile *p, const struct grouping *groupings, struct arena *a,
                       struct memory_profile *out, struct err *e)
{
    struct builder b = {.arena = a, .out = out, .err = e};
    *out = (struct memory_profile){0};
    for (uint32_t i = 0; i < p->n_traces; i++) {
        b.trace = p->traces[i];
        b.grouping = groupings == NULL ? NULL : &groupings[i];
        if (!read_trace(&b))
            return false;
    }
    return true;
}

/* Numbers of TensorFlow's types (types.proto), as XProf spells them. */
static str data_type_name(int64_t type)
{
    static const char *const names[] = {
        "INVALID",   "float",  "double",     "int32", "uint8",    "int16",   "int8",     "string",
        "complex64", "int64",  "bool",       "qint8", "quint8",   "qint32",  "bfloat16", "qint16",
        "quint16",   "uint16", "complex128", "half",  "resource", "variant", "uint32",   "uint64"};
    return type > 0 && type < (int64_t)(sizeof names / sizeof *names) ? str_from(names[type])
                                                                      : (str){0};
}

static int64_t number_of(struct trace_stats stats, str name)
{
    int64_t v;
    return trace_stat_i64(trace_stat_find(stats, name), &v) ? v : MEMORY_UNKNOWN;
}

bool memory_describe(const struct trace *t, const struct memory_place *place, struct arena *a,
                     struct memory_description *out, struct err *e)
{
    struct trace_stats stats;
    int64_t type = 0;
    *out = (struct memory_description){0};
    if (!trace_event_stats(t, &t->lines[place->line], &place->at, a, &stats, e))
        return false;
    (void)trace_stat_str(trace_stat_find(stats, S("tf_op")), &out->op);
    (void)trace_stat_str(trace_stat_find(stats, S("region_type")), &out->region);
    (void)trace_stat_str(trace_stat_find(stats, S("shape")), &out->shape);
    out->requested_bytes = number_of(stats, S("requested_bytes"));
    out->bytes = number_of(stats, S("allocation_bytes"));
    (void)memory_address(trace_stat_find(stats, S("addr")), &out->address);
    const struct trace_stat *data = trace_stat_find(stats, S("data_type"));
    if (data != NULL && data->type == TRACE_STAT_STR)
        out->data_type = data->text;
    else if (trace_stat_i64(data, &type))
        out->data_type = data_type_name(type);
    return true;
}

const struct memory_allocator *memory_fullest(const struct memory_profile *m)
{
    const struct memory_allocator *fullest = NULL;
    for (uint32_t i = 0; i < m->n_allocators; i++)
        if (m->allocators[i].peak.heap != MEMORY_UNKNOWN &&
            (fullest == NULL ||
             memory_in_use(&m->allocators[i].peak) > memory_in_use(&fullest->peak)))
            fullest = &m->allocators[i];
    return fullest;
}

int64_t memory_capacity(const struct memory_allocator *m)
{
    int64_t sum;
    const int64_t used = memory_in_use(&m->peak);
    if (used == MEMORY_UNKNOWN || m->peak.free == MEMORY_UNKNOWN ||
        __builtin_add_overflow(used, m->peak.free, &sum))
        return MEMORY_UNKNOWN;
    return sum;
}
