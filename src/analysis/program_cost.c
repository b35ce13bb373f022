/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/program_cost.h"

struct op_costed op_costed_of(const struct op_metrics *m)
{
    struct op_costed x = {.work = *m};
    uint64_t flops, bytes;
    x.source = op_cost_source_of(m, &flops, &bytes);
    if (x.source == OP_COST_SHAPES) {
        x.work.flops = flops;
        x.work.bytes = bytes;
        x.work.has_cost = true;
        x.work.has_breakdown = false;
    }
    return x;
}

struct program_cost program_cost_of(const struct op_db *db)
{
    struct program_cost p = {0};
    for (uint32_t i = 0; i < db->n_ops; i++) {
        const struct op_metrics *m = &db->ops[i];
        const struct op_costed x = op_costed_of(m);
        p.work.dma_stall_ps = op_add(p.work.dma_stall_ps, m->dma_stall_ps);
        p.has_opaque |= x.source == OP_COST_UNKNOWN;
        p.custom_call_ps = op_add(p.custom_call_ps, op_is_custom_call(m) ? m->self_ps : 0);
        if (op_runs_others(m))
            continue;
        op_work_add(&p.work, &x.work, 1);
        if (x.source == OP_COST_SHAPES) {
            p.has_derived = true;
            p.derived_flops = op_add(p.derived_flops, x.work.flops);
        }
    }
    return p;
}

const char *program_provenance(const struct program_cost *p)
{
    if (p->has_derived)
        return p->derived_flops == p->work.flops && !p->has_opaque ? "derived_from_shapes"
                                                                   : "mixed";
    return !p->has_opaque ? "xla_cost_model" : p->work.flops > 0 ? "mixed" : "opaque_custom_call";
}
