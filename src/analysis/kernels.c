/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernels.h"

#include <stdlib.h>

#include "analysis/framework_op.h"
#include "analysis/hlo_index.h"
#include "analysis/memo.h"
#include "analysis/op_graphs.h"
#include "analysis/op_metrics.h"
#include "analysis/spans.h"
#include "analysis/torch_launch.h"
#include "base/limits.h"
#include "model/trace_pick.h"

enum asked {
    DETAILS = 0,
    TF_OP,
    HLO_OP,
    HLO_MODULE,
    PROGRAM_ID,
    EQUATION,
    OCCUPANCY,
    GRAPH_ID,
    ASKED
};
static const str asked_names[ASKED] = {
    STR_INIT("kernel_details"),
    STR_INIT("tf_op"),
    STR_INIT("hlo_op"),
    STR_INIT("hlo_module"),
    STR_INIT("program_id"),
    STR_INIT("equation"),
    STR_INIT("theoretical_occupancy_pct"),
    STR_INIT("cuda_graph_id"),
};

/* What stands in an event, before it is understood: most events repeat another's. */
struct raw {
    str name, details, framework_op, hlo_op, module, equation;
    int64_t program_id;
    double occupancy;
    int64_t graph_id;
    bool has_program, has_graph;
};
static uint64_t raw_hash(struct raw r)
{
    const str texts[] = {r.name, r.details, r.framework_op, r.hlo_op};
    uint64_t h = (uint64_t)r.program_id ^ map_hash_u64((uint64_t)r.graph_id);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        h = map_hash_u64(h + str_hash(texts[i]));
    return h;
}
static bool raw_eq(struct raw a, struct raw b)
{
    return str_eq(a.name, b.name) && str_eq(a.details, b.details) &&
           str_eq(a.framework_op, b.framework_op) && str_eq(a.hlo_op, b.hlo_op) &&
           str_eq(a.module, b.module) && a.program_id == b.program_id &&
           a.has_program == b.has_program && a.graph_id == b.graph_id &&
           a.has_graph == b.has_graph && str_eq(a.equation, b.equation) &&
           a.occupancy >= b.occupancy && a.occupancy <= b.occupancy;
}
MAP_DEFINE(raw_map, struct raw, uint32_t, raw_hash, raw_eq);

