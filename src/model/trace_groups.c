/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_groups.h"

#include "base/limits.h"

#define SIGN                                                                                       \
    (UINT64_C(1) << 63) /* keeps differences above zero, so that small steps back stay small */

void trace_rows_init(struct trace_rows *r, uint32_t capacity)
{
    *r = (struct trace_rows){.capacity = capacity,
                             .start_ps = map_alloc(capacity, sizeof(uint64_t)),
                             .dur_ps = map_alloc(capacity, sizeof(uint64_t)),
                             .src = map_alloc(capacity, sizeof(uint64_t)),
                             .src_bytes = map_alloc(capacity, sizeof(uint32_t)),
                             .metadata_index = map_alloc(capacity, sizeof(uint32_t)),
                             .num_occurrences = map_alloc(capacity, sizeof(uint32_t)),
                             .depth = map_alloc(capacity, sizeof(uint16_t)),
                             .scratch = map_alloc(capacity, sizeof(uint64_t))};
    side_table_init(&r->side, capacity);
}

void trace_rows_release(struct trace_rows *r)
{
    map_free(r->start_ps);
    map_free(r->dur_ps);
    map_free(r->src);
    map_free(r->src_bytes);
    map_free(r->metadata_index);
    map_free(r->num_occurrences);
    map_free(r->depth);
    map_free(r->scratch);
    map_free(r->packed);
    side_table_release(&r->side);
    *r = (struct trace_rows){0};
}

static int row_order(const void *a, const void *b, void *ctx)
{
    const struct trace_rows *r = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (x == y)
        return 0;
    return trace_order(r->start_ps[x], r->dur_ps[x], r->src[x], r->start_ps[y], r->dur_ps[y],
                       r->src[y])
               ? -1
               : 1;
}

#define REORDER(column)                                                                            \
    do {                                                                                           \
        for (uint32_t i = 0; i < r->n; i++)                                                        \
            r->scratch[i] = r->column[order[i]];                                                   \
        for (uint32_t i = 0; i < r->n; i++)                                                        \
            r->column[i] = (__typeof__(*r->column))r->scratch[i];                                  \
    } while (0)

void trace_rows_sort(struct trace_rows *r)
{
    uint32_t *order = map_alloc((size_t)r->n + 1, sizeof *order);
    for (uint32_t i = 0; i < r->n; i++)
        order[i] = i;
    qsort_r(order, r->n, sizeof *order, row_order, r);
    REORDER(start_ps);
    REORDER(dur_ps);
    REORDER(src);
    REORDER(src_bytes);
    REORDER(metadata_index);
    REORDER(num_occurrences);
    side_table_reorder(&r->side, order, r->n, r->scratch);
    map_free(order);
}

void trace_rows_shift(struct trace_rows *r, uint32_t n)
{
    const uint32_t left = r->n - n;
    r->n = left;
    if (left == 0) {
        side_table_clear(&r->side, 0, r->capacity);
        return;
    }
    memmove(r->start_ps, r->start_ps + n, left * sizeof *r->start_ps);
    memmove(r->dur_ps, r->dur_ps + n, left * sizeof *r->dur_ps);
    memmove(r->src, r->src + n, left * sizeof *r->src);
    memmove(r->src_bytes, r->src_bytes + n, left * sizeof *r->src_bytes);
    memmove(r->metadata_index, r->metadata_index + n, left * sizeof *r->metadata_index);
    memmove(r->num_occurrences, r->num_occurrences + n, left * sizeof *r->num_occurrences);
    memmove(r->depth, r->depth + n, left * sizeof *r->depth);
    side_table_move(&r->side, n, left);
}

/* Narrow columns and differences by way of the scratch column. */
#define PACK(value)                                                                                \
    do {                                                                                           \
        for (uint32_t i = 0; i < n; i++)                                                           \
            scratch[i] = (value);                                                                  \
        p += trace_column_pack(scratch, n, p);                                                     \
    } while (0)

static size_t rows_pack(const struct trace_rows *r, uint32_t first, uint32_t n, uint8_t *out)
{
    uint64_t *const scratch = r->scratch;
    uint8_t *p = out;
    p += trace_column_pack(r->start_ps + first, n, p);
    p += trace_column_pack(r->dur_ps + first, n, p);
    uint64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        scratch[i] = (r->src[first + i] - end) ^ SIGN;
        end = r->src[first + i] + r->src_bytes[first + i];
    }
    p += trace_column_pack(scratch, n, p);
    PACK(r->src_bytes[first + i]);
    PACK((uint32_t)(r->metadata_index[first + i] + 1)); /* unknown ids are 0 */
    PACK(r->depth[first + i]);
    PACK(r->num_occurrences[first + i]);
    p += side_pack(&r->side, first, n, r->start_ps, r->dur_ps, scratch, p);
    return (size_t)(p - out);
}

