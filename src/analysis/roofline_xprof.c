/* SPDX-License-Identifier: Apache-2.0 */
/* roofline_model as XProf's JSON: [operations, diagnostics]. */
#include "analysis/datatable.h"
#include "analysis/op_xprof.h"
#include "analysis/roofline.h"

#define XPROF_OPERATIONS 1000 /* the most that it lists */
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

static const struct {
    struct datatable_column column;
    bool not_gpu;
} columns[] = {
    {{"step", "Step", "string", NULL}, false},
    {{"rank", "Rank", "number", NULL}, false},
    {{"category", "Category", "string", NULL}, false},
    {{"operation", "Operation", "string", NULL}, false},
    {{"occurrences", "# Occurrences", "number", NULL}, false},
    {{"total_time", "Total Time (us)", "number", NULL}, false},
    {{"avg_time", "Avg. time (us)", "number", NULL}, false},
    {{"total_self_time", "Total self time (us)", "number", NULL}, false},
    {{"avg_self_time", "Avg. self time (us)", "number", NULL}, false},
    {{"total_self_time_percent", "Total self time (%)", "number", NULL}, false},
    {{"cumulative_total_self_time_percent", "Cumulative total self time (%)", "number", NULL},
     false},
    {{"dma_stall_percent", "%time stalled by DMA", "number", NULL}, true},
    {{"measured_flop_rate", "Normalized FLOP Rate (GFLOP/s)", "number", NULL}, false},
    {{"model_flop_rate", "Model FLOP Rate (GFLOP/s)", "number", NULL}, false},
    {{"measured_memory_bw", "Memory BW (GiB/s)", "number", NULL}, false},
    {{"hbm_bw", "HBM BW (GiB/s)", "number", NULL}, false},
    {{"cmem_read_bw", "CMEM Read BW (GiB/s)", "number", NULL}, true},
    {{"cmem_write_bw", "CMEM Write BW (GiB/s)", "number", NULL}, true},
    {{"vmem_read_bw", "VMEM Read BW (GiB/s)", "number", NULL}, true},
    {{"vmem_write_bw", "VMEM Write BW (GiB/s)", "number", NULL}, false},
    {{"operational_intensity", "Operational Intensity (FLOP/Byte)", "number", NULL}, false},
    {{"hbm_operational_intensity", "HBM Operational Intensity (FLOP/Byte)", "number", NULL}, false},
    {{"cmem_read_operational_intensity", "CMEM Read Operational Intensity (FLOP/Byte)", "number",
      NULL},
     true},
    {{"cmem_write_operational_intensity", "CMEM Write Operational Intensity (FLOP/Byte)", "number",
      NULL},
     true},
    {{"vmem_read_operational_intensity", "VMEM Read Operational Intensity (FLOP/Byte)", "number",
      NULL},
     true},
    {{"vmem_write_operational_intensity", "VMEM Write Operational Intensity (FLOP/Byte)", "number",
      NULL},
     false},
    {{"bottleneck_operational_intensity", "Bottleneck Operational Intensity (FLOP/Byte)", "number",
      NULL},
     false},
    {{"bound_by", "Bound by", "string", NULL}, false},
    {{"total_time_per_core", "Total Time per core (us)", "number", NULL}, false},
    {{"total_time_in_percentage", "Total Time (%)", "number", NULL}, false},
    {{"optimal_flop_rate", "Optimal FLOP Rate (GFLOP/s)", "number", NULL}, false},
    {{"roofline_efficiency", "Roofline efficiency (%)", "number", NULL}, false},
    {{"compute_efficiency", "FLOP Rate / Peak (%)", "number", NULL}, false},
    {{"max_mem_bw_utilization", "Max memory BW utilization (among supported memories) (%)",
      "number", NULL},
     false},
    {{"include_infeed_outfeed", "Include Infeed/Outfeed", "boolean", NULL}, false},
    {{"hlo_module_id", "Program ID", "string", NULL}, false},
    {{"source_info", "Source Info", "string", NULL}, false},
};

struct record {
    str step, category, operation;
    uint32_t rank;
    double occurrences, time_ps, self_ps, stall_ps;
    double self_share, cumulative, time_share; /* of 1 */
    uint64_t program_id;
    struct op_rates rates;
    enum roofline_feeds feeds;
    str source;
};

