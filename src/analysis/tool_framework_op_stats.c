/* SPDX-License-Identifier: Apache-2.0 */
/* framework_op_stats: the operations that the model's author knows, on devices and hosts. */
#include "analysis/datatable.h"
#include "analysis/framework_ops.h"
#include "analysis/host_ops.h"
#include "analysis/op_rates.h"
#include "analysis/tool.h"

#define XPROF_OPERATIONS 500 /* the most that it lists of a side */
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

struct stats {
    struct op_db db;
    struct framework_rows device;
    struct host_ops host;
};

static bool add_hosts(struct stats *s, const struct profile *p, struct err *e)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (!host_ops_add(&s->host, p->traces[i], e))
            return false;
    return true;
}

static bool stats_of(const struct tool_request *r, struct arena *a, struct stats *s, struct err *e)
{
    *s = (struct stats){.host.arena = a};
    if (!op_db_build(&s->db, r->profile, (str){0}, a, e))
        return false;
    const bool ok = framework_rows_of(&s->db, a, &s->device, e) && add_hosts(s, r->profile, e);
    host_ops_finish(&s->host);
    if (!ok)
        op_db_release(&s->db);
    return ok;
}

static uint64_t host_idle_ps(const struct host_ops *h)
{
    return h->total_ps - h->busy_ps; /* the union of each thread lies within its span */
}

/* --- our own table ---------------------------------------------------------------------------- */

static void declare_columns(struct table *t)
{
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("type"), S("Type"), CELL_TEXT, S(""));
    table_column(t, S("side"), S("On"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("self_share_percent"), S("Self share"), CELL_F64, S("%"));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    table_column(t, S("flops_per_s"), S("FLOP rate"), CELL_F64, S("FLOP/s"));
    table_column(t, S("bytes_per_s"), S("Memory rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("bound_by"), S("Bound by"), CELL_TEXT, S(""));
    table_column(t, S("matrix_units_percent"), S("On matrix units"), CELL_F64, S("%"));
    table_column(t, S("eager"), S("Eager"), CELL_BOOL, S(""));
}

static struct cell share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? cell_f64(100.0 * (double)part / (double)whole) : cell_unknown();
}

static struct cell type_cell(str type)
{
    return type.n == 0 || str_eq(type, S("Unknown")) ? cell_unknown() : cell_text(type);
}

static bool add_device_row(struct table *t, const struct stats *s, const struct framework_row *x)
{
    const struct op_rates r = op_rates_of(&x->work, x->time_ps, &s->db.device);
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(x->name);
    row[1] = type_cell(x->type);
    row[2] = cell_text(S("device"));
    row[3] = cell_u64(x->occurrences);
    row[4] = cell_u64(x->self_ps);
    row[5] = share(x->self_ps, s->db.total_ps);
    row[6] = cell_u64(x->time_ps);
    if (x->work.has_cost && x->time_ps > 0)
        row[7] = cell_f64(r.model_giga_flops * 1e9);
    if (x->work.bytes > 0 && x->time_ps > 0)
        row[8] = cell_f64(r.gib * BYTES_PER_GIB);
    if (r.bound != OP_RESOURCE_NONE)
        row[9] = cell_text(op_resource_name(&s->db.device, r.bound));
    if (s->db.backend == OP_BACKEND_GPU)
        row[10] = share(x->matrix_ps, x->time_ps);
    if (s->db.says_eager)
        row[11] = cell_bool(x->is_eager);
    return true;
}

static bool add_host_row(struct table *t, const struct stats *s, const struct host_op *x)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(x->name);
    row[1] = type_cell(x->type);
    row[2] = cell_text(S("host"));
    row[3] = cell_u64(x->occurrences);
    row[4] = cell_u64(x->self_ps);
    row[5] = share(x->self_ps, s->host.total_ps);
    row[6] = cell_u64(x->time_ps);
    if (s->host.says_eager)
        row[11] = cell_bool(x->is_eager);
    return true;
}

