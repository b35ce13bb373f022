/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/framework_op.h"
#include "analysis/matrix_units.h"
#include "analysis/memo.h"
#include "analysis/op_collect.h"
#include "analysis/op_graphs.h"
#include "analysis/op_steps.h"
#include "analysis/spans.h"
#include "analysis/torch_launch.h"
#include "base/limits.h"
#include "model/trace_pick.h"

/* Kernels of one HLO operation that follow each other in one step are one execution of it. */
struct run_of_kernels {
    bool open;
    str op, module;
    uint64_t program_id;
    bool has_program, is_eager, uses_matrix_units;
    int32_t group;
    uint64_t time_ps, matrix_ps;
};

struct collector {
    struct op_db *db;
    const struct trace *trace;
    struct err *err;
    const struct grouping *grouping;
    struct run_of_kernels run;
    struct torch_launches operators; /* PyTorch's, that launched what names no operation */
    struct op_graphs graphs;         /* of the device at hand */
    int64_t last_graph;              /* of the event before, on the line */
    bool has_last_graph;
    struct memo matrix_units;      /* whether a kernel uses them */
    uint64_t first_ps, last_ps;    /* of the device at hand */
    struct span_list named, other; /* what it ran: operations, and what names none */
    struct arena launched;         /* graphs of the device at hand */
    struct arena scratch;
    struct arena names; /* the text of run */
    struct arena_mark names_empty;
};

static const struct hlo_program *program_of(const struct op_db *db, const struct run_of_kernels *r)
{
    const struct hlo_program *p =
        r->has_program ? hlo_index_program(&db->hlo, r->program_id) : NULL;
    if (p == NULL && !r->has_program)
        p = hlo_index_named(&db->hlo, r->module);
    return p != NULL && p->readable ? p : NULL;
}

static bool note_step(struct collector *c, struct op_metrics *m, int32_t group, uint64_t time_ps)
{
    struct op_step *step = op_steps_of_group(c->db->steps, group);
    if (step == NULL)
        return true;
    const struct op_metrics *once = op_metrics_once(c->db, m);
    if (once == NULL)
        return arena_full(c->db->arena, c->err);
    op_step_add(step, once, time_ps, 0, false);
    return true;
}

static bool close_run(struct collector *c)
{
    struct run_of_kernels *r = &c->run;
    if (!r->open)
        return true;
    r->open = false;
    const struct hlo_program *p = program_of(c->db, r);
    struct op_metrics *m = op_db_put(c->db, p == NULL ? r->program_id : p->program_id, r->op);
    if (m == NULL)
        return arena_full(c->db->arena, c->err);
    if (m->occurrences == 0) {
        const struct hlo_instruction *in = p == NULL ? NULL : hlo_find(&p->module, m->name);
        m->category = S("unknown");
        if (in != NULL && !op_metrics_describe(c->db, m, p, in, c->err))
            return false;
        m->is_eager = r->is_eager;
    }
    m->uses_matrix_units |= r->uses_matrix_units;
    m->matrix_ps = op_add(m->matrix_ps, r->matrix_ps);
    struct op_tally t = {0};
    op_tally_add(&t, r->time_ps, r->time_ps);
    op_metrics_add(m, &t);
    return note_step(c, m, r->group, r->time_ps);
}

enum asked {
    HLO_OP = 0,
    HLO_MODULE,
    PROGRAM_ID,
    IS_EAGER,
    TF_OP,
    GRAPH_ID,
    GRAPH_EXEC_ID,
    CORRELATION_ID,
    ASKED
};
static const str asked_names[ASKED] = {STR_INIT("hlo_op"),
                                       STR_INIT("hlo_module"),
                                       STR_INIT("program_id"),
                                       STR_INIT("is_eager"),
                                       STR_INIT("tf_op"),
                                       STR_INIT("cuda_graph_id"),
                                       STR_INIT("cuda_graph_exec_id"),
                                       STR_INIT("correlation_id")};

