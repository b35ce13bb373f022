/* SPDX-License-Identifier: Apache-2.0 */
#include "format/perfetto.h"

#include <inttypes.h>
#include <zlib.h>

#include "base/limits.h"
#include "format/input.h"
#include "format/perfetto_internal.h"

#define READ_BYTES 1048576
#define FLAG_CLEARED 1
#define FLAG_NEEDS_STATE 2

/* A window that moves over the file, packet by packet. */
struct feed {
    struct input in;
    struct buf bytes;
    size_t at;    /* of the next packet in it */
    uint64_t pos; /* of bytes.p[0] in the (decompressed) file */
    bool ended, cut;
};

/* At least n bytes at f->at; false at the end of the file, and on failure with e. */
static bool feed_more(struct feed *f, size_t n, struct err *e)
{
    while (!f->ended && f->bytes.n - f->at < n) {
        f->pos += f->at;
        buf_consume(&f->bytes, f->at);
        f->at = 0;
        char *room = buf_reserve(&f->bytes, READ_BYTES);
        size_t got = 0;
        if (room == NULL)
            return buf_ok(&f->bytes, "a packet", e);
        if (!input_read(&f->in, room, READ_BYTES, &got, e))
            return false;
        f->bytes.n += got;
        f->ended = got == 0;
    }
    return f->bytes.n - f->at >= n;
}

enum feed_result { FEED_DONE = 0, FEED_PACKET, FEED_FAILED };

static enum feed_result feed_next(struct feed *f, str *packet, uint64_t *pos, struct err *e)
{
    uint64_t tag, n;
    err_clear(e);
    feed_more(f, 20, e);
    if (e->code != ERR_NONE)
        return FEED_FAILED;
    if (f->at == f->bytes.n)
        return FEED_DONE;
    const uint8_t *const from = (const uint8_t *)f->bytes.p + f->at;
    const uint8_t *at = from, *const end = (const uint8_t *)f->bytes.p + f->bytes.n;
    if (!wire_varint(&at, end, &tag) || tag != (1 << 3 | WIRE_LEN) || !wire_varint(&at, end, &n)) {
        f->cut = f->ended && f->bytes.n - f->at < 20;
        err_at(e, ERR_PARSE, f->pos + f->at, "neither a packet of a trace nor its end");
        return FEED_FAILED;
    }
    f->at += (size_t)(at - from);
    if (n > LIMIT_PERFETTO_PACKET_BYTES) {
        err_at(e, ERR_LIMIT, f->pos + f->at, "a packet of %" PRIu64 " bytes", n);
        return FEED_FAILED;
    }
    if (!feed_more(f, (size_t)n, e)) {
        f->cut = e->code == ERR_NONE;
        if (f->cut)
            err_at(e, ERR_PARSE, f->pos + f->at, "file is cut inside a packet");
        return FEED_FAILED;
    }
    *packet = (str){f->bytes.p + f->at, (size_t)n};
    *pos = f->pos + f->at;
    f->at += (size_t)n;
    return FEED_PACKET;
}

/* -- packets -- */

static struct sequence *sequence_of(struct perfetto *p, uint64_t id)
{
    struct sequence **known = sequence_map_get(&p->sequences, id);
    if (known != NULL)
        return *known;
    struct sequence *s = ARENA_NEW(&p->w.arena, struct sequence);
    if (s != NULL)
        *sequence_map_put(&p->sequences, id) = s;
    return s;
}

static void sequence_clear(struct sequence *s)
{
    for (int i = 0; i < N_INTERNED; i++)
        map_u64_u32_release(&s->interned[i]);
    *s = (struct sequence){.valid = true};
}

static struct packet packet_of(str bytes, uint64_t pos)
{
    struct packet k = {.bytes = bytes, .pos = pos};
    struct wire w = wire_from(bytes, pos);
    while (wire_next(&w)) {
        if (w.type != WIRE_VARINT)
            continue;
        if (w.field == 8) {
            k.timestamp = w.number;
            k.has_timestamp = true;
        } else if (w.field == 58) {
            k.clock = (uint32_t)w.number;
            k.has_clock = w.number > 0;
        } else if (w.field == 10) {
            k.sequence_id = w.number;
        } else if (w.field == 13) {
            k.flags = (uint32_t)w.number;
        } else if (w.field == 41) {
            k.cleared = w.number != 0;
        } else if (w.field == 42) {
            k.dropped = w.number != 0;
        }
    }
    return k;
}

typedef void packet_fn(struct perfetto *p, str bytes, uint64_t pos);

