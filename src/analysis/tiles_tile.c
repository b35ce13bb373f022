/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/tiles_internal.h"

#include "base/limits.h"
#include "model/trace_pyramid.h"

/* The densest that were seen compress 2.9 times. */
#define TILE_JSON_BYTES (LIMIT_TILE_BYTES * 5 / 2)
#define LEVEL_MAX 52

struct cell_sum {
    uint32_t bucket, depth;
    uint64_t count;
    uint32_t name;           /* the one that covers most of it */
    uint64_t name_weight_ps; /* its lead over the others */
    uint64_t covered_ps;
    uint64_t start_ps, dur_ps, index; /* of the first event: shown itself when it is alone */
};

#define LAST_CELLS 64
struct last_cell {
    uint32_t bucket, depth, cell; /* cell + 1; 0: none yet */
};

struct tile {
    uint64_t from_ps, to_ps; /* session time */
    unsigned level;
    struct arena *a;
    struct map_str_u32 name_ids;
    str *names;
    uint32_t n_names, names_capacity;
    struct cell_sum *cells;
    uint32_t n_cells, cells_capacity;
    struct map_u64_u32 cell_ids;       /* depth << 32 | bucket */
    struct last_cell last[LAST_CELLS]; /* by depth: neighbours on a line share a cell most often */
    uint32_t *name_of;                 /* by metadata index of the line's plane: name + 1, or 0 */
};

static bool name_id(struct tile *t, str name, uint32_t *out)
{
    const uint32_t *at = map_str_u32_get(&t->name_ids, name);
    if (at != NULL) {
        *out = *at;
        return true;
    }
    *out = t->n_names;
    *map_str_u32_put(&t->name_ids, name) = t->n_names;
    if (!ARENA_PUSH(t->a, t->names, t->n_names, t->names_capacity))
        return false;
    t->names[t->n_names - 1] = name;
    return true;
}

static bool event_name_id(struct tile *t, const struct trace *trace, const struct trace_line *line,
                          const struct trace_event *ev, uint32_t *out)
{
    const uint32_t n = trace->planes[line->plane_index].n_event_metadata;
    uint32_t *known = ev->metadata_index < n ? &t->name_of[ev->metadata_index] : NULL;
    if (known != NULL && *known != 0) {
        *out = *known - 1;
        return true;
    }
    if (!name_id(t, trace_event_name(trace, line, ev), out))
        return false;
    if (known != NULL)
        *known = *out + 1;
    return true;
}

/* The name that covers most: a candidate with its lead (Boyer and Moore's majority vote, weighed). */
static void cell_vote(struct cell_sum *c, uint32_t name, uint64_t weight_ps)
{
    if (c->count == 0 || c->name == name) {
        c->name = name;
        c->name_weight_ps += weight_ps;
    } else if (c->name_weight_ps < weight_ps) {
        c->name = name;
        c->name_weight_ps = weight_ps - c->name_weight_ps;
    } else {
        c->name_weight_ps -= weight_ps;
    }
}

static struct cell_sum *cell_find(struct tile *t, uint32_t bucket, uint16_t depth)
{
    struct last_cell *last = &t->last[depth % LAST_CELLS];
    if (last->cell == 0 || last->bucket != bucket || last->depth != depth) {
        const uint32_t *at = map_u64_u32_get(&t->cell_ids, (uint64_t)depth << 32 | bucket);
        if (at == NULL)
            return NULL;
        *last = (struct last_cell){bucket, depth, *at + 1};
    }
    return &t->cells[last->cell - 1];
}

static struct cell_sum *cell_new(struct tile *t, uint32_t bucket, uint16_t depth)
{
    if (!ARENA_PUSH(t->a, t->cells, t->n_cells, t->cells_capacity))
        return NULL;
    *map_u64_u32_put(&t->cell_ids, (uint64_t)depth << 32 | bucket) = t->n_cells - 1;
    t->last[depth % LAST_CELLS] = (struct last_cell){bucket, depth, t->n_cells};
    t->cells[t->n_cells - 1] = (struct cell_sum){.bucket = bucket, .depth = depth};
    return &t->cells[t->n_cells - 1];
}

static bool cell_add(struct tile *t, uint32_t bucket, const struct trace_event *ev,
                     uint64_t start_ps, uint64_t index, uint32_t name, uint64_t covered_ps,
                     uint64_t count)
{
    struct cell_sum *c = cell_find(t, bucket, ev->depth);
    if (c == NULL) {
        c = cell_new(t, bucket, ev->depth);
        if (c == NULL)
            return false;
    }
    if (c->count == 0) { /* also after the end of one that began in the bucket before */
        c->start_ps = start_ps;
        c->dur_ps = ev->dur_ps;
        c->index = index;
    }
    cell_vote(c, name, covered_ps == 0 ? 1 : covered_ps);
    c->covered_ps += covered_ps;
    c->count += count;
    return true;
}

