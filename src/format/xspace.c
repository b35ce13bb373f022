/* SPDX-License-Identifier: Apache-2.0 */
#include "format/xspace.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "format/xspace_internal.h"

#define WINDOW_SKIM_BYTES 65536
/* Line times at or above it (March 1973) are nanoseconds since 1970, below it since some start. */
#define EPOCH_LEAST_NS INT64_C(100000000000000000)
/* Furthest that a line may begin after the trace's origin (50 days). */
#define LINE_SPAN_MAX_NS (INT64_MAX / 2 / 1000)

const uint8_t *window_at(struct window *w, uint64_t pos, size_t n, struct err *e)
{
    if (n == 0)
        return (const uint8_t *)"";
    if (pos >= w->base && pos - w->base <= w->n && n <= w->n - (size_t)(pos - w->base))
        return w->buf + (pos - w->base);
    if (pos > w->size || n > w->size - pos) {
        err_at(e, ERR_PARSE, w->size, "file is cut");
        return NULL;
    }
    size_t want = n > w->ahead ? n : w->ahead;
    want = want > w->size - pos ? (size_t)(w->size - pos) : want;
    if (want > w->alloc) {
        free(w->buf);
        w->n = 0;
        w->alloc = 0;
        w->buf = malloc(want + WINDOW_SLACK);
        if (w->buf == NULL) {
            err_at(e, ERR_LIMIT, pos, "a field of %zu bytes does not fit in memory", n);
            return NULL;
        }
        w->alloc = want;
    }
    w->n = 0;
    if (!file_pread_all(w->fd, w->buf, want, pos, e))
        return NULL;
    memset(w->buf + want, 0, WINDOW_SLACK);
    w->base = pos;
    w->n = want;
    return w->buf;
}

void window_release(struct window *w)
{
    free(w->buf);
    *w = (struct window){.fd = -1};
}

/* Says whether the field was cut by the end of the file or contradicts the message around it. */
static enum field_result field_too_long(const struct window *w, uint64_t at, uint64_t n,
                                        uint64_t end, struct err *e)
{
    if (end == w->size)
        err_at(e, ERR_PARSE, at, "truncated: a field of %llu bytes, %llu are left",
               (unsigned long long)n, (unsigned long long)(end - at));
    else
        err_at(e, ERR_PARSE, at, "damaged: a field of %llu bytes in a message with %llu left",
               (unsigned long long)n, (unsigned long long)(end - at));
    return FIELD_FAILED;
}

enum field_result field_next(struct window *w, uint64_t *pos, uint64_t end, struct field *f,
                             struct err *e)
{
    if (*pos >= end)
        return FIELD_DONE;
    const size_t n = end - *pos < 20 ? (size_t)(end - *pos) : 20;
    const uint8_t *const start = window_at(w, *pos, n, e);
    if (start == NULL)
        return FIELD_FAILED;
    const uint8_t *p = start;
    uint64_t tag, length = 0;
    *f = (struct field){.at = *pos};
    if (!wire_varint(&p, start + n, &tag) || tag > UINT32_MAX || tag < 8) {
        err_at(e, ERR_PARSE, *pos, "damaged field tag");
        return FIELD_FAILED;
    }
    f->number = (uint32_t)tag >> 3;
    f->type = (enum wire_type)(tag & 7);
    const uint64_t value_at = *pos + (uint64_t)(p - start);
    switch (f->type) {
    case WIRE_VARINT:
    case WIRE_LEN:
        if (!wire_varint(&p, start + n, &f->value)) {
            err_at(e, ERR_PARSE, value_at,
                   f->type == WIRE_LEN ? "damaged length" : "damaged number");
            return FIELD_FAILED;
        }
        length = f->type == WIRE_LEN ? f->value : 0;
        break;
    case WIRE_I64:
        length = 8;
        break;
    case WIRE_I32:
        length = 4;
        break;
    default:
        err_at(e, ERR_PARSE, *pos, "damaged: unknown wire type %u", (unsigned)(tag & 7));
        return FIELD_FAILED;
    }
    f->pos = *pos + (uint64_t)(p - start);
    f->n = length;
    if (length > end - f->pos)
        return field_too_long(w, f->pos, length, end, e);
    *pos = f->pos + length;
    return FIELD_READ;
}

