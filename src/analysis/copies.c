/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/copies.h"

#include <stdlib.h>

#include "analysis/framework_op.h"
#include "model/trace_pick.h"

const char *copy_direction_word(enum copy_direction d)
{
    static const char *const words[COPY_DIRECTIONS] = {NULL,  "H2D", "D2H", "D2D",
                                                       "P2P", "H2H", "fill"};
    return words[d];
}

/* ---- what one event says ---- */

/* Its kinds of memory, in CUDA's, HIP's and PyTorch's spellings. */
static str memory_kind(str word)
{
    static const str kinds[] = {STR_INIT("pageable"), STR_INIT("pinned"),  STR_INIT("device"),
                                STR_INIT("array"),    STR_INIT("managed"), STR_INIT("unified"),
                                STR_INIT("host")};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_eq_nocase(word, kinds[i]))
            return kinds[i];
    return (str){0};
}

static bool is_of_device(str kind)
{
    return str_eq(kind, S("device")) || str_eq(kind, S("array"));
}

static bool is_of_host(str kind)
{
    return str_eq(kind, S("pageable")) || str_eq(kind, S("pinned")) || str_eq(kind, S("host"));
}

static enum copy_direction between(str from, str to)
{
    if (is_of_host(from))
        return is_of_device(to) ? COPY_H2D : is_of_host(to) ? COPY_H2H : COPY_UNKNOWN;
    if (is_of_device(from))
        return is_of_device(to) ? COPY_D2D : is_of_host(to) ? COPY_D2H : COPY_UNKNOWN;
    return COPY_UNKNOWN;
}

static enum copy_direction direction_of_word(str word)
{
    static const struct {
        str word;
        enum copy_direction direction;
    } words[] = {{STR_INIT("HostToDevice"), COPY_H2D},
                 {STR_INIT("HtoD"), COPY_H2D},
                 {STR_INIT("DeviceToHost"), COPY_D2H},
                 {STR_INIT("DtoH"), COPY_D2H},
                 {STR_INIT("DeviceToDevice"), COPY_D2D},
                 {STR_INIT("DtoD"), COPY_D2D},
                 {STR_INIT("PeerToPeer"), COPY_P2P},
                 {STR_INIT("PtoP"), COPY_P2P},
                 {STR_INIT("P2P"), COPY_P2P},
                 {STR_INIT("HostToHost"), COPY_H2H}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_find_nocase(word, words[i].word) >= 0)
            return words[i].direction;
    return COPY_UNKNOWN;
}

static enum copy_direction direction_of_name(str name)
{
    if (str_starts(name, S("Memset")) || str_starts(name, S("FillBuffer")))
        return COPY_FILL;
    const enum copy_direction said = direction_of_word(name);
    if (said != COPY_UNKNOWN)
        return said;
    switch (copy_kind(name)) {
    case FRAMEWORK_COPY_H2D:
        return COPY_H2D;
    case FRAMEWORK_COPY_D2H:
        return COPY_D2H;
    case FRAMEWORK_COPY_D2D:
        return COPY_D2D;
    case FRAMEWORK_COPY_H2H:
        return COPY_H2H;
    default:
        return COPY_UNKNOWN;
    }
}

/* "(Pageable -> Device)" at the end of Kineto's names; "(Device)" of a fill. */
static void take_memory(struct copy_of *c, str name)
{
    const ptrdiff_t open = str_find_char(name, '(');
    if (open < 0 || !str_ends(name, S(")")))
        return;
    const str inside = str_sub(name, (size_t)open + 1, name.n - 1);
    const ptrdiff_t arrow = str_find(inside, S(" -> "));
    if (arrow < 0) {
        c->to = memory_kind(inside);
        return;
    }
    c->from = memory_kind(str_sub(inside, 0, (size_t)arrow));
    c->to = memory_kind(str_sub(inside, (size_t)arrow + 4, inside.n));
}

