/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/memory_tables.h"

#include <math.h>
#include <stdlib.h>

str memory_known_text(str s)
{
    return str_eq(s, S("(null)")) ? S("") : s;
}

uint64_t memory_time_ps(const struct trace *t, uint64_t time_ps)
{
    const uint64_t base = t->has_epoch ? t->shift_ps : (uint64_t)t->origin_ns * 1000;
    return time_ps + base;
}

static struct cell text_cell(str s)
{
    s = memory_known_text(s);
    return s.n > 0 ? cell_text(s) : cell_unknown();
}
static struct cell bytes_cell(int64_t v)
{
    return v == MEMORY_UNKNOWN ? cell_unknown() : cell_i64(v);
}
static struct cell percent_cell(double ratio)
{
    return isnan(ratio) ? cell_unknown() : cell_f64(100.0 * ratio);
}

static void name_columns(struct table *t)
{
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("allocator"), S("Allocator"), CELL_TEXT, S(""));
}

static struct cell *named_row(struct table *t, const struct memory_allocator *m)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return NULL;
    row[0] = text_cell(m->trace->host);
    row[1] = text_cell(m->name);
    return row;
}

/* --- peaks ----------------------------------------------------------------------------------- */

static bool add_peak(struct table *t, const struct memory_allocator *m)
{
    struct cell *row = named_row(t, m);
    const int64_t used = memory_in_use(&m->peak), capacity = memory_capacity(m);
    if (row == NULL)
        return false;
    row[2] = bytes_cell(used);
    if (used != MEMORY_UNKNOWN)
        row[3] = cell_u64(memory_time_ps(m->trace, m->peak_time_ps));
    row[4] = bytes_cell(capacity);
    if (used != MEMORY_UNKNOWN && capacity != MEMORY_UNKNOWN && capacity > 0)
        row[5] = cell_f64(100.0 * (double)used / (double)capacity);
    row[6] = bytes_cell(m->peak.stack);
    row[7] = bytes_cell(m->peak.heap);
    row[8] = bytes_cell(m->peak.free);
    row[9] = percent_cell(m->peak.fragmentation_ratio);
    row[10] = percent_cell(m->most_fragmentation_ratio);
    row[11] = bytes_cell(m->lifetime_peak_bytes);
    row[12] = cell_u64(m->n_allocations);
    row[13] = cell_u64(m->n_releases);
    return true;
}

struct table *memory_table_peaks(const struct memory_profile *m, struct arena *a)
{
    struct table *t = table_new(a, S("allocators"), S("Allocators"));
    if (t == NULL)
        return NULL;
    name_columns(t);
    table_column(t, S("peak_bytes"), S("Peak"), CELL_I64, S("bytes"));
    table_column(t, S("peak_time_ps"), S("At"), CELL_U64, S("ps"));
    table_column(t, S("capacity_bytes"), S("Capacity"), CELL_I64, S("bytes"));
    table_column(t, S("use_percent"), S("Use"), CELL_F64, S("%"));
    table_column(t, S("stack_bytes"), S("Stack"), CELL_I64, S("bytes"));
    table_column(t, S("heap_bytes"), S("Heap"), CELL_I64, S("bytes"));
    table_column(t, S("free_bytes"), S("Free"), CELL_I64, S("bytes"));
    table_column(t, S("fragmentation_percent"), S("Fragmentation"), CELL_F64, S("%"));
    table_column(t, S("most_fragmentation_percent"), S("At most"), CELL_F64, S("%"));
    table_column(t, S("lifetime_peak_bytes"), S("Peak ever"), CELL_I64, S("bytes"));
    table_column(t, S("allocations"), S("Handed out"), CELL_U64, S(""));
    table_column(t, S("releases"), S("Taken back"), CELL_U64, S(""));
    for (uint32_t i = 0; i < m->n_allocators && add_peak(t, &m->allocators[i]); i++)
        continue;
    if (m->n_allocators == 0)
        table_note(t, S("no_memory_events"), 1, "profile without events of an allocator");
    return t;
}

/* --- what was live ----------------------------------------------------------------------------- */

static int i64_descending(int64_t a, int64_t b)
{
    return a > b ? -1 : a < b;
}

static int group_cmp(const struct memory_description *a, const struct memory_description *b)
{
    int order = i64_descending(a->bytes, b->bytes);
    order = order != 0 ? order : i64_descending(a->requested_bytes, b->requested_bytes);
    order = order != 0 ? order : str_cmp(a->op, b->op);
    order = order != 0 ? order : str_cmp(a->region, b->region);
    order = order != 0 ? order : str_cmp(a->data_type, b->data_type);
    return order != 0 ? order : str_cmp(a->shape, b->shape);
}

static int by_description(const void *x, const void *y)
{
    const struct memory_group *a = x, *b = y;
    const int order = group_cmp(&a->what, &b->what);
    if (order != 0)
        return order;
    return a->first->time_ps < b->first->time_ps ? -1 : a->first->time_ps > b->first->time_ps;
}