/* The content of a LEN field, in the trace's arena. */
static bool field_keep(struct xspace_reader *r, const struct field *f, str *out, struct err *e)
{
    *out = (str){0};
    if (f->n == 0)
        return true;
    if (f->n <= WINDOW_SKIM_BYTES) {
        const uint8_t *p = window_at(&r->window, f->pos, (size_t)f->n, e);
        if (p == NULL)
            return false;
        *out = arena_str(&r->trace->arena, (str){(const char *)p, (size_t)f->n});
        return out->p != NULL || arena_full(&r->trace->arena, e);
    }
    char *bytes = arena_alloc(&r->trace->arena, (size_t)f->n, 1);
    if (bytes == NULL)
        return err_at(e, ERR_LIMIT, f->pos, "a field of %llu bytes: a trace keeps up to %llu MiB",
                      (unsigned long long)f->n,
                      (unsigned long long)(LIMIT_ARENA_TRACE_BYTES >> 20));
    *out = (str){bytes, (size_t)f->n};
    return file_pread_all(r->window.fd, bytes, (size_t)f->n, f->pos, e);
}

struct raw_list {
    struct raw *items;
    uint32_t n, capacity;
};

static bool raw_push(struct xspace_reader *r, struct raw_list *list, const struct field *f,
                     struct err *e)
{
    struct raw raw = {.pos = f->pos};
    if (!field_keep(r, f, &raw.bytes, e))
        return false;
    if (!ARENA_PUSH(&r->trace->arena, list->items, list->n, list->capacity))
        return arena_full(&r->trace->arena, e);
    list->items[list->n - 1] = raw;
    return true;
}

static bool line_push(struct xspace_reader *r, uint32_t plane, const struct field *f, struct err *e)
{
    struct trace *t = r->trace;
    if (t->n_lines >= LIMIT_XSPACE_LINES)
        return err_at(e, ERR_LIMIT, f->at, "more than %llu lines",
                      (unsigned long long)LIMIT_XSPACE_LINES);
    if (!ARENA_PUSH(&t->arena, t->lines, t->n_lines, r->lines_capacity) ||
        !ARENA_PUSH(&t->arena, r->line_extents, r->n_extents, r->extents_capacity))
        return arena_full(&t->arena, e);
    t->lines[t->n_lines - 1].plane_index = plane;
    r->line_extents[r->n_extents - 1] = (struct extent){f->pos, f->n};
    t->planes[plane].n_lines++;
    return true;
}

/* {key = 1, value = 2} of a map. */
static bool entry_split(struct raw entry, uint64_t *key, struct raw *value, struct err *e)
{
    *key = 0;
    *value = (struct raw){.pos = entry.pos};
    struct wire w = wire_from(entry.bytes, entry.pos);
    while (wire_next(&w)) {
        if (w.field == 1 && w.type == WIRE_VARINT)
            *key = w.number;
        else if (w.field == 2 && w.type == WIRE_LEN)
            *value = (struct raw){w.bytes, wire_bytes_pos(&w)};
    }
    return wire_ok(&w, e);
}

static str name_clip(struct trace *t, str name)
{
    if (name.n <= LIMIT_XSPACE_NAME_BYTES)
        return name;
    trace_note(t, S("long_name"), 1, "names were cut to %llu bytes",
               (unsigned long long)LIMIT_XSPACE_NAME_BYTES);
    return str_clip_utf8(name, LIMIT_XSPACE_NAME_BYTES);
}

static bool plane_stat_names(struct trace *t, struct trace_plane *plane,
                             const struct raw_list *raws, struct err *e)
{
    plane->stat_names = ARENA_ARRAY(&t->arena, str, raws->n);
    if (raws->n > 0 && plane->stat_names == NULL)
        return arena_full(&t->arena, e);
    for (uint32_t i = 0; i < raws->n; i++) {
        uint64_t key;
        struct raw value;
        if (!entry_split(raws->items[i], &key, &value, e))
            return false;
        struct wire w = wire_from(value.bytes, value.pos);
        while (wire_next(&w))
            if (w.field == 2 && w.type == WIRE_LEN)
                plane->stat_names[i] = w.bytes;
        if (!wire_ok(&w, e))
            return false;
        *map_u64_u32_put(&plane->stat_name_by_id, key) = i;
    }
    plane->n_stat_names = raws->n;
    return true;
}