static str stat_text(const struct trace_stat *event, const struct trace_event_metadata *md,
                     enum asked which)
{
    str v = {0};
    const struct trace_stat *s = &event[which];
    if (s->type == TRACE_STAT_NONE)
        s = md == NULL ? NULL : trace_stat_find(md->stats, asked_names[which]);
    trace_stat_str(s, &v);
    return v;
}

static bool uses_matrix_units(struct collector *c, const struct trace_line *line,
                              const struct trace_event *ev)
{
    enum { NO = 1, YES };
    uint8_t *known = memo_at(&c->matrix_units, c->trace, line, ev);
    if (*known == 0)
        *known = matrix_units_of_kernel(trace_event_name(c->trace, line, ev)) == MATRIX_UNITS_YES
                     ? YES
                     : NO;
    return *known == YES;
}

/* "outer::inner": the innermost operation is the one that ran. */
static str innermost(str op)
{
    ptrdiff_t at;
    if (str_find_char(op, ':') < 0)
        return op;
    while ((at = str_find(op, S("::"))) >= 0)
        op = str_sub(op, (size_t)at + 2, op.n);
    return op;
}

static bool add_kernel(struct collector *c, const struct trace_event *ev,
                       const struct trace_stat *stats, const struct trace_event_metadata *md,
                       str op, int32_t group)
{
    struct run_of_kernels *r = &c->run;
    const bool goes_on = r->open && group != GROUP_NONE && r->group == group && str_eq(r->op, op);
    if (!goes_on) {
        int64_t id = 0;
        if (!close_run(c))
            return false;
        arena_reset(&c->names, c->names_empty);
        *r = (struct run_of_kernels){.open = true, .op = arena_str(&c->names, op), .group = group};
        r->has_program = trace_stat_i64(&stats[PROGRAM_ID], &id);
        r->program_id = r->has_program ? (uint64_t)id : 0;
        r->module = arena_str(&c->names, stat_text(stats, md, HLO_MODULE));
        int64_t eager = 0;
        c->db->says_eager |= trace_stat_i64(&stats[IS_EAGER], &eager);
        r->is_eager = eager != 0;
    }
    r->time_ps += ev->dur_ps;
    return true;
}

/* A kernel of TensorFlow without XLA. */
static bool add_framework_kernel(struct collector *c, const struct trace_event *ev, str event_name,
                                 str full_name, bool on_matrix_units)
{
    const struct framework_op op = framework_op_parse(full_name);
    const str name = arena_printf(&c->scratch, "%.*s/%.*s", STR_ARG(op.name), STR_ARG(event_name));
    if (name.p == NULL || !close_run(c))
        return arena_full(&c->scratch, c->err);
    struct op_metrics *m = op_db_put(c->db, 0, name);
    if (m == NULL)
        return arena_full(c->db->arena, c->err);
    if (m->occurrences == 0) {
        m->category =
            str_eq(op.type, S("Unknown")) ? S("unknown") : arena_str(c->db->arena, op.type);
        m->provenance = arena_str(c->db->arena, full_name);
    }
    m->uses_matrix_units |= on_matrix_units;
    m->matrix_ps = op_add(m->matrix_ps, on_matrix_units ? ev->dur_ps : 0);
    struct op_tally t = {0};
    op_tally_add(&t, ev->dur_ps, ev->dur_ps);
    op_metrics_add(m, &t);
    return true;
}

/* What a graph ran: no operation is named. False in *of_graph for all else. */
static bool add_graph_work(struct collector *c, uint32_t line_index, const struct trace_event *ev,
                           uint64_t index, const struct trace_stat *stats, bool *of_graph)
{
    struct op_graph_work w = {.time_ps = ev->dur_ps};
    *of_graph = trace_stat_i64(&stats[GRAPH_ID], &w.graph) ||
                trace_stat_i64(&stats[GRAPH_EXEC_ID], &w.graph);
    if (!*of_graph)
        return true;
    w.has_correlation = trace_stat_i64(&stats[CORRELATION_ID], &w.correlation);
    w.goes_on = c->has_last_graph && c->last_graph == w.graph;
    w.group = group_at(c->grouping, line_index, index);
    if (uses_matrix_units(c, &c->trace->lines[line_index], ev))
        w.matrix_ps = w.time_ps;
    c->last_graph = w.graph;
    return close_run(c) && op_graphs_add(&c->graphs, &w, c->err);
}

