/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto: a Trace of TracePackets. A plane is a track and a sequence of its own, with its own interned
 * names; its lines are tracks below it, and what overlaps in part on a line is on further tracks of
 * that name (model/nest.h), because slices there are begins and ends. Nanoseconds, rounded down: events that
 * are not whole ones say their exact duration as the argument dur_ps.
 * Source: perfetto protos/perfetto/trace (field numbers below). */
#include "format/export_inside.h"
#include "format/wire_write.h"
#include "model/nest.h"

enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_DESCRIPTOR = 60,
};
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum {
    EVENT_ARGUMENT = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48,
    EVENT_VALUE_F64 = 44,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };
enum { INTERNED_NAME = 2, INTERNED_ARGUMENT = 3 };
enum {
    ARGUMENT_NAME_IID = 1,
    ARGUMENT_U64 = 3,
    ARGUMENT_I64 = 4,
    ARGUMENT_F64 = 5,
    ARGUMENT_TEXT = 6
};
enum { CLOCK_OF_WALL = 1, CLOCK_OF_TRACE = 6 };

struct perfetto {
    struct export_work *w;
    const struct trace_plane *plane;
    uint64_t plane_track, next_track;
    uint32_t sequence;
    bool is_new;        /* nothing of the sequence was written yet */
    uint8_t *known;     /* names of the plane's metadata that are interned; the last: unknown */
    struct arena arena; /* of the plane's argument names */
    struct interner arguments;
    uint32_t n_arguments;        /* of them are written */
    struct map_str_u32 counters; /* name to track, of the line at hand */
    uint64_t line_tracks[NEST_LANES];
    struct buf packet, event, interned, item, value;
    bool full; /* one of them was */
};

static void put_packet(struct perfetto *p)
{
    p->full = p->full || p->packet.overflow || p->event.overflow || p->interned.overflow ||
              p->item.overflow || p->value.overflow;
    wire_put_bytes(&p->w->out, TRACE_PACKET, buf_str(&p->packet));
    buf_clear(&p->packet);
}

static str utf8(struct perfetto *p, str s)
{
    return export_utf8(&p->w->scratch, s);
}

static uint64_t put_track(struct perfetto *p, str name, uint64_t parent, bool is_counter)
{
    const uint64_t uuid = ++p->next_track;
    buf_clear(&p->event);
    wire_put_number(&p->event, TRACK_UUID, uuid);
    wire_put_bytes(&p->event, TRACK_NAME, utf8(p, name));
    if (parent != 0)
        wire_put_number(&p->event, TRACK_PARENT, parent);
    if (is_counter)
        wire_put_bytes(&p->event, TRACK_COUNTER, (str){0});
    wire_put_bytes(&p->packet, PACKET_TRACK_DESCRIPTOR, buf_str(&p->event));
    put_packet(p);
    return uuid;
}

/* The trace's clock is the wall's, where that is known. */
static void put_clocks(struct perfetto *p)
{
    static const uint32_t clocks[] = {CLOCK_OF_WALL, CLOCK_OF_TRACE};
    buf_clear(&p->event);
    for (size_t i = 0; i < 2; i++) {
        buf_clear(&p->item);
        wire_put_number(&p->item, 1, clocks[i]);
        wire_put_number(&p->item, 2, (uint64_t)p->w->profile->origin_ns);
        wire_put_bytes(&p->event, 1, buf_str(&p->item));
    }
    wire_put_bytes(&p->packet, PACKET_CLOCK_SNAPSHOT, buf_str(&p->event));
    put_packet(p);
}

static uint64_t time_ns(const struct perfetto *p, uint64_t ps)
{
    const int64_t origin = p->w->profile->has_epoch ? p->w->profile->origin_ns : 0;
    return (uint64_t)origin + ps / 1000;
}

/* An entry of the interned data that goes with the event at hand. */
static void intern(struct perfetto *p, uint32_t field, uint64_t iid, str name)
{
    buf_clear(&p->item);
    wire_put_number(&p->item, 1, iid);
    wire_put_bytes(&p->item, 2, utf8(p, name));
    wire_put_bytes(&p->interned, field, buf_str(&p->item));
}

static uint64_t name_iid(struct perfetto *p, const struct export_cursor *c)
{
    const uint32_t n = p->plane->n_event_metadata;
    const uint32_t at = c->event.metadata_index < n ? c->event.metadata_index : n;
    if (!p->known[at]) {
        p->known[at] = 1;
        intern(p, INTERNED_NAME, (uint64_t)at + 1, trace_event_name(c->trace, c->line, &c->event));
    }
    return (uint64_t)at + 1;
}

