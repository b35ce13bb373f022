/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "format/perfetto_internal.h"

#define PARENTS_MOST 32

struct track *perfetto_track(struct perfetto *p, uint64_t uuid)
{
    struct track **known = track_map_get(&p->tracks, uuid);
    if (known != NULL)
        return *known;
    struct track *t = ARENA_NEW(&p->w.arena, struct track);
    if (t == NULL)
        return NULL;
    t->uuid = uuid;
    t->pid = t->tid = -1;
    t->multiplier = 1;
    buf_init(&t->types, LIMIT_IMPORT_BYTES);
    *p->last_track = t;
    p->last_track = &t->next;
    *track_map_put(&p->tracks, uuid) = t;
    return t;
}

/* Keys of those that are no processes but have tracks inside them: no pid is that large. */
#define GROUP_KEY (UINT64_C(1) << 62)

static struct pf_process *process_by(struct perfetto *p, uint64_t key, int64_t pid)
{
    struct pf_process **known = pf_process_map_get(&p->processes, key);
    if (known != NULL)
        return *known;
    struct pf_process *r = ARENA_NEW(&p->w.arena, struct pf_process);
    if (r == NULL)
        return NULL;
    r->pid = pid;
    *p->last_process = r;
    p->last_process = &r->next;
    *pf_process_map_put(&p->processes, key) = r;
    return r;
}

static struct pf_process *process_of(struct perfetto *p, int64_t pid)
{
    return process_by(p, (uint64_t)pid, pid);
}

/* -- descriptors -- */

static void name_process(struct perfetto *p, int64_t pid, str name)
{
    struct pf_process *r = name.n == 0 ? NULL : process_of(p, pid);
    if (r != NULL)
        r->name = arena_str(&p->w.arena, name);
}

static void take_process(struct perfetto *p, struct track *t, str message)
{
    str name = {0};
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.field == 1 && w.type == WIRE_VARINT)
            t->pid = (int32_t)w.number;
        else if (w.type == WIRE_LEN && (w.field == 6 || (w.field == 2 && name.n == 0)))
            name = w.bytes;
    }
    t->has_process = true;
    name_process(p, t->pid, name);
}

static void take_thread(struct perfetto *p, struct track *t, str message, int64_t *reference_us)
{
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type == WIRE_VARINT && w.field == 1)
            t->pid = (int32_t)w.number;
        else if (w.type == WIRE_VARINT && w.field == 2)
            t->tid = (int64_t)w.number;
        else if (w.type == WIRE_VARINT && w.field == 6)
            *reference_us = (int64_t)w.number;
        else if (w.type == WIRE_LEN && w.field == 5)
            t->thread_name = arena_str(&p->w.arena, w.bytes);
    }
    t->has_thread = true;
}

static void take_counter(struct perfetto *p, struct track *t, str message)
{
    static const str units[] = {{0}, STR_INIT("ns"), STR_INIT("count"), STR_INIT("bytes")};
    struct wire w = wire_from(message, 0);
    t->is_counter = true;
    while (wire_next(&w)) {
        if (w.field == 3 && w.type == WIRE_VARINT && t->unit.n == 0)
            t->unit = w.number < sizeof units / sizeof *units ? units[w.number] : (str){0};
        else if (w.field == 6 && w.type == WIRE_LEN)
            t->unit = arena_str(&p->w.arena, w.bytes);
        else if (w.field == 4 && w.type == WIRE_VARINT && w.number > 0)
            t->multiplier = (int64_t)w.number;
        else if (w.field == 5 && w.type == WIRE_VARINT)
            t->is_incremental = w.number != 0;
    }
}

void perfetto_track_descriptor(struct perfetto *p, str message)
{
    uint64_t uuid = 0;
    int64_t ignored;
    struct wire w = wire_from(message, 0);
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_VARINT)
            uuid = w.number;
    struct track *t = perfetto_track(p, uuid);
    w = wire_from(message, 0);
    while (t != NULL && wire_next(&w)) {
        if (w.field == 5 && w.type == WIRE_VARINT) {
            t->parent = w.number;
            t->has_parent = w.number != 0 && w.number != uuid;
        }
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 2 || w.field == 10 || w.field == 13)
            t->name = arena_str(&p->w.arena, w.bytes);
        else if (w.field == 3)
            take_process(p, t, w.bytes);
        else if (w.field == 4)
            take_thread(p, t, w.bytes, &ignored);
        else if (w.field == 8)
            take_counter(p, t, w.bytes);
    }
}