struct key {
    str name, op;
    struct kernel_launch launch;
    bool has_details, is_framework_op;
};
static int dims_cmp(const uint32_t a[3], const uint32_t b[3])
{
    for (int i = 0; i < 3; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}
static int i64_cmp(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}
static int launch_cmp(const struct kernel_launch *a, const struct kernel_launch *b)
{
    int order = dims_cmp(a->grid, b->grid);
    order = order != 0 ? order : dims_cmp(a->block, b->block);
    order = order != 0 ? order : i64_cmp(a->registers_per_thread, b->registers_per_thread);
    order = order != 0 ? order : i64_cmp(a->static_shared_bytes, b->static_shared_bytes);
    return order != 0 ? order : i64_cmp(a->dynamic_shared_bytes, b->dynamic_shared_bytes);
}
static uint64_t key_hash(struct key k)
{
    const struct kernel_launch *l = &k.launch;
    uint64_t h = str_hash(k.name) ^ map_hash_u64(str_hash(k.op));
    for (int i = 0; i < 3; i++)
        h = map_hash_u64(h ^ ((uint64_t)l->grid[i] << 32 | l->block[i]));
    return map_hash_u64(h ^ (uint64_t)l->registers_per_thread) ^
           map_hash_u64((uint64_t)l->static_shared_bytes + 7) ^
           map_hash_u64((uint64_t)l->dynamic_shared_bytes + 9);
}
static bool key_eq(struct key a, struct key b)
{
    return str_eq(a.name, b.name) && str_eq(a.op, b.op) && launch_cmp(&a.launch, &b.launch) == 0 &&
           a.has_details == b.has_details && a.is_framework_op == b.is_framework_op;
}
MAP_DEFINE(key_map, struct key, uint32_t, key_hash, key_eq);

struct collector {
    const struct trace *trace;
    struct arena *arena;
    struct kernels *out;
    struct err *err;
    struct raw_map
        seen; /* at most LIMIT_KERNEL_SHAPES of them: beyond, each event is parsed anew */
    struct key_map rows;
    struct hlo_index hlo;
    uint64_t n_events;         /* that are kernels */
    struct memo is_kernel;     /* by name */
    struct grouping *grouping; /* of the trace at hand; NULL: it shows no operator of PyTorch */
    struct torch_launches operators;
};

static str text_of(const struct trace_stat *event, const struct trace_event_metadata *md,
                   enum asked which)
{
    str v = {0};
    const struct trace_stat *s = &event[which];
    if (s->type == TRACE_STAT_NONE)
        s = md == NULL ? NULL : trace_stat_find(md->stats, asked_names[which]);
    trace_stat_str(s, &v);
    return v;
}

static str innermost(str op)
{
    ptrdiff_t at;
    while ((at = str_find(op, S("::"))) >= 0)
        op = str_sub(op, (size_t)at + 2, op.n);
    return op;
}

static struct raw raw_of(const struct collector *c, const struct trace_line *line,
                         const struct trace_event *ev, const struct trace_stat *stats)
{
    const struct trace_event_metadata *md = trace_event_meta(c->trace, line, ev);
    struct raw r = {.name = trace_event_name(c->trace, line, ev)};
    r.details = text_of(stats, md, DETAILS);
    r.framework_op = text_of(stats, md, TF_OP);
    r.hlo_op = innermost(text_of(stats, md, HLO_OP));
    r.module = text_of(stats, md, HLO_MODULE);
    r.has_program = trace_stat_i64(&stats[PROGRAM_ID], &r.program_id);
    r.has_graph = trace_stat_i64(&stats[GRAPH_ID], &r.graph_id);
    r.equation = text_of(stats, md, EQUATION);
    (void)trace_stat_f64(&stats[OCCUPANCY], &r.occupancy);
    return r;
}

static struct kernel_launch launch_of(const struct raw *r)
{
    struct kernel_launch l = kernel_launch_parse(r->details);
    if (!(l.occupancy_percent > 0) && r->occupancy > 0 && r->occupancy <= 100)
        l.occupancy_percent = r->occupancy;
    return l;
}

/* The instruction's framework name in its program ("a/b/dot_general:"), else what the event says. */
static bool name_op(struct collector *c, const struct raw *r, struct key *k)
{
    const struct hlo_program *p = NULL;
    if (r->hlo_op.n > 0)
        p = r->has_program ? hlo_index_program(&c->hlo, (uint64_t)r->program_id)
                           : hlo_index_named(&c->hlo, r->module);
    const struct hlo_instruction *in =
        p == NULL || !p->readable ? NULL : hlo_find(&p->module, r->hlo_op);
    str full = r->framework_op;
    if (in != NULL && in->op_name.n > 0) {
        full = arena_printf(c->arena, "%.*s:%.*s", STR_ARG(in->op_name), STR_ARG(in->op_type));
        if (full.p == NULL)
            return arena_full(c->arena, c->err);
    }
    k->is_framework_op = full.n > 0;
    k->op = k->is_framework_op ? framework_op_parse(full).name : r->hlo_op;
    if (k->op.n > 0 || !r->has_graph)
        return true;
    k->op = op_graph_name(r->graph_id, c->arena);
    return k->op.p != NULL || arena_full(c->arena, c->err);
}

static bool add_row(struct collector *c, const struct key *k, const struct raw *r, uint32_t *row)
{
    struct kernels *out = c->out;
    if (!ARENA_PUSH(c->arena, out->items, out->n, out->capacity))
        return arena_full(c->arena, c->err);
    struct kernel *item = &out->items[out->n - 1];
    *item = (struct kernel){.name = k->name, /* of the trace */
                            .op = arena_str(c->arena, k->op),
                            .launch = k->launch,
                            .has_details = k->has_details,
                            .is_framework_op = k->is_framework_op,
                            .matrix_units = matrix_units_of_kernel(k->name)};
    item->may_use_matrix_units = k->op.n > 0 && (matrix_units_may_serve(k->op) ||
                                                 matrix_units_may_serve_einsum(r->equation) ||
                                                 item->matrix_units == MATRIX_UNITS_YES);
    if (item->op.p == NULL && k->op.n > 0)
        return arena_full(c->arena, c->err);
    struct key kept = *k;
    kept.op = item->op;
    *key_map_put(&c->rows, kept) = *row = out->n - 1;
    return true;
}

static bool remember(struct collector *c, const struct raw *r, uint32_t row)
{
    struct raw kept = *r;
    str *const texts[] = {&kept.details, &kept.framework_op, &kept.hlo_op, &kept.module,
                          &kept.equation};
    if (c->seen.n >= LIMIT_KERNEL_SHAPES)
        return true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t n = texts[i]->n;
        *texts[i] = arena_str(c->arena, *texts[i]);
        if (n > 0 && texts[i]->p == NULL)
            return arena_full(c->arena, c->err);
    }
    *raw_map_put(&c->seen, kept) = row;
    return true;
}

static bool row_of(struct collector *c, const struct raw *r, uint32_t *row)
{
    const uint32_t *known = raw_map_get(&c->seen, *r);
    if (known != NULL) {
        *row = *known;
        return true;
    }
    struct key k = {.name = r->name, .launch = launch_of(r), .has_details = r->details.n > 0};
    if (!name_op(c, r, &k))
        return false;
    const uint32_t *at = key_map_get(&c->rows, k);
    if (at != NULL)
        *row = *at;
    else if (!add_row(c, &k, r, row))
        return false;
    return remember(c, r, *row);
}

