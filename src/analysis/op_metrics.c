/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_metrics.h"

#include <stdlib.h>

#include "analysis/cost.h"
#include "analysis/op_collect.h"
#include "analysis/op_steps.h"

void op_tally_add(struct op_tally *t, uint64_t time_ps, uint64_t self_ps)
{
    t->min_ps = t->occurrences == 0 || time_ps < t->min_ps ? time_ps : t->min_ps;
    t->max_ps = time_ps > t->max_ps ? time_ps : t->max_ps;
    t->occurrences++;
    t->time_ps = op_add(t->time_ps, time_ps);
    t->self_ps = op_add(t->self_ps, self_ps);
}

struct op_metrics *op_db_put(struct op_db *db, uint64_t program_id, str name)
{
    const struct op_key key = {program_id, name};
    const uint32_t *at = op_map_get(&db->by_key, key);
    if (at != NULL)
        return &db->ops[*at];
    if (!ARENA_PUSH(db->arena, db->ops, db->n_ops, db->capacity))
        return NULL;
    struct op_metrics *m = &db->ops[db->n_ops - 1];
    m->program_id = program_id;
    m->name = arena_str(db->arena, name);
    *op_map_put(&db->by_key, (struct op_key){program_id, m->name}) = db->n_ops - 1;
    return m;
}

void op_metrics_add(struct op_metrics *m, const struct op_tally *t)
{
    if (t->occurrences == 0)
        return;
    m->min_ps = m->occurrences == 0 || t->min_ps < m->min_ps ? t->min_ps : m->min_ps;
    m->max_ps = t->max_ps > m->max_ps ? t->max_ps : m->max_ps;
    m->occurrences += t->occurrences;
    m->time_ps = op_add(m->time_ps, t->time_ps);
    m->self_ps = op_add(m->self_ps, t->self_ps);
    m->dma_stall_ps = op_add(m->dma_stall_ps, t->dma_stall_ps);
    m->normalized_ps += t->normalized_ps;
}

bool op_metrics_describe(struct op_db *db, struct op_metrics *m, const struct hlo_program *program,
                         const struct hlo_instruction *in, struct err *e)
{
    m->module = &program->module;
    m->instruction = in;
    m->category = hlo_category(&program->module, in);
    m->deduplicated_name = in->deduplicated_name;
    hlo_source(&program->module, in, &m->source_file, &m->source_line);
    m->source_stack = hlo_stack(&program->module, in, db->arena);
    if (in->op_name.n > 0)
        m->provenance =
            arena_printf(db->arena, "%.*s:%.*s", STR_ARG(in->op_name), STR_ARG(in->op_type));
    if (!hlo_text(&program->module, in, db->arena, &m->long_name))
        return arena_full(db->arena, e);
    return true;
}

void op_metrics_add_cost(struct op_metrics *m, uint64_t n)
{
    if (m->instruction == NULL)
        return;
    const struct op_cost c = cost_of(m->module, m->instruction);
    m->has_cost = c.known;
    m->flops = op_add(m->flops, op_mul((uint64_t)c.device_flops, n));
    m->model_flops = op_add(m->model_flops, op_mul((uint64_t)c.flops, n));
    m->bytes = op_add(m->bytes, op_mul((uint64_t)c.bytes, n));
    m->read_bytes[OP_SPACE_HBM] =
        op_add(m->read_bytes[OP_SPACE_HBM], op_mul((uint64_t)c.hbm_read, n));
    m->write_bytes[OP_SPACE_HBM] =
        op_add(m->write_bytes[OP_SPACE_HBM], op_mul((uint64_t)c.hbm_write, n));
    m->has_breakdown = m->has_breakdown || c.hbm_read > 0 || c.hbm_write > 0;
}

void op_metrics_add_operator(struct op_metrics *m, const struct torch_cost *c)
{
    m->has_cost = c->known && (m->has_cost || m->occurrences == 0);
    m->cost_is_own = m->has_breakdown = m->has_cost;
    if (!m->has_cost) {
        m->flops = m->model_flops = m->bytes = 0;
        m->read_bytes[OP_SPACE_HBM] = m->write_bytes[OP_SPACE_HBM] = 0;
        return;
    }
    m->flops = m->model_flops = op_add(m->flops, c->flops);
    m->bytes = op_add(m->bytes, op_add(c->read_bytes, c->write_bytes));
    m->read_bytes[OP_SPACE_HBM] = op_add(m->read_bytes[OP_SPACE_HBM], c->read_bytes);
    m->write_bytes[OP_SPACE_HBM] = op_add(m->write_bytes[OP_SPACE_HBM], c->write_bytes);
}

static enum op_backend backend_of(const struct profile *p)
{
    enum op_backend backend = OP_BACKEND_NONE;
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            const enum trace_plane_kind kind = p->traces[i]->planes[k].kind;
            if (kind == TRACE_PLANE_TPU)
                return OP_BACKEND_TPU;
            if (kind == TRACE_PLANE_GPU)
                backend = OP_BACKEND_GPU;
            else if (kind == TRACE_PLANE_HOST && backend == OP_BACKEND_NONE)
                backend = OP_BACKEND_CPU;
        }
    return backend;
}

