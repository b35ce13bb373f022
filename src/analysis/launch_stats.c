/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/launch_stats.h"

#include <stdlib.h>

struct launch {
    uint32_t name, device; /* device: of its first work, by order of planes over the traces */
    uint64_t start_ps, end_ps, work_start_ps, work_ps;
    uint32_t n_works, depth;
};

struct builder {
    struct arena *arena;
    struct err *err;
    struct launch_stats *out;
    struct launch *items; /* room for all calls */
    uint32_t n;
    struct map_str_u32 by_name;
    struct launch_row *rows;
    uint32_t n_rows, rows_capacity;
    uint32_t first_device; /* of the trace at hand */
};

static bool name_row(struct builder *b, str name, uint32_t *out)
{
    const uint32_t *known = map_str_u32_get(&b->by_name, name);
    if (known != NULL) {
        *out = *known;
        return true;
    }
    if (!ARENA_PUSH(b->arena, b->rows, b->n_rows, b->rows_capacity))
        return arena_full(b->arena, b->err);
    b->rows[b->n_rows - 1] = (struct launch_row){.name = name};
    *map_str_u32_put(&b->by_name, name) = *out = b->n_rows - 1;
    return true;
}

static str call_name(const struct trace *t, uint32_t line, uint32_t metadata)
{
    const struct trace_event ev = {.metadata_index = metadata};
    return trace_event_name(t, &t->lines[line], &ev);
}

/* --- GPU: by correlation id ------------------------------------------------------------------- */

static bool add_works(struct builder *b, const struct budget_trace *t, uint32_t line,
                      struct launch *launches)
{
    struct trace_cursor c;
    for (trace_cursor_init_work(&c, t->trace, line); trace_cursor_next(&c);) {
        const uint32_t launch = launch_at(&t->grouping, line, c.index);
        if (launch == GROUP_NO_LAUNCH)
            continue;
        struct launch *l = &launches[launch];
        if (l->n_works == 0 || c.event.start_ps < l->work_start_ps) {
            l->work_start_ps = c.event.start_ps;
            l->device = b->first_device + t->trace->lines[line].plane_index;
        }
        l->n_works++;
        l->work_ps += c.event.dur_ps;
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, b->err);
}

static bool add_calls(struct builder *b, const struct budget_trace *t)
{
    const struct launch_times *times = &t->launches;
    struct launch *launches = &b->items[b->n]; /* in place: those without work are left out */
    for (uint32_t l = 0; l < t->trace->n_lines; l++)
        if (t->grouping.launch_of_line[l] != NULL && spans_is_work_line(t->trace, l) &&
            !add_works(b, t, l, launches))
            return false;
    for (uint32_t i = 0; i < times->n; i++) {
        struct launch l = launches[i];
        if (l.n_works == 0) {
            b->out->n_without_work++;
            continue;
        }
        l.start_ps = times->start_ps[i];
        l.end_ps = times->end_ps[i];
        if (!name_row(b, call_name(t->trace, times->line_index[i], times->metadata_index[i]),
                      &l.name))
            return false;
        b->items[b->n++] = l;
    }
    return true;
}

/* --- TPU: by run ------------------------------------------------------------------------------ */

static bool add_runs(struct builder *b, const struct budget_trace *t)
{
    for (uint32_t i = 0; t->flows != NULL && i < t->flows->n_links; i++) {
        const struct flow_link *link = &t->flows->by_target[i];
        if (link->kind != FLOW_LAUNCH)
            continue;
        const uint32_t plane = t->trace->lines[link->to.line_index].plane_index;
        struct launch l = {.device = b->first_device + plane,
                           .start_ps = link->from_start_ps,
                           .end_ps = link->from_end_ps,
                           .work_start_ps = link->to_start_ps,
                           .work_ps = link->to_end_ps - link->to_start_ps,
                           .n_works = 1};
        if (!name_row(b, call_name(t->trace, link->from.line_index, link->from_metadata_index),
                      &l.name))
            return false;
        b->items[b->n++] = l;
    }
    return true;
}

/* --- queue depth ------------------------------------------------------------------------------ */

static int by_device_and_end(const void *x, const void *y)
{
    const struct launch *a = x, *b = y;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->end_ps < b->end_ps ? -1 : a->end_ps > b->end_ps;
}

