/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_collect.h"
#include "analysis/op_rates.h"
#include "analysis/op_steps.h"
#include "analysis/torch_cost.h"
#include "model/trace_pick.h"

/* XLA:CPU runs a program's operations on threads of the host; each event says which operation of
 * which program it was. Where no event does, PyTorch's operators stand for them: events of the category
 * "cpu_op", as Kineto has it. */
struct open_op {
    uint64_t end_ps, begin_ps, children_ps;
    uint32_t op;            /* row of the table, or UINT32_MAX */
    struct op_step *step;   /* NULL: in none, or not asked for */
    struct torch_cost cost; /* of an operator of PyTorch */
};

struct collector {
    struct op_db *db;
    const struct trace *trace;
    struct err *err;
    struct open_op *open;
    uint32_t n_open, open_capacity;
    uint64_t first_ps, last_ps;
    struct map_u64_u32 devices; /* ordinal to the index among db->cpu_devices */
    uint32_t unsaid;            /* of operations that do not say where they ran; UINT32_MAX: none */
    bool operators;             /* PyTorch's stand for the operations */
};

static void close_op(struct collector *c)
{
    const struct open_op *o = &c->open[--c->n_open];
    struct op_metrics *m = &c->db->ops[o->op];
    const uint64_t time = o->end_ps - o->begin_ps;
    const uint64_t self = time > o->children_ps ? time - o->children_ps : 0;
    struct op_tally t = {0};
    struct op_metrics once = {.category = m->category};
    op_tally_add(&t, time, self);
    if (c->operators) {
        op_metrics_add_operator(m, &o->cost);
        op_metrics_add_operator(&once, &o->cost);
    }
    op_metrics_add(m, &t);
    if (o->step != NULL && c->operators)
        op_step_add(o->step, &once, self, 0, !once.has_cost);
    else if (o->step != NULL)
        op_step_add(o->step, m->once, self, 0, time > self);
    if (c->n_open > 0)
        c->open[c->n_open - 1].children_ps += time;
}

enum asked {
    HLO_OP = 0,
    HLO_MODULE,
    PROGRAM_ID,
    DEVICE_ORDINAL,
    CATEGORY,
    INPUT_DIMS,
    INPUT_TYPE,
    ASKED
};
static const str asked_names[ASKED] = {STR_INIT("hlo_op"),     STR_INIT("hlo_module"),
                                       STR_INIT("program_id"), STR_INIT("device_ordinal"),
                                       STR_INIT("category"),   STR_INIT("Input Dims"),
                                       STR_INIT("Input type")};

static const struct hlo_program *program_of(const struct op_db *db, const struct trace_stat *stats,
                                            uint64_t *id)
{
    int64_t v;
    str module = {0};
    const struct hlo_program *p = NULL;
    *id = 0;
    if (trace_stat_i64(&stats[PROGRAM_ID], &v)) {
        *id = (uint64_t)v;
        p = hlo_index_program(&db->hlo, *id);
    } else if (trace_stat_str(&stats[HLO_MODULE], &module)) {
        p = hlo_index_named(&db->hlo, module);
        *id = p == NULL ? 0 : p->program_id;
    }
    return p != NULL && p->readable ? p : NULL;
}

static bool describe(struct collector *c, struct op_metrics *m, const struct hlo_program *p)
{
    const struct hlo_instruction *in = p == NULL ? NULL : hlo_find(&p->module, m->name);
    m->category = c->operators ? torch_category(m->name) : S("unknown");
    m->provenance = c->operators ? m->name : (str){0};
    return in == NULL || op_metrics_describe(c->db, m, p, in, c->err);
}

static struct torch_cost operator_cost(const struct trace_stat *stats, str name)
{
    str dims = {0}, types = {0};
    if (!torch_has_cost(name) || !trace_stat_str(&stats[INPUT_DIMS], &dims) ||
        !trace_stat_str(&stats[INPUT_TYPE], &types))
        return (struct torch_cost){0};
    return torch_cost(name, dims, types);
}

