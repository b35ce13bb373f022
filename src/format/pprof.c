/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pprof.h"

#include <inttypes.h>

#include "base/limits.h"
#include "format/input.h"
#include "format/wire.h"
#include "format/xspace_write.h"

/* Frames of one stack, and bytes of its text. */
#define FRAMES_MOST 4096
#define STACK_BYTES 1048576

struct value_type {
    uint64_t type, unit; /* of the string table */
    struct xspace_line_out *line;
    uint32_t weight_id;
};

/* Where the parts of a message lie that is referred to by id. */
struct location {
    str message;
    uint64_t mapping, address;
};

MAP_DEFINE(location_map, uint64_t, struct location, map_hash_u64, map_eq_u64);

struct pprof {
    struct xspace_writer w;
    struct xspace_plane_out *plane;
    str *strings;
    uint32_t n_strings, strings_capacity;
    struct value_type *types;
    uint32_t n_types, types_capacity;
    struct location_map locations;
    struct map_u64_u32 functions; /* id to index of the name in the string table */
    struct map_u64_u32 mappings;  /* id to that of the file */
    struct map_str_u32 stacks;    /* text to id of the metadata */
    struct buf stack, leaf;
    uint64_t time_ns, duration_ns, period;
    uint64_t n_samples, n_unknown, n_cut, n_short;
};

static str text_of(const struct pprof *p, uint64_t index)
{
    return index < p->n_strings ? p->strings[index] : S("");
}

/* -- tables -- */

static bool take_type(struct pprof *p, str message, uint64_t pos, struct err *e)
{
    struct wire w = wire_from(message, pos);
    if (!ARENA_PUSH(&p->w.arena, p->types, p->n_types, p->types_capacity))
        return arena_full(&p->w.arena, e);
    struct value_type *t = &p->types[p->n_types - 1];
    while (wire_next(&w))
        if (w.type == WIRE_VARINT && w.field <= 2)
            *(w.field == 1 ? &t->type : &t->unit) = w.number;
    return wire_ok(&w, e);
}

static bool take_location(struct pprof *p, str message, uint64_t pos, struct err *e)
{
    struct location l = {.message = message};
    uint64_t id = 0;
    struct wire w = wire_from(message, pos);
    while (wire_next(&w)) {
        if (w.type != WIRE_VARINT)
            continue;
        if (w.field == 1)
            id = w.number;
        else if (w.field == 2)
            l.mapping = w.number;
        else if (w.field == 3)
            l.address = w.number;
    }
    *location_map_put(&p->locations, id) = l;
    return wire_ok(&w, e);
}

/* A function's id and name, a mapping's id and file: fields 1 and `field`. */
static bool take_named(struct map_u64_u32 *map, uint32_t field, str message, uint64_t pos,
                       struct err *e)
{
    uint64_t id = 0, name = 0;
    struct wire w = wire_from(message, pos);
    while (wire_next(&w)) {
        if (w.type == WIRE_VARINT && w.field == 1)
            id = w.number;
        else if (w.type == WIRE_VARINT && w.field == field)
            name = w.number;
    }
    *map_u64_u32_put(map, id) = name < UINT32_MAX ? (uint32_t)name : 0;
    return wire_ok(&w, e);
}

static bool take_table_field(struct pprof *p, const struct wire *w, struct err *e)
{
    const uint64_t pos = w->type == WIRE_LEN ? wire_bytes_pos(w) : 0;
    if (w->type == WIRE_VARINT) {
        if (w->field == 9)
            p->time_ns = w->number;
        else if (w->field == 10)
            p->duration_ns = w->number;
        else if (w->field == 12)
            p->period = w->number;
        return true;
    }
    if (w->type != WIRE_LEN)
        return true;
    switch (w->field) {
    case 1:
        return take_type(p, w->bytes, pos, e);
    case 3:
        return take_named(&p->mappings, 5, w->bytes, pos, e);
    case 4:
        return take_location(p, w->bytes, pos, e);
    case 5:
        return take_named(&p->functions, 2, w->bytes, pos, e);
    case 6:
        if (!ARENA_PUSH(&p->w.arena, p->strings, p->n_strings, p->strings_capacity))
            return arena_full(&p->w.arena, e);
        p->strings[p->n_strings - 1] = w->bytes;
        return true;
    default:
        return true;
    }
}

/* -- stacks -- */

static void add_frame(struct pprof *p, str name)
{
    if (p->stack.n > 0)
        buf_add_char(&p->stack, ';');
    for (size_t i = 0; i < name.n; i++)
        buf_add_char(&p->stack, name.p[i] == ';' ? ',' : name.p[i]); /* `;` stands between frames */
    buf_clear(&p->leaf);
    buf_add_str(&p->leaf, name);
}

