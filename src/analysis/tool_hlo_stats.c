/* SPDX-License-Identifier: Apache-2.0 */
/* hlo_stats: one row an HLO operation, by self time. Formulas: XProf's op_metrics_to_record. */
#include "analysis/datatable.h"
#include "analysis/op_rates.h"
#include "analysis/op_xprof.h"
#include "analysis/tool.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

static bool is_rematerialized(const struct op_metrics *m)
{
    return str_find(m->long_name, S(".remat")) >= 0 || str_find(m->provenance, S("rematted")) >= 0;
}

/* Work for the host in the middle of a program. */
static bool is_outside(const struct op_metrics *m)
{
    return str_ends(m->provenance, S(":XlaSendToHost")) ||
           (str_find(m->long_name, S("send-done")) >= 0 &&
            str_find(m->long_name, S("is_host_transfer=true")) >= 0);
}

/* --- our own tables ------------------------------------------------------------------------- */

static void declare_columns(struct table *t)
{
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("self_share_percent"), S("Self share"), CELL_F64, S("%"));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    table_column(t, S("flops_per_s"), S("FLOP rate"), CELL_F64, S("FLOP/s"));
    table_column(t, S("bytes_per_s"), S("Memory rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("bound_by"), S("Bound by"), CELL_TEXT, S(""));
    table_column(t, S("source"), S("Source"), CELL_TEXT, S(""));
    table_column(t, S("framework_name"), S("Framework name"), CELL_TEXT, S(""));
    table_column(t, S("program_id"), S("Program"), CELL_U64, S(""));
}

static bool add_row(struct table *t, const struct op_db *db, const struct op_metrics *m)
{
    const struct op_rates r = op_rates_of(m, m->time_ps, &db->device);
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(m->name);
    row[1] = m->category.n > 0 ? cell_text(m->category) : cell_unknown();
    row[2] = cell_u64(m->occurrences);
    row[3] = cell_u64(m->self_ps);
    row[4] = db->total_ps > 0 ? cell_f64(100.0 * (double)m->self_ps / (double)db->total_ps)
                              : cell_unknown();
    row[5] = cell_u64(m->time_ps);
    row[6] = m->has_cost ? cell_f64(r.model_giga_flops * 1e9) : cell_unknown();
    row[7] = m->bytes > 0 ? cell_f64(r.gib * BYTES_PER_GIB) : cell_unknown();
    row[8] = r.bound == OP_RESOURCE_NONE ? cell_unknown()
                                         : cell_text(op_resource_name(&db->device, r.bound));
    if (m->source_file.n > 0)
        row[9] = cell_text(arena_printf(t->arena, "%.*s:%lld", STR_ARG(m->source_file),
                                        (long long)m->source_line));
    if (m->provenance.n > 0)
        row[10] = cell_text(m->provenance);
    row[11] = m->program_id > 0 ? cell_u64(m->program_id) : cell_unknown();
    return true;
}

static bool hlo_stats_run(const struct tool_request *r, struct arena *a, struct table **out,
                          struct err *e)
{
    struct op_db db;
    if (!op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    struct table *t = *out = table_new(a, S("hlo_stats"), S("Operations"));
    if (t != NULL) {
        declare_columns(t);
        for (uint32_t i = 0; i < db.n_ops && add_row(t, &db, &db.ops[i]); i++)
            continue;
        op_db_values(&db, t);
        device_memory_note(&db.device, t);
        if (db.hlo.n_damaged > 0)
            table_note(t, S("hlo_damaged"), db.hlo.n_damaged, "HLO modules could not be read");
    }
    op_db_release(&db);
    return t != NULL || arena_full(a, e);
}

/* --- XProf's form ---------------------------------------------------------------------------- */

static const struct datatable_column xprof_columns[] = {
    {"rank", "Rank", "number"},
    {"program_id", "Program id", "string"},
    {"category", "HLO op category", "string"},
    {"hlo_op_name", "HLO op name", "string"},
    {"hlo_op_expression", "HLO op text", "string"},
    {"tf_op_name", "Framework op name", "string"},
    {"occurrences", "#Occurrences", "number"},
    {"total_time", "Total time (us)", "number"},
    {"avg_time", "Avg. time (us)", "number"},
    {"total_self_time", "Total self time (us)", "number"},
    {"avg_self_time", "Avg. self time (us)", "number"},
    {"total_self_time_percent", "Total self time (%)", "number"},
    {"cumulative_total_self_time_percent", "Cumulative total self time (%)", "number"},
    {"dma_stall_percent", "%time stalled by DMA", "number"},
    {"model_flop_rate", "Model GFLOP/s", "number"},
    {"normalized_flop_rate", "Normalized GFLOP/s", "number"},
    {"measured_memory_bw", "Measured memory BW (GiB/s)", "number"},
    {"hbm_bw", "HBM BW (GiB/s)", "number"},
    {"cmem_read_bw", "CMEM Read BW (GiB/s)", "number"},
    {"cmem_write_bw", "CMEM Write BW (GiB/s)", "number"},
    {"operational_intensity", "Operational intensity (FLOPS/Byte)", "number"},
    {"bound_by", "Bound by", "string"},
    {"hlo_rematerialization", "Rematerialization", "string"},
    {"outside_compilation", "Outside Compilation", "string"},
    {"autotuned", "Autotuned", "string"},
    {"source_info", "Source Info", "string"},
    {"core_type", "TPU core type", "string"},
    {"parent_op_name", "Parent op name", "string"},
    {"vdd_energy", "VDD Energy (J)", "number"},
};

static void xprof_rates(struct json *j, const struct op_db *db, const struct op_metrics *m)
{
    const struct op_rates r = op_rates_of(m, m->time_ps, &db->device);
    datatable_number(j, r.model_giga_flops);
    datatable_number(j, r.rate[OP_COMPUTE]);
    datatable_number(j, r.gib);
    datatable_number(j, r.rate[OP_HBM]);
    datatable_number(j, r.rate[OP_CMEM_READ]);
    datatable_number(j, r.rate[OP_CMEM_WRITE]);
    datatable_number(j, r.intensity_of[OP_COMPUTE]);
    datatable_text(j, op_resource_name(&db->device, r.bound));
}

static void xprof_row(struct json *j, const struct op_db *db, const struct op_metrics *m,
                      uint32_t rank, double *cumulative, struct buf *scratch)
{
    const double n = m->occurrences > 0 ? (double)m->occurrences : 1;
    const double share = db->total_ps > 0 ? 100.0 * (double)m->self_ps / (double)db->total_ps : 0;
    *cumulative += share;
    datatable_row(j);
    datatable_number(j, rank);
    buf_clear(scratch);
    buf_addf(scratch, "%llu", (unsigned long long)m->program_id);
    datatable_text(j, buf_str(scratch));
    datatable_text(j, m->category);
    datatable_text(j, op_xprof_name(m));
    datatable_text(j, m->long_name.n > 0 ? m->long_name : m->name);
    datatable_text(j, m->provenance);
    datatable_number(j, (double)m->occurrences);
    datatable_number(j, (double)m->time_ps / 1e6);
    datatable_number(j, (double)m->time_ps / 1e6 / n);
    datatable_number(j, (double)m->self_ps / 1e6);
    datatable_number(j, (double)m->self_ps / 1e6 / n);
    datatable_number(j, share);
    datatable_number(j, *cumulative);
    datatable_number(j, m->time_ps > 0 ? (double)m->dma_stall_ps / (double)m->time_ps : 0);
    xprof_rates(j, db, m);
    datatable_text(j, is_rematerialized(m) ? S("Yes") : S("No"));
    datatable_text(j, is_outside(m) ? S("Yes") : S("No"));
    datatable_text(j, S("No"));
    datatable_text(j, op_xprof_source(m, scratch));
    datatable_text(j, op_xprof_core(m));
    datatable_text(j, S(""));
    datatable_number(j, 0);
    datatable_row_end(j);
}

static bool hlo_stats_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                            struct err *e)
{
    struct op_db db;
    struct buf scratch;
    struct json j;
    double cumulative = 0;
    if (!op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    buf_init(&scratch, out->cap);
    json_init_buf(&j, out);
    datatable_begin(&j, xprof_columns, COUNT(xprof_columns));
    for (uint32_t i = 0; i < db.n_ops; i++)
        xprof_row(&j, &db, &db.ops[i], i + 1, &cumulative, &scratch);
    datatable_properties(&j);
    datatable_end(&j);
    buf_release(&scratch);
    op_db_release(&db);
    return json_done(&j, e);
}

const struct tool_functions tool_hlo_stats = {.run = hlo_stats_run, .xprof = hlo_stats_xprof};