static void begin_argument(struct perfetto *p, str name)
{
    const uint32_t iid = interner_id(&p->arguments, name.n > 0 ? name : S("?"));
    if (iid == p->n_arguments + 1) {
        p->n_arguments = iid;
        intern(p, INTERNED_ARGUMENT, iid, name.n > 0 ? name : S("?"));
    }
    buf_clear(&p->value);
    wire_put_number(&p->value, ARGUMENT_NAME_IID, iid);
}

static void put_argument(struct perfetto *p, const struct trace_stat *s)
{
    if (s->type == TRACE_STAT_NONE)
        return;
    begin_argument(p, s->name);
    switch (s->type) {
    case TRACE_STAT_U64:
        wire_put_number(&p->value, ARGUMENT_U64, s->u64);
        break;
    case TRACE_STAT_I64:
        wire_put_number(&p->value, ARGUMENT_I64, (uint64_t)s->i64);
        break;
    case TRACE_STAT_F64:
        wire_put_f64(&p->value, ARGUMENT_F64, s->f64);
        break;
    case TRACE_STAT_STR:
        wire_put_bytes(&p->value, ARGUMENT_TEXT, utf8(p, s->text));
        break;
    case TRACE_STAT_BYTES:
        wire_put_bytes(&p->value, ARGUMENT_TEXT,
                       arena_printf(&p->w->scratch, "<%zu bytes>", s->text.n));
        break;
    case TRACE_STAT_NONE:
        break;
    }
    wire_put_bytes(&p->event, EVENT_ARGUMENT, buf_str(&p->value));
}

static void put_arguments(struct perfetto *p, const struct export_cursor *c,
                          struct trace_stats stats)
{
    for (uint32_t i = 0; i < stats.n; i++)
        put_argument(p, &stats.items[i]);
    if (c->start_ps % 1000 != 0 || c->event.dur_ps % 1000 != 0)
        put_argument(p, &(struct trace_stat){
                            .name = S("dur_ps"), .type = TRACE_STAT_U64, .u64 = c->event.dur_ps});
    if (c->event.num_occurrences > 0)
        put_argument(p, &(struct trace_stat){.name = S("num_occurrences"),
                                             .type = TRACE_STAT_U64,
                                             .u64 = c->event.num_occurrences});
}

static void begin_event(struct perfetto *p, uint32_t type, uint64_t track)
{
    buf_clear(&p->event);
    buf_clear(&p->interned);
    wire_put_number(&p->event, EVENT_TYPE, type);
    wire_put_number(&p->event, EVENT_TRACK, track);
}

static void end_event(struct perfetto *p, uint64_t at_ps)
{
    wire_put_number(&p->packet, PACKET_TIMESTAMP, time_ns(p, at_ps));
    wire_put_number(&p->packet, PACKET_SEQUENCE, p->sequence);
    wire_put_number(&p->packet, PACKET_SEQUENCE_FLAGS,
                    p->is_new ? SEQUENCE_CLEARED : SEQUENCE_NEEDS_STATE);
    p->is_new = false;
    wire_put_bytes(&p->packet, PACKET_TRACK_EVENT, buf_str(&p->event));
    if (p->interned.n > 0)
        wire_put_bytes(&p->packet, PACKET_INTERNED, buf_str(&p->interned));
    put_packet(p);
}

static void put_end(struct perfetto *p, uint32_t lane, uint64_t at_ps)
{
    begin_event(p, TYPE_END, p->line_tracks[lane]);
    end_event(p, at_ps);
}

static void put_counter(struct perfetto *p, const struct export_cursor *c, double value)
{
    const str name = trace_event_name(c->trace, c->line, &c->event);
    uint32_t *track = map_str_u32_get(&p->counters, name);
    if (track == NULL) { /* the name is of the metadata: it outlives the line */
        const uint64_t made = put_track(p, name, p->plane_track, true);
        track = map_str_u32_put(&p->counters, name);
        *track = (uint32_t)made;
    }
    begin_event(p, TYPE_COUNTER, *track);
    wire_put_f64(&p->event, EVENT_VALUE_F64, value);
    end_event(p, c->start_ps);
}