static int by_time(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Calls of one device by their ends, beside the begins of its works: both go up with time. Work may begin
 * before its call ends: then it is taken off when the call is. */
static void count_depths(struct launch *l, uint32_t n, uint64_t *begins)
{
    for (uint32_t i = 0; i < n; i++)
        begins[i] = l[i].work_start_ps > l[i].end_ps ? l[i].work_start_ps : l[i].end_ps;
    qsort(begins, n, sizeof *begins, by_time);
    for (uint32_t i = 0, issued = 0, begun = 0; i < n; i++) {
        while (issued < n && l[issued].end_ps <= l[i].end_ps)
            issued++;
        while (begun < n && begins[begun] <= l[i].end_ps)
            begun++;
        l[i].depth = issued - begun;
    }
}

static bool measure_depths(struct builder *b)
{
    uint64_t *begins = ARENA_ARRAY(b->arena, uint64_t, b->n);
    if (begins == NULL && b->n > 0)
        return arena_full(b->arena, b->err);
    if (b->n > 1)
        qsort(b->items, b->n, sizeof *b->items, by_device_and_end);
    for (uint32_t from = 0, to; from < b->n; from = to) {
        to = from;
        while (to < b->n && b->items[to].device == b->items[from].device)
            to++;
        count_depths(&b->items[from], to - from, begins);
    }
    return true;
}

/* --- rows ------------------------------------------------------------------------------------- */

static int64_t delay_of(const struct launch *l)
{
    return (int64_t)(l->work_start_ps - l->end_ps);
}

static int by_delay(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

static int by_depth(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

struct medians { /* room for all launches */
    int64_t *delays;
    uint32_t *depths;
};

/* Sums over n launches. */
static void fill_row(const struct launch *l, uint32_t n, const struct medians *m,
                     struct launch_row *row)
{
    double sum = 0;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        row->count++;
        row->n_works += l[i].n_works;
        row->call_ps += l[i].end_ps - l[i].start_ps;
        row->work_ps += l[i].work_ps;
        row->n_short += l[i].work_ps < l[i].end_ps - l[i].start_ps;
        m->delays[i] = delay_of(&l[i]);
        m->depths[i] = l[i].depth;
        sum += (double)m->delays[i];
    }
    qsort(m->delays, n, sizeof *m->delays, by_delay);
    qsort(m->depths, n, sizeof *m->depths, by_depth);
    row->mean_delay_ps = sum / n;
    row->median_delay_ps = m->delays[(n - 1) / 2];
    row->max_delay_ps = m->delays[n - 1];
    row->median_depth = m->depths[(n - 1) / 2];
    row->max_depth = m->depths[n - 1];
}

static int by_name_id(const void *x, const void *y)
{
    const struct launch *a = x, *b = y;
    return a->name < b->name ? -1 : a->name > b->name;
}

static int by_count(const void *x, const void *y)
{
    const struct launch_row *a = x, *b = y;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return str_cmp(a->name, b->name);
}

static bool fill_rows(struct builder *b)
{
    const struct medians m = {ARENA_ARRAY(b->arena, int64_t, b->n),
                              ARENA_ARRAY(b->arena, uint32_t, b->n)};
    if (b->n > 0 && (m.delays == NULL || m.depths == NULL))
        return arena_full(b->arena, b->err);
    fill_row(b->items, b->n, &m, &b->out->all);
    if (b->n > 1)
        qsort(b->items, b->n, sizeof *b->items, by_name_id);
    for (uint32_t from = 0, to; from < b->n; from = to) {
        to = from;
        while (to < b->n && b->items[to].name == b->items[from].name)
            to++;
        fill_row(&b->items[from], to - from, &m, &b->rows[b->items[from].name]);
    }
    if (b->n_rows > 1)
        qsort(b->rows, b->n_rows, sizeof *b->rows, by_count);
    b->out->items = b->rows;
    b->out->n = b->n_rows;
    return true;
}

bool launch_stats_of(const struct budget_trace *traces, uint32_t n_traces, struct arena *a,
                     struct launch_stats *out, struct err *e)
{
    struct builder b = {.arena = a, .err = e, .out = out};
    uint64_t most = 0;
    bool ok = true;
    *out = (struct launch_stats){0};
    for (uint32_t i = 0; i < n_traces; i++)
        most += traces[i].launches.n + (traces[i].flows != NULL ? traces[i].flows->n_links : 0);
    b.items = ARENA_ARRAY(a, struct launch, most);
    if ((b.items == NULL && most > 0) || most >= UINT32_MAX)
        return arena_full(a, e);
    for (uint32_t i = 0; ok && i < n_traces; i++) {
        ok = add_calls(&b, &traces[i]) && add_runs(&b, &traces[i]);
        b.first_device += traces[i].trace->n_planes;
    }
    ok = ok && measure_depths(&b) && fill_rows(&b);
    map_str_u32_release(&b.by_name);
    return ok;
}
