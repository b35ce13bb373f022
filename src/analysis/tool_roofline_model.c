/* SPDX-License-Identifier: Apache-2.0 */
/* roofline_model: every operation, and the program in each step, beside the device's limits. */
#include "analysis/roofline.h"
#include "analysis/tool.h"

static bool read_feeds(const struct tool_request *r, enum roofline_feeds *feeds, struct err *e)
{
    const str v = tool_param(r, S("include_infeed_outfeed"));
    *feeds = str_eq(v, S("false")) ? ROOFLINE_WITHOUT_FEEDS : ROOFLINE_WITH_FEEDS;
    if (v.n > 0 && !str_eq(v, S("false")) && !str_eq(v, S("true")))
        return err_set(e, ERR_USAGE, "include_infeed_outfeed is '%.*s'; it may be true or false",
                       STR_ARG(v));
    return true;
}

static struct cell known(double v, bool is_known)
{
    return is_known ? cell_f64(v) : cell_unknown();
}

enum { RATES = 10 }; /* columns of add_rates */

static void declare_rates(struct table *t)
{
    table_column(t, S("bound_by"), S("Bound by"), CELL_TEXT, S(""));
    table_column(t, S("roofline_percent"), S("Of the roofline"), CELL_F64, S("%"));
    table_column(t, S("flops_per_s"), S("FLOP rate"), CELL_F64, S("FLOP/s"));
    table_column(t, S("flops_utilization_percent"), S("FLOP use"), CELL_F64, S("%"));
    table_column(t, S("optimal_flops_per_s"), S("FLOP rate at best"), CELL_F64, S("FLOP/s"));
    table_column(t, S("bytes_per_s"), S("Memory rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("hbm_bytes_per_s"), S("HBM rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("memory_utilization_percent"), S("Memory use"), CELL_F64, S("%"));
    table_column(t, S("intensity_flops_per_byte"), S("FLOP a byte"), CELL_F64, S(""));
    table_column(t, S("bound_intensity_flops_per_byte"), S("FLOP a byte of what bounds"), CELL_F64,
                 S(""));
}

static void add_rates(struct cell *row, const struct op_metrics *m, uint64_t time_ps,
                      const struct device_info *d)
{
    const struct op_rates r = op_rates_of(m, time_ps, d);
    const bool has_peak = op_peak(d, OP_COMPUTE) > 0, has_time = time_ps > 0;
    const bool has_bytes = has_time && (m->has_cost || m->bytes > 0);
    const bool bound = r.bound != OP_RESOURCE_NONE;
    if (bound)
        row[0] = cell_text(op_resource_name(d, r.bound));
    row[1] = known(100 * r.efficiency, bound);
    row[2] = known(r.rate[OP_COMPUTE] * 1e9, m->has_cost && has_time);
    row[3] = known(100 * r.use[OP_COMPUTE], m->has_cost && has_time && has_peak);
    row[4] = known(r.optimal_giga_flops * 1e9, m->has_cost && bound);
    row[5] = known(r.gib * BYTES_PER_GIB, has_bytes);
    row[6] = known(r.rate[OP_HBM] * BYTES_PER_GIB, has_bytes);
    row[7] = known(100 * r.memory_use, has_bytes && op_peak(d, OP_HBM) > 0);
    row[8] = known(r.intensity_of[OP_COMPUTE], m->has_cost && m->bytes > 0);
    row[9] = known(op_bound_intensity(&r), m->has_cost && bound);
}

static void declare_columns(struct table *t)
{
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("self_share_percent"), S("Self share"), CELL_F64, S("%"));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    declare_rates(t);
    table_column(t, S("program_id"), S("Program"), CELL_U64, S(""));
    table_column(t, S("source"), S("Source"), CELL_TEXT, S(""));
}

static bool add_operation(struct table *t, const struct roofline *f, const struct op_metrics *m,
                          enum roofline_feeds feeds)
{
    const uint64_t whole = roofline_time_ps(&f->whole, feeds);
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(m->name);
    row[1] = m->category.n > 0 ? cell_text(m->category) : cell_unknown();
    row[2] = cell_u64(m->occurrences);
    row[3] = cell_u64(m->self_ps);
    row[4] = known(100.0 * (double)m->self_ps / (double)whole, whole > 0);
    row[5] = cell_u64(m->time_ps);
    add_rates(row + 6, m, m->time_ps, &f->db.device);
    row[6 + RATES] = m->program_id > 0 ? cell_u64(m->program_id) : cell_unknown();
    if (m->source_file.n > 0)
        row[7 + RATES] = cell_text(arena_printf(t->arena, "%.*s:%lld", STR_ARG(m->source_file),
                                                (long long)m->source_line));
    return true;
}

/* The program as a whole, and in each step. */
static struct table *parts_table(const struct roofline *f, enum roofline_feeds feeds,
                                 struct arena *a)
{
    struct table *t = table_new(a, S("roofline_program"), S("The program"));
    if (t == NULL)
        return NULL;
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("core_time_ps"), S("Time of all cores"), CELL_U64, S("ps"));
    table_column(t, S("self_time_ps"), S("In operations"), CELL_U64, S("ps"));
    declare_rates(t);
    for (uint32_t i = 0; i <= f->n_steps; i++) {
        const struct roofline_part *p = i == 0 ? &f->whole : &f->steps[i - 1];
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        if (p->step != NULL)
            row[0] = cell_i64(p->step->number);
        row[1] = cell_u64(roofline_time_ps(p, feeds));
        row[2] = cell_u64(roofline_sum(p, feeds)->self_ps);
        add_rates(row + 3, roofline_sum(p, feeds), roofline_time_ps(p, feeds), &f->db.device);
    }
    return t;
}

