/* SPDX-License-Identifier: Apache-2.0 */
/* copies: copies and fills of memory by direction and kind of memory. */
#include "analysis/copies.h"
#include "analysis/tool.h"

static void declare_kind(struct table *t)
{
    table_column(t, S("direction"), S("Direction"), CELL_TEXT, S(""));
    table_column(t, S("from"), S("From"), CELL_TEXT, S(""));
    table_column(t, S("to"), S("To"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("bytes"), S("Size"), CELL_U64, S("bytes"));
    table_column(t, S("time_ps"), S("Time"), CELL_U64, S("ps"));
    table_column(t, S("bytes_per_s"), S("Rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("exposed_ps"), S("Exposed"), CELL_U64, S("ps"));
    table_column(t, S("waits_for_host"), S("Waits for the host"), CELL_BOOL, S(""));
}

static void fill_kind(struct cell *row, const struct copy_row *r)
{
    const char *direction = copy_direction_word(r->direction);
    row[0] = direction != NULL ? cell_text(str_from(direction)) : cell_unknown();
    row[1] = r->from.n > 0 ? cell_text(r->from) : cell_unknown();
    row[2] = r->to.n > 0 ? cell_text(r->to) : cell_unknown();
    row[3] = cell_u64(r->count);
    row[4] = r->sized == r->count ? cell_u64(r->bytes) : cell_unknown();
    row[5] = cell_u64(r->time_ps);
    row[6] = r->timed_ps > 0 ? cell_f64((double)r->timed_bytes * 1e12 / (double)r->timed_ps)
                             : cell_unknown();
    row[7] = cell_u64(r->exposed_ps);
    row[8] = cell_bool(r->waits);
}

static bool same_kind(const struct copy_row *a, const struct copy_row *b)
{
    return a->direction == b->direction && a->waits == b->waits && str_eq(a->from, b->from) &&
           str_eq(a->to, b->to);
}

static void add(struct copy_row *to, const struct copy_row *r)
{
    to->count += r->count;
    to->time_ps += r->time_ps;
    to->sized += r->sized;
    to->bytes += r->bytes;
    to->timed_ps += r->timed_ps;
    to->timed_bytes += r->timed_bytes;
    to->exposed_ps += r->exposed_ps;
}

/* Of all devices together. */
static struct table *kinds_table(const struct copies *c, struct arena *a)
{
    struct table *t = table_new(a, S("copies"), S("Copies"));
    struct copy_row *sums = ARENA_ARRAY(a, struct copy_row, (size_t)c->n + 1);
    uint32_t n = 0, k;
    if (t == NULL || sums == NULL)
        return NULL;
    declare_kind(t);
    for (uint32_t i = 0; i < c->n; i++) {
        for (k = 0; k < n && !same_kind(&sums[k], &c->rows[i]); k++)
            continue;
        if (k < n)
            add(&sums[k], &c->rows[i]);
        else
            sums[n++] = c->rows[i];
    }
    for (k = 0; k < n; k++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        fill_kind(row, &sums[k]);
    }
    table_sort(t, table_find_column(t, S("time_ps")), TABLE_DESCENDING);
    table_sort(t, table_find_column(t, S("exposed_ps")), TABLE_DESCENDING);
    return t;
}

static struct table *devices_table(const struct copies *c, struct arena *a)
{
    struct table *t = table_new(a, S("devices"), S("By device"));
    if (t == NULL)
        return NULL;
    declare_kind(t);
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < c->n; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        fill_kind(row, &c->rows[i]);
        row[9] = cell_text(c->devices.items[c->rows[i].device].label);
    }
    return t;
}

static void totals(struct table *t, const struct copies *c)
{
    uint64_t busy = 0, exposed = 0, cpus = 0, count = 0;
    for (uint32_t i = 0; i < c->n; i++)
        count += c->rows[i].count;
    for (uint32_t i = 0; i < c->devices.n; i++) {
        const struct work_device *d = &c->devices.items[i];
        cpus += d->plane_index == UINT32_MAX;
        busy += spans_within(&d->copy, 0, UINT64_MAX);
        exposed +=
            spans_within(&d->busy, 0, UINT64_MAX) - spans_within(&d->compute_comm, 0, UINT64_MAX);
    }
    if (cpus < c->devices.n) {
        table_value(t, S("count"), S("Copies"), cell_u64(count), S(""));
        table_value(t, S("copying_ps"), S("Devices copying"), cell_u64(busy), S("ps"));
        table_value(t, S("exposed_ps"), S("Beside no other work"), cell_u64(exposed), S("ps"));
    }
    if (cpus > 0)
        table_note(t, S("cpu_backend"), cpus,
                   "devices are CPUs: they have no memory of their own to copy to");
}

static bool copies_run(const struct tool_request *r, struct arena *a, struct table **out,
                       struct err *e)
{
    struct copies c;
    if (!copies_of(r->profile, a, &c, e))
        return false;
    struct table *first = kinds_table(&c, a), *devices = devices_table(&c, a);
    if (first == NULL || devices == NULL)
        return arena_full(a, e);
    totals(first, &c);
    first->next = devices;
    *out = first;
    return true;
}

const struct tool_functions tool_copies = {.run = copies_run};
