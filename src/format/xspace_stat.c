/* SPDX-License-Identifier: Apache-2.0 */
#include <zlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/hlo.h"
#include "format/xspace_internal.h"
#include "model/trace_pick.h"

/* compressed_str_value: one gzip member. What cannot be inflated keeps its bytes. */
static bool stat_inflate(str packed, struct arena *a, str *out)
{
    z_stream z = {0};
    if (packed.n > UINT32_MAX || inflateInit2(&z, 15 + 32) != Z_OK)
        return false;
    struct buf b;
    buf_init(&b, LIMIT_XSPACE_NAME_BYTES * 16);
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
    const bool ok = state == Z_STREAM_END;
    if (ok)
        *out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return ok && (out->p != NULL || out->n == 0);
}

static str stat_name(const struct trace_plane *plane, uint64_t id)
{
    const uint32_t *at = map_u64_u32_get(&plane->stat_name_by_id, id);
    return at == NULL ? (str){0} : plane->stat_names[*at];
}

static void stat_set_text(struct trace_stat *s, enum trace_stat_type type, str text)
{
    s->type = type;
    s->text = text;
}

/* An XStat as it is written: of several values the last one counts. */
struct raw_stat {
    uint64_t id;     /* of its name */
    uint32_t field;  /* of its value; 0: none */
    uint64_t number; /* the value, or */
    str bytes;
};

static bool raw_read(str bytes, uint64_t pos, struct raw_stat *out, struct err *e)
{
    struct wire w = wire_from(bytes, pos);
    *out = (struct raw_stat){0};
    while (wire_next(&w)) {
        static const uint8_t types[] = {0,           WIRE_VARINT, WIRE_I64,
                                        WIRE_VARINT, WIRE_VARINT, WIRE_LEN,
                                        WIRE_LEN,    WIRE_VARINT, WIRE_LEN};
        if (w.field >= sizeof types || w.type != types[w.field])
            continue;
        if (w.field == 1) {
            out->id = w.number;
            continue;
        }
        out->field = w.field;
        out->number = w.number;
        out->bytes = w.bytes;
    }
    return wire_ok(&w, e);
}

/* Everything but the name. */
static void stat_set(const struct trace_plane *plane, const struct raw_stat *raw, struct arena *a,
                     struct trace_stat *s)
{
    str text;
    switch (raw->field) {
    case 2:
        s->type = TRACE_STAT_F64;
        memcpy(&s->f64, &raw->number, 8);
        break;
    case 3:
        s->type = TRACE_STAT_U64;
        s->u64 = raw->number;
        break;
    case 4:
        s->type = TRACE_STAT_I64;
        s->i64 = (int64_t)raw->number;
        break;
    case 5:
        stat_set_text(s, TRACE_STAT_STR, raw->bytes);
        break;
    case 6:
        stat_set_text(s, TRACE_STAT_BYTES, raw->bytes);
        break;
    case 7:
        stat_set_text(s, TRACE_STAT_STR, stat_name(plane, raw->number));
        break;
    case 8:
        if (stat_inflate(raw->bytes, a, &text))
            stat_set_text(s, TRACE_STAT_STR, text);
        else
            stat_set_text(s, TRACE_STAT_BYTES, raw->bytes);
        break;
    default:
        break;
    }
}

bool xspace_stat_decode(const struct trace_plane *plane, str bytes, uint64_t pos, struct arena *a,
                        struct trace_stat *s, struct err *e)
{
    struct raw_stat raw;
    if (!raw_read(bytes, pos, &raw, e))
        return false;
    s->name = stat_name(plane, raw.id);
    stat_set(plane, &raw, a, s);
    return true;
}

bool xspace_stats_decode(const struct trace_plane *plane, str message, uint64_t pos, uint32_t field,
                         struct arena *a, struct trace_stats *out, struct err *e)
{
    *out = (struct trace_stats){0};
    uint32_t n = 0;
    struct wire w = wire_from(message, pos);
    while (wire_next(&w))
        n += w.field == field && w.type == WIRE_LEN;
    if (!wire_ok(&w, e) || n == 0)
        return w.wrong == NULL;
    struct trace_stat *items = ARENA_ARRAY(a, struct trace_stat, n);
    if (items == NULL)
        return arena_full(a, e);
    uint32_t i = 0;
    w = wire_from(message, pos);
    while (wire_next(&w))
        if (w.field == field && w.type == WIRE_LEN &&
            !xspace_stat_decode(plane, w.bytes, wire_bytes_pos(&w), a, &items[i++], e))
            return false;
    *out = (struct trace_stats){items, n};
    return true;
}

static bool event_stats(const struct trace *t, const struct trace_line *line,
                        const struct trace_event *ev, struct arena *a, struct trace_stats *out,
                        struct err *e)
{
    if (ev->src_bytes == 0)
        return true;
    char *bytes = arena_alloc(a, ev->src_bytes, 1);
    if (bytes == NULL)
        return arena_full(a, e);
    if (!file_pread_all(t->fd, bytes, ev->src_bytes, ev->src, e))
        return err_wrap(e, "cannot read event of '%.*s'", STR_ARG(t->file));
    return xspace_stats_decode(&t->planes[line->plane_index], (str){bytes, ev->src_bytes}, ev->src,
                               4, a, out, e);
}

static bool pick(struct trace_picker *p, str message, uint64_t pos, struct err *e)
{
    struct wire w = wire_from(message, pos);
    while (wire_next(&w)) {
        struct raw_stat raw;
        if (w.field != 4 || w.type != WIRE_LEN)
            continue;
        if (!raw_read(w.bytes, wire_bytes_pos(&w), &raw, e))
            return false;
        struct trace_stat *s = trace_picker_take(p, raw.id);
        if (s != NULL)
            stat_set(p->plane, &raw, &p->texts, s);
    }
    return wire_ok(&w, e);
}

/* Positions in messages count from the begin of the module: stats do not keep theirs. */
static bool hlo_module(str bytes, struct arena *a, struct hlo_module *out, struct err *e)
{
    return hlo_parse(bytes, 0, a, out, e);
}

const struct trace_source xspace_source = {
    .event_stats = event_stats, .pick = pick, .hlo_module = hlo_module};
