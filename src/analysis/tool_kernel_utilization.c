/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_utilization: how well kernels fill the device they run on; get_kernel_utilization, a command of
 * XProf, is the same.
 *
 * GPU: a launch runs its blocks in waves of as many as the device holds at once: cores x (occupancy x
 * threads of a core / threads of a block). Less than one wave leaves cores without work; of the last wave
 * the part that is not filled is idle. Source: CUDA C++ best practices guide, on execution configuration.
 * TPU: custom calls (Pallas kernels), by the FLOP and bytes that their programs state.
 * XProf reads hardware counters of a TPU (v6e and TPU7x) instead, by numbers that are not public; without
 * such counters its list is empty too. */
#include <math.h>

#include "analysis/kernels.h"
#include "analysis/op_rates.h"
#include "analysis/spans.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

enum place { /* of a column */
             KERNEL = 0,
             OPERATION,
             OCCURRENCES,
             TIME,
             SHARE,
             COMPUTE,
             MEMORY,
             OCCUPANCY,
             BLOCKS,
             WAVES,
             TAIL,
             MATRIX_UNITS
};

static void declare_columns(struct table *t)
{
    table_column(t, S("kernel"), S("Kernel"), CELL_TEXT, S(""));
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    table_column(t, S("device_share_percent"), S("Of the devices"), CELL_F64, S("%"));
    table_column(t, S("compute_percent"), S("Compute"), CELL_F64, S("%"));
    table_column(t, S("memory_percent"), S("Memory"), CELL_F64, S("%"));
    table_column(t, S("occupancy_percent"), S("Occupancy"), CELL_F64, S("%"));
    table_column(t, S("blocks"), S("Blocks"), CELL_F64, S(""));
    table_column(t, S("waves"), S("Waves"), CELL_F64, S(""));
    table_column(t, S("idle_in_waves_percent"), S("Idle in waves"), CELL_F64, S("%"));
    table_column(t, S("matrix_units"), S("Matrix units"), CELL_BOOL, S(""));
}

/* --- GPU --------------------------------------------------------------------------------------- */

struct gpus {
    struct device_info device; /* of all of them */
    bool alike;                /* false: they differ, and what a kernel fills is not known */
    uint32_t n;
    uint64_t span_ps; /* from first to last work, summed */
};

static void measure_gpu(struct gpus *g, const struct trace *t, const struct trace_plane *p,
                        struct arena *a)
{
    const struct device_info d = device_info_of(p, a);
    uint64_t first = UINT64_MAX, last = 0;
    if (g->n++ == 0)
        g->device = d;
    g->alike =
        (g->n == 1 || g->alike) && d.arch == g->device.arch && fabs(d.cores - g->device.cores) <= 0;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        if (!spans_is_work_line(t, l) || t->lines[l].start_ps > t->lines[l].end_ps)
            continue;
        first = t->lines[l].start_ps < first ? t->lines[l].start_ps : first;
        last = t->lines[l].end_ps > last ? t->lines[l].end_ps : last;
    }
    if (last > first)
        g->span_ps += last - first;
}

static struct gpus gpus_of(const struct profile *p, struct arena *a)
{
    struct gpus g = {0};
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++)
            if (p->traces[i]->planes[k].kind == TRACE_PLANE_GPU)
                measure_gpu(&g, p->traces[i], &p->traces[i]->planes[k], a);
    return g;
}

static double volume(const uint32_t dims[3])
{
    return (double)dims[0] * dims[1] * dims[2];
}

/* Blocks of the launch that the device holds at once; 0 = unknown. */
static double resident_blocks(const struct gpus *g, const struct kernel_launch *l)
{
    const double threads = volume(l->block);
    if (!g->alike || g->device.arch == NULL || !(g->device.cores > 0) || !(threads > 0) ||
        !(l->occupancy_percent > 0))
        return 0;
    const double resident = l->occupancy_percent / 100 * g->device.arch->threads;
    const double of_a_core = floor(resident / threads + 1e-6);
    return g->device.cores * (of_a_core > 1 ? of_a_core : 1);
}

static bool add_kernel(struct table *t, const struct gpus *g, const struct kernel *k)
{
    struct cell *row = table_row(t);
    const double blocks = volume(k->launch.grid), at_once = resident_blocks(g, &k->launch);
    if (row == NULL)
        return false;
    row[KERNEL] = cell_text(k->name);
    if (k->op.n > 0)
        row[OPERATION] = cell_text(k->op);
    row[OCCURRENCES] = cell_u64(k->times.occurrences);
    row[TIME] = cell_u64(k->times.total_ps);
    if (g->span_ps > 0)
        row[SHARE] = cell_f64(100.0 * (double)k->times.total_ps / (double)g->span_ps);
    if (k->launch.occupancy_percent > 0)
        row[OCCUPANCY] = cell_f64(k->launch.occupancy_percent);
    if (blocks > 0)
        row[BLOCKS] = cell_f64(blocks);
    if (blocks > 0 && at_once > 0) {
        const double waves = blocks / at_once;
        row[WAVES] = cell_f64(waves);
        row[TAIL] = cell_f64(100.0 * (1 - waves / ceil(waves)));
    }
    if (k->matrix_units != MATRIX_UNITS_UNKNOWN)
        row[MATRIX_UNITS] = cell_bool(k->matrix_units == MATRIX_UNITS_YES);
    return true;
}