static bool metadata_children(struct trace *t, struct trace_event_metadata *m, struct raw value,
                              uint32_t n, struct err *e)
{
    int64_t *ids = ARENA_ARRAY(&t->arena, int64_t, n);
    if (ids == NULL)
        return arena_full(&t->arena, e);
    uint32_t i = 0;
    struct wire w = wire_from(value.bytes, value.pos);
    while (wire_next(&w) && i < n) {
        if (w.field != 6)
            continue;
        if (w.type == WIRE_VARINT)
            ids[i++] = (int64_t)w.number;
        for (str rest = w.type == WIRE_LEN ? w.bytes : (str){0}; i < n && rest.n > 0;) {
            uint64_t id;
            if (!wire_packed_next(&rest, &id))
                return err_at(e, ERR_PARSE, wire_bytes_pos(&w), "damaged list of children");
            ids[i++] = (int64_t)id;
        }
    }
    m->child_ids = ids;
    m->n_child_ids = i;
    return wire_ok(&w, e);
}

static bool metadata_decode(struct trace *t, const struct trace_plane *plane, struct raw value,
                            struct trace_event_metadata *m, struct err *e)
{
    uint64_t n_children = 0;
    struct wire w = wire_from(value.bytes, value.pos);
    while (wire_next(&w)) {
        if (w.field == 2 && w.type == WIRE_LEN)
            m->name = name_clip(t, w.bytes);
        else if (w.field == 3 && w.type == WIRE_LEN)
            m->metadata = w.bytes;
        else if (w.field == 4 && w.type == WIRE_LEN)
            m->display_name = name_clip(t, w.bytes);
        else if (w.field == 6)
            n_children += w.type == WIRE_LEN ? w.bytes.n : 1;
    }
    if (!wire_ok(&w, e) ||
        !xspace_stats_decode(plane, value.bytes, value.pos, 5, &t->arena, &m->stats, e))
        return false;
    if (n_children > UINT32_MAX)
        return err_at(e, ERR_LIMIT, value.pos, "too many children of an event name");
    return n_children == 0 || metadata_children(t, m, value, (uint32_t)n_children, e);
}

static bool plane_event_metadata(struct trace *t, struct trace_plane *plane,
                                 const struct raw_list *raws, struct err *e)
{
    plane->event_metadata = ARENA_ARRAY(&t->arena, struct trace_event_metadata, raws->n);
    if (raws->n > 0 && plane->event_metadata == NULL)
        return arena_full(&t->arena, e);
    plane->n_event_metadata = raws->n;
    for (uint32_t i = 0; i < raws->n; i++) {
        uint64_t key;
        struct raw value;
        if (!entry_split(raws->items[i], &key, &value, e))
            return false;
        plane->event_metadata[i].id = (int64_t)key;
        if (!metadata_decode(t, plane, value, &plane->event_metadata[i], e))
            return false;
        *map_u64_u32_put(&plane->metadata_by_id, key) = i;
    }
    return true;
}

static bool plane_stats(struct trace *t, struct trace_plane *plane, const struct raw_list *raws,
                        struct err *e)
{
    struct trace_stat *items = ARENA_ARRAY(&t->arena, struct trace_stat, raws->n);
    if (raws->n > 0 && items == NULL)
        return arena_full(&t->arena, e);
    for (uint32_t i = 0; i < raws->n; i++)
        if (!xspace_stat_decode(plane, raws->items[i].bytes, raws->items[i].pos, &t->arena,
                                &items[i], e))
            return false;
    plane->stats = (struct trace_stats){items, raws->n};
    return true;
}

static int32_t plane_number(str rest)
{
    uint64_t n;
    size_t digits = 0;
    while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    return str_to_u64(str_sub(rest, 0, digits), &n) && n <= INT32_MAX ? (int32_t)n : -1;
}