bool memory_groups_of(const struct memory_allocator *m, struct arena *a, struct memory_group **out,
                      uint32_t *n, struct err *e)
{
    struct memory_group *groups = ARENA_ARRAY(a, struct memory_group, (size_t)m->n_live + 1);
    if (groups == NULL)
        return arena_full(a, e);
    for (uint32_t i = 0; i < m->n_live; i++) {
        groups[i].first = &m->live[i];
        groups[i].n = 1;
        if (!memory_describe(m->trace, &m->live[i].event, a, &groups[i].what, e))
            return false;
    }
    if (m->n_live > 1)
        qsort(groups, m->n_live, sizeof *groups, by_description);
    *n = 0;
    for (uint32_t i = 0; i < m->n_live; i++) {
        if (*n > 0 && group_cmp(&groups[*n - 1].what, &groups[i].what) == 0)
            groups[*n - 1].n++;
        else
            groups[(*n)++] = groups[i];
    }
    *out = groups;
    return true;
}

static bool add_group(struct table *t, const struct memory_allocator *m,
                      const struct memory_group *g)
{
    struct cell *row = named_row(t, m);
    int64_t bytes;
    if (row == NULL)
        return false;
    row[2] = cell_text(S("allocation"));
    row[3] = text_cell(g->what.op);
    if (g->what.bytes != MEMORY_UNKNOWN &&
        !__builtin_mul_overflow(g->what.bytes, (int64_t)g->n, &bytes))
        row[4] = cell_i64(bytes);
    row[5] = cell_u64(g->n);
    row[6] = bytes_cell(g->what.bytes);
    row[7] = bytes_cell(g->what.requested_bytes);
    row[8] = text_cell(g->what.region);
    row[9] = text_cell(g->what.data_type);
    row[10] = text_cell(g->what.shape);
    return true;
}

static bool add_other(struct table *t, const struct memory_allocator *m, str kind, int64_t bytes)
{
    if (bytes == MEMORY_UNKNOWN || bytes <= 0)
        return true;
    struct cell *row = named_row(t, m);
    if (row == NULL)
        return false;
    row[2] = cell_text(kind);
    row[4] = cell_i64(bytes);
    return true;
}

static bool add_live(struct table *t, const struct memory_allocator *m, struct arena *a,
                     struct err *e)
{
    struct memory_group *groups;
    uint32_t n;
    if (!memory_groups_of(m, a, &groups, &n, e))
        return false;
    if (!add_other(t, m, S("stack"), m->peak.stack) ||
        !add_other(t, m, S("before the profile"), m->before_bytes))
        return arena_full(a, e);
    for (uint32_t i = 0; i < n; i++)
        if (!add_group(t, m, &groups[i]))
            return arena_full(a, e);
    return true;
}

struct table *memory_table_live(const struct memory_profile *m, struct arena *a, struct err *e)
{
    struct table *t = table_new(a, S("live_at_peak"), S("Live at the peak"));
    if (t == NULL) {
        arena_full(a, e);
        return NULL;
    }
    name_columns(t);
    table_column(t, S("kind"), S("Kind"), CELL_TEXT, S(""));
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("bytes"), S("Bytes"), CELL_I64, S("bytes"));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("piece_bytes"), S("Each"), CELL_I64, S("bytes"));
    table_column(t, S("requested_bytes"), S("Requested"), CELL_I64, S("bytes"));
    table_column(t, S("region"), S("Region"), CELL_TEXT, S(""));
    table_column(t, S("data_type"), S("Type"), CELL_TEXT, S(""));
    table_column(t, S("shape"), S("Shape"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < m->n_allocators; i++)
        if (!add_live(t, &m->allocators[i], a, e))
            return NULL;
    return t;
}

/* --- over time --------------------------------------------------------------------------------- */

static bool add_sample(struct table *t, const struct memory_allocator *m,
                       const struct memory_sample *s)
{
    struct cell *row = named_row(t, m);
    if (row == NULL)
        return false;
    row[2] = cell_u64(memory_time_ps(m->trace, s->time_ps));
    row[3] = bytes_cell(memory_in_use(&s->use));
    row[4] = bytes_cell(s->use.stack);
    row[5] = bytes_cell(s->use.heap);
    row[6] = bytes_cell(s->use.free);
    row[7] = percent_cell(s->use.fragmentation_ratio);
    return true;
}

struct table *memory_table_timeline(const struct memory_profile *m, struct arena *a)
{
    struct table *t = table_new(a, S("timeline"), S("Memory over time"));
    if (t == NULL)
        return NULL;
    name_columns(t);
    table_column(t, S("time_ps"), S("At"), CELL_U64, S("ps"));
    table_column(t, S("used_bytes"), S("In use"), CELL_I64, S("bytes"));
    table_column(t, S("stack_bytes"), S("Stack"), CELL_I64, S("bytes"));
    table_column(t, S("heap_bytes"), S("Heap"), CELL_I64, S("bytes"));
    table_column(t, S("free_bytes"), S("Free"), CELL_I64, S("bytes"));
    table_column(t, S("fragmentation_percent"), S("Fragmentation"), CELL_F64, S("%"));
    for (uint32_t i = 0; i < m->n_allocators; i++)
        for (uint32_t k = 0; k < m->allocators[i].n_timeline; k++)
            if (!add_sample(t, &m->allocators[i], &m->allocators[i].timeline[k]))
                return NULL;
    return t;
}
