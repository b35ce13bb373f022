/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_rates.h"

double op_peak(const struct device_info *d, enum op_resource r)
{
    const double giga_bytes[OP_RESOURCES] = {
        [OP_HBM] = d->hbm_gb,
        [OP_CMEM_READ] = d->cmem_read_gb,
        [OP_CMEM_WRITE] = d->cmem_write_gb,
        [OP_VMEM_READ] = d->vmem_read_gb,
        [OP_VMEM_WRITE] = d->is_gpu ? d->sram_write_gb : d->vmem_write_gb,
    };
    return r == OP_COMPUTE ? d->peak_tera_flops * 1e3 : giga_bytes[r] * 1e9 / BYTES_PER_GIB;
}

bool op_has_memory_peak(const struct device_info *d)
{
    for (enum op_resource r = OP_HBM; r < OP_RESOURCES; r++)
        if (op_peak(d, r) > 0)
            return true;
    return false;
}

double op_ridge(const struct device_info *d, enum op_resource r)
{
    const double giga_bytes = op_peak(d, r) * BYTES_PER_GIB / 1e9;
    return giga_bytes > 0 ? op_peak(d, OP_COMPUTE) / giga_bytes : 0;
}

str op_resource_name(const struct device_info *d, enum op_resource r)
{
    static const str names[] = {STR_INIT("Compute"),   STR_INIT("HBM"),
                                STR_INIT("CMEM Read"), STR_INIT("CMEM Write"),
                                STR_INIT("VMEM Read"), STR_INIT("VMEM Write"),
                                STR_INIT("Unknown")};
    return r == OP_VMEM_WRITE && d->is_gpu ? S("Shm/L1") : names[r];
}

static uint64_t hbm_bytes(const struct op_metrics *m)
{
    return m->has_breakdown ? op_add(m->read_bytes[OP_SPACE_HBM], m->write_bytes[OP_SPACE_HBM])
                            : m->bytes;
}

struct op_rates op_rates_of(const struct op_metrics *m, uint64_t time_ps,
                            const struct device_info *d)
{
    const uint64_t bytes[OP_RESOURCES] = {
        [OP_COMPUTE] = m->bytes, /* for the intensity */
        [OP_HBM] = hbm_bytes(m),
        [OP_CMEM_READ] = m->read_bytes[OP_SPACE_CMEM],
        [OP_CMEM_WRITE] = m->write_bytes[OP_SPACE_CMEM],
        [OP_VMEM_READ] = m->read_bytes[OP_SPACE_VMEM],
        [OP_VMEM_WRITE] = m->write_bytes[OP_SPACE_VMEM],
    };
    const double time = (double)time_ps;
    struct op_rates r = {.model_giga_flops = op_giga_rate((double)m->model_flops, time),
                         .gib = op_giga_rate((double)m->bytes, time) * 1e9 / BYTES_PER_GIB,
                         .bound = OP_RESOURCE_NONE};
    for (enum op_resource i = OP_COMPUTE; i < OP_RESOURCES; i++) {
        const double peak = op_peak(d, i);
        r.rate[i] = i == OP_COMPUTE ? op_giga_rate((double)m->flops, time)
                                    : op_giga_rate((double)bytes[i], time) * 1e9 / BYTES_PER_GIB;
        r.use[i] = peak > 0 ? r.rate[i] / peak : 0;
        r.intensity_of[i] = bytes[i] > 0 ? (double)m->flops / (double)bytes[i] : 0;
        if (r.use[i] > r.efficiency) {
            r.efficiency = r.use[i];
            r.bound = i;
        }
        if (i != OP_COMPUTE && r.use[i] > r.memory_use)
            r.memory_use = r.use[i];
    }
    r.optimal_giga_flops = r.efficiency > 0 ? r.rate[OP_COMPUTE] / r.efficiency : 0;
    return r;
}

void op_work_add(struct op_metrics *sum, const struct op_metrics *x, uint64_t n)
{
    sum->flops = op_add(sum->flops, op_mul(x->flops, n));
    sum->model_flops = op_add(sum->model_flops, op_mul(x->model_flops, n));
    sum->bytes = op_add(sum->bytes, op_mul(x->bytes, n));
    for (unsigned space = 0; space < OP_SPACES; space++) {
        sum->read_bytes[space] = op_add(sum->read_bytes[space], op_mul(x->read_bytes[space], n));
        sum->write_bytes[space] = op_add(sum->write_bytes[space], op_mul(x->write_bytes[space], n));
    }
    if (!x->has_breakdown)
        sum->read_bytes[OP_SPACE_HBM] = op_add(sum->read_bytes[OP_SPACE_HBM], op_mul(x->bytes, n));
    sum->has_breakdown = true;
    sum->has_cost = sum->has_cost || x->has_cost;
}

bool op_is_feed(const struct op_metrics *m)
{
    return str_eq(m->category, S("infeed")) || str_eq(m->category, S("outfeed"));
}