/* Kind and ordinal from the name: facts of XProf's writers, "/device:TPU:0 SparseCore 1". */
static void plane_classify(struct trace_plane *plane)
{
    const str name = plane->name;
    plane->ordinal = -1;
    plane->kind = TRACE_PLANE_OTHER;
    if (str_starts(name, S("/device:TPU:"))) {
        plane->ordinal = plane_number(str_sub(name, 12, name.n));
        plane->kind =
            str_find(name, S("SparseCore")) >= 0 ? TRACE_PLANE_TPU_SPARSE : TRACE_PLANE_TPU;
    } else if (str_starts(name, S("/device:GPU:"))) {
        plane->ordinal = plane_number(str_sub(name, 12, name.n));
        plane->kind = TRACE_PLANE_GPU;
    } else if (str_starts(name, S("/device:CUSTOM:"))) {
        plane->kind = TRACE_PLANE_CUSTOM;
    } else if (str_eq(name, S("/host:metadata"))) {
        plane->kind = TRACE_PLANE_METADATA;
    } else if (str_starts(name, S("/host:"))) {
        plane->kind = TRACE_PLANE_HOST;
        plane->ordinal =
            str_starts(name, S("/host:CPU:")) ? plane_number(str_sub(name, 10, name.n)) : -1;
    } else if (str_eq(name, S("Task Environment"))) {
        plane->kind = TRACE_PLANE_ENVIRONMENT;
    }
}

static void plane_environment(struct trace *t, const struct trace_plane *plane)
{
    int64_t ns;
    if (plane->kind != TRACE_PLANE_ENVIRONMENT)
        return;
    if (t->profile_start_ns == 0 &&
        trace_stat_i64(trace_stat_find(plane->stats, S("profile_start_time")), &ns))
        t->profile_start_ns = ns;
    if (trace_stat_i64(trace_stat_find(plane->stats, S("profile_stop_time")), &ns) &&
        ns > t->profile_stop_ns)
        t->profile_stop_ns = ns;
}

static bool plane_skim(struct xspace_reader *r, const struct field *at, struct err *e)
{
    struct trace *t = r->trace;
    if (t->n_planes >= LIMIT_XSPACE_PLANES)
        return err_at(e, ERR_LIMIT, at->at, "more than %llu planes",
                      (unsigned long long)LIMIT_XSPACE_PLANES);
    if (!ARENA_PUSH(&t->arena, t->planes, t->n_planes, r->planes_capacity))
        return arena_full(&t->arena, e);
    const uint32_t index = t->n_planes - 1;
    struct trace_plane *plane = &t->planes[index];
    plane->first_line = t->n_lines;
    struct raw_list events = {0}, names = {0}, stats = {0};
    struct field f;
    enum field_result got;
    uint64_t pos = at->pos;
    while ((got = field_next(&r->window, &pos, at->pos + at->n, &f, e)) == FIELD_READ) {
        bool ok = true;
        if (f.number == 1 && f.type == WIRE_VARINT)
            plane->id = (int64_t)f.value;
        else if (f.type != WIRE_LEN)
            continue;
        else if (f.number == 2)
            ok = field_keep(r, &f, &plane->name, e);
        else if (f.number == 3)
            ok = line_push(r, index, &f, e);
        else if (f.number == 4)
            ok = raw_push(r, &events, &f, e);
        else if (f.number == 5)
            ok = raw_push(r, &names, &f, e);
        else if (f.number == 6)
            ok = raw_push(r, &stats, &f, e);
        if (!ok)
            return false;
    }
    if (got == FIELD_FAILED || !plane_stat_names(t, plane, &names, e) ||
        !plane_event_metadata(t, plane, &events, e) || !plane_stats(t, plane, &stats, e))
        return false;
    plane->name = name_clip(t, plane->name);
    plane_classify(plane);
    plane_environment(t, plane);
    return true;
}

static bool text_push(struct xspace_reader *r, const struct field *f, str **list, uint32_t *n,
                      uint32_t *capacity, struct err *e)
{
    str text;
    if (!field_keep(r, f, &text, e))
        return false;
    if (!ARENA_PUSH(&r->trace->arena, *list, *n, *capacity))
        return arena_full(&r->trace->arena, e);
    (*list)[*n - 1] = name_clip(r->trace, text);
    return true;
}

