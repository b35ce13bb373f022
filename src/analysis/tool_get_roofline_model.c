/* SPDX-License-Identifier: Apache-2.0 */
/* get_roofline_model: the program and its longest operations beside the device's limits, as XProf's
 * command line prints them. Matrix products of libraries count with what their shapes tell. */
#include "analysis/op_brief.h"
#include "analysis/op_xprof.h"
#include "analysis/program_cost.h"
#include "analysis/roofline_cli.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#include <math.h>

#define OPERATIONS 15 /* XProf's, unless asked for more */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double known(double v, bool is_known)
{
    return is_known ? v : NAN;
}

static void write_rates(struct json *j, const struct op_rates *r, const struct device_info *d,
                        bool has_cost)
{
    xprof_cli_number(j, "operational_intensity_flop_per_byte",
                     known(r->intensity_of[OP_COMPUTE], has_cost), 4);
    xprof_cli_number(j, "bottleneck_operational_intensity_flop_per_byte",
                     known(op_bound_intensity(r), has_cost), 4);
    xprof_cli_number(j, "roofline_efficiency_percent",
                     known(100 * r->efficiency, r->bound != OP_RESOURCE_NONE), 2);
    xprof_cli_number(j, "compute_efficiency_percent",
                     known(100 * r->use[OP_COMPUTE], has_cost && op_peak(d, OP_COMPUTE) > 0), 2);
    xprof_cli_number(j, "max_mem_bw_utilization_percent",
                     known(100 * r->memory_use, op_has_memory_peak(d)), 2);
    xprof_cli_number(j, "optimal_flop_rate_gflops", known(r->optimal_giga_flops, has_cost), 2);
}

static void write_uses(struct json *j, const struct op_rates *r, const struct roofline *f)
{
    static const struct {
        enum op_resource r;
        const char *key;
    } memories[] = {
        {OP_HBM, "hbm_bw_utilization_percent"},
        {OP_CMEM_READ, "cmem_read_bw_utilization_percent"},
        {OP_CMEM_WRITE, "cmem_write_bw_utilization_percent"},
        {OP_VMEM_READ, "vmem_read_bw_utilization_percent"},
        {OP_VMEM_WRITE, "vmem_write_bw_utilization_percent"},
    };
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        xprof_cli_number(j, memories[i].key,
                         known(100 * r->use[memories[i].r], roofline_has_memory(f, memories[i].r)),
                         2);
}

static void write_semantics(struct json *j)
{
    json_key(j, "metric_semantics");
    json_object(j);
    json_kcstr(j, "measured_memory_bw_gibs",
               "bytes of all memories over the time; compare hbm_bw_gibs with the peak of HBM");
    json_kcstr(j, "max_mem_bw_utilization_percent", "of the memory that is used most");
    json_kcstr(j, "operational_intensity_flop_per_byte", "FLOP over the bytes of all memories");
    json_kcstr(j, "bound_by", "the resource that is used most");
    json_kcstr(j, "flops_provenance",
               "xla_cost_model; derived_from_shapes for matrix products of libraries; mixed; "
               "opaque_custom_call where nothing is known");
    json_kcstr(j, "derived_flops_fraction", "of the program's FLOP, told from shapes");
    json_kcstr(j, "has_opaque_custom_calls", "true where a custom call's FLOP are not known");
    json_end(j);
}

