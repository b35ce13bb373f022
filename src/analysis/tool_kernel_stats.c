/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_stats: one row a kernel, launch shape and operation, by time. */
#include "analysis/datatable.h"
#include "analysis/kernels.h"
#include "analysis/tool.h"

#define XPROF_ROWS 1000 /* XProf shows so many */
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

static void declare_columns(struct table *t)
{
    table_column(t, S("kernel"), S("Kernel"), CELL_TEXT, S(""));
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    table_column(t, S("share_percent"), S("Share"), CELL_F64, S("%"));
    table_column(t, S("min_time_ps"), S("Shortest"), CELL_U64, S("ps"));
    table_column(t, S("average_time_ps"), S("Average"), CELL_F64, S("ps"));
    table_column(t, S("max_time_ps"), S("Longest"), CELL_U64, S("ps"));
    table_column(t, S("matrix_units"), S("Matrix units"), CELL_BOOL, S(""));
    table_column(t, S("matrix_units_possible"), S("Possible"), CELL_BOOL, S(""));
    table_column(t, S("occupancy_percent"), S("Occupancy"), CELL_F64, S("%"));
    table_column(t, S("registers_per_thread"), S("Registers"), CELL_U64, S(""));
    table_column(t, S("shared_memory_bytes"), S("Shared memory"), CELL_U64, S("bytes"));
    table_column(t, S("block"), S("Block"), CELL_TEXT, S(""));
    table_column(t, S("grid"), S("Grid"), CELL_TEXT, S(""));
}

static struct cell known_count(int64_t v)
{
    return v == KERNEL_UNKNOWN ? cell_unknown() : cell_u64((uint64_t)v);
}

static struct cell known_text(str v)
{
    return v.n > 0 ? cell_text(v) : cell_unknown();
}

static bool add_row(struct table *t, const struct kernels *all, const struct kernel *k)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(k->name);
    row[1] = known_text(k->op);
    row[2] = cell_u64(k->times.occurrences);
    row[3] = cell_u64(k->times.total_ps);
    if (all->total_ps > 0)
        row[4] = cell_f64(100.0 * (double)k->times.total_ps / (double)all->total_ps);
    row[5] = cell_u64(k->times.min_ps);
    row[6] = cell_f64((double)k->times.total_ps / (double)k->times.occurrences);
    row[7] = cell_u64(k->times.max_ps);
    if (k->matrix_units != MATRIX_UNITS_UNKNOWN)
        row[8] = cell_bool(k->matrix_units == MATRIX_UNITS_YES);
    if (k->is_framework_op || k->may_use_matrix_units)
        row[9] = cell_bool(k->may_use_matrix_units);
    if (k->launch.occupancy_percent > 0)
        row[10] = cell_f64(k->launch.occupancy_percent);
    row[11] = known_count(k->launch.registers_per_thread);
    row[12] = known_count(kernel_shared_bytes(&k->launch));
    row[13] = known_text(kernel_dims_text(k->launch.block, t->arena));
    row[14] = known_text(kernel_dims_text(k->launch.grid, t->arena));
    return true;
}

static void add_values(struct table *t, const struct kernels *k)
{
    table_value(t, S("kernel_time_ps"), S("Kernels"), cell_u64(k->total_ps), S("ps"));
    table_value(t, S("matrix_unit_time_ps"), S("On matrix units"), cell_u64(k->matrix_ps), S("ps"));
    table_value(t, S("unknown_unit_time_ps"), S("Where the name does not tell"),
                cell_u64(k->unknown_matrix_ps), S("ps"));
    table_value(t, S("devices"), S("GPUs"), cell_u64(k->n_devices), S(""));
}