static bool space_skim(struct xspace_reader *r, struct err *e)
{
    struct trace *t = r->trace;
    struct field f;
    enum field_result got;
    uint64_t pos = 0, n_known = 0;
    while ((got = field_next(&r->window, &pos, r->window.size, &f, e)) == FIELD_READ) {
        bool ok = true;
        n_known += f.type == WIRE_LEN && f.number <= 4;
        if (f.number <= 4 && f.type != WIRE_LEN)
            return err_at(e, ERR_PARSE, f.at, "not an XSpace: field %u is not what it should be",
                          f.number);
        if (f.number == 1)
            ok = plane_skim(r, &f, e);
        else if (f.number == 2)
            ok = text_push(r, &f, &t->errors, &t->n_errors, &r->errors_capacity, e);
        else if (f.number == 3)
            ok = text_push(r, &f, &t->warnings, &t->n_warnings, &r->warnings_capacity, e);
        else if (f.number == 4)
            ok = text_push(r, &f, &t->hostnames, &t->n_hostnames, &r->hostnames_capacity, e);
        if (!ok)
            return false;
    }
    if (got == FIELD_FAILED)
        return false;
    return n_known > 0 || err_at(e, ERR_PARSE, 0, "not an XSpace: none of its fields is there");
}

/* A line's time on the clock that most of the trace uses. */
static int64_t line_clock_ns(const struct trace *t, const struct trace_line *line, bool mixed,
                             int64_t first_epoch_ns)
{
    if (!mixed || line->timestamp_ns >= EPOCH_LEAST_NS)
        return line->timestamp_ns;
    const int64_t start =
        t->profile_start_ns >= EPOCH_LEAST_NS ? t->profile_start_ns : first_epoch_ns;
    int64_t at;
    return __builtin_add_overflow(start, line->timestamp_ns, &at) ? start : at;
}

/* Picks the origin and puts every line on it. */
/* Whether lines count their time from different moments; *first_epoch_ns: the first that counts from 1970. */
static bool has_mixed_clocks(struct trace *t, int64_t *first_epoch_ns)
{
    uint32_t n_epoch = 0, n_other = 0;
    *first_epoch_ns = INT64_MAX;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        const struct trace_line *line = &t->lines[i];
        if (line->n_events == 0)
            continue;
        const bool epoch = line->timestamp_ns >= EPOCH_LEAST_NS;
        n_epoch += epoch;
        n_other += !epoch;
        if (epoch && line->timestamp_ns < *first_epoch_ns)
            *first_epoch_ns = line->timestamp_ns;
    }
    t->has_epoch = n_epoch > 0;
    const bool mixed = n_epoch > 0 && n_other > 0;
    if (mixed)
        trace_note(t, S("mixed_clocks"), n_other,
                   "lines count their time from the profile's start, others from 1970");
    return mixed;
}

static void trace_place(struct trace *t)
{
    int64_t first_epoch, origin = INT64_MAX;
    const bool mixed = has_mixed_clocks(t, &first_epoch);
    for (uint32_t i = 0; i < t->n_lines; i++)
        if (t->lines[i].n_events > 0) {
            const int64_t at = line_clock_ns(t, &t->lines[i], mixed, first_epoch);
            origin = at < origin ? at : origin;
        }
    t->origin_ns = origin == INT64_MAX ? 0 : origin;
    t->start_ps = UINT64_MAX;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        struct trace_line *line = &t->lines[i];
        t->n_events += line->n_events;
        int64_t after;
        if (line->n_events == 0)
            continue;
        if (__builtin_sub_overflow(line_clock_ns(t, line, mixed, first_epoch), t->origin_ns,
                                   &after) ||
            after > LINE_SPAN_MAX_NS) {
            trace_note(t, S("line_far_away"), 1,
                       "lines begin more than 50 days after the first and are shown at its start");
            after = 0;
        }
        line->base_ps = (uint64_t)after * 1000;
        if (line->start_ps > line->end_ps)
            continue;
        line->start_ps += line->base_ps;
        line->end_ps += line->base_ps;
        t->start_ps = line->start_ps < t->start_ps ? line->start_ps : t->start_ps;
        t->end_ps = line->end_ps > t->end_ps ? line->end_ps : t->end_ps;
    }
    if (t->start_ps == UINT64_MAX)
        t->start_ps = 0;
}

/* The first field is one of XSpace's, and of a plane, its first field one of XPlane's: enough to
 * tell an XSpace from the HLO and statistics messages that lie beside it. */
