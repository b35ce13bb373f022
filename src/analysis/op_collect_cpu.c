/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_collect.h"

/* XLA:CPU runs a program's operations on threads of the host; each event says which operation of
 * which program it was. */
struct open_op {
    uint64_t end_ps, begin_ps, children_ps;
    uint32_t op; /* row of the table, or UINT32_MAX */
};

struct collector {
    struct op_db *db;
    const struct trace *trace;
    struct err *err;
    struct open_op *open;
    uint32_t n_open, open_capacity;
    uint64_t first_ps, last_ps;
    uint32_t n_threads; /* that ran operations */
    struct arena scratch;
};

static void close_op(struct collector *c)
{
    const struct open_op *o = &c->open[--c->n_open];
    const uint64_t time = o->end_ps - o->begin_ps;
    struct op_tally t = {0};
    op_tally_add(&t, time, time > o->children_ps ? time - o->children_ps : 0);
    op_metrics_add(&c->db->ops[o->op], &t);
    if (c->n_open > 0)
        c->open[c->n_open - 1].children_ps += time;
}

static const struct hlo_program *program_of(const struct op_db *db, struct trace_stats stats,
                                            uint64_t *id)
{
    int64_t v;
    str module = {0};
    const struct hlo_program *p = NULL;
    *id = 0;
    if (trace_stat_i64(trace_stat_find(stats, S("program_id")), &v)) {
        *id = (uint64_t)v;
        p = hlo_index_program(&db->hlo, *id);
    } else if (trace_stat_str(trace_stat_find(stats, S("hlo_module")), &module)) {
        p = hlo_index_named(&db->hlo, module);
        *id = p == NULL ? 0 : p->program_id;
    }
    return p != NULL && p->readable ? p : NULL;
}

static bool begin_op(struct collector *c, const struct trace_event *ev, struct trace_stats stats,
                     str name)
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
    if (!ARENA_PUSH(c->db->arena, c->open, c->n_open, c->open_capacity))
        return arena_full(c->db->arena, c->err);
    c->open[c->n_open - 1] =
        (struct open_op){.begin_ps = ev->start_ps, .end_ps = end, .op = (uint32_t)(m - c->db->ops)};
    c->first_ps = ev->start_ps < c->first_ps ? ev->start_ps : c->first_ps;
    c->last_ps = end > c->last_ps ? end : c->last_ps;
    return true;
}

static bool collect_line(struct collector *c, uint32_t line_index)
{
    const struct trace_line *line = &c->trace->lines[line_index];
    struct trace_cursor cursor;
    bool ok = true, any = false;
    for (trace_cursor_init(&cursor, c->trace, line_index); ok && trace_cursor_next(&cursor);) {
        struct trace_stats stats;
        str name = {0};
        const struct arena_mark mark = arena_mark(&c->scratch);
        ok = trace_event_stats(c->trace, line, &cursor.event, &c->scratch, &stats, c->err);
        if (ok && trace_stat_str(trace_stat_find(stats, S("hlo_op")), &name) && name.n > 0) {
            any = true;
            ok = begin_op(c, &cursor.event, stats, name);
        }
        arena_reset(&c->scratch, mark);
    }
    while (c->n_open > 0)
        close_op(c);
    c->n_threads += any;
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
    struct collector c = {.db = db, .trace = t, .err = e, .first_ps = UINT64_MAX};
    arena_init(&c.scratch, "operations", 0);
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind != TRACE_PLANE_HOST || !names_operations(p))
            continue;
        for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
            ok = collect_line(&c, l);
    }
    if (c.last_ps > c.first_ps)
        db->total_ps = op_add(db->total_ps, op_mul(c.last_ps - c.first_ps, c.n_threads));
    arena_release(&c.scratch);
    return ok;
}
