/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/overview.h"

#include <math.h>

static bool measure(struct overview *o, struct arena *a, struct err *e)
{
    bool ok = true;
    o->host.arena = a;
    for (uint32_t i = 0; ok && i < o->profile->n_traces; i++)
        ok = host_ops_add(&o->host, o->profile->traces[i], e);
    host_ops_finish(&o->host);
    return ok && framework_rows_of(&o->db, a, &o->rows, e) &&
           pod_steps_of(o->profile, o->db.groupings, a, &o->pods, e) &&
           step_summary_of(&o->pods, o->db.backend, a, &o->steps, e);
}

bool overview_of(const struct profile *p, struct arena *a, struct overview *out, struct err *e)
{
    *out = (struct overview){.profile = p};
    if (!op_db_build(&out->db, p, (str){0}, a, e))
        return false;
    if (!measure(out, a, e)) {
        overview_release(out);
        return false;
    }
    out->cost = program_cost_of(&out->db);
    out->rates = op_rates_of(&out->cost.work, out->db.total_ps, &out->db.device);
    return true;
}

void overview_release(struct overview *o)
{
    op_db_release(&o->db);
}

/* A stat of the host's plane, NaN where no host says it. */
static double host_stat(const struct profile *p, str name)
{
    double v;
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            const struct trace_plane *plane = &p->traces[i]->planes[k];
            if (plane->kind == TRACE_PLANE_HOST &&
                trace_stat_f64(trace_stat_find(plane->stats, name), &v))
                return v;
        }
    return NAN;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : NAN;
}

static double use(const struct overview *o, enum op_resource r)
{
    return op_peak(&o->db.device, r) > 0 && o->cost.work.has_cost ? 100.0 * o->rates.use[r] : NAN;
}

struct overview_percents overview_percents_of(const struct overview *o)
{
    uint64_t n = 0, eager = 0;
    for (uint32_t i = 0; i < o->rows.n; i++) {
        n = op_add(n, o->rows.items[i].occurrences);
        eager = op_add(eager, o->rows.items[i].is_eager ? o->rows.items[i].self_ps : 0);
    }
    uint64_t host_self = 0, host_eager = 0;
    for (uint32_t i = 0; i < o->host.n; i++) {
        const struct host_op *op = &o->host.items[i];
        host_self = op_add(host_self, op->self_ps);
        host_eager = op_add(host_eager, op->is_eager ? op->self_ps : 0);
    }
    const double all = (double)n + (double)o->host.occurrences, total = (double)o->db.total_ps;
    const bool tpu = o->db.backend == OP_BACKEND_TPU;
    const bool bound = o->rates.bound != OP_RESOURCE_NONE;
    return (struct overview_percents){
        .device_ops = percent((double)n, all),
        .host_ops = percent((double)o->host.occurrences, all),
        .device_eager = percent((double)eager, (double)o->db.self_ps),
        .host_eager = percent((double)host_eager, (double)host_self),
        .device_idle = percent((double)op_db_idle_ps(&o->db), total),
        .host_idle =
            percent((double)(o->host.total_ps - o->host.busy_ps), (double)o->host.total_ps),
        .duty = tpu ? percent((double)o->db.duty_busy_ps,
                              (double)o->db.duty_busy_ps + (double)o->db.duty_idle_ps)
                    : percent((double)o->db.busy_ps, total),
        .mxu = host_stat(o->profile, S("matrix_unit_utilization_percent")),
        .hbm = host_stat(o->profile, S("hbm_utilization_percent")),
        .roofline = bound ? 100.0 * o->rates.efficiency : NAN,
        .memory = op_has_memory_peak(&o->db.device) ? 100.0 * o->rates.memory_use : NAN,
        .compute = use(o, OP_COMPUTE),
        .hbm_rate = use(o, OP_HBM),
        .custom_calls = percent((double)o->cost.custom_call_ps, total)};
}

static str machine_of(const struct trace *t)
{
    return t->n_hostnames > 0 ? t->hostnames[0] : t->host;
}

uint32_t overview_machines(const struct profile *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_traces; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = str_eq(machine_of(p->traces[i]), machine_of(p->traces[k]));
        n += !seen;
    }
    return n;
}

uint32_t overview_devices(const struct overview *o)
{
    const bool has_devices = o->db.backend == OP_BACKEND_GPU || o->db.backend == OP_BACKEND_TPU;
    return has_devices ? o->db.n_devices : 0;
}