/* A short event: into the bucket of its start, and what reaches over into the next one. */
static bool short_event(struct tile *t, const struct trace_event *ev, uint64_t start_ps,
                        uint64_t index, uint32_t name)
{
    const uint64_t bucket_ps = UINT64_C(1) << t->level;
    const uint64_t end = start_ps + ev->dur_ps;
    const uint64_t boundary = ((start_ps >> t->level) + 1) << t->level;
    const uint64_t here = end < boundary ? ev->dur_ps : boundary - start_ps;
    if (start_ps >= t->from_ps && start_ps < t->to_ps &&
        !cell_add(t, (uint32_t)((start_ps - t->from_ps) >> t->level), ev, start_ps, index, name,
                  here, 1))
        return false;
    slow_must(ev->dur_ps < bucket_ps || bucket_ps == 0);
    if (end <= boundary || boundary < t->from_ps || boundary >= t->to_ps)
        return true;
    return cell_add(t, (uint32_t)((boundary - t->from_ps) >> t->level), ev, start_ps, index, name,
                    end - boundary, 0);
}

static void write_event(struct json *j, uint64_t start_ps, uint64_t dur_ps, uint32_t name,
                        uint32_t depth, uint64_t index)
{
    json_array(j);
    json_u64(j, start_ps);
    json_u64(j, dur_ps);
    json_u64(j, name);
    json_u64(j, depth);
    json_u64(j, index);
    json_end(j);
}

static void write_cells(struct tile *t, struct json *j)
{
    const uint64_t bucket_ps = UINT64_C(1) << t->level;
    json_key(j, "cells");
    json_array(j);
    for (uint32_t i = 0; i < t->n_cells; i++) {
        const struct cell_sum *c = &t->cells[i];
        if (c->count == 1)
            continue;
        uint64_t coverage = c->covered_ps >= bucket_ps
                                ? 255
                                : (uint64_t)((double)c->covered_ps * 255.0 / (double)bucket_ps);
        coverage = coverage == 0 ? 1 : coverage;
        json_array(j);
        json_u64(j, c->bucket);
        json_u64(j, coverage);
        json_u64(j, c->count);
        json_u64(j, c->name);
        json_u64(j, c->depth);
        json_end(j);
    }
    json_end(j);
}

/* The coarsest level of the line that is fine enough; UINT32_MAX: its events themselves. */
static uint32_t level_of(const struct tile *t, const struct trace *trace, uint32_t l)
{
    const struct trace_line *line = &trace->lines[l];
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < line->n_levels && !line->is_part; i++)
        if (trace->levels[line->first_level + i].bucket_log2 <= t->level)
            found = i;
    return found;
}

/* A cell of a level into the bucket that holds most of it. */
static bool level_cell(struct tile *t, const struct trace_event *ev, uint64_t start_ps,
                       uint64_t width_ps, uint32_t name)
{
    const uint64_t middle = start_ps + width_ps / 2;
    if (middle < t->from_ps || middle >= t->to_ps)
        return true;
    return cell_add(t, (uint32_t)((middle - t->from_ps) >> t->level), ev, start_ps, 0, name,
                    ev->dur_ps, ev->num_occurrences);
}

static bool write_row(struct tile *t, const struct trace *trace, const struct trace_line *line,
                      const struct trace_event *ev, uint64_t index, uint64_t cell_ps,
                      struct json *j)
{
    const uint64_t start = ev->start_ps + trace->shift_ps, end = start + ev->dur_ps;
    uint32_t name;
    if (!event_name_id(t, trace, line, ev, &name))
        return false;
    if (cell_ps > 0 && ev->src_bytes == PYRAMID_CELL)
        return level_cell(t, ev, start, cell_ps, name);
    if (end < t->from_ps || (start < t->from_ps && end == t->from_ps))
        return true;
    if (ev->dur_ps < UINT64_C(1) << t->level)
        return short_event(t, ev, start, index, name);
    write_event(j, start, ev->dur_ps, name, ev->depth, index);
    return true;
}