struct copy_of copy_parse(str name, str details)
{
    struct copy_of c = {.direction = direction_of_name(name)};
    str word, key, value;
    uint64_t size;
    take_memory(&c, name);
    while (str_cut(details, ' ', &word, &details)) {
        if (!str_cut(word, ':', &key, &value))
            continue;
        if (str_eq(key, S("kind_src")))
            c.from = c.from.n > 0 ? c.from : memory_kind(value);
        else if (str_eq(key, S("kind_dst")))
            c.to = c.to.n > 0 ? c.to : memory_kind(value);
        else if (str_eq(key, S("kind")) && c.direction == COPY_UNKNOWN)
            c.direction = direction_of_word(value);
        else if (str_eq(key, S("kind")) && c.direction == COPY_FILL)
            c.to = memory_kind(value);
        else if ((str_eq(key, S("num_bytes")) || (str_eq(key, S("size")) && !c.has_bytes)) &&
                 str_to_u64(value, &size)) {
            c.bytes = size;
            c.has_bytes = true;
        }
    }
    if (c.direction == COPY_UNKNOWN)
        c.direction = between(c.from, c.to);
    return c;
}

/* ---- all of a profile ---- */

struct collector {
    struct copies *out;
    struct arena *arena;
    struct err *err;
    const struct trace *trace;
    uint32_t device, first; /* its first row */
    struct memo kinds;
};

static struct copy_row *row_at(struct collector *c, const struct copy_of *of, bool waits)
{
    struct copies *out = c->out;
    for (uint32_t i = c->first; i < out->n; i++) {
        struct copy_row *r = &out->rows[i];
        if (r->direction == of->direction && str_eq(r->from, of->from) && str_eq(r->to, of->to) &&
            r->waits == waits)
            return r;
    }
    if (!ARENA_PUSH(c->arena, out->rows, out->n, out->capacity))
        return NULL;
    struct copy_row *r = &out->rows[out->n - 1];
    *r = (struct copy_row){.device = c->device,
                           .direction = of->direction,
                           .from = of->from,
                           .to = of->to,
                           .waits = waits};
    return r;
}

static bool add_copy(struct collector *c, const struct copy_of *of, bool waits,
                     const struct trace_event *ev)
{
    struct copy_row *r = row_at(c, of, waits);
    if (r == NULL)
        return arena_full(c->arena, c->err);
    r->count++;
    r->time_ps += ev->dur_ps;
    if (of->has_bytes) {
        r->sized++;
        r->bytes += of->bytes;
    }
    if (of->has_bytes && !waits && ev->dur_ps > 0) { /* a copy of no duration has no rate */
        r->timed_ps += ev->dur_ps;
        r->timed_bytes += of->bytes;
    }
    return spans_add(&r->spans, c->arena, ev->start_ps, ev->start_ps + ev->dur_ps) ||
           arena_full(c->arena, c->err);
}

enum asked { DETAILS = 0, FILL_DETAILS, BYTES, ASKED };
static const str asked_names[ASKED] = {STR_INIT("memcpy_details"), STR_INIT("Memset_details"),
                                       STR_INIT("bytes")};

static bool add_kernel_copy(struct collector *c, const struct trace_event *ev, str name,
                            const struct trace_stat *v)
{
    str details = {0};
    int64_t bytes;
    if (!trace_stat_str(&v[DETAILS], &details))
        trace_stat_str(&v[FILL_DETAILS], &details);
    struct copy_of of = copy_parse(name, details);
    if (trace_stat_i64(&v[BYTES], &bytes) && bytes >= 0 && !of.has_bytes) {
        of.bytes = (uint64_t)bytes;
        of.has_bytes = true;
    }
    return add_copy(c, &of, false, ev);
}