uint64_t perfetto_thread_track(struct perfetto *p, str message, int64_t *reference_us)
{
    int64_t pid = 0, tid = 0;
    struct wire w = wire_from(message, 0);
    while (wire_next(&w))
        if (w.type == WIRE_VARINT && w.field <= 2)
            *(w.field == 1 ? &pid : &tid) = (int64_t)w.number;
    const uint64_t uuid = map_hash_u64((uint64_t)pid << 32 ^ (uint64_t)tid) | 1;
    struct track *t = perfetto_track(p, uuid);
    if (t != NULL)
        take_thread(p, t, message, reference_us);
    return uuid;
}

/* Names of processes (field 1) and threads (2) that ftrace knows. */
void perfetto_process_tree(struct perfetto *p, str message)
{
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN || (w.field != 1 && w.field != 2))
            continue;
        int64_t id = -1;
        str name = {0};
        struct wire one = wire_from(w.bytes, 0);
        while (wire_next(&one)) {
            if (one.field == 1 && one.type == WIRE_VARINT)
                id = (int32_t)one.number;
            else if (one.field == (w.field == 1 ? 3 : 2) && one.type == WIRE_LEN && name.n == 0)
                name = one.bytes;
        }
        struct pf_process *known = w.field == 1 ? process_of(p, id) : NULL;
        if (known != NULL && known->name.n == 0)
            name_process(p, id, name);
        else if (w.field == 2 && name.n > 0)
            *map_u64_u32_put(&p->thread_names, (uint64_t)id) = interner_id(&p->texts, name);
    }
}

/* -- lines -- */

/* The process of the track or of the nearest one around it that has one; else the outermost one around it, as
 * exporters have planes. */
struct pf_process *perfetto_process(struct perfetto *p, struct track *t)
{
    const struct track *at = t;
    for (int i = 0; t->process == NULL && i < PARENTS_MOST; i++) {
        struct track **parent = at->has_parent ? track_map_get(&p->tracks, at->parent) : NULL;
        if (at->has_process || at->has_thread || parent == NULL)
            break;
        at = *parent;
    }
    if (t->process == NULL && at != t && !at->has_process && !at->has_thread && at->name.n > 0) {
        t->process = process_by(p, map_hash_u64(at->uuid) >> 2 | GROUP_KEY, -1);
        if (t->process != NULL)
            t->process->name = at->name;
    }
    if (t->process == NULL)
        t->process = process_of(p, at->has_process || at->has_thread ? at->pid : -1);
    if (t->process != NULL && t->process->plane == NULL)
        t->process->plane = xspace_writer_plane(&p->w);
    return t->process == NULL || t->process->plane == NULL ? NULL : t->process;
}

static str line_name(struct perfetto *p, const struct track *t)
{
    const uint32_t *known = map_u64_u32_get(&p->thread_names, (uint64_t)t->tid);
    if (t->has_thread && t->thread_name.n > 0)
        return t->thread_name;
    if (t->name.n > 0)
        return t->name;
    if (t->has_thread && known != NULL)
        return interner_str(&p->texts, *known);
    if (t->has_thread)
        return arena_printf(&p->w.arena, "thread %" PRIi64, t->tid);
    return t->has_process ? S("process") : S("track");
}

struct xspace_line_out *perfetto_line(struct perfetto *p, struct track *t)
{
    const struct pf_process *r = perfetto_process(p, t);
    if (t->line == NULL && r != NULL)
        t->line = xspace_writer_line(
            &p->w, r->plane, t->has_thread ? t->tid : (int64_t)(t->uuid >> 1), line_name(p, t));
    return t->line;
}

/* -- the end -- */

struct mark {
    int64_t at_ns;
    uint64_t event;
};