static bool add_kernels(struct table *t, const struct tool_request *r, struct arena *a,
                        struct err *e)
{
    struct kernels k;
    if (!kernels_of(r->profile, KERNELS_SUM_ALL, a, &k, e))
        return false;
    const struct gpus g = gpus_of(r->profile, a);
    const str name = tool_param(r, S("kernel_name"));
    for (uint32_t i = 0; i < k.n; i++)
        if ((name.n == 0 || str_eq(name, k.items[i].name)) && !add_kernel(t, &g, &k.items[i]))
            return arena_full(a, e);
    return true;
}

/* --- TPU --------------------------------------------------------------------------------------- */

static bool add_custom_call(struct table *t, const struct op_db *db, const struct op_metrics *m)
{
    struct cell *row = table_row(t);
    const struct op_rates rates = op_rates_of(m, m->time_ps, &db->device);
    if (row == NULL)
        return false;
    row[KERNEL] = cell_text(m->name);
    if (m->provenance.n > 0)
        row[OPERATION] = cell_text(m->provenance);
    row[OCCURRENCES] = cell_u64(m->occurrences);
    row[TIME] = cell_u64(m->time_ps);
    if (db->total_ps > 0)
        row[SHARE] = cell_f64(100.0 * (double)m->time_ps / (double)db->total_ps);
    if (m->has_cost && m->flops > 0 && op_peak(&db->device, OP_COMPUTE) > 0)
        row[COMPUTE] = cell_f64(100.0 * rates.use[OP_COMPUTE]);
    if (m->bytes > 0 && op_peak(&db->device, OP_HBM) > 0)
        row[MEMORY] = cell_f64(100.0 * rates.use[OP_HBM]);
    return true;
}

static bool add_custom_calls(struct table *t, const struct tool_request *r, struct arena *a,
                             struct err *e)
{
    struct op_db db;
    const str name = tool_param(r, S("kernel_name"));
    if (!op_db_build(&db, r->profile, S(""), a, e))
        return false;
    bool ok = true;
    for (uint32_t i = 0; ok && i < db.n_ops && db.backend == OP_BACKEND_TPU; i++)
        if (str_starts(db.ops[i].category, S("custom")) &&
            (name.n == 0 || str_eq(name, db.ops[i].name)))
            ok = add_custom_call(t, &db, &db.ops[i]) || arena_full(a, e);
    op_db_release(&db);
    return ok;
}

/* ------------------------------------------------------------------------------------------------ */

static bool has_plane(const struct profile *p, enum trace_plane_kind kind)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++)
            if (p->traces[i]->planes[k].kind == kind)
                return true;
    return false;
}

static bool kernel_utilization_run(const struct tool_request *r, struct arena *a,
                                   struct table **out, struct err *e)
{
    struct table *t = *out =
        table_new(a, S("kernel_utilization"), S("How kernels fill the device"));
    if (t == NULL)
        return arena_full(a, e);
    declare_columns(t);
    if (!add_kernels(t, r, a, e))
        return false;
    if (has_plane(r->profile, TRACE_PLANE_TPU) && !add_custom_calls(t, r, a, e))
        return false;
    if (t->n_rows == 0)
        table_note(t, S("no_kernels"), 1, "no kernel of a device is in the profile");
    return true;
}

/* --- XProf's form ------------------------------------------------------------------------------ */

/* XProf lists the devices whose counters it could read. */
static void print_devices(struct json *j, const struct profile *p)
{
    json_key(j, "devices");
    json_array(j);
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            const struct trace_plane *plane = &p->traces[i]->planes[k];
            str type = {0};
            (void)trace_stat_str(trace_stat_find(plane->stats, S("device_type_string")), &type);
            if (plane->kind != TRACE_PLANE_TPU ||
                !(str_eq(type, S("TPU v6 Lite")) || str_eq(type, S("TPU v7x"))))
                continue;
            json_object(j);
            json_ki64(j, "device_id", plane->ordinal);
            json_kstr(j, "device_type", type);
            json_key(j, "kernels");
            json_array(j);
            json_end(j);
            json_end(j);
        }
    json_end(j);
    json_kcstr(j, "status", "SUCCESS");
}

static bool kernel_utilization_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                     struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    json_object(&j);
    print_devices(&j, r->profile);
    json_end(&j);
    return json_done(&j, e);
}

static bool get_kernel_utilization_xprof(const struct tool_request *r, struct arena *a,
                                         struct buf *out, struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    print_devices(&j, r->profile);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_kernel_utilization = {.run = kernel_utilization_run,
                                                       .xprof = kernel_utilization_xprof};
const struct tool_functions tool_get_kernel_utilization = {.run = kernel_utilization_run,
                                                           .xprof = get_kernel_utilization_xprof};