/* The device's limits; a ridge is the FLOP a byte from which on compute binds. */
static void add_limits(struct table *t, const struct roofline *f)
{
    static const struct {
        enum op_resource r;
        str peak, peak_title, ridge, ridge_title;
    } memories[] = {
        {OP_HBM, STR_INIT("peak_hbm_bytes_per_s"), STR_INIT("Peak HBM rate"),
         STR_INIT("hbm_ridge_flops_per_byte"), STR_INIT("Ridge of HBM")},
        {OP_CMEM_READ, STR_INIT("peak_cmem_read_bytes_per_s"), STR_INIT("Peak CMEM read rate"),
         STR_INIT("cmem_read_ridge_flops_per_byte"), STR_INIT("Ridge of CMEM reads")},
        {OP_CMEM_WRITE, STR_INIT("peak_cmem_write_bytes_per_s"), STR_INIT("Peak CMEM write rate"),
         STR_INIT("cmem_write_ridge_flops_per_byte"), STR_INIT("Ridge of CMEM writes")},
        {OP_VMEM_READ, STR_INIT("peak_vmem_read_bytes_per_s"), STR_INIT("Peak VMEM read rate"),
         STR_INIT("vmem_read_ridge_flops_per_byte"), STR_INIT("Ridge of VMEM reads")},
        {OP_VMEM_WRITE, STR_INIT("peak_vmem_write_bytes_per_s"), STR_INIT("Peak VMEM write rate"),
         STR_INIT("vmem_write_ridge_flops_per_byte"), STR_INIT("Ridge of VMEM writes")},
    };
    const struct device_info *d = &f->db.device;
    const double flops = op_peak(d, OP_COMPUTE);
    table_value(t, S("device"), S("Device"), cell_text(d->type), S(""));
    table_value(t, S("devices"), S("Devices"), cell_u64(f->n_devices), S(""));
    table_value(t, S("peak_flops_per_s"), S("Peak FLOP rate"), known(flops * 1e9, flops > 0),
                S("FLOP/s"));
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        const double peak = op_peak(d, memories[i].r), ridge = op_ridge(d, memories[i].r);
        if (peak <= 0 && memories[i].r != OP_HBM)
            continue; /* the device has no such memory */
        table_value(t, memories[i].peak, memories[i].peak_title,
                    known(peak * BYTES_PER_GIB, peak > 0), S("bytes/s"));
        table_value(t, memories[i].ridge, memories[i].ridge_title, known(ridge, ridge > 0), S(""));
    }
    if (d->derived && flops > 0)
        table_note(t, S("peaks_derived"), 1,
                   "the peaks are derived from clock, cores and compute capability");
}

static void add_notes(struct table *t, const struct roofline *f)
{
    uint64_t n_unknown = 0;
    for (uint32_t i = 0; i < f->db.n_ops; i++)
        n_unknown += !f->db.ops[i].has_cost && !op_runs_others(&f->db.ops[i]);
    if (n_unknown > 0)
        table_note(t, S("cost_unknown"), n_unknown,
                   "operations of unknown cost add time but no FLOP to the program");
    if (f->db.hlo.n_damaged > 0)
        table_note(t, S("hlo_damaged"), f->db.hlo.n_damaged, "HLO modules could not be read");
    if (f->n_steps == 0)
        table_note(t, S("no_steps"), 1, "no step marker: the program is not split into steps");
}

static bool roofline_model_run(const struct tool_request *r, struct arena *a, struct table **out,
                               struct err *e)
{
    struct roofline f;
    enum roofline_feeds feeds;
    if (!read_feeds(r, &feeds, e) || !roofline_of(&f, r->profile, a, e))
        return false;
    struct table *t = *out = table_new(a, S("roofline_model"), S("Roofline"));
    if (t != NULL) {
        declare_columns(t);
        for (uint32_t i = 0; i < f.db.n_ops; i++)
            if (roofline_shows(&f.db.ops[i], feeds) && !add_operation(t, &f, &f.db.ops[i], feeds))
                break;
        add_limits(t, &f);
        add_notes(t, &f);
        device_memory_note(&f.db.device, t);
        t->next = parts_table(&f, feeds, a);
    }
    roofline_release(&f);
    return (t != NULL && t->next != NULL) || arena_full(a, e);
}

static bool roofline_model_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                 struct err *e)
{
    struct roofline f;
    struct buf scratch;
    struct json j;
    if (!roofline_of(&f, r->profile, a, e))
        return false;
    buf_init(&scratch, out->cap);
    json_init_buf(&j, out);
    roofline_xprof(&f, &j, &scratch);
    buf_release(&scratch);
    roofline_release(&f);
    return json_done(&j, e);
}

const struct tool_functions tool_roofline_model = {.run = roofline_model_run,
                                                   .xprof = roofline_model_xprof};