static void add_values(struct table *t, const struct stats *s)
{
    op_db_values(&s->db, t);
    const bool known = s->host.occurrences > 0;
    table_value(t, S("host_total_time_ps"), S("Host threads"),
                known ? cell_u64(s->host.total_ps) : cell_unknown(), S("ps"));
    table_value(t, S("host_idle_time_ps"), S("Host threads idle"),
                known ? cell_u64(host_idle_ps(&s->host)) : cell_unknown(), S("ps"));
}

static bool framework_op_stats_run(const struct tool_request *r, struct arena *a,
                                   struct table **out, struct err *e)
{
    struct stats s;
    if (!stats_of(r, a, &s, e))
        return false;
    struct table *t = *out = table_new(a, S("framework_op_stats"), S("Framework operations"));
    if (t != NULL) {
        declare_columns(t);
        for (uint32_t i = 0; i < s.device.n && add_device_row(t, &s, &s.device.items[i]); i++)
            continue;
        for (uint32_t i = 0; i < s.host.n && add_host_row(t, &s, &s.host.items[i]); i++)
            continue;
        add_values(t, &s);
        device_memory_note(&s.db.device, t);
    }
    op_db_release(&s.db);
    return t != NULL || arena_full(a, e);
}

/* --- XProf's form ------------------------------------------------------------------------------ */

static const struct datatable_column xprof_columns[] = {
    {"rank", "Rank", "number", NULL},
    {"host_or_device", "Host/device", "string", NULL},
    {"type", "Operation Type", "string", NULL},
    {"operation", "Operation Name", "string", NULL},
    {"occurrences", "#Occurrences", "number", NULL},
    {"total_time", "Total time (us)", "number", NULL},
    {"avg_time", "Avg. time (us)", "number", NULL},
    {"total_self_time", "Total self-time (us)", "number", NULL},
    {"avg_self_time", "Avg. self-time (us)", "number", NULL},
    {"device_total_self_time_percent", "Total self-time on Device (%)", "number", NULL},
    {"device_cumulative_total_self_time_percent", "Cumulative total-self time on Device (%)",
     "number", NULL},
    {"host_total_self_time_percent", "Total self-time on Host (%)", "number", NULL},
    {"Host_cumulative_total_self_time_percent", "Cumulative total-self time on Host (%)", "number",
     NULL},
    {"measured_flop_rate", "Normalized FLOP Rate (FLOPs/s)", "number", NULL},
    {"model_flop_rate", "Model FLOP Rate (GFLOP/s)", "number", NULL},
    {"measured_memory_bw", "Measured Memory BW (GBytes/Sec)", "number", NULL},
    {"operational_intensity", "Operational Intensity (FLOPs/Byte)", "number", NULL},
    {"gpu_tensorcore_utilization", "GPU TensorCore utilization", "number", NULL}, /* GPU only */
    {"bound_by", "Bound by", "string", NULL},
    {"eager", "Execution mode", "string", NULL},
};
enum { TENSOR_CORE_COLUMN = 17 };

struct xprof_row {
    str type, name;
    uint64_t occurrences, time_ps, self_ps;
    const struct framework_row *device; /* NULL: IDLE, or of a host */
    bool is_eager;
};

struct side { /* one half of a table */
    struct json *json;
    const struct stats *stats;
    bool is_device;
    uint64_t whole_ps; /* Σ self times, that of IDLE too where it is shown */
    uint64_t cumulative_ps;
    uint32_t *rank;
};

static double of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void write_shares(const struct side *s, const struct xprof_row *x)
{
    const double own = of(x->self_ps, s->whole_ps), sum = of(s->cumulative_ps, s->whole_ps);
    datatable_number(s->json, s->is_device ? own : 0);
    datatable_number(s->json, s->is_device ? sum : 0);
    datatable_number(s->json, s->is_device ? 0 : own);
    datatable_number(s->json, s->is_device ? 0 : sum);
}