static void add_times(struct kernel_times *t, uint64_t dur, uint64_t n)
{
    const uint64_t each = dur / n;
    t->min_ps = t->occurrences == 0 || each < t->min_ps ? each : t->min_ps;
    t->max_ps = each > t->max_ps ? each : t->max_ps;
    t->occurrences += n;
    t->total_ps = op_add(t->total_ps, dur);
}

static bool is_kernel(struct collector *c, const struct trace_line *line,
                      const struct trace_event *ev)
{
    enum { NO = 1, YES };
    uint8_t *known = memo_at(&c->is_kernel, c->trace, line, ev);
    if (*known == 0)
        *known = kernel_is_name_of_one(trace_event_name(c->trace, line, ev)) ? YES : NO;
    return *known == YES;
}

/* The operator of PyTorch that launched the event, for one that names no operation itself. */
static str launched_by(const struct collector *c, uint32_t line_index, uint64_t event)
{
    const struct torch_launch *x =
        c->grouping == NULL
            ? NULL
            : torch_launches_find(&c->operators, launch_at(c->grouping, line_index, event));
    return x == NULL ? (str){0} : x->name;
}

static bool collect_event(struct collector *c, uint32_t line_index,
                          const struct trace_cursor *cursor, struct trace_picker *p)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    const struct trace_event *ev = &cursor->event;
    uint32_t row = 0;
    if (!is_kernel(c, line, ev))
        return true;
    if (!trace_pick(p, ev, c->err))
        return false;
    struct raw r = raw_of(c, line, ev, p->values);
    if (r.hlo_op.n == 0 && r.framework_op.n == 0 && !r.has_graph)
        r.framework_op = launched_by(c, line_index, cursor->index);
    if (!row_of(c, &r, &row))
        return false;
    struct kernel *k = &c->out->items[row];
    c->n_events++;
    add_times(&k->times, ev->dur_ps, ev->num_occurrences > 0 ? ev->num_occurrences : 1);
    if (ev->dur_ps >= 1000)
        add_times(&k->xprof, ev->dur_ps - ev->dur_ps % 1000, 1);
    return true;
}

static bool collect_line(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, c->trace, line_index, asked_names, ASKED);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init_work(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);)
        ok = collect_event(c, line_index, &cursor, &p);
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&cursor, c->err);
}

/* Which operators launched what, where there are any. */
static bool find_operators(struct collector *c)
{
    c->grouping = NULL;
    if (!torch_may_launch(c->trace))
        return true;
    c->grouping = ARENA_NEW(c->arena, struct grouping);
    if (c->grouping == NULL)
        return arena_full(c->arena, c->err);
    return grouping_of(c->trace, c->arena, c->grouping, c->err) &&
           torch_launches_of(&c->operators, c->trace, c->grouping, c->arena, c->err);
}

static bool collect_trace(struct collector *c)
{
    const struct trace *t = c->trace;
    if (!hlo_index_add(&c->hlo, t, c->arena, c->err) || !find_operators(c))
        return false;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind != TRACE_PLANE_GPU)
            continue;
        const uint64_t before = c->n_events;
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
            if (spans_is_work_line(t, l) && !collect_line(c, l))
                return false;
        c->out->n_devices += c->n_events > before;
    }
    return true;
}

static int by_time(const void *x, const void *y)
{
    const struct kernel *a = x, *b = y;
    if (a->times.total_ps != b->times.total_ps)
        return a->times.total_ps > b->times.total_ps ? -1 : 1;
    int order = str_cmp(a->name, b->name);
    order = order != 0 ? order : str_cmp(a->op, b->op);
    order = order != 0 ? order : launch_cmp(&a->launch, &b->launch);
    return order != 0 ? order : (int)a->has_details - (int)b->has_details;
}

static void sum_up(struct kernels *k)
{
    if (k->n > 1)
        qsort(k->items, k->n, sizeof *k->items, by_time);
    for (uint32_t i = 0; i < k->n; i++) {
        const struct kernel *item = &k->items[i];
        k->total_ps = op_add(k->total_ps, item->times.total_ps);
        if (item->matrix_units == MATRIX_UNITS_YES)
            k->matrix_ps = op_add(k->matrix_ps, item->times.total_ps);
        else if (item->matrix_units == MATRIX_UNITS_UNKNOWN)
            k->unknown_matrix_ps = op_add(k->unknown_matrix_ps, item->times.total_ps);
    }
}

static void forget_rows(struct collector *c)
{
    raw_map_release(&c->seen);
    key_map_release(&c->rows);
}

bool kernels_of(const struct profile *p, enum kernels_sum sum, struct arena *a, struct kernels *out,
                struct err *e)
{
    struct collector c = {.arena = a, .out = out, .err = e};
    bool ok = true;
    *out = (struct kernels){0};
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        if (sum == KERNELS_SUM_PER_HOST)
            forget_rows(&c);
        c.trace = p->traces[i];
        ok = collect_trace(&c);
    }
    forget_rows(&c);
    hlo_index_release(&c.hlo);
    memo_release(&c.is_kernel);
    if (ok)
        sum_up(out);
    return ok;
}