static bool add_launch(struct collector *c, const struct op_graph_launch *launch)
{
    const struct arena_mark mark = arena_mark(&c->scratch);
    const str name = op_graph_name(launch->graph, &c->scratch);
    struct op_metrics *m = name.p == NULL ? NULL : op_db_put(c->db, 0, name);
    arena_reset(&c->scratch, mark);
    if (m == NULL)
        return arena_full(c->db->arena, c->err);
    m->category = S("cuda graph");
    m->uses_matrix_units |= launch->matrix_ps > 0;
    m->matrix_ps = op_add(m->matrix_ps, launch->matrix_ps);
    struct op_tally t = {0};
    op_tally_add(&t, launch->time_ps, launch->time_ps);
    op_metrics_add(m, &t);
    return note_step(c, m, launch->group, launch->time_ps);
}

static bool add_launches(struct collector *c)
{
    for (uint32_t i = 0; i < c->graphs.n; i++)
        if (!add_launch(c, &c->graphs.items[i]))
            return false;
    return true;
}

static bool add_named_kernel(struct collector *c, uint32_t line_index, const struct trace_event *ev,
                             uint64_t index, const struct trace_stat *stats, str op)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    const struct trace_event_metadata *md = trace_event_meta(c->trace, line, ev);
    if (!add_kernel(c, ev, stats, md, op, group_at(c->grouping, line_index, index)))
        return false;
    if (uses_matrix_units(c, line, ev)) {
        c->run.uses_matrix_units = true;
        c->run.matrix_ps = op_add(c->run.matrix_ps, ev->dur_ps);
    }
    return true;
}

/* What names no operation may have been launched by one: false where not. */
static bool add_to_operator(struct collector *c, uint32_t line_index, const struct trace_event *ev,
                            uint64_t index)
{
    struct torch_launch *x =
        torch_launches_find(&c->operators, launch_at(c->grouping, line_index, index));
    const uint64_t time = ev->dur_ps;
    if (x == NULL)
        return false;
    x->ran = true;
    x->time_ps = op_add(x->time_ps, time);
    if (uses_matrix_units(c, &c->trace->lines[line_index], ev))
        x->matrix_ps = op_add(x->matrix_ps, time);
    return true;
}

static bool add_operator(struct collector *c, const struct torch_launch *x)
{
    struct op_metrics *m = op_db_put(c->db, 0, x->name);
    struct op_tally t = {0};
    if (m == NULL)
        return arena_full(c->db->arena, c->err);
    if (m->occurrences == 0) {
        m->category = torch_category(m->name);
        m->provenance = m->name;
    }
    struct op_metrics once = {.category = m->category};
    op_metrics_add_operator(m, &x->cost);
    op_metrics_add_operator(&once, &x->cost);
    m->uses_matrix_units |= x->matrix_ps > 0;
    m->matrix_ps = op_add(m->matrix_ps, x->matrix_ps);
    op_tally_add(&t, x->time_ps, x->time_ps);
    op_metrics_add(m, &t);
    struct op_step *step = op_steps_of_group(c->db->steps, x->group);
    if (step != NULL)
        op_step_add(step, &once, x->time_ps, 0, false);
    return true;
}

static bool add_operators(struct collector *c)
{
    for (uint32_t i = 0; i < c->operators.n; i++)
        if (c->operators.items[i].ran && !add_operator(c, &c->operators.items[i]))
            return false;
    return true;
}

static bool collect_event(struct collector *c, uint32_t line_index, const struct trace_event *ev,
                          uint64_t index, struct trace_picker *p, bool *named)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    const struct trace_event_metadata *md = trace_event_meta(c->trace, line, ev);
    bool of_graph = false;
    if (!trace_pick(p, ev, c->err))
        return false;
    const str op = innermost(stat_text(p->values, md, HLO_OP));
    const str full_name = op.n > 0 ? S("") : stat_text(p->values, md, TF_OP);
    if (op.n == 0 && full_name.n == 0 &&
        !add_graph_work(c, line_index, ev, index, p->values, &of_graph))
        return false;
    c->has_last_graph = of_graph;
    *named = op.n > 0 || full_name.n > 0 || of_graph || add_to_operator(c, line_index, ev, index);
    if (op.n > 0)
        return add_named_kernel(c, line_index, ev, index, p->values, op);
    return full_name.n == 0 || add_framework_kernel(c, ev, trace_event_name(c->trace, line, ev),
                                                    full_name, uses_matrix_units(c, line, ev));
}