static int mark_order(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

/* Gives begins the time of their ends. Packets of several writers may come out of order. */
static void pair_line(struct perfetto *p, struct track *t)
{
    struct xspace_line_out *l = t->line;
    struct mark *marks = map_alloc(l->n_events + 1, sizeof *marks);
    uint64_t *open = map_alloc(l->n_events + 1, sizeof *open), depth = 0;
    bool sorted = true;
    for (uint64_t i = 0; i < l->n_events; i++) {
        marks[i] = (struct mark){l->events[i].start_ns, i};
        sorted = sorted && (i == 0 || marks[i].at_ns >= marks[i - 1].at_ns);
    }
    if (!sorted)
        qsort(marks, l->n_events, sizeof *marks, mark_order);
    for (uint64_t i = 0; i < l->n_events; i++) {
        const uint64_t event = marks[i].event;
        if (t->types.p[event] == EVENT_BEGIN) {
            open[depth++] = event;
        } else if (t->types.p[event] == EVENT_END && depth == 0) {
            p->n_unbegun++;
        } else if (t->types.p[event] == EVENT_END) {
            struct xspace_event_out *begin = &l->events[open[--depth]];
            const int64_t ns = marks[i].at_ns - begin->start_ns;
            begin->dur_ps = ns > INT64_MAX / 1000 ? INT64_MAX : (uint64_t)ns * 1000;
            xspace_writer_lend(&p->w, l, event, open[depth]);
            p->n_events++;
        }
    }
    p->n_unended += depth;
    map_free(open);
    map_free(marks);
}

static int flow_order(const void *a, const void *b)
{
    const struct pf_flow *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void flow_write(struct perfetto *p, const struct pf_flow *f, str type, str name, int64_t id)
{
    struct xspace_line_out *l = f->track->line;
    xspace_writer_stat_i64(l, xspace_writer_stat_id(&p->w, l->plane, type), 0);
    xspace_writer_stat_i64(l, xspace_writer_stat_id(&p->w, l->plane, name), id);
    xspace_writer_late(&p->w, l, f->event);
}

/* From each event of a flow to the next one, until one that ends it. */
static void link_flows(struct perfetto *p)
{
    bool linked = false;
    if (p->n_flows > 1)
        qsort(p->flows, p->n_flows, sizeof *p->flows, flow_order);
    for (uint32_t i = 0; i < p->n_flows; i++) {
        const struct pf_flow *f = &p->flows[i];
        const bool goes_on = i + 1 < p->n_flows && f[1].id == f->id && !f->ends;
        p->n_lone_flows += !goes_on && !linked;
        linked = goes_on;
        if (!goes_on)
            continue;
        const int64_t id = (int64_t)(map_hash_u64(f->id + map_hash_u64(i)) >> 1);
        flow_write(p, f, S("_pt"), S("_p"), id);
        flow_write(p, &f[1], S("_ct"), S("_c"), id);
    }
}

void perfetto_finish_tracks(struct perfetto *p)
{
    uint32_t n_planes = 0;
    for (struct track *t = p->first_track; t != NULL; t = t->next)
        if (t->line != NULL && t->types.n == t->line->n_events)
            pair_line(p, t);
    link_flows(p);
    for (const struct pf_process *r = p->first_process; r != NULL; r = r->next)
        n_planes += r->plane != NULL;
    for (struct pf_process *r = p->first_process; r != NULL; r = r->next) {
        if (r->plane == NULL)
            continue;
        const str name = r->name.n > 0 ? r->name : S("process");
        if (str_starts(name, S("/device:")) || str_starts(name, S("/host:")))
            r->plane->name = name;
        else if (n_planes == 1)
            r->plane->name = S("/host:CPU");
        else if (r->pid < 0 && r->name.n > 0)
            r->plane->name = arena_printf(&p->w.arena, "/host:CPU %.*s", STR_ARG(name));
        else if (r->pid < 0)
            r->plane->name = S("/host:CPU of no process");
        else
            r->plane->name =
                arena_printf(&p->w.arena, "/host:CPU %.*s %" PRIi64, STR_ARG(name), r->pid);
        if (r->name.n > 0)
            xspace_writer_plane_str(&p->w, r->plane, S("process_name"), r->name);
        if (r->pid >= 0)
            xspace_writer_plane_i64(&p->w, r->plane, S("process_id"), r->pid);
    }
}