void trace_group_pack(struct trace_rows *r, uint32_t first, uint32_t n, struct trace_group *out)
{
    const size_t most = TRACE_GROUP_COLUMNS * TRACE_COLUMN_BYTES_MAX(n) +
                        side_bytes_most(&r->side, n) + TRACE_COLUMN_SLACK;
    if (most > r->packed_room) {
        map_free(r->packed);
        r->packed = map_alloc(most, 1);
        r->packed_room = most;
    }
    const size_t bytes = rows_pack(r, first, n, r->packed);
    *out = (struct trace_group){.n_events = n,
                                .n_bytes = (uint32_t)bytes,
                                .first_start_ps = r->start_ps[first],
                                .last_start_ps = r->start_ps[first + n - 1],
                                .bytes = malloc(bytes + TRACE_COLUMN_SLACK)};
    must(out->bytes != NULL);
    memcpy(out->bytes, r->packed, bytes + TRACE_COLUMN_SLACK);
    for (uint32_t i = first; i < first + n; i++) {
        const uint64_t end = r->start_ps[i] + r->dur_ps[i];
        out->max_end_ps = end > out->max_end_ps ? end : out->max_end_ps;
    }
}

struct trace_groups *trace_groups_new(void)
{
    return map_alloc(1, sizeof(struct trace_groups));
}

void trace_groups_free(struct trace_groups *g)
{
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->n; i++)
        free(g->items[i].bytes);
    free(g->items);
    if (g->store.free != NULL)
        g->store.free(g->store.ctx);
    map_free(g);
}

void trace_groups_add(struct trace_groups *g, const struct trace_group *item)
{
    if (g->n == g->capacity) {
        g->capacity = g->capacity == 0 ? 64 : g->capacity * 2;
        g->items = realloc(g->items, g->capacity * sizeof *g->items);
        must(g->items != NULL);
    }
    g->items[g->n++] = *item;
    g->memory_bytes += item->bytes == NULL ? 0 : item->n_bytes;
}

bool trace_group_view_read(struct trace_group_view *v, const uint8_t *bytes, size_t n_bytes,
                           uint32_t n_rows, struct err *e)
{
    size_t at = 0;
    v->n_rows = n_rows;
    for (unsigned c = 0; c < TRACE_GROUP_COLUMNS; c++) {
        const size_t taken = trace_column_read(&v->columns[c], bytes + at, n_bytes - at, n_rows);
        if (taken == 0)
            return err_at(e, ERR_PARSE, at, "row group is damaged");
        at += taken;
    }
    if (at == n_bytes)
        return err_at(e, ERR_PARSE, at, "row group is damaged");
    v->side = bytes + at;
    v->side_bytes = n_bytes - at;
    return true;
}

bool trace_group_view_open(struct trace_group_view *v, const struct trace_groups *g, uint32_t group,
                           struct err *e)
{
    const struct trace_group *item = &g->items[group];
    const uint8_t *bytes = item->bytes;
    if (v->n_rows > 0 && v->group == group)
        return true;
    v->n_rows = 0;
    if (bytes == NULL) {
        const size_t room = (size_t)item->n_bytes + TRACE_COLUMN_SLACK;
        if (room > v->own_capacity) {
            map_free(v->own);
            v->own = map_alloc(room, 1);
            v->own_capacity = room;
        }
        if (!g->store.fetch(g->store.ctx, item, v->own, e))
            return false;
        bytes = v->own;
    }
    v->group = group;
    if (trace_group_view_read(v, bytes, item->n_bytes, item->n_events, e))
        return true;
    v->n_rows = 0;
    return false;
}

void trace_group_view_release(struct trace_group_view *v)
{
    map_free(v->own);
    *v = (struct trace_group_view){0};
}

/* A column that is one value is not read. */
#define UNPACK(column, field, type, change)                                                        \
    do {                                                                                           \
        const struct trace_column k = v->columns[column];                                          \
        if (k.width == 0) {                                                                        \
            for (uint32_t i = 0; i < n; i++)                                                       \
                out[i].field = (type)(k.least change);                                             \
        } else {                                                                                   \
            const uint8_t *p = k.p + (size_t)first * k.width;                                      \
            for (uint32_t i = 0; i < n; i++, p += k.width) {                                       \
                uint64_t x;                                                                        \
                memcpy(&x, p, 8);                                                                  \
                out[i].field = (type)(((x & k.mask) + k.least) change);                            \
            }                                                                                      \
        }                                                                                          \
    } while (0)

void trace_group_unpack(const struct trace_group_view *v, uint32_t first, uint32_t n,
                        uint64_t *src_end, struct trace_event *out)
{
    UNPACK(TRACE_COLUMN_START, start_ps, uint64_t, );
    UNPACK(TRACE_COLUMN_DURATION, dur_ps, uint64_t, );
    UNPACK(TRACE_COLUMN_METADATA, metadata_index, uint32_t, -1);
    UNPACK(TRACE_COLUMN_DEPTH, depth, uint16_t, );
    UNPACK(TRACE_COLUMN_OCCURRENCES, num_occurrences, uint32_t, );
    for (uint32_t i = 0; i < n; i++) {
        out[i].group = v->group;
        out[i].row = first + i;
    }
    if (src_end == NULL)
        return;
    UNPACK(TRACE_COLUMN_SRC, src, uint64_t, ^SIGN);
    UNPACK(TRACE_COLUMN_SRC_BYTES, src_bytes, uint32_t, );
    uint64_t end = *src_end;
    for (uint32_t i = 0; i < n; i++) {
        out[i].src += end;
        end = out[i].src + out[i].src_bytes;
    }
    *src_end = end;
}

uint64_t trace_group_src_end(const struct trace_group_view *v, uint32_t row)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < row; i++)
        end += (trace_column_at(&v->columns[TRACE_COLUMN_SRC], i) ^ SIGN) +
               trace_column_at(&v->columns[TRACE_COLUMN_SRC_BYTES], i);
    return end;
}