/* A place without functions: "<file>+0x<address>". */
static void add_address(struct pprof *p, const struct location *l)
{
    const uint32_t *file = map_u64_u32_get(&p->mappings, l->mapping);
    const str path = file == NULL ? (str){0} : text_of(p, *file);
    char text[512];
    size_t from = path.n;
    while (from > 0 && path.p[from - 1] != '/')
        from--;
    const str base = str_clip_utf8(str_sub(path, from, path.n), 400);
    const int n = snprintf(text, sizeof text, "%.*s%s0x%" PRIx64, STR_ARG(base),
                           base.n > 0 ? "+" : "", l->address);
    add_frame(p, (str){text, n > 0 ? (size_t)n : 0});
}

/* The functions of a location, the outermost first: the file has the innermost first. */
static bool add_location(struct pprof *p, uint64_t id)
{
    const struct location *l = location_map_get(&p->locations, id);
    uint64_t lines[64];
    uint32_t n = 0;
    if (l == NULL)
        return false;
    struct wire w = wire_from(l->message, 0);
    while (wire_next(&w)) {
        if (w.field != 4 || w.type != WIRE_LEN || n == sizeof lines / sizeof *lines)
            continue;
        struct wire line = wire_from(w.bytes, 0);
        lines[n++] = 0;
        while (wire_next(&line))
            if (line.field == 1 && line.type == WIRE_VARINT)
                lines[n - 1] = line.number;
    }
    bool known = true;
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t *function = map_u64_u32_get(&p->functions, lines[i]);
        const str name = function == NULL ? (str){0} : text_of(p, *function);
        known = known && name.n > 0;
        add_frame(p, name.n > 0 ? name : S("?"));
    }
    if (n == 0)
        add_address(p, l);
    return known;
}

/* The metadata of a stack of locations, the leaf first. */
static uint32_t stack_id(struct pprof *p, const uint64_t *ids, uint32_t n)
{
    bool known = true;
    buf_clear(&p->stack);
    buf_clear(&p->leaf);
    for (uint32_t i = n; i-- > 0;)
        known = add_location(p, ids[i]) && known;
    p->n_unknown += !known;
    p->n_cut += p->stack.overflow;
    if (p->stack.n == 0)
        add_frame(p, S("?"));
    const str text = buf_str(&p->stack);
    const uint32_t *old = map_str_u32_get(&p->stacks, text);
    if (old != NULL)
        return *old;
    const uint32_t id =
        xspace_writer_name_with(&p->w, p->plane, buf_str(&p->leaf), S("stack"), text);
    const str kept = arena_str(&p->w.arena, text);
    if (kept.p != NULL)
        *map_str_u32_put(&p->stacks, kept) = id;
    return id;
}

/* -- samples -- */

struct sample {
    uint64_t locations[FRAMES_MOST];
    int64_t values[64];
    uint32_t n_locations, n_values;
    bool cut;
};

static void sample_add(struct sample *s, uint32_t field, uint64_t number)
{
    if (field == 1 && s->n_locations < FRAMES_MOST)
        s->locations[s->n_locations++] = number;
    else if (field == 2 && s->n_values < sizeof s->values / sizeof *s->values)
        s->values[s->n_values++] = (int64_t)number;
    else
        s->cut = true;
}

static bool sample_read(struct sample *s, str message, uint64_t pos, struct err *e)
{
    struct wire w = wire_from(message, pos);
    s->n_locations = s->n_values = 0;
    s->cut = false;
    while (wire_next(&w)) {
        if (w.field != 1 && w.field != 2)
            continue;
        if (w.type == WIRE_VARINT)
            sample_add(s, w.field, w.number);
        uint64_t number;
        for (str rest = w.type == WIRE_LEN ? w.bytes : (str){0}; rest.n > 0;) {
            if (!wire_packed_next(&rest, &number))
                return err_at(e, ERR_PARSE, wire_bytes_pos(&w), "damaged list of numbers");
            sample_add(s, w.field, number);
        }
    }
    return wire_ok(&w, e);
}

/* {key = 1, str = 2, num = 3} as stats of the event that follows. */
static bool write_labels(struct pprof *p, struct xspace_line_out *l, str message, uint64_t pos,
                         struct err *e)
{
    struct wire w = wire_from(message, pos);
    while (wire_next(&w)) {
        if (w.field != 3 || w.type != WIRE_LEN)
            continue;
        uint64_t key = 0, text = 0, number = 0;
        struct wire label = wire_from(w.bytes, wire_bytes_pos(&w));
        while (wire_next(&label))
            if (label.type == WIRE_VARINT && label.field <= 3)
                *(label.field == 1 ? &key : label.field == 2 ? &text : &number) = label.number;
        if (!wire_ok(&label, e))
            return false;
        const uint32_t id = xspace_writer_stat_id(&p->w, p->plane, text_of(p, key));
        if (text != 0)
            xspace_writer_stat_str(l, id, text_of(p, text));
        else
            xspace_writer_stat_i64(l, id, (int64_t)number);
    }
    return wire_ok(&w, e);
}