static bool begin_op(struct collector *c, const struct trace_event *ev,
                     const struct trace_stat *stats, str name)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    uint64_t id;
    while (c->n_open > 0 && c->open[c->n_open - 1].end_ps < end)
        close_op(c);
    const struct hlo_program *p = program_of(c->db, stats, &id);
    struct op_metrics *m = op_db_put(c->db, id, name);
    if (m == NULL)
        return arena_full(c->db->arena, c->err);
    if (m->category.n == 0 && !describe(c, m, p))
        return false;
    struct op_step *step = op_steps_at(c->db->steps, 0, ev->start_ps);
    if ((step != NULL && !c->operators && op_metrics_once(c->db, m) == NULL) ||
        !ARENA_PUSH(c->db->arena, c->open, c->n_open, c->open_capacity))
        return arena_full(c->db->arena, c->err);
    c->open[c->n_open - 1] = (struct open_op){.begin_ps = ev->start_ps,
                                              .end_ps = end,
                                              .op = (uint32_t)(m - c->db->ops),
                                              .step = step,
                                              .cost = operator_cost(stats, m->name)};
    c->first_ps = ev->start_ps < c->first_ps ? ev->start_ps : c->first_ps;
    c->last_ps = end > c->last_ps ? end : c->last_ps;
    return true;
}

static struct op_cpu_device *device_at(struct collector *c, const struct trace_stat *ordinal)
{
    struct op_db *db = c->db;
    int64_t number = 0;
    const bool said = trace_stat_i64(ordinal, &number);
    const uint32_t *known = said ? map_u64_u32_get(&c->devices, (uint64_t)number) : &c->unsaid;
    if (known != NULL && *known != UINT32_MAX)
        return &db->cpu_devices[*known];
    if (!ARENA_PUSH(db->arena, db->cpu_devices, db->n_cpu_devices, db->cpu_devices_capacity))
        return NULL;
    const uint32_t at = db->n_cpu_devices - 1;
    if (said)
        *map_u64_u32_put(&c->devices, (uint64_t)number) = at;
    else
        c->unsaid = at;
    db->cpu_devices[at] = (struct op_cpu_device){
        .trace = c->trace,
        .name = said ? arena_printf(db->arena, "CPU %lld", (long long)number) : c->trace->host};
    return &db->cpu_devices[at];
}

/* Threads take the work of any device, so an operation is counted where it says that it ran. */
static bool device_ran(struct collector *c, const struct trace_event *ev,
                       const struct trace_stat *ordinal)
{
    struct op_cpu_device *d = device_at(c, ordinal);
    return (d != NULL &&
            spans_add(&d->busy, c->db->arena, ev->start_ps, ev->start_ps + ev->dur_ps)) ||
           arena_full(c->db->arena, c->err);
}

/* The operation that the event is, or empty. */
static str operation_of(const struct collector *c, uint32_t line_index,
                        const struct trace_event *ev, const struct trace_stat *stats)
{
    str name = {0};
    if (!c->operators)
        trace_stat_str(&stats[HLO_OP], &name);
    else if (spans_is_operator(&stats[CATEGORY]))
        name = trace_event_name(c->trace, &c->trace->lines[line_index], ev);
    return name;
}

static bool collect_line(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, c->trace, line_index, asked_names, ASKED);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        ok = trace_pick(&p, &cursor.event, c->err);
        const str name = ok ? operation_of(c, line_index, &cursor.event, p.values) : (str){0};
        if (name.n > 0)
            ok = begin_op(c, &cursor.event, p.values, name) &&
                 (c->n_open > 1 || device_ran(c, &cursor.event, &p.values[DEVICE_ORDINAL]));
    }
    trace_picker_release(&p);
    while (c->n_open > 0)
        close_op(c);
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
}

bool op_collect_cpu(struct op_db *db, const struct trace *t, struct err *e)
{
    struct collector c = {.db = db,
                          .trace = t,
                          .err = e,
                          .first_ps = UINT64_MAX,
                          .unsaid = UINT32_MAX,
                          .operators = spans_has_operators(t)};
    const uint32_t first_device = db->n_cpu_devices;
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind != TRACE_PLANE_HOST ||
            !spans_plane_names(p, c.operators ? S("category") : S("hlo_op")))
            continue;
        for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
            ok = collect_line(&c, l);
    }
    for (uint32_t i = first_device; i < db->n_cpu_devices; i++) {
        struct spans *busy = &db->cpu_devices[i].busy;
        spans_close(busy);
        db->total_ps = op_add(db->total_ps, c.last_ps - c.first_ps);
        db->busy_ps = op_add(db->busy_ps, spans_within(busy, 0, UINT64_MAX));
    }
    db->named_ps = db->busy_ps;
    map_u64_u32_release(&c.devices);
    return ok;
}
