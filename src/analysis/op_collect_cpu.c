/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_collect.h"
#include "analysis/op_steps.h"
#include "model/trace_pick.h"

/* XLA:CPU runs a program's operations on threads of the host; each event says which operation of
 * which program it was. */
struct open_op {
    uint64_t end_ps, begin_ps, children_ps;
    uint32_t op;          /* row of the table, or UINT32_MAX */
    struct op_step *step; /* NULL: in none, or not asked for */
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
};

static void close_op(struct collector *c)
{
    const struct open_op *o = &c->open[--c->n_open];
    struct op_metrics *m = &c->db->ops[o->op];
    const uint64_t time = o->end_ps - o->begin_ps;
    const uint64_t self = time > o->children_ps ? time - o->children_ps : 0;
    struct op_tally t = {0};
    op_tally_add(&t, time, self);
    op_metrics_add(m, &t);
    if (o->step != NULL)
        op_step_add(o->step, m->once, self, 0, time > self);
    if (c->n_open > 0)
        c->open[c->n_open - 1].children_ps += time;
}

enum asked { HLO_OP = 0, HLO_MODULE, PROGRAM_ID, DEVICE_ORDINAL, ASKED };
static const str asked_names[ASKED] = {STR_INIT("hlo_op"), STR_INIT("hlo_module"),
                                       STR_INIT("program_id"), STR_INIT("device_ordinal")};

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
    if (m->category.n == 0) {
        const struct hlo_instruction *in = p == NULL ? NULL : hlo_find(&p->module, m->name);
        m->category = S("unknown");
        if (in != NULL && !op_metrics_describe(c->db, m, p, in, c->err))
            return false;
    }
    struct op_step *step = op_steps_at(c->db->steps, 0, ev->start_ps);
    if ((step != NULL && op_metrics_once(c->db, m) == NULL) ||
        !ARENA_PUSH(c->db->arena, c->open, c->n_open, c->open_capacity))
        return arena_full(c->db->arena, c->err);
    c->open[c->n_open - 1] = (struct open_op){
        .begin_ps = ev->start_ps, .end_ps = end, .op = (uint32_t)(m - c->db->ops), .step = step};
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

static bool collect_line(struct collector *c, uint32_t line_index)
{
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, c->trace, line_index, asked_names, ASKED);
    for (trace_cursor_init(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        str name = {0};
        ok = trace_pick(&p, &cursor.event, c->err);
        if (ok && trace_stat_str(&p.values[HLO_OP], &name) && name.n > 0) {
            ok = begin_op(c, &cursor.event, p.values, name) &&
                 device_ran(c, &cursor.event, &p.values[DEVICE_ORDINAL]);
        }
    }
    trace_picker_release(&p);
    while (c->n_open > 0)
        close_op(c);
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
}

static bool names_operations(const struct trace_plane *p)
{
    for (uint32_t i = 0; i < p->n_stat_names; i++)
        if (str_eq(p->stat_names[i], S("hlo_op")))
            return true;
    return false;
}

bool op_collect_cpu(struct op_db *db, const struct trace *t, struct err *e)
{
    struct collector c = {
        .db = db, .trace = t, .err = e, .first_ps = UINT64_MAX, .unsaid = UINT32_MAX};
    const uint32_t first_device = db->n_cpu_devices;
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind != TRACE_PLANE_HOST || !names_operations(p))
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