static bool kernel_stats_run(const struct tool_request *r, struct arena *a, struct table **out,
                             struct err *e)
{
    struct kernels k;
    if (!kernels_of(r->profile, KERNELS_SUM_ALL, a, &k, e))
        return false;
    struct table *t = *out = table_new(a, S("kernel_stats"), S("Kernels"));
    if (t == NULL)
        return arena_full(a, e);
    declare_columns(t);
    for (uint32_t i = 0; i < k.n && add_row(t, &k, &k.items[i]); i++)
        continue;
    add_values(t, &k);
    if (k.n == 0)
        table_note(t, S("no_kernels"), 1, "no kernel of a GPU is in the profile");
    return true;
}

/* --- XProf's form ---------------------------------------------------------------------------- */

static const struct datatable_column xprof_columns[] = {
    {"rank", "Rank", "number"},
    {"kernel_name", "Kernel Name", "string"},
    {"registers_per_thread", "Registers per thread", "number"},
    {"shmem_bytes", "Shared Mem bytes", "number"},
    {"block_dim", "Block dim", "string"},
    {"grid_dim", "Grid dim", "string"},
    {"occupancy_pct", "Theoretical Occupancy %", "number"},
    {"is_op_tensor_core_eligible", "Op is TensorCore eligible", "boolean"},
    {"is_kernel_using_tensor_core", "Kernel uses TensorCore", "boolean"},
    {"op_name", "Op Name", "string"},
    {"occurrences", "Occurrences", "number"},
    {"total_duration_us", "Total Duration (\u03bcs)", "number"},
    {"avg_duration_us", "Avg Duration (\u03bcs)", "number"},
    {"min_duration_us", "Min Duration (\u03bcs)", "number"},
    {"max_duration_us", "Max Duration (\u03bcs)", "number"},
};

static void xprof_count(struct json *j, int64_t v)
{
    if (v != KERNEL_UNKNOWN) {
        datatable_number(j, (double)v);
        return;
    }
    json_object(j);
    json_key(j, "v");
    json_null(j);
    json_end(j);
}

/* XProf takes what is not said for 1,1,1. */
static void xprof_dims(struct json *j, const uint32_t dims[3], struct arena *a)
{
    const str text = kernel_dims_text(dims, a);
    datatable_text(j, text.n > 0 ? text : S("1,1,1"));
}

static void xprof_row(struct json *j, const struct kernel *k, uint32_t rank, struct arena *a)
{
    const struct kernel_times *t = &k->xprof;
    datatable_row(j);
    datatable_number(j, rank);
    datatable_text(j, k->name);
    xprof_count(j, k->launch.registers_per_thread);
    xprof_count(j, kernel_shared_bytes(&k->launch));
    xprof_dims(j, k->launch.block, a);
    xprof_dims(j, k->launch.grid, a);
    datatable_number(j, k->launch.occupancy_percent);
    datatable_bool(j, k->is_framework_op && k->may_use_matrix_units);
    datatable_bool(j, k->matrix_units == MATRIX_UNITS_YES);
    datatable_text(j, k->is_framework_op ? k->op : S(""));
    datatable_number(j, (double)t->occurrences);
    datatable_number(j, (double)t->total_ps / 1e6);
    datatable_number(j, (double)(t->total_ps / 1000 / t->occurrences) / 1e3);
    datatable_number(j, (double)t->min_ps / 1e6);
    datatable_number(j, (double)t->max_ps / 1e6);
    datatable_row_end(j);
}

static bool kernel_stats_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                               struct err *e)
{
    struct kernels k;
    struct json j;
    uint32_t rank = 0;
    if (!kernels_of(r->profile, KERNELS_SUM_PER_HOST, a, &k, e))
        return false;
    json_init_buf(&j, out);
    datatable_begin(&j, xprof_columns, COUNT(xprof_columns));
    for (uint32_t i = 0; i < k.n && rank < XPROF_ROWS; i++)
        if (k.items[i].has_details && k.items[i].xprof.occurrences > 0)
            xprof_row(&j, &k.items[i], ++rank, a);
    datatable_properties(&j);
    datatable_end(&j);
    return json_done(&j, e);
}

const struct tool_functions tool_kernel_stats = {.run = kernel_stats_run,
                                                 .xprof = kernel_stats_xprof};
