/* SPDX-License-Identifier: Apache-2.0 */
#include "format/xspace_mask.h"

#include "base/file.h"
#include "format/xspace_internal.h"
#include "model/secrets.h"

#define WINDOW_BYTES 1048576
#define TEXT_MOST ((uint64_t)64 << 20) /* longer fields are no text (HLO modules) */

struct finder {
    const struct trace *trace;
    const struct trace_plane *plane; /* the one at hand */
    struct window window;
    struct arena *arena;
    struct arena scratch; /* of inflated texts */
    struct xspace_secret *found;
    uint32_t n, capacity;
    struct map_u64_u32
        named; /* ids of strings of the plane's dictionary that a secret's name refers to */
    struct err *e;
};

static bool add(struct finder *f, uint64_t pos, uint64_t n)
{
    if (n == 0)
        return true;
    if (!ARENA_PUSH(f->arena, f->found, f->n, f->capacity))
        return arena_full(f->arena, f->e);
    f->found[f->n - 1] = (struct xspace_secret){pos, n};
    return true;
}

static bool add_text(struct finder *f, str text, uint64_t pos, enum secret_scope scope)
{
    struct secret_range r;
    for (size_t at = 0; at < text.n && secret_next(text, at, scope, &r);
         at = r.to > at ? r.to : at + 1)
        if (!str_eq(str_sub(text, r.from, r.to), S(SECRET_MASK)) &&
            !add(f, pos + r.from, r.to - r.from))
            return false;
    return true;
}

static str stat_name(const struct finder *f, uint64_t id)
{
    const uint32_t *at = map_u64_u32_get(&f->plane->stat_name_by_id, id);
    return at == NULL ? (str){0} : f->plane->stat_names[*at];
}

/* A text that is compressed cannot be masked in part. */
static bool inflated_is_secret(struct finder *f, str message, str name, bool *out)
{
    struct trace_stat s = {0};
    const struct arena_mark m = arena_mark(&f->scratch);
    if (!xspace_stat_decode(f->plane, message, 0, &f->scratch, &s, f->e))
        return false;
    struct secret_range r;
    *out = s.type == TRACE_STAT_STR &&
           (secret_is_named(name, s.text) || secret_next(s.text, 0, SECRET_ALL, &r));
    arena_reset(&f->scratch, m);
    return true;
}

static bool take_stat(struct finder *f, str message, uint64_t pos)
{
    uint64_t id = 0;
    struct wire w = wire_from(message, pos);
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_VARINT)
            id = w.number;
    const str name = stat_name(f, id);
    bool ok = true;
    w = wire_from(message, pos);
    while (ok && wire_next(&w)) {
        if (w.field == 5 && w.type == WIRE_LEN) {
            ok = secret_is_named(name, w.bytes)
                     ? add(f, wire_bytes_pos(&w), w.bytes.n)
                     : add_text(f, w.bytes, wire_bytes_pos(&w), SECRET_ALL);
        } else if (w.field == 7 && w.type == WIRE_VARINT) {
            if (secret_is_named(name, stat_name(f, w.number)))
                *map_u64_u32_put(&f->named, w.number) = 1;
        } else if (w.field == 8 && w.type == WIRE_LEN) {
            bool secret = false;
            ok = inflated_is_secret(f, message, name, &secret) &&
                 (!secret || add(f, wire_bytes_pos(&w), w.bytes.n));
        }
    }
    return ok;
}

/* The stats among the fields of a message, those with that number. */
static bool take_stats(struct finder *f, str message, uint64_t pos, uint32_t field)
{
    bool ok = true;
    struct wire w = wire_from(message, pos);
    while (ok && wire_next(&w))
        if (w.field == field && w.type == WIRE_LEN)
            ok = take_stat(f, w.bytes, wire_bytes_pos(&w));
    return ok;
}

/* The bytes of a field, or none when it is too long for text. */
static bool field_text(struct finder *f, const struct field *at, str *out)
{
    *out = (str){0};
    if (at->type != WIRE_LEN || at->n > TEXT_MOST || at->n == 0)
        return true;
    const uint8_t *p = window_at(&f->window, at->pos, (size_t)at->n, f->e);
    *out = (str){(const char *)p, p == NULL ? 0 : (size_t)at->n};
    return p != NULL;
}

static bool take_line(struct finder *f, const struct field *line)
{
    struct field at;
    enum field_result got;
    uint64_t pos = line->pos;
    while ((got = field_next(&f->window, &pos, line->pos + line->n, &at, f->e)) == FIELD_READ) {
        str text;
        if (at.type != WIRE_LEN)
            continue;
        if (!field_text(f, &at, &text) || (at.number == 4 && !take_stats(f, text, at.pos, 4)) ||
            ((at.number == 2 || at.number == 11) && !add_text(f, text, at.pos, SECRET_TOKENS)))
            return false;
    }
    return got == FIELD_DONE;
}