static void write_program(struct json *j, const struct roofline *f, const struct program_cost *p)
{
    const struct op_rates r = op_rates_of(&p->work, f->whole.time_ps, &f->db.device);
    const bool bound = r.bound != OP_RESOURCE_NONE;
    json_key(j, "program");
    json_object(j);
    json_kstr(j, "bound_by", op_resource_name(&f->db.device, r.bound));
    xprof_cli_number(j, "bound_by_ridge_point_flop_per_byte",
                     known(bound && r.bound != OP_COMPUTE ? op_ridge(&f->db.device, r.bound) : 0,
                           bound && r.bound != OP_COMPUTE),
                     4);
    write_rates(j, &r, &f->db.device, p->work.has_cost);
    xprof_cli_number(j, "dma_stall_percent",
                     100 * ratio((double)p->work.dma_stall_ps, (double)f->whole.time_ps), 2);
    xprof_cli_number(j, "measured_flop_rate_gflops", r.rate[OP_COMPUTE], 2);
    xprof_cli_number(j, "model_flop_rate_gflops", r.model_giga_flops, 2);
    xprof_cli_number(j, "measured_memory_bw_gibs", r.gib, 2);
    xprof_cli_number(j, "hbm_bw_gibs", r.rate[OP_HBM], 2);
    write_uses(j, &r, f);
    xprof_cli_number(j, "total_time_ms", (double)f->whole.time_ps / 1e9, 3);
    json_kcstr(j, "flops_provenance", program_provenance(p));
    write_semantics(j);
    json_kbool(j, "has_opaque_custom_calls", p->has_opaque);
    xprof_cli_number(j, "derived_flops_fraction",
                     ratio((double)p->derived_flops, (double)p->work.flops), 4);
    if (p->has_derived)
        json_kcstr(j, "bound_by_provenance", "recomputed_from_derived_custom_call_flops");
    json_end(j);
}

static void write_operation(struct json *j, const struct roofline *f, const struct op_metrics *m,
                            uint32_t rank, struct arena *a)
{
    const struct op_costed x = op_costed_of(m);
    const struct op_rates r = op_rates_of(&x.work, m->time_ps, &f->db.device);
    json_object(j);
    json_ku64(j, "rank", rank);
    json_kstr(j, "name", op_xprof_name(m));
    json_kstr(j, "category", m->category);
    xprof_cli_number(j, "total_self_time_ms", (double)m->self_ps / 1e9, 3);
    xprof_cli_number(j, "total_self_time_percent",
                     100 * ratio((double)m->self_ps, (double)f->whole.time_ps), 2);
    write_rates(j, &r, &f->db.device, x.source != OP_COST_UNKNOWN);
    xprof_cli_number(j, "dma_stall_percent",
                     100 * ratio((double)m->dma_stall_ps, (double)m->time_ps), 2);
    json_kstr(j, "bound_by",
              x.source == OP_COST_UNKNOWN ? S("CustomCall (opaque)")
                                          : op_resource_name(&f->db.device, r.bound));
    json_kstr(j, "flops_provenance", op_cost_source_name(x.source));
    json_key(j, "hlo_module_id");
    json_strf(j, "%llu", (unsigned long long)m->program_id);
    json_kstr(j, "source_info", op_xprof_place(m, a));
    json_end(j);
}

static bool get_roofline_model_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                     struct err *e)
{
    struct roofline f;
    struct json j;
    uint64_t limit;
    if (!op_limit(r, S("top_n"), OPERATIONS, &limit, e) || !roofline_of(&f, r->profile, a, e))
        return false;
    const struct program_cost p = program_cost_of(&f.db);
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    write_program(&j, &f, &p);
    json_key(&j, "device_info");
    json_object(&j);
    roofline_device_members(&j, &f);
    json_end(&j);
    json_key(&j, "top_operations");
    json_array(&j);
    for (uint32_t i = 0; i < f.db.n_ops && i < limit; i++)
        write_operation(&j, &f, &f.db.ops[i], i + 1, a);
    json_end(&j);
    json_ku64(&j, "total_operations_analyzed", f.db.n_ops);
    xprof_cli_number(&j, "custom_call_share_pct",
                     100 * ratio((double)p.custom_call_ps, (double)f.whole.time_ps), 2);
    roofline_release(&f);
    return xprof_cli_end(&j, e) && (!a->overflow || arena_full(a, e));
}

static bool get_roofline_model_run(const struct tool_request *r, struct arena *a,
                                   struct table **out, struct err *e)
{
    uint64_t limit;
    const struct tool_request all = {.profile = r->profile, .whole = r->whole};
    if (!op_limit(r, S("top_n"), OPERATIONS, &limit, e) ||
        !tool_roofline_model.run(&all, a, out, e))
        return false;
    if ((*out)->n_rows > limit)
        (*out)->n_rows = (uint32_t)limit;
    return true;
}

const struct tool_functions tool_get_roofline_model = {.run = get_roofline_model_run,
                                                       .xprof = get_roofline_model_xprof};