static void measure(struct collector *c, const struct trace_event *ev, bool named)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    if (ev->num_occurrences > 0)
        return; /* has no place in time */
    c->first_ps = ev->start_ps < c->first_ps ? ev->start_ps : c->first_ps;
    c->last_ps = end > c->last_ps ? end : c->last_ps;
    span_list_add(named ? &c->named : &c->other, ev->start_ps, end);
}

static void add_busy(struct collector *c)
{
    const struct spans operations = span_list_close(&c->named), rest = span_list_close(&c->other);
    const uint64_t named = spans_within(&operations, 0, UINT64_MAX);
    uint64_t alone = spans_within(&rest, 0, UINT64_MAX);
    for (uint32_t i = 0; i < rest.n; i++)
        alone -= spans_within(&operations, rest.items[i].begin_ps, rest.items[i].end_ps);
    c->db->named_ps = op_add(c->db->named_ps, named);
    c->db->busy_ps = op_add(c->db->busy_ps, named + alone);
    span_list_release(&c->named);
    span_list_release(&c->other);
}

static bool collect_line(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    struct trace_picker p;
    const struct trace_event *events;
    bool ok = true;
    c->has_last_graph = false;
    trace_picker_init(&p, c->trace, line_index, asked_names, ASKED);
    trace_picker_follow(&p, &cursor);
    trace_cursor_init_work(&cursor, c->trace, line_index);
    for (uint32_t n; ok && (n = trace_cursor_take(&cursor, &events)) > 0;)
        for (uint32_t i = 0; ok && i < n; i++) {
            const struct arena_mark mark = arena_mark(&c->scratch);
            bool named = true;
            ok = collect_event(c, line_index, &events[i], cursor.index + 1 - n + i, &p, &named);
            measure(c, &events[i], named);
            arena_reset(&c->scratch, mark);
        }
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&cursor, c->err) && close_run(c);
}

static bool collect_plane(struct collector *c, const struct trace_plane *p)
{
    const struct arena_mark no_graphs = arena_mark(&c->launched);
    bool ok = true;
    c->graphs = (struct op_graphs){.arena = &c->launched};
    c->first_ps = UINT64_MAX;
    c->last_ps = 0;
    for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(c->trace, l)) {
            ok = collect_line(c, l);
            span_list_fold(&c->named);
            span_list_fold(&c->other);
        }
    ok = ok && add_launches(c);
    op_graphs_release(&c->graphs);
    if (c->last_ps > c->first_ps)
        c->db->total_ps += c->last_ps - c->first_ps;
    add_busy(c);
    arena_reset(&c->launched, no_graphs);
    return ok;
}

bool op_collect_gpu(struct op_db *db, const struct trace *t, const struct grouping *g,
                    struct err *e)
{
    struct collector c = {.db = db, .trace = t, .err = e, .grouping = g};
    arena_init(&c.scratch, "operations", 0);
    arena_init(&c.names, "operation names", 0);
    arena_init(&c.launched, "graphs of a device", LIMIT_ARENA_TOOL_BYTES);
    c.names_empty = arena_mark(&c.names);
    bool ok = torch_launches_of(&c.operators, t, g, db->arena, e);
    for (uint32_t i = 0; ok && i < t->n_planes; i++)
        if (t->planes[i].kind == TRACE_PLANE_GPU)
            ok = collect_plane(&c, &t->planes[i]);
    ok = ok && add_operators(&c);
    memo_release(&c.matrix_units);
    arena_release(&c.scratch);
    arena_release(&c.names);
    arena_release(&c.launched);
    return ok;
}