/* A map entry of a dictionary: of events (names and stats) or of stats (names, which are values too). */
static bool take_entry(struct finder *f, str entry, uint64_t pos, bool of_stats)
{
    uint64_t key = 0;
    bool ok = true;
    struct wire w = wire_from(entry, pos);
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_VARINT)
            key = w.number;
    const bool whole = of_stats && map_u64_u32_get(&f->named, key) != NULL;
    w = wire_from(entry, pos);
    while (ok && wire_next(&w)) {
        if (w.field != 2 || w.type != WIRE_LEN)
            continue;
        struct wire v = wire_from(w.bytes, wire_bytes_pos(&w));
        while (ok && wire_next(&v)) {
            if (v.type != WIRE_LEN)
                continue;
            if (v.field == 2 && whole)
                ok = add(f, wire_bytes_pos(&v), v.bytes.n);
            else if (v.field == 2 || (v.field == 4 && !of_stats))
                ok =
                    add_text(f, v.bytes, wire_bytes_pos(&v), of_stats ? SECRET_ALL : SECRET_TOKENS);
        }
    }
    return ok;
}

enum pass { PASS_STATS, PASS_NAMES }; /* what refers to the dictionary of stats comes first */

static bool take_plane_field(struct finder *f, const struct field *at, enum pass pass)
{
    str text;
    if (at->type != WIRE_LEN)
        return true;
    if (at->number == 3)
        return pass != PASS_STATS || take_line(f, at);
    if (at->number > 6 || !field_text(f, at, &text))
        return at->number > 6;
    if (pass == PASS_NAMES)
        return at->number == 2   ? add_text(f, text, at->pos, SECRET_TOKENS)
               : at->number <= 3 ? true
               : at->number <= 5 ? take_entry(f, text, at->pos, at->number == 5)
                                 : true;
    if (at->number == 6)
        return take_stat(f, text, at->pos);
    bool ok = true;
    struct wire w = wire_from(at->number == 4 ? text : (str){0}, at->pos);
    while (ok && wire_next(&w))
        if (w.field == 2 && w.type == WIRE_LEN)
            ok = take_stats(f, w.bytes, wire_bytes_pos(&w), 5);
    return ok;
}

static bool take_plane(struct finder *f, const struct field *plane)
{
    struct field at;
    enum field_result got = FIELD_DONE;
    for (int pass = PASS_STATS; pass <= PASS_NAMES; pass++) {
        uint64_t pos = plane->pos;
        while ((got = field_next(&f->window, &pos, plane->pos + plane->n, &at, f->e)) == FIELD_READ)
            if (!take_plane_field(f, &at, (enum pass)pass))
                return false;
        if (got == FIELD_FAILED)
            return false;
    }
    map_u64_u32_release(&f->named);
    return true;
}

static bool take_space(struct finder *f)
{
    struct field at;
    enum field_result got;
    uint64_t pos = 0;
    uint32_t n_planes = 0;
    while ((got = field_next(&f->window, &pos, f->window.size, &at, f->e)) == FIELD_READ) {
        str text;
        if (at.type != WIRE_LEN)
            continue;
        if (at.number == 1 && n_planes < f->trace->n_planes) {
            f->plane = &f->trace->planes[n_planes++];
            if (!take_plane(f, &at))
                return false;
        } else if (at.number <= 4 &&
                   !(field_text(f, &at, &text) && add_text(f, text, at.pos, SECRET_ALL))) {
            return false;
        }
    }
    return got == FIELD_DONE;
}

static int by_position(const void *a, const void *b)
{
    const struct xspace_secret *x = a, *y = b;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

bool xspace_secrets(const struct trace *t, struct arena *a, struct xspace_secret **out, uint32_t *n,
                    struct err *e)
{
    struct finder f = {
        .trace = t, .window = {.fd = t->fd, .ahead = WINDOW_BYTES}, .arena = a, .e = e};
    arena_init(&f.scratch, "inflated texts", 0);
    const bool ok = file_size(t->fd, &f.window.size, e) && take_space(&f);
    window_release(&f.window);
    arena_release(&f.scratch);
    map_u64_u32_release(&f.named);
    if (f.n > 1)
        qsort(f.found, f.n, sizeof *f.found, by_position);
    *out = f.found;
    *n = f.n;
    return ok;
}