/* Packets that are compressed as one (zlib). */
static void take_compressed(struct perfetto *p, str packed, uint64_t pos, packet_fn *fn)
{
    z_stream z = {0};
    struct buf b;
    if (packed.n > UINT32_MAX || inflateInit(&z) != Z_OK)
        return;
    buf_init(&b, LIMIT_PERFETTO_PACKET_BYTES);
    z.next_in = (Bytef *)(uintptr_t)packed.p;
    z.avail_in = (uInt)packed.n;
    int state = Z_OK;
    while (state == Z_OK) {
        char *room = buf_reserve(&b, 65536);
        if (room == NULL)
            break;
        z.next_out = (Bytef *)room;
        z.avail_out = 65536;
        state = inflate(&z, Z_NO_FLUSH);
        b.n += 65536 - z.avail_out;
    }
    inflateEnd(&z);
    p->n_damaged += state != Z_STREAM_END;
    struct wire w = wire_from(buf_str(&b), 0);
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_LEN)
            fn(p, w.bytes, pos);
    buf_release(&b);
}

/* The first reading: who is who. */
static void take_descriptors(struct perfetto *p, str bytes, uint64_t pos)
{
    int64_t ignored = 0;
    struct wire w = wire_from(bytes, pos);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 60)
            perfetto_track_descriptor(p, w.bytes);
        else if (w.field == 44)
            perfetto_thread_track(p, w.bytes, &ignored);
        else if (w.field == 2)
            perfetto_process_tree(p, w.bytes);
    }
}

static void take_state(struct perfetto *p, const struct packet *k)
{
    struct sequence *const s = k->sequence;
    if (k->dropped) {
        p->n_dropped++;
        s->valid = false;
    }
    if (k->cleared || (k->flags & FLAG_CLEARED) != 0)
        sequence_clear(s);
    struct wire w = wire_from(k->bytes, k->pos);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 12)
            perfetto_interned(p, s, w.bytes);
        else if (w.field == 59)
            perfetto_defaults(s, w.bytes);
        else if (w.field == 6)
            perfetto_clock_snapshot(p, k, w.bytes);
        else if (w.field == 44)
            s->track = perfetto_thread_track(p, w.bytes, &s->reference_us);
    }
}

/* The second reading: what happened. */
static void take_events(struct perfetto *p, str bytes, uint64_t pos)
{
    struct packet k = packet_of(bytes, pos);
    k.sequence = sequence_of(p, k.sequence_id);
    if (k.sequence == NULL)
        return;
    take_state(p, &k);
    struct wire w = wire_from(bytes, pos);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 11 && (k.flags & FLAG_NEEDS_STATE) != 0 && !k.sequence->valid)
            p->n_lost_state++;
        else if (w.field == 11)
            perfetto_track_event(p, &k, w.bytes);
        else if (w.field == 1)
            perfetto_ftrace(p, w.bytes);
    }
    p->n_damaged += w.wrong != NULL;
}

/* One reading of the file. A cut at its end ends the reading; *cut says so. */
static bool read_packets(struct perfetto *p, int fd, packet_fn *fn, bool *cut, struct err *e)
{
    struct feed f = {0};
    str packet;
    uint64_t pos;
    enum feed_result got = FEED_FAILED;
    buf_init(&f.bytes, LIMIT_PERFETTO_PACKET_BYTES + 2 * READ_BYTES);
    if (input_open(&f.in, fd, e))
        while (!p->w.full && (got = feed_next(&f, &packet, &pos, e)) == FEED_PACKET) {
            str packed = {0};
            struct wire w = wire_from(packet, pos);
            while (wire_next(&w))
                if (w.field == 50 && w.type == WIRE_LEN)
                    packed = w.bytes;
            if (packed.n > 0)
                take_compressed(p, packed, pos, fn);
            else
                fn(p, packet, pos);
        }
    *cut = f.cut;
    input_release(&f.in);
    buf_release(&f.bytes);
    return got != FEED_FAILED || f.cut;
}

static void warn(struct perfetto *p, uint64_t n, const char *what)
{
    if (n > 0)
        xspace_writer_warn(&p->w, arena_printf(&p->w.arena, "%" PRIu64 " %s", n, what));
}