static void write_rates(struct json *j, const struct op_rates *r, bool gpu)
{
    datatable_number(j, r->rate[OP_COMPUTE]);
    datatable_number(j, r->model_giga_flops);
    datatable_number(j, r->gib);
    for (enum op_resource i = OP_HBM; i < OP_RESOURCES; i++)
        if (!gpu || i == OP_HBM || i == OP_VMEM_WRITE)
            datatable_number(j, r->rate[i]);
    for (enum op_resource i = OP_COMPUTE; i < OP_RESOURCES; i++)
        if (!gpu || i <= OP_HBM || i == OP_VMEM_WRITE)
            datatable_number(j, r->intensity_of[i]);
    datatable_number(j, op_bound_intensity(r));
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void write_record(struct json *j, const struct roofline *f, const struct record *x)
{
    const bool gpu = f->db.device.is_gpu;
    const double n = x->occurrences > 0 ? x->occurrences : 1;
    datatable_row(j);
    datatable_text(j, x->step);
    datatable_number(j, x->rank);
    datatable_text(j, x->category);
    datatable_text(j, x->operation);
    datatable_number(j, x->occurrences);
    datatable_number(j, x->time_ps / 1e6);
    datatable_number(j, x->time_ps / 1e6 / n);
    datatable_number(j, x->self_ps / 1e6);
    datatable_number(j, x->self_ps / 1e6 / n);
    datatable_number(j, x->self_share);
    datatable_number(j, x->cumulative);
    if (!gpu)
        datatable_number(j, ratio(x->stall_ps, x->time_ps));
    write_rates(j, &x->rates, gpu);
    datatable_text(j, op_resource_name(&f->db.device, x->rates.bound));
    datatable_number(j, x->time_ps / 1e6 / f->n_devices);
    datatable_number(j, x->time_share);
    datatable_number(j, x->rates.optimal_giga_flops);
    datatable_number(j, x->rates.efficiency);
    datatable_number(j, x->rates.use[OP_COMPUTE]);
    datatable_number(j, x->rates.memory_use);
    datatable_bool(j, x->feeds == ROOFLINE_WITH_FEEDS);
    char id[24];
    snprintf(id, sizeof id, "%llu", (unsigned long long)x->program_id);
    datatable_text(j, str_from(id));
    datatable_text(j, x->source);
    datatable_row_end(j);
}

/* The program as a whole; of n parts, their mean. */
static void write_program(struct json *j, const struct roofline *f, str step,
                          const struct roofline_part *p, uint32_t n, enum roofline_feeds feeds)
{
    const struct op_metrics *sum = roofline_sum(p, feeds);
    const uint64_t time_ps = roofline_time_ps(p, feeds);
    const struct record x = {.step = step,
                             .category = S("Program"),
                             .operation = S("Program"),
                             .occurrences = 1,
                             .time_ps = (double)time_ps / n,
                             .stall_ps = (double)sum->dma_stall_ps / n,
                             .time_share = time_ps > 0 ? 1 : 0,
                             .rates = op_rates_of(sum, time_ps, &f->db.device),
                             .feeds = feeds};
    write_record(j, f, &x);
}

static void write_operations(struct json *j, const struct roofline *f, enum roofline_feeds feeds,
                             struct buf *scratch)
{
    const double whole = (double)roofline_time_ps(&f->whole, feeds);
    double cumulative = 0;
    for (uint32_t i = 0, rank = 0; i < f->db.n_ops && rank < XPROF_OPERATIONS; i++) {
        const struct op_metrics *m = &f->db.ops[i];
        if (!roofline_shows(m, feeds))
            continue;
        const double share = ratio((double)m->self_ps, whole);
        cumulative += share;
        const struct record x = {.step = S("Total"),
                                 .category = m->category,
                                 .operation = op_xprof_name(m),
                                 .rank = ++rank,
                                 .occurrences = (double)m->occurrences,
                                 .time_ps = (double)m->time_ps,
                                 .self_ps = (double)m->self_ps,
                                 .stall_ps = (double)m->dma_stall_ps,
                                 .self_share = share,
                                 .cumulative = cumulative,
                                 .time_share = ratio((double)m->time_ps, whole),
                                 .program_id = m->program_id,
                                 .rates = op_rates_of(m, m->time_ps, &f->db.device),
                                 .feeds = feeds,
                                 .source = op_xprof_source(m, scratch)};
        write_record(j, f, &x);
    }
}

/* XProf's number of a step: its group, counted anew where several hosts are one. */
static long long shown_number(const struct roofline *f, uint32_t i, uint32_t first)
{
    const struct op_step *s = f->steps[i].step;
    if (f->db.backend == OP_BACKEND_GPU && f->db.n_hosts > 1)
        return i - first;
    return s->group >= 0 && f->db.backend != OP_BACKEND_CPU ? s->group : (long long)s->number;
}

static void write_steps(struct json *j, const struct roofline *f, enum roofline_feeds feeds)
{
    /* of more than five, the first and the last may be cut off by the profile's ends */
    const uint32_t cut = f->db.backend != OP_BACKEND_TPU && f->n_steps > 5 ? 1 : 0;
    struct roofline_part sum = {0};
    if (f->n_steps == 0)
        return;
    for (uint32_t i = cut; i < f->n_steps - cut; i++) {
        sum.time_ps = op_add(sum.time_ps, f->steps[i].time_ps);
        sum.feeds_ps = op_add(sum.feeds_ps, f->steps[i].feeds_ps);
        op_work_add(&sum.all, &f->steps[i].all, 1);
        op_work_add(&sum.work, &f->steps[i].work, 1);
    }
    write_program(j, f, S("Average"), &sum, f->n_steps - 2 * cut, feeds);
    for (uint32_t i = cut; i < f->n_steps - cut; i++) {
        char text[24];
        snprintf(text, sizeof text, "%lld", shown_number(f, i, cut));
        write_program(j, f, str_from(text), &f->steps[i], 1, feeds);
    }
}

static void property(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_strf(j, "%g", v);
}

static void write_properties(struct json *j, const struct roofline *f)
{
    static const struct {
        enum op_resource r;
        const char *peak, *ridge;
        bool not_gpu;
    } memories[] = {
        {OP_HBM, "peak_hbm_bw", "hbm_ridge_point", false},
        {OP_CMEM_READ, "peak_cmem_read_bw", "cmem_read_ridge_point", true},
        {OP_CMEM_WRITE, "peak_cmem_write_bw", "cmem_write_ridge_point", true},
        {OP_VMEM_READ, "peak_vmem_read_bw", "vmem_read_ridge_point", true},
        {OP_VMEM_WRITE, "peak_vmem_write_bw", "vmem_write_ridge_point", false},
    };
    const struct device_info *d = &f->db.device;
    json_kstr(j, "device_type", d->type);
    property(j, "peak_flop_rate", op_peak(d, OP_COMPUTE));
    for (uint32_t i = 0; i < COUNT(memories); i++) {
        if (memories[i].not_gpu && d->is_gpu)
            continue;
        const bool is_shown = roofline_has_memory(f, memories[i].r);
        property(j, memories[i].peak, is_shown ? op_peak(d, memories[i].r) : 0);
        property(j, memories[i].ridge, is_shown ? op_ridge(d, memories[i].r) : 0);
    }
    if (d->is_gpu)
        return;
    property(j, "has_cmem",
             roofline_has_memory(f, OP_CMEM_READ) || roofline_has_memory(f, OP_CMEM_WRITE));
    property(j, "has_merged_vmem", f->has_merged_vmem);
    property(j, "megacore", f->has_megacore);
    property(j, "time_scale_multiplier", f->db.backend == OP_BACKEND_TPU ? f->clock_scale : 0);
}

static void write_table(struct json *j, const struct roofline *f, struct buf *scratch)
{
    struct datatable_column shown[COUNT(columns)];
    uint32_t n = 0;
    for (uint32_t i = 0; i < COUNT(columns); i++)
        if (!f->db.device.is_gpu || !columns[i].not_gpu)
            shown[n++] = columns[i].column;
    datatable_begin(j, shown, n);
    for (int feeds = ROOFLINE_WITH_FEEDS; f->db.n_ops > 0 && feeds >= ROOFLINE_WITHOUT_FEEDS;
         feeds--) {
        write_program(j, f, S("Total"), &f->whole, 1, (enum roofline_feeds)feeds);
        write_operations(j, f, (enum roofline_feeds)feeds, scratch);
        write_steps(j, f, (enum roofline_feeds)feeds);
    }
    datatable_properties(j);
    write_properties(j, f);
    datatable_end(j);
}

void roofline_xprof(const struct roofline *f, struct json *j, struct buf *scratch)
{
    json_array(j);
    write_table(j, f, scratch);
    op_xprof_diagnostics(j, f->n_steps == 0 && f->db.backend != OP_BACKEND_CPU);
    json_end(j);
}
