/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_groups.h"

#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"

enum column { START = 0, DURATION, SRC, SRC_BYTES, METADATA, DEPTH, OCCURRENCES };

struct trace_groups *trace_groups_new(int spill_fd, uint64_t memory_cap_bytes)
{
    struct trace_groups *g = map_alloc(1, sizeof *g);
    g->spill_fd = spill_fd;
    g->memory_cap_bytes = memory_cap_bytes;
    return g;
}

void trace_groups_free(struct trace_groups *g)
{
    if (g == NULL)
        return;
    trace_groups_cut(g, 0);
    free(g->items);
    if (g->spill_fd >= 0)
        close(g->spill_fd);
    if (g->fetch_free != NULL)
        g->fetch_free(g->fetch_ctx);
    map_free(g);
}

void trace_groups_cut(struct trace_groups *g, uint32_t n)
{
    while (g->n > n) {
        struct trace_group *last = &g->items[--g->n];
        if (last->bytes != NULL)
            g->memory_bytes -= last->n_bytes;
        free(last->bytes);
        last->bytes = NULL;
    }
}

/* Writes one column of values that are already in scratch. Returns its bytes. */
static size_t column_pack(const uint64_t *v, uint32_t n, uint8_t *out)
{
    uint64_t least = n == 0 ? 0 : v[0], most = least;
    for (uint32_t i = 1; i < n; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    unsigned width = 0;
    for (uint64_t rest = most - least; rest != 0; rest >>= 8)
        width++;
    out[0] = (uint8_t)width;
    memcpy(out + 1, &least, 8);
    uint8_t *p = out + 9;
    for (uint32_t i = 0; width > 0 && i < n; i++, p += width) {
        const uint64_t x = v[i] - least;
        memcpy(p, &x, 8); /* one store of a known size: the room is that of the widest columns */
    }
    return (size_t)(p - out);
}

static uint64_t column_value(const struct trace_event *ev, const struct trace_event *before,
                             enum column c)
{
    switch (c) {
    case START:
        return ev->start_ps - (before == NULL ? 0 : before->start_ps);
    case DURATION:
        return ev->dur_ps;
    case SRC: /* kept above zero by the sign bit, so that small steps back stay small */
        return (ev->src - (before == NULL ? 0 : before->src + before->src_bytes)) ^
               (UINT64_C(1) << 63);
    case SRC_BYTES:
        return ev->src_bytes;
    case METADATA:
        return (uint32_t)(ev->metadata_index + 1); /* unknown ids are 0 */
    case DEPTH:
        return ev->depth;
    case OCCURRENCES:
        return ev->num_occurrences;
    }
    return 0;
}

static void column_set(struct trace_event *ev, const struct trace_event *before, enum column c,
                       uint64_t v)
{
    switch (c) {
    case START:
        ev->start_ps = v + (before == NULL ? 0 : before->start_ps);
        break;
    case DURATION:
        ev->dur_ps = v;
        break;
    case SRC_BYTES:
        ev->src_bytes = (uint32_t)v;
        break;
    case SRC: /* finished when src_bytes is known */
        ev->src = v ^ (UINT64_C(1) << 63);
        break;
    case METADATA:
        ev->metadata_index = (uint32_t)v - 1;
        break;
    case DEPTH:
        ev->depth = (uint16_t)v;
        break;
    case OCCURRENCES:
        ev->num_occurrences = (uint32_t)v;
        break;
    }
}

size_t trace_group_pack(const struct trace_event *events, uint32_t n, uint8_t *out)
{
    uint64_t *scratch = map_alloc(n == 0 ? 1 : n, sizeof *scratch);
    uint8_t *p = out;
    for (enum column c = START; c <= OCCURRENCES; c++) {
        for (uint32_t i = 0; i < n; i++)
            scratch[i] = column_value(&events[i], i == 0 ? NULL : &events[i - 1], c);
        p += column_pack(scratch, n, p);
    }
    map_free(scratch);
    return (size_t)(p - out);
}

/* Reads one column into the events; returns the bytes taken, 0 when they do not fit. */
static size_t column_unpack(const uint8_t *p, size_t left, uint32_t n, enum column c,
                            struct trace_event *out)
{
    if (left < 9 || p[0] > 8 || (left - 9) / (p[0] == 0 ? 1 : p[0]) < (p[0] == 0 ? 0 : n))
        return 0;
    const unsigned width = p[0];
    uint64_t least;
    memcpy(&least, p + 1, 8);
    const uint8_t *at = p + 9, *const end = p + left;
    const uint64_t mask = width == 0 ? 0 : UINT64_MAX >> (64 - 8 * width);
    for (uint32_t i = 0; i < n; i++, at += width) {
        uint64_t x = 0;
        if (end - at >= 8) /* one load of a known size; what follows the value is masked off */
            memcpy(&x, at, 8);
        else
            memcpy(&x, at, width);
        x &= mask;
        column_set(&out[i], i == 0 ? NULL : &out[i - 1], c, x + least);
    }
    return 9 + (size_t)width * n;
}

bool trace_group_unpack(const uint8_t *p, size_t n_bytes, uint32_t n, struct trace_event *out,
                        struct err *e)
{
    size_t at = 0;
    for (enum column c = START; c <= OCCURRENCES; c++) {
        const size_t taken = column_unpack(p + at, n_bytes - at, n, c, out);
        if (taken == 0)
            return err_at(e, ERR_PARSE, at, "row group is damaged");
        at += taken;
    }
    for (uint32_t i = 1; i < n; i++)
        out[i].src += out[i - 1].src + out[i - 1].src_bytes;
    return at == n_bytes || err_at(e, ERR_PARSE, at, "row group has bytes too many");
}

static bool group_keep(struct trace_groups *g, struct trace_group *item, uint8_t *packed,
                       struct err *e)
{
    if (g->spill_fd >= 0 && g->memory_bytes + item->n_bytes > g->memory_cap_bytes) {
        if (!file_pwrite_all(g->spill_fd, packed, item->n_bytes, g->spill_bytes, e))
            return err_wrap(e, "cannot keep row groups in the temporary file");
        item->offset = g->spill_bytes;
        g->spill_bytes += item->n_bytes;
        return true;
    }
    item->bytes = malloc(item->n_bytes);
    must(item->bytes != NULL);
    memcpy(item->bytes, packed, item->n_bytes);
    g->memory_bytes += item->n_bytes;
    return true;
}

bool trace_groups_add(struct trace_groups *g, const struct trace_event *events, uint32_t n,
                      struct err *e)
{
    must(n > 0 && n <= LIMIT_TRACE_GROUP_EVENTS);
    if (g->n == g->capacity) {
        g->capacity = g->capacity == 0 ? 64 : g->capacity * 2;
        g->items = realloc(g->items, g->capacity * sizeof *g->items);
        must(g->items != NULL);
    }
    uint8_t *packed = malloc(TRACE_GROUP_BYTES_MAX(n));
    must(packed != NULL);
    struct trace_group item = {.n_events = n,
                               .n_bytes = (uint32_t)trace_group_pack(events, n, packed),
                               .first_start_ps = events[0].start_ps,
                               .last_start_ps = events[n - 1].start_ps};
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t end = events[i].start_ps + events[i].dur_ps;
        item.max_end_ps = end > item.max_end_ps ? end : item.max_end_ps;
    }
    const bool ok = group_keep(g, &item, packed, e);
    free(packed);
    if (ok)
        g->items[g->n++] = item;
    return ok;
}

bool trace_groups_raw(const struct trace_groups *g, uint32_t group, uint8_t *out, struct err *e)
{
    const struct trace_group *item = &g->items[group];
    if (item->bytes != NULL) {
        memcpy(out, item->bytes, item->n_bytes);
        return true;
    }
    if (g->fetch != NULL)
        return g->fetch(g->fetch_ctx, group, out, e);
    return file_pread_all(g->spill_fd, out, item->n_bytes, item->offset, e) ||
           err_wrap(e, "cannot read row groups back");
}

bool trace_groups_read(const struct trace_groups *g, uint32_t group, struct trace_event *out,
                       struct err *e)
{
    const struct trace_group *item = &g->items[group];
    if (item->bytes != NULL)
        return trace_group_unpack(item->bytes, item->n_bytes, item->n_events, out, e);
    uint8_t *packed = malloc(item->n_bytes);
    must(packed != NULL || item->n_bytes == 0);
    const bool ok = trace_groups_raw(g, group, packed, e) &&
                    trace_group_unpack(packed, item->n_bytes, item->n_events, out, e);
    free(packed);
    return ok;
}
