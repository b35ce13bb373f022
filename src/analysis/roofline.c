/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/roofline.h"

static void sum_up(struct op_metrics *sum, const struct op_metrics *m)
{
    sum->self_ps = op_add(sum->self_ps, m->self_ps);
    sum->dma_stall_ps = op_add(sum->dma_stall_ps, m->dma_stall_ps);
    if (!op_runs_others(m))
        op_work_add(sum, m, 1);
}

static void measure_whole(struct roofline *f)
{
    struct roofline_part *w = &f->whole;
    double normalized = 0, time = 0;
    w->time_ps = f->db.total_ps;
    for (uint32_t i = 0; i < f->db.n_ops; i++) {
        const struct op_metrics *m = &f->db.ops[i];
        normalized += m->normalized_ps;
        time += (double)m->time_ps;
        sum_up(&w->all, m);
        if (op_is_feed(m))
            w->feeds_ps = op_add(w->feeds_ps, m->self_ps);
        else
            sum_up(&w->work, m);
    }
    f->clock_scale = time > 0 ? normalized / time : 0;
}

static bool measure_steps(struct roofline *f, struct arena *a, struct err *e)
{
    const struct op_step *steps = op_db_steps(&f->db, &f->n_steps);
    f->steps = ARENA_ARRAY(a, struct roofline_part, f->n_steps);
    if (f->steps == NULL && f->n_steps > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < f->n_steps; i++) {
        struct roofline_part *s = &f->steps[i];
        *s = (struct roofline_part){.step = &steps[i],
                                    .time_ps = op_mul(steps[i].longest_ps, f->n_devices),
                                    .feeds_ps = steps[i].feeds.self_ps,
                                    .work = steps[i].work,
                                    .all = steps[i].work};
        op_work_add(&s->all, &steps[i].feeds, 1);
        s->all.self_ps = op_add(s->all.self_ps, steps[i].feeds.self_ps);
        s->all.dma_stall_ps = op_add(s->all.dma_stall_ps, steps[i].feeds.dma_stall_ps);
    }
    return true;
}

static bool says(const struct trace_plane *p, str name)
{
    int64_t v = 0;
    return trace_stat_i64(trace_stat_find(p->stats, name), &v) && v != 0;
}

static void look_at_planes(struct roofline *f, const struct profile *p)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            const struct trace_plane *plane = &p->traces[i]->planes[k];
            if (plane->kind != TRACE_PLANE_TPU)
                continue;
            f->has_megacore |= says(plane, S("has_megacore"));
            f->has_merged_vmem |= says(plane, S("has_merged_vmem"));
        }
}

bool roofline_of(struct roofline *out, const struct profile *p, struct arena *a, struct err *e)
{
    *out = (struct roofline){0};
    if (!op_db_build_steps(&out->db, p, (str){0}, a, e))
        return false;
    const uint32_t n =
        out->db.backend == OP_BACKEND_CPU ? out->db.n_cpu_devices : out->db.n_devices;
    out->n_devices = n > 0 ? n : 1;
    look_at_planes(out, p);
    measure_whole(out);
    if (measure_steps(out, a, e))
        return true;
    roofline_release(out);
    return false;
}

void roofline_release(struct roofline *f)
{
    op_db_release(&f->db);
}

bool roofline_has_memory(const struct roofline *f, enum op_resource r)
{
    const bool is_vmem = r == OP_VMEM_READ || r == OP_VMEM_WRITE;
    return op_peak(&f->db.device, r) > 0 &&
           !(f->db.device.is_tpu && is_vmem && !f->has_merged_vmem);
}