bool xspace_looks_like(str head)
{
    const uint8_t *p = (const uint8_t *)head.p, *end = p + head.n;
    uint64_t n;
    if (head.n < 2 || (p[0] != 0x0a && p[0] != 0x12 && p[0] != 0x1a && p[0] != 0x22))
        return false;
    const bool plane = *p++ == 0x0a;
    if (!wire_varint(&p, end, &n))
        return false;
    if (!plane || n == 0 || p == end)
        return plane || n > 0;
    const uint8_t tag = *p;
    return tag == 0x08 || tag == 0x12 || tag == 0x1a || tag == 0x22 || tag == 0x2a || tag == 0x32;
}

/* Refuses other formats in words before a byte of them is decoded. */
static bool head_check(struct xspace_reader *r, struct err *e)
{
    if (r->window.size == 0)
        return err_at(e, ERR_PARSE, 0, "the file is empty");
    const size_t n = r->window.size < 4 ? (size_t)r->window.size : 4;
    const uint8_t *p = window_at(&r->window, 0, n, e);
    if (p == NULL)
        return false;
    if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b) {
        err_at(e, ERR_PARSE, 0, "compressed by gzip, an XSpace was expected");
        return err_hint(e, "gunzip it first");
    }
    if (n >= 4 && p[0] == 0x28 && p[1] == 0xb5 && p[2] == 0x2f && p[3] == 0xfd)
        return err_at(e, ERR_PARSE, 0, "compressed by zstd, an XSpace was expected");
    if (p[0] == '{' || p[0] == '[')
        return err_at(e, ERR_PARSE, 0, "this is JSON, an XSpace was expected");
    return true;
}

static bool space_read(struct xspace_reader *r, struct err *e)
{
    struct trace *t = r->trace;
    if (!file_size(t->fd, &r->window.size, e) || !head_check(r, e) || !space_skim(r, e))
        return false;
    if (!xspace_lines_decode(r, e))
        return false;
    trace_place(t);
    if (t->host.n == 0 && t->n_hostnames > 0)
        t->host = t->hostnames[0];
    return true;
}

/* Row groups go to the index that is being made, else to the temporary file, else they stay in memory. */
static void place_groups(struct xspace_reader *r, const struct xspace_options *o)
{
    const int fd = o->index_fd > 0 ? o->index_fd : o->spill_fd;
    r->sort_fd = o->spill_fd;
    r->keeps_all = o->index_fd > 0;
    if (fd < 0)
        return;
    /* in a temporary file sorted runs and row groups would overwrite each other */
    r->sort_fd = r->keeps_all ? o->spill_fd : -1;
    r->store = index_store_new(fd);
    r->trace->groups->store = index_store_of(r->store);
}

struct trace *xspace_load(int fd, const struct xspace_options *o, struct err *e)
{
    struct trace *t = map_alloc(1, sizeof *t);
    arena_init(&t->arena, "trace", LIMIT_ARENA_TRACE_BYTES);
    t->fd = fd;
    t->source = &xspace_source;
    t->file = arena_str(&t->arena, o->file);
    t->host = arena_str(&t->arena, o->host);
    t->groups = trace_groups_new();
    struct xspace_reader r = {.trace = t,
                              .window = {.fd = fd, .ahead = WINDOW_SKIM_BYTES},
                              .n_threads = o->n_threads,
                              .most_events = o->most_events};
    place_groups(&r, o);
    const bool ok = space_read(&r, e);
    window_release(&r.window);
    if (r.keeps_all && o->spill_fd >= 0)
        close(o->spill_fd);
    if (ok)
        return t;
    err_wrap(e, "cannot open '%.*s'", STR_ARG(o->file));
    trace_free(t);
    return NULL;
}

struct trace *xspace_load_memory(str bytes, const struct xspace_options *o, struct err *e)
{
    const int fd = memfd_create("xspace", MFD_CLOEXEC);
    if (fd < 0) {
        err_sys(e, "cannot make a memory file");
        return NULL;
    }
    if (!file_write_all(fd, bytes.p, bytes.n, e)) {
        close(fd);
        return NULL;
    }
    return xspace_load(fd, o, e);
}