static void note_devices(struct op_db *db, const struct trace *t)
{
    const enum trace_plane_kind kind =
        db->backend == OP_BACKEND_TPU ? TRACE_PLANE_TPU : TRACE_PLANE_GPU;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        if (t->planes[i].kind != kind)
            continue;
        if (db->n_devices++ == 0)
            db->device = device_info_of(&t->planes[i], db->arena);
    }
}

static bool collect_trace(struct op_db *db, const struct trace *t, struct grouping **g,
                          struct err *e)
{
    db->n_hosts++;
    note_devices(db, t);
    if (!hlo_index_add(&db->hlo, t, db->arena, e))
        return false;
    if (db->backend == OP_BACKEND_GPU || db->steps != NULL) {
        *g = ARENA_NEW(db->arena, struct grouping);
        if (*g == NULL)
            return arena_full(db->arena, e);
        if (!grouping_of(t, db->arena, *g, e))
            return false;
    }
    if (db->steps != NULL && !op_steps_enter(db->steps, t, *g, db, e))
        return false;
    switch (db->backend) {
    case OP_BACKEND_TPU:
        return op_collect_tpu(db, t, e);
    case OP_BACKEND_GPU:
        return op_collect_gpu(db, t, *g, e);
    case OP_BACKEND_CPU:
        return op_collect_cpu(db, t, e);
    case OP_BACKEND_NONE:
        break;
    }
    return true;
}

static int by_self(const void *x, const void *y)
{
    const struct op_metrics *a = x, *b = y;
    if (a->self_ps != b->self_ps)
        return a->self_ps > b->self_ps ? -1 : 1;
    const int names = str_cmp(a->name, b->name);
    if (names != 0)
        return names;
    return a->program_id < b->program_id ? -1 : a->program_id > b->program_id;
}

static bool build(struct op_db *db, const struct profile *p, str host, struct op_steps *steps,
                  struct arena *a, struct err *e)
{
    *db = (struct op_db){.arena = a, .backend = backend_of(p), .steps = steps};
    db->device.type = S("CPU");
    db->groupings = ARENA_ARRAY(a, struct grouping *, p->n_traces);
    bool ok = db->groupings != NULL || p->n_traces == 0 || arena_full(a, e);
    for (uint32_t i = 0; ok && i < p->n_traces; i++)
        if (host.n == 0 || str_eq(p->traces[i]->host, host))
            ok = collect_trace(db, p->traces[i], &db->groupings[i], e);
    if (!ok) {
        op_db_release(db);
        return false;
    }
    for (uint32_t i = 0; i < db->n_ops && db->backend != OP_BACKEND_TPU; i++)
        op_metrics_add_cost(&db->ops[i], db->ops[i].occurrences);
    if (db->n_ops > 1)
        qsort(db->ops, db->n_ops, sizeof *db->ops, by_self);
    for (uint32_t i = 0; i < db->n_ops; i++)
        db->self_ps = op_add(db->self_ps, db->ops[i].self_ps);
    if (db->backend == OP_BACKEND_TPU) /* a core runs one operation at a time */
        db->busy_ps = db->named_ps = db->self_ps;
    return true;
}

bool op_db_build(struct op_db *db, const struct profile *p, str host, struct arena *a,
                 struct err *e)
{
    return build(db, p, host, NULL, a, e);
}

bool op_db_build_steps(struct op_db *db, const struct profile *p, str host, struct arena *a,
                       struct err *e)
{
    struct op_steps *steps = ARENA_NEW(a, struct op_steps);
    *db = (struct op_db){0};
    return steps == NULL ? arena_full(a, e) : build(db, p, host, steps, a, e);
}

const struct op_step *op_db_steps(const struct op_db *db, uint32_t *n)
{
    *n = db->steps == NULL ? 0 : db->steps->n;
    return db->steps == NULL ? NULL : db->steps->items;
}

void op_db_values(const struct op_db *db, struct table *t)
{
    table_value(t, S("total_time_ps"), S("Device time"), cell_u64(db->total_ps), S("ps"));
    table_value(t, S("busy_time_ps"), S("Busy"), cell_u64(db->busy_ps), S("ps"));
    table_value(t, S("unnamed_time_ps"), S("Busy, of no operation"), cell_u64(op_db_unnamed_ps(db)),
                S("ps"));
    table_value(t, S("idle_time_ps"), S("Idle"), cell_u64(op_db_idle_ps(db)), S("ps"));
}

void op_db_release(struct op_db *db)
{
    op_steps_release(db->steps);
    hlo_index_release(&db->hlo);
    op_map_release(&db->by_key);
}

bool op_is_off_duty(str category)
{
    static const char *const words[] = {
        "infeed",          "outfeed",   "send",           "send-done", "recv",
        "recv-done",       "host send", "host send-done", "host recv", "host recv-done",
        "megacore fusion",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(category, str_from(words[i])))
            return true;
    return false;
}

double op_giga_rate(double amount, double time_ps)
{
    return time_ps > 0 ? amount * 1e3 / time_ps : 0;
}
