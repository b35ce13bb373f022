/* SPDX-License-Identifier: Apache-2.0 */
/* get_device_information: what the device could do at most. */
#include "analysis/roofline_cli.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

static const struct {
    enum op_resource r;
    const char *peak, *ridge;
    bool not_gpu;
} memories[] = {
    {OP_HBM, "peak_hbm_bw_gibs", "hbm_ridge_point", false},
    {OP_VMEM_READ, "peak_vmem_read_bw_gibs", "vmem_read_ridge_point", true},
    {OP_VMEM_WRITE, "peak_vmem_write_bw_gibs", "vmem_write_ridge_point", false},
    {OP_CMEM_READ, "peak_cmem_read_bw_gibs", "cmem_read_ridge_point", true},
    {OP_CMEM_WRITE, "peak_cmem_write_bw_gibs", "cmem_write_ridge_point", true},
};

static bool has(const struct roofline *f, uint32_t i)
{
    return !memories[i].not_gpu || !f->db.device.is_gpu;
}

static void limit(struct json *j, const char *key, double v)
{
    if (v > 0)
        json_kf64(j, key, v);
    else
        json_knull(j, key);
}

static void units(struct json *j, const struct roofline *f)
{
    json_key(j, "units");
    json_object(j);
    for (uint32_t i = 0; i < COUNT(memories); i++)
        if (has(f, i)) {
            json_kcstr(j, memories[i].peak, "GiB/s");
            json_kcstr(j, memories[i].ridge, "FLOP/byte");
        }
    json_kcstr(j, "peak_flop_rate", "GFLOP/s");
    json_end(j);
}

void roofline_device_members(struct json *j, const struct roofline *f)
{
    const struct device_info *d = &f->db.device;
    json_kstr(j, "device_type", d->type);
    limit(j, "peak_flop_rate", op_peak(d, OP_COMPUTE));
    for (uint32_t i = 0; i < COUNT(memories); i++)
        if (has(f, i)) {
            const bool shown = roofline_has_memory(f, memories[i].r);
            limit(j, memories[i].peak, shown ? op_peak(d, memories[i].r) : 0);
            limit(j, memories[i].ridge, shown ? op_ridge(d, memories[i].r) : 0);
        }
    if (!d->is_gpu) {
        json_ku64(j, "has_cmem", roofline_has_memory(f, OP_CMEM_READ));
        json_ku64(j, "has_merged_vmem", f->has_merged_vmem);
        json_ku64(j, "megacore", f->has_megacore);
        limit(j, "time_scale_multiplier", d->is_tpu ? f->clock_scale : 0);
    }
    units(j, f);
}

struct table *roofline_device_table(const struct roofline *f, struct arena *a)
{
    const struct device_info *d = &f->db.device;
    struct table *t = table_new(a, S("device_information"), S("Limits of the device"));
    if (t == NULL)
        return NULL;
    table_column(t, S("resource"), S("Resource"), CELL_TEXT, S(""));
    table_column(t, S("peak_flops_per_s"), S("Peak"), CELL_F64, S("FLOP/s"));
    table_column(t, S("peak_bytes_per_s"), S("Peak rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("ridge_flops_per_byte"), S("Ridge (FLOP a byte)"), CELL_F64, S(""));
    for (enum op_resource r = OP_COMPUTE; r < OP_RESOURCES; r++) {
        const double peak = op_peak(d, r), ridge = op_ridge(d, r);
        if (peak <= 0 && r > OP_HBM)
            continue; /* the device has no such memory */
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        row[0] = cell_text(op_resource_name(d, r));
        if (peak > 0)
            row[r == OP_COMPUTE ? 1 : 2] =
                cell_f64(r == OP_COMPUTE ? peak * 1e9 : peak * BYTES_PER_GIB);
        if (r != OP_COMPUTE && ridge > 0)
            row[3] = cell_f64(ridge);
    }
    table_value(t, S("device"), S("Device"), cell_text(d->type), S(""));
    table_value(t, S("devices"), S("Devices"), cell_u64(f->n_devices), S(""));
    table_value(t, S("peaks_derived"), S("Derived from clock and cores"), cell_bool(d->derived),
                S(""));
    return t;
}

static bool get_device_information_run(const struct tool_request *r, struct arena *a,
                                       struct table **out, struct err *e)
{
    struct roofline f;
    if (!roofline_of(&f, r->profile, a, e))
        return false;
    *out = roofline_device_table(&f, a);
    roofline_release(&f);
    return *out != NULL || arena_full(a, e);
}

static bool get_device_information_xprof(const struct tool_request *r, struct arena *a,
                                         struct buf *out, struct err *e)
{
    struct roofline f;
    struct json j;
    if (!roofline_of(&f, r->profile, a, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    roofline_device_members(&j, &f);
    roofline_release(&f);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_device_information = {.run = get_device_information_run,
                                                           .xprof = get_device_information_xprof};