static bool put_slice(struct perfetto *p, const struct export_cursor *c, struct nest *nest,
                      struct trace_stats stats)
{
    const uint64_t end_ps = c->start_ps + c->event.dur_ps;
    const uint32_t lanes_before = nest->n;
    const uint32_t lane = nest_find(nest, c->start_ps, end_ps);
    struct export_flow flows[EXPORT_FLOWS_MAX];
    if (lane == NEST_NONE)
        return false;
    if (nest->n > lanes_before && lane > 0)
        p->line_tracks[lane] = put_track(p, export_line_name(c->line), p->plane_track, false);
    for (struct nest_open ended; nest_pop(nest, lane, c->start_ps, &ended);)
        put_end(p, lane, ended.end_ps);
    nest_push(nest, lane, (struct nest_open){.start_ps = c->start_ps, .end_ps = end_ps});
    begin_event(p, TYPE_BEGIN, p->line_tracks[lane]);
    wire_put_number(&p->event, EVENT_NAME_IID, name_iid(p, c));
    put_arguments(p, c, stats);
    const uint32_t n = export_flows(c->trace, c->line, stats, flows);
    for (uint32_t i = 0; i < n; i++)
        wire_put_i64(&p->event, flows[i].begins ? EVENT_FLOW : EVENT_FLOW_END, flows[i].id);
    end_event(p, c->start_ps);
    return true;
}

static bool put_event(struct perfetto *p, const struct export_cursor *c, struct nest *nest,
                      struct err *e)
{
    struct trace_stats stats;
    double value;
    if (!trace_event_stats(c->trace, c->line, &c->event, &p->w->scratch, &stats, e))
        return false;
    if (export_counter(&c->event, stats, &value))
        put_counter(p, c, value);
    else if (!put_slice(p, c, nest, stats))
        p->w->counts->n_left_out++;
    return true;
}

static bool put_line(struct perfetto *p, const struct trace *t, uint32_t line, struct err *e)
{
    struct nest nest = {0};
    struct export_cursor c;
    bool ok = true;
    p->line_tracks[0] = put_track(p, export_line_name(&t->lines[line]), p->plane_track, false);
    for (export_cursor_init(&c, p->w, t, line); ok && export_next(&c);) {
        const struct arena_mark m = arena_mark(&p->w->scratch);
        ok = put_event(p, &c, &nest, e) && export_flush(p->w, e);
        arena_reset(&p->w->scratch, m);
    }
    for (uint32_t lane = 0; lane < nest.n; lane++)
        for (struct nest_open ended; nest_pop(&nest, lane, UINT64_MAX, &ended);)
            put_end(p, lane, ended.end_ps);
    nest_release(&nest);
    map_str_u32_release(&p->counters);
    return export_cursor_end(&c, e) && ok;
}

static bool put_plane(struct perfetto *p, const struct trace *t, const struct trace_plane *plane,
                      struct err *e)
{
    const bool several = p->w->profile->n_traces > 1 && t->host.n > 0;
    bool ok = true;
    p->plane = plane;
    p->sequence++;
    p->is_new = true;
    p->n_arguments = 0;
    p->known = map_alloc((size_t)plane->n_event_metadata + 1, 1);
    arena_init(&p->arena, "argument names", 0);
    interner_init(&p->arguments, &p->arena);
    p->plane_track = put_track(p,
                               several ? arena_printf(&p->w->scratch, "%.*s %.*s", STR_ARG(t->host),
                                                      STR_ARG(export_plane_name(plane)))
                                       : export_plane_name(plane),
                               0, false);
    for (uint32_t l = plane->first_line; ok && l < plane->first_line + plane->n_lines; l++)
        ok = put_line(p, t, l, e);
    map_free(p->known);
    interner_release(&p->arguments);
    arena_release(&p->arena);
    return ok;
}

static bool put_all(struct perfetto *p, struct err *e)
{
    if (p->w->profile->has_epoch)
        put_clocks(p);
    for (const struct trace *t = NULL; (t = export_next_trace(p->w, t)) != NULL;)
        for (uint32_t k = 0; k < t->n_planes; k++)
            if (t->planes[k].n_lines > 0 && !put_plane(p, t, &t->planes[k], e))
                return false;
    return true;
}

bool export_perfetto(struct export_work *w, struct err *e)
{
    struct perfetto p = {.w = w};
    struct buf *const bufs[] = {&p.packet, &p.event, &p.interned, &p.item, &p.value};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        buf_init(bufs[i], (size_t)1 << 27);
    const bool ok = put_all(&p, e);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        buf_release(bufs[i]);
    if (ok && p.full)
        return err_set(e, ERR_LIMIT, "the arguments of an event are too long for a packet");
    return ok;
}