/* Of a TPU core: a transfer within the device, or with the host. */
static bool add_core_copy(struct collector *c, const struct trace_event *ev, uint32_t line,
                          enum work_kind kind)
{
    const struct trace_event_metadata *m = trace_event_meta(c->trace, &c->trace->lines[line], ev);
    struct copy_of of = {.direction = COPY_D2D};
    str category = {0};
    int64_t bytes;
    if (m != NULL) {
        trace_stat_str(trace_stat_find(m->stats, S("hlo_category")), &category);
        if (trace_stat_i64(trace_stat_find(m->stats, S("bytes_accessed")), &bytes) && bytes > 0) {
            of.bytes = (uint64_t)bytes;
            of.has_bytes = true;
        }
    }
    if (kind == WORK_COPY) {
        of.from = of.to = S("device");
        return add_copy(c, &of, false, ev);
    }
    const bool in = str_starts(category, S("infeed")) || str_starts(category, S("host recv"));
    of.direction = in ? COPY_H2D : COPY_D2H;
    of.from = in ? S("host") : S("device");
    of.to = in ? S("device") : S("host");
    return add_copy(c, &of, true, ev);
}

/* Where a core's transfers were recorded, its -start and -done only name them. */
static bool collect_line(struct collector *c, uint32_t line, bool has_transfers)
{
    const struct trace *t = c->trace;
    const bool is_gpu = t->planes[t->lines[line].plane_index].kind == TRACE_PLANE_GPU;
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, t, line, asked_names, is_gpu ? ASKED : 0);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init_work(&cursor, t, line); ok && trace_cursor_next(&cursor);) {
        const struct trace_event *ev = &cursor.event;
        const enum work_kind kind = work_kind_at(&c->kinds, t, line, ev);
        if (ev->num_occurrences > 0 || (kind != WORK_COPY && kind != WORK_WAIT))
            continue;
        if (is_gpu)
            ok = trace_pick(&p, ev, c->err) &&
                 add_kernel_copy(c, ev, trace_event_name(t, &t->lines[line], ev), p.values);
        else if (kind == WORK_WAIT || work_is_async_line(t, line) || !has_transfers)
            ok = add_core_copy(c, ev, line, kind);
    }
    trace_picker_release(&p);
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
}

static int by_kind(const void *x, const void *y)
{
    const struct copy_row *a = x, *b = y;
    if (a->direction != b->direction)
        return a->direction < b->direction ? -1 : 1;
    const int from = str_cmp(a->from, b->from), to = str_cmp(a->to, b->to);
    return from != 0 ? from : to != 0 ? to : (int)a->waits - (int)b->waits;
}

static uint64_t overlap(const struct spans *a, const struct spans *b)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < a->n; i++)
        sum += spans_within(b, a->items[i].begin_ps, a->items[i].end_ps);
    return sum;
}

static bool collect_device(struct collector *c, const struct work_device *d)
{
    bool ok = true;
    c->trace = d->trace;
    c->first = c->out->n;
    if (d->plane_index == UINT32_MAX)
        return true;
    const struct trace_plane *p = &d->trace->planes[d->plane_index];
    const bool has_transfers = work_has_transfers(d->trace, p);
    for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(d->trace, l) || work_is_async_line(d->trace, l))
            ok = collect_line(c, l, has_transfers);
    const uint32_t n = c->out->n - c->first;
    if (n == 0)
        return ok; /* there may be no rows at all yet */
    struct copy_row *rows = &c->out->rows[c->first];
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_kind);
    for (uint32_t i = 0; i < n; i++) {
        spans_close(&rows[i].spans);
        rows[i].exposed_ps =
            spans_within(&rows[i].spans, 0, UINT64_MAX) - overlap(&rows[i].spans, &d->compute_comm);
    }
    return ok;
}

bool copies_of(const struct profile *p, struct arena *a, struct copies *out, struct err *e)
{
    struct collector c = {.out = out, .arena = a, .err = e};
    *out = (struct copies){0};
    bool ok = work_devices_of(p, a, &out->devices, e);
    for (c.device = 0; ok && c.device < out->devices.n; c.device++)
        ok = collect_device(&c, &out->devices.items[c.device]);
    memo_release(&c.kinds);
    return ok;
}