static bool import_finish(struct perfetto *p, bool cut, int to_fd, struct err *e)
{
    for (struct xspace_plane_out *plane = p->w.planes; plane != NULL; plane = plane->next)
        xspace_writer_plane_str(&p->w, plane, S("imported_from"), S("perfetto"));
    warn(p, p->n_unended, "slices began and have no end: left out");
    warn(p, p->n_unbegun, "ends without a begin: left out");
    warn(p, p->n_damaged, "packets or events are damaged: left out");
    warn(p, p->n_lost_state, "events stand on state that was lost: left out");
    warn(p, p->n_dropped, "times the recorder dropped packets");
    warn(p, p->n_unknown_clock, "events with times of a clock that nobody knows: left out");
    warn(p, p->n_unknown_name, "names are not in the trace: shown as ?");
    warn(p, p->n_lone_flows, "ends of arrows that lead nowhere: left out");
    warn(p, p->n_left_out, "events of other kinds: left out");
    warn(p, cut, "file is cut inside a packet: what followed is missing");
    p->w.shift_ns = p->has_wall ? p->wall_ahead_ns : 0;
    return xspace_writer_save(&p->w, to_fd, e);
}

static bool import_run(struct perfetto *p, int from_fd, int to_fd, struct err *e)
{
    bool cut = false;
    if (!read_packets(p, from_fd, take_descriptors, &cut, e) ||
        !read_packets(p, from_fd, take_events, &cut, e))
        return false;
    if (p->w.arena.overflow)
        return arena_full(&p->w.arena, e);
    perfetto_finish_tracks(p);
    if (p->n_events == 0)
        return !cut && err_set(e, ERR_PARSE, "a Perfetto trace without track events");
    err_clear(e);
    return import_finish(p, cut, to_fd, e);
}

bool perfetto_import(int from_fd, int to_fd, struct err *e)
{
    struct perfetto p = {0};
    p.last_track = &p.first_track;
    p.last_process = &p.first_process;
    xspace_writer_init(&p.w);
    interner_init(&p.texts, &p.w.arena);
    buf_init(&p.text, LIMIT_XSPACE_NAME_BYTES);
    buf_init(&p.name, LIMIT_XSPACE_NAME_BYTES);
    const bool ok = import_run(&p, from_fd, to_fd, e);
    for (size_t i = 0; sequence_map_next(&p.sequences, &i);)
        sequence_clear(p.sequences.values[i - 1]);
    for (struct track *t = p.first_track; t != NULL; t = t->next)
        buf_release(&t->types);
    sequence_map_release(&p.sequences);
    clock_map_release(&p.clocks);
    track_map_release(&p.tracks);
    pf_process_map_release(&p.processes);
    map_u64_u32_release(&p.thread_names);
    cpu_map_release(&p.cpus);
    interner_release(&p.texts);
    buf_release(&p.text);
    buf_release(&p.name);
    xspace_writer_release(&p.w);
    return ok;
}

/* Whether a field is what TracePacket has under that number. HLO modules and statistics of XProf lie beside
 * profiles and are messages of messages too. */
static bool fits_packet(const struct wire *w)
{
    switch (w->field) {
    case 8:  /* timestamp */
    case 10: /* trusted_packet_sequence_id */
    case 13: /* sequence_flags */
    case 58: /* timestamp_clock_id */
        return w->type == WIRE_VARINT;
    case 1:
    case 2:
    case 6:
    case 11:
    case 12:
    case 59:
    case 60:
        return w->type == WIRE_LEN;
    default:
        return true;
    }
}

/* Messages that may come first, be long and stand alone: trace_config, trace_stats, synchronization_marker,
 * system_info, compressed_packets, trace_uuid. */
static bool is_whole_packet(uint32_t field)
{
    return field == 33 || field == 35 || field == 36 || field == 45 || field == 50 || field == 89;
}

bool perfetto_looks_like(str head)
{
    const uint8_t *p = (const uint8_t *)head.p, *const end = p + head.n;
    while (p < end) {
        uint64_t n;
        bool known = false;
        if (*p++ != (1 << 3 | WIRE_LEN) || !wire_varint(&p, end, &n))
            return false;
        const size_t left = (size_t)(end - p);
        const uint8_t *const packet_end = n < left ? p + n : end;
        struct wire w = wire_from((str){(const char *)p, (size_t)(packet_end - p)}, 0);
        while (wire_next(&w)) {
            if (!fits_packet(&w))
                return false;
            known = known || w.field == 8 || w.field == 10 || is_whole_packet(w.field);
        }
        if (w.wrong != NULL && packet_end == end) { /* the head cuts it: its tag alone tells */
            const uint8_t *at = w.field_at;
            uint64_t tag;
            known = known || (wire_varint(&at, end, &tag) && (tag & 7) == WIRE_LEN &&
                              is_whole_packet((uint32_t)(tag >> 3)));
        }
        if (known || w.wrong != NULL)
            return known;
        p = packet_end;
    }
    return false;
}