static void write_row(struct side *s, const struct xprof_row *x)
{
    struct json *j = s->json;
    const struct op_db *db = &s->stats->db;
    const double n = x->occurrences > 0 ? (double)x->occurrences : 0;
    const struct op_metrics nothing = {0};
    const struct op_rates r =
        op_rates_of(x->device == NULL ? &nothing : &x->device->work, x->time_ps, &db->device);
    s->cumulative_ps = op_add(s->cumulative_ps, x->self_ps);
    datatable_row(j);
    datatable_number(j, ++*s->rank);
    datatable_text(j, s->is_device ? S("Device") : S("Host"));
    datatable_text(j, x->type);
    datatable_text(j, x->name);
    datatable_number(j, (double)x->occurrences);
    datatable_number(j, (double)x->time_ps / 1e6);
    datatable_number(j, n > 0 ? (double)x->time_ps / 1e6 / n : 0);
    datatable_number(j, (double)x->self_ps / 1e6);
    datatable_number(j, n > 0 ? (double)x->self_ps / 1e6 / n : 0);
    write_shares(s, x);
    datatable_number(j, r.rate[OP_COMPUTE]);
    datatable_number(j, r.model_giga_flops);
    datatable_number(j, r.gib);
    datatable_number(j, r.intensity_of[OP_COMPUTE]);
    if (db->device.is_gpu)
        datatable_number(j, x->device == NULL ? 0 : of(x->device->matrix_ps, x->time_ps));
    datatable_text(j, op_resource_name(&db->device, r.bound));
    datatable_text(j, x->is_eager ? S("Eager") : S("Function"));
    datatable_row_end(j);
}

static struct xprof_row row_at(const struct side *s, uint32_t i)
{
    if (s->is_device) {
        const struct framework_row *x = &s->stats->device.items[i];
        return (struct xprof_row){x->type,    x->name, x->occurrences, x->time_ps,
                                  x->self_ps, x,       x->is_eager};
    }
    const struct host_op *x = &s->stats->host.items[i];
    return (struct xprof_row){x->type,    x->name, x->occurrences, x->time_ps,
                              x->self_ps, NULL,    x->is_eager};
}

/* The operations of a side by self time, IDLE among them where it belongs. */
static void write_side(struct side *s, uint64_t idle_ps, bool with_idle)
{
    const uint32_t n = s->is_device ? s->stats->device.n : s->stats->host.n;
    const struct xprof_row idle = {
        .type = S("IDLE"), .name = S("IDLE"), .time_ps = idle_ps, .self_ps = idle_ps};
    s->whole_ps = with_idle ? idle_ps : 0;
    for (uint32_t i = 0; i < n; i++)
        s->whole_ps = op_add(s->whole_ps, row_at(s, i).self_ps);
    uint32_t shown = 0;
    for (uint32_t i = 0; shown < XPROF_OPERATIONS && (i < n || with_idle); shown++) {
        const struct xprof_row x = i < n ? row_at(s, i) : idle;
        if (with_idle && x.self_ps <= idle_ps) {
            write_row(s, &idle);
            with_idle = false;
        } else {
            write_row(s, &x);
            i++;
        }
    }
}

static void write_table(struct json *j, const struct stats *s, bool with_idle)
{
    struct datatable_column shown[COUNT(xprof_columns)];
    uint32_t n = 0, rank = 0;
    for (uint32_t i = 0; i < COUNT(xprof_columns); i++)
        if (i != TENSOR_CORE_COLUMN || s->db.device.is_gpu)
            shown[n++] = xprof_columns[i];
    struct side device = {.json = j, .stats = s, .is_device = true, .rank = &rank};
    struct side host = {.json = j, .stats = s, .rank = &rank};
    datatable_begin(j, shown, n);
    write_side(&device, op_db_xprof_idle_ps(&s->db), with_idle && s->db.n_ops > 0);
    write_side(&host, host_idle_ps(&s->host), with_idle);
    datatable_properties(j);
    json_kcstr(j, "architecture_type", "Unknown");
    json_kcstr(j, "task_type", hlo_index_is_training(&s->db.hlo) ? "Training" : "Inference");
    datatable_end(j);
}

static bool framework_op_stats_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                     struct err *e)
{
    struct stats s;
    struct json j;
    if (!stats_of(r, a, &s, e))
        return false;
    json_init_buf(&j, out);
    json_array(&j);
    write_table(&j, &s, true);
    write_table(&j, &s, false);
    json_end(&j);
    op_db_release(&s.db);
    return json_done(&j, e);
}

const struct tool_functions tool_framework_op_stats = {.run = framework_op_stats_run,
                                                       .xprof = framework_op_stats_xprof};
