/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernel_times.h"

#include <stdlib.h>

#include "analysis/spans.h"
#include "analysis/xprof_cli.h"
#include "base/map.h"
#include "model/trace_pick.h"

#define ROW_UNKNOWN UINT32_MAX

MAP_DEFINE(name_map, str, uint32_t, str_hash, str_eq);

struct collector {
    struct arena *arena;
    struct err *err;
    const struct trace *trace;
    struct kernel_times *out;
    struct name_map by_name;
    uint32_t *row_of_metadata; /* of the plane at hand; the last is for unknown metadata */
};

static bool row_of(struct collector *c, str name, uint32_t *row)
{
    const uint32_t *at = name_map_get(&c->by_name, name);
    if (at != NULL) {
        *row = *at;
        return true;
    }
    if (!ARENA_PUSH(c->arena, c->out->items, c->out->n, c->out->capacity))
        return arena_full(c->arena, c->err);
    c->out->items[c->out->n - 1].name = arena_str(c->arena, name);
    if (name.n > 0 && c->out->items[c->out->n - 1].name.p == NULL)
        return arena_full(c->arena, c->err);
    *row = c->out->n - 1;
    *name_map_put(&c->by_name, c->out->items[*row].name) = *row;
    return true;
}

static str own_name(const struct trace_event_metadata *md)
{
    return md == NULL ? S("?") : md->name;
}

static bool collect_event(struct collector *c, const struct trace_line *line,
                          const struct trace_event *ev, const struct trace_stat *framework)
{
    const struct trace_event_metadata *md = trace_event_meta(c->trace, line, ev);
    const uint32_t n = c->trace->planes[line->plane_index].n_event_metadata;
    uint32_t *known = &c->row_of_metadata[md == NULL ? n : ev->metadata_index];
    str name = {0};
    uint32_t row = *known;
    if (trace_stat_str(framework, &name) && name.n > 0) {
        if (!row_of(c, name, &row))
            return false;
    } else if (row == ROW_UNKNOWN) {
        if (!row_of(c, own_name(md), &row))
            return false;
        *known = row;
    }
    c->out->items[row].count += ev->num_occurrences > 0 ? ev->num_occurrences : 1;
    c->out->items[row].total_ps += ev->dur_ps;
    return true;
}

static bool collect_line(struct collector *c, uint32_t line_index)
{
    static const str asked[] = {STR_INIT("tf_op_name")};
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, c->trace, line_index, asked, 1);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init_work(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);)
        ok = trace_pick(&p, &cursor.event, c->err) &&
             collect_event(c, &c->trace->lines[line_index], &cursor.event, &p.values[0]);
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&cursor, c->err);
}

/* Lines of the parts of a kernel ("LLO Ops") lie within those of the kernel. */
static bool has_kernels(const struct trace *t, uint32_t line)
{
    return spans_is_work_line(t, line) ||
           (t->planes[t->lines[line].plane_index].kind == TRACE_PLANE_TPU &&
            str_eq_nocase(t->lines[line].name, S("Pallas")));
}

static bool collect_plane(struct collector *c, const struct trace_plane *p)
{
    if (p->kind != TRACE_PLANE_GPU && p->kind != TRACE_PLANE_TPU)
        return true;
    c->row_of_metadata = ARENA_ARRAY(c->arena, uint32_t, (size_t)p->n_event_metadata + 1);
    if (c->row_of_metadata == NULL)
        return arena_full(c->arena, c->err);
    for (uint32_t i = 0; i <= p->n_event_metadata; i++)
        c->row_of_metadata[i] = ROW_UNKNOWN;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (has_kernels(c->trace, l) && !collect_line(c, l))
            return false;
    return true;
}

static int by_time(const void *x, const void *y)
{
    const struct kernel_time *a = x, *b = y;
    if (a->total_ps != b->total_ps)
        return a->total_ps > b->total_ps ? -1 : 1;
    return str_cmp(a->name, b->name);
}

bool kernel_times_of(const struct profile *p, struct arena *a, struct kernel_times *out,
                     struct err *e)
{
    struct collector c = {.arena = a, .err = e, .out = out};
    bool ok = true;
    *out = (struct kernel_times){0};
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        c.trace = p->traces[i];
        for (uint32_t k = 0; ok && k < c.trace->n_planes; k++)
            ok = collect_plane(&c, &c.trace->planes[k]);
    }
    name_map_release(&c.by_name);
    if (ok && out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_time);
    return ok;
}

/* "fusion.668" of "fusion.668: …" and of "%fusion.668 = …": up to the first colon or space. */
static str canonical_name(str name)
{
    str head = str_trim(name), rest;
    (void)str_cut(head, ':', &head, &rest);
    (void)str_cut(str_trim(head), ' ', &head, &rest);
    return head;
}

void kernel_time_put(struct json *j, const struct kernel_time *row)
{
    const str canonical = canonical_name(row->name);
    json_object(j);
    json_kstr(j, "kernel_name", row->name);
    json_kstr(j, "canonical_name", canonical);
    json_kstr(j, "short_name", canonical);
    json_kstr(j, "hlo_op_name", canonical);
    json_kstr(j, "raw_name", row->name);
    xprof_cli_number(j, "total_duration_us", (double)row->total_ps / 1e6, 4);
    json_ku64(j, "execution_count", row->count);
    xprof_cli_number(j, "avg_duration_us", (double)row->total_ps / 1e6 / (double)row->count, 4);
    json_kbool(j, "is_intra_kernel_region", false);
    json_end(j);
}