static bool write_events(struct tile *t, const struct trace *trace, uint32_t l, struct json *j,
                         struct err *e)
{
    const struct trace_line *line = &trace->lines[l];
    const uint32_t level = level_of(t, trace, l);
    uint64_t cell_ps = 0, from = t->from_ps < trace->shift_ps ? 0 : t->from_ps - trace->shift_ps;
    struct trace_cursor c;
    if (level == UINT32_MAX) {
        trace_cursor_init(&c, trace, l);
    } else { /* a cell may reach further than what it covers */
        trace_cursor_init_level(&c, trace, l, level);
        cell_ps = UINT64_C(1) << trace->levels[line->first_level + level].bucket_log2;
        from = from < cell_ps ? 0 : from - cell_ps;
    }
    trace_cursor_seek(&c, from);
    bool ok = true;
    while (ok && trace_cursor_next(&c)) {
        if (c.event.start_ps + trace->shift_ps >= t->to_ps)
            break;
        ok = write_row(t, trace, line, &c.event, cell_ps > 0 ? c.event.src : c.index, cell_ps, j);
    }
    trace_cursor_release(&c);
    return ok ? trace_cursor_ok(&c, e) : arena_full(t->a, e);
}

static bool write_line(struct tile *t, const struct trace *trace, uint32_t l, struct json *j,
                       struct err *e)
{
    t->n_cells = 0;
    memset(t->last, 0, sizeof t->last);
    t->name_of = ARENA_ARRAY(
        t->a, uint32_t, (size_t)trace->planes[trace->lines[l].plane_index].n_event_metadata + 1);
    if (t->name_of == NULL)
        return arena_full(t->a, e);
    json_object(j);
    json_ku64(j, "line", l);
    json_key(j, "events");
    json_array(j);
    const bool ok = write_events(t, trace, l, j, e);
    for (uint32_t i = 0; i < t->n_cells; i++) {
        const struct cell_sum *c = &t->cells[i];
        if (c->count == 1)
            write_event(j, c->start_ps, c->dur_ps, c->name, c->depth, c->index);
    }
    json_end(j);
    write_cells(t, j);
    json_end(j);
    map_u64_u32_release(&t->cell_ids);
    return ok;
}

struct tile_request {
    const struct trace *trace;
    const uint32_t *lines;
    uint32_t n_lines;
    uint64_t level, position, from_ps, to_ps;
};

/* One try, with buckets of 2^level. */
static bool tile_write(const struct tile_request *q, unsigned level, struct arena *a,
                       struct buf *out, struct err *e)
{
    struct tile t = {.from_ps = q->from_ps, .to_ps = q->to_ps, .level = level, .a = a};
    struct json j;
    json_init_buf(&j, out);
    json_object(&j);
    json_ku64(&j, "level", q->level);
    json_ku64(&j, "position", q->position);
    json_ku64(&j, "bucket_ps", UINT64_C(1) << level);
    json_key(&j, "lines");
    json_array(&j);
    bool ok = true;
    for (uint32_t i = 0; i < q->n_lines && ok; i++)
        ok = write_line(&t, q->trace, q->lines[i], &j, e);
    json_end(&j);
    json_key(&j, "names");
    json_array(&j);
    for (uint32_t i = 0; i < t.n_names; i++)
        json_str(&j, str_clip_utf8(t.names[i], 200));
    json_end(&j);
    json_end(&j);
    map_str_u32_release(&t.name_ids);
    return ok && json_done(&j, e);
}

bool tiles_tile(const struct tool_request *r, struct arena *a, struct buf *out, struct err *e)
{
    struct trace *trace;
    uint32_t *lines;
    struct tile_request q = {0};
    if (!tiles_target(r, &trace, e) || !tiles_lines(r, trace, false, a, &lines, &q.n_lines, e) ||
        !tiles_u64(r, S("level"), 0, &q.level, e) ||
        !tiles_u64(r, S("position"), 0, &q.position, e))
        return false;
    if (q.n_lines > LIMIT_TILE_LINES)
        return err_set(e, ERR_LIMIT, "a tile has at most %llu lines",
                       (unsigned long long)LIMIT_TILE_LINES);
    if (q.level > LEVEL_MAX || q.position >= UINT64_C(1) << (53 - (q.level > 53 ? 53 : q.level)))
        return err_set(e, ERR_USAGE, "there is no tile at level %llu, position %llu",
                       (unsigned long long)q.level, (unsigned long long)q.position);
    q.trace = trace;
    q.lines = lines;
    q.from_ps = (q.position * LIMIT_TILE_BUCKETS) << q.level;
    q.to_ps = q.from_ps + (LIMIT_TILE_BUCKETS << q.level);
    const size_t before = out->n;
    for (unsigned level = (unsigned)q.level;;
         level++) { /* wider buckets until it is small enough */
        const struct arena_mark m = arena_mark(a);
        const bool ok = tile_write(&q, level, a, out, e);
        arena_reset(a, m);
        if (!ok)
            return false;
        if (out->n - before <= TILE_JSON_BYTES || level >= q.level + 10)
            return buf_ok(out, "the tile", e);
        out->n = before;
    }
}