static bool take_sample(struct pprof *p, struct sample *s, str message, uint64_t pos, struct err *e)
{
    if (!sample_read(s, message, pos, e))
        return false;
    p->n_samples++;
    p->n_cut += s->cut;
    p->n_short += s->n_values != p->n_types;
    const uint32_t id = stack_id(p, s->locations, s->n_locations);
    for (uint32_t i = 0; i < p->n_types && i < s->n_values; i++) {
        struct value_type *t = &p->types[i];
        if (s->values[i] == 0)
            continue;
        xspace_writer_stat_i64(t->line, t->weight_id, s->values[i]);
        if (!write_labels(p, t->line, message, pos, e))
            return false;
        xspace_writer_event(&p->w, t->line, id, (int64_t)p->time_ns, 0, 0);
    }
    return !p->w.full || err_set(e, ERR_LIMIT, "the profile has too many samples");
}

/* -- the whole -- */

static void make_lines(struct pprof *p)
{
    p->plane = xspace_writer_plane(&p->w);
    if (p->plane == NULL)
        return;
    p->plane->name = S("/host:CPU");
    for (uint32_t i = 0; i < p->n_types; i++) {
        struct value_type *t = &p->types[i];
        const str unit = text_of(p, t->unit), type = text_of(p, t->type);
        t->line = xspace_writer_line(
            &p->w, p->plane, i,
            arena_printf(&p->w.arena, "%.*s (%.*s)", STR_ARG(type), STR_ARG(unit)));
        t->weight_id = xspace_writer_stat_id(&p->w, p->plane, S("weight"));
    }
    xspace_writer_plane_str(&p->w, p->plane, S("imported_from"), S("pprof"));
    if (p->duration_ns > 0)
        xspace_writer_plane_i64(&p->w, p->plane, S("duration_ns"), (int64_t)p->duration_ns);
    if (p->period > 0)
        xspace_writer_plane_i64(&p->w, p->plane, S("period"), (int64_t)p->period);
}

static void warn(struct pprof *p, uint64_t n, const char *what)
{
    if (n > 0)
        xspace_writer_warn(&p->w, arena_printf(&p->w.arena, "%" PRIu64 " %s", n, what));
}

static bool take_profile(struct pprof *p, str bytes, int to_fd, struct err *e)
{
    struct wire w = wire_from(bytes, 0);
    while (wire_next(&w))
        if (!take_table_field(p, &w, e))
            return false;
    if (!wire_ok(&w, e))
        return false;
    if (p->n_types == 0)
        return err_at(e, ERR_PARSE, 0, "not a pprof profile: it has no sample types");
    make_lines(p);
    struct sample *s = map_alloc(1, sizeof *s);
    bool ok = true;
    w = wire_from(bytes, 0);
    while (ok && wire_next(&w))
        ok =
            w.field != 2 || w.type != WIRE_LEN || take_sample(p, s, w.bytes, wire_bytes_pos(&w), e);
    map_free(s);
    warn(p, p->n_unknown, "samples with places or functions that the profile does not name");
    warn(p, p->n_cut, "samples with stacks or values beyond the limit: cut");
    warn(p, p->n_short, "samples with other values than the profile has types");
    return ok && xspace_writer_save(&p->w, to_fd, e);
}

static bool read_all(int fd, struct buf *out, struct err *e)
{
    struct input in;
    size_t n = 1;
    bool ok = input_open(&in, fd, e);
    while (ok && n > 0) {
        char *room = buf_reserve(out, 1 << 20);
        ok = room != NULL ? input_read(&in, room, 1 << 20, &n, e)
                          : buf_ok(out, "the decompressed profile", e);
        out->n += ok ? n : 0;
    }
    input_release(&in);
    return ok;
}

bool pprof_import(int from_fd, int to_fd, struct err *e)
{
    struct pprof p = {0};
    struct buf bytes;
    xspace_writer_init(&p.w);
    buf_init(&bytes, LIMIT_PPROF_BYTES);
    buf_init(&p.stack, STACK_BYTES);
    buf_init(&p.leaf, STACK_BYTES);
    const bool ok = read_all(from_fd, &bytes, e) && take_profile(&p, buf_str(&bytes), to_fd, e);
    location_map_release(&p.locations);
    map_u64_u32_release(&p.functions);
    map_u64_u32_release(&p.mappings);
    map_str_u32_release(&p.stacks);
    buf_release(&p.stack);
    buf_release(&p.leaf);
    buf_release(&bytes);
    xspace_writer_release(&p.w);
    return ok;
}

/* Begins with a sample type: a message of two numbers, type and unit. A plane of an XSpace has its name, which
 * is text, in field 2. */
bool pprof_looks_like(str head)
{
    const uint8_t *p = (const uint8_t *)head.p;
    if (head.n < 6 || p[0] != 0x0a || p[1] < 4 || p[1] > 22 || head.n < 2u + p[1])
        return false;
    bool type = false, unit = false;
    struct wire w = wire_from(str_sub(head, 2, 2u + p[1]), 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_VARINT)
            return false;
        type = type || w.field == 1;
        unit = unit || w.field == 2;
    }
    return w.wrong == NULL && type && unit;
}
