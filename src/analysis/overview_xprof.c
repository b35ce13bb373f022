/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/overview_xprof.h"

#include <math.h>

#include "analysis/framework_op.h"
#include "analysis/matrix_units.h"
#include "analysis/op_xprof.h"
#include "analysis/overview.h"

#define TOP_OPERATIONS 10
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

/* XProf prints 0.0% where it does not know. */
static void percent(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_strf(j, "%.1f%%", isfinite(v) ? v : 0.0);
}

/* Of what a counter or the device's limits would have to say: 0 would be a number. */
static void measured(struct json *j, const char *key, double v)
{
    json_key(j, key);
    if (isfinite(v))
        json_strf(j, "%.1f%%", v);
    else
        json_cstr(j, "N/A");
}

static void texts(struct json *j, const char *const *keys, uint32_t n, const char *value)
{
    for (uint32_t i = 0; i < n; i++)
        json_kcstr(j, keys[i], value);
}

/* --- operations ------------------------------------------------------------------------------ */

static const struct datatable_column operation_columns[] = {
    {"selfTimePercent", "Time (%)", "number", NULL},
    {"cumulativeTimePercent", "Cumulative time (%)", "number", NULL},
    {"category", "Category", "string", NULL},
    {"operation", "Operation", "string", NULL},
    {"flopRate", "GFLOPs/Sec", "number", NULL},
    {"tcEligibility", "TensorCore eligibility", "boolean", NULL}, /* GPU only, as the next */
    {"tcUtilization", "Op is using TensorCore", "boolean", NULL},
};

static void operation_rows(struct json *j, const struct overview *p)
{
    double cumulative = 0;
    for (uint32_t i = 0; i < p->rows.n && i < TOP_OPERATIONS; i++) {
        const struct framework_row *row = &p->rows.items[i];
        const double share = p->db.self_ps > 0 ? (double)row->self_ps / (double)p->db.self_ps : 0;
        cumulative += share;
        datatable_row(j);
        datatable_number(j, share);
        datatable_number(j, cumulative);
        datatable_text(j, row->type);
        datatable_text(j, row->name);
        datatable_number(j, op_giga_rate((double)row->work.flops, (double)row->time_ps));
        if (p->db.backend == OP_BACKEND_GPU) {
            datatable_bool(j, row->uses_matrix_units || matrix_units_may_serve(row->name));
            datatable_bool(j, row->uses_matrix_units);
        }
        datatable_row_end(j);
    }
}

static void tpu_properties(struct json *j, const struct overview *p, double duty)
{
    const double active = sample_mean(&p->steps.active_ms);
    percent(j, "device_duty_cycle_percent", duty);
    percent(j, "device_duty_cycle_high_confidence_percent", duty);
    json_key(j, "idle_time_high_confidence_ps");
    json_strf(j, "%g", (double)p->db.duty_idle_ps);
    json_key(j, "active_steptime_ms_average");
    json_strf(j, "%.2f", active);
    json_key(j, "tc_active_ms_average");
    json_strf(j, "%.2f", active);
}

static void gpu_properties(struct json *j, const struct step_summary *s)
{
    const double whole = s->compute_ps > 0 ? s->compute_ps : 1;
    percent(j, "device_compute_16bit_percent", 100.0 * s->compute_16_ps / whole);
    percent(j, "device_compute_32bit_percent", 100.0 * (s->compute_ps - s->compute_16_ps) / whole);
}

static void operation_properties(struct json *j, const struct overview *p)
{
    const struct overview_percents is = overview_percents_of(p);
    percent(j, "device_tf_op_percent", is.device_ops);
    percent(j, "host_tf_op_percent", is.host_ops);
    percent(j, "device_op_time_eager_percent", is.device_eager);
    percent(j, "host_op_time_eager_percent", is.host_eager);
    measured(j, "mxu_utilization_percent", is.mxu);
    measured(j, "hbm_utilization_percent", is.hbm);
    json_kcstr(j, "host_trace_level", "0");
    json_kcstr(j, "remark_text", "");
    json_kcstr(j, "remark_color", "");
    if (p->db.backend == OP_BACKEND_GPU) {
        gpu_properties(j, &p->steps);
        return;
    }
    percent(j, "device_idle_time_percent", is.device_idle);
    percent(j, "host_idle_time_percent", is.host_idle);
    measured(j, "flop_rate_utilization_relative_to_roofline", is.roofline);
    measured(j, "memory_bw_utilization_relative_to_hw_limit", is.memory);
    if (p->db.backend == OP_BACKEND_TPU) {
        tpu_properties(j, p, is.duty);
    } else {
        percent(j, "device_duty_cycle_percent", is.duty);
        percent(j, "device_duty_cycle_high_confidence_percent", is.duty);
    }
}

static void operation_table(struct json *j, const struct overview *p)
{
    const bool gpu = p->db.backend == OP_BACKEND_GPU;
    datatable_begin(j, operation_columns,
                    gpu ? COUNT(operation_columns) : COUNT(operation_columns) - 2);
    operation_rows(j, p);
    datatable_properties(j);
    operation_properties(j, p);
    datatable_end(j);
}

/* --- run environment, advice, diagnostics ---------------------------------------------------- */

static void environment_table(struct json *j, const struct overview *p)
{
    static const struct datatable_column columns[] = {
        {"host_id", "host_id", "string", NULL},
        {"command_line", "command_line", "string", NULL},
        {"start_time", "start_time", "string", NULL},
        {"bns_address", "bns_address", "string", NULL},
    };
    const uint32_t tasks = p->profile->n_traces, machines = overview_machines(p->profile);
    datatable_begin(j, columns, COUNT(columns));
    datatable_properties(j);
    json_key(j, "host_count");
    json_strf(j, "%u", machines);
    json_key(j, "task_count");
    json_strf(j, "%u (num tasks per host = %u)", tasks, machines > 0 ? tasks / machines : 0);
    json_kstr(j, "device_type", p->db.device.type);
    json_key(j, "device_core_count");
    json_strf(j, "%u", overview_devices(p));
    json_kcstr(j, "is_training", hlo_index_is_training(&p->db.hlo) ? "true" : "false");
    datatable_end(j);
}

static const char *bottleneck(const struct step_summary *s)
{
    if (s->n == 0)
        return "unknown";
    if (s->input_percent >= BINDS_INPUT_HIGH)
        return "host";
    return s->input_percent >= BINDS_INPUT_MODERATE || s->other_percent >= BINDS_MODERATE
               ? "both"
               : "device";
}

static void advice_properties(struct json *j, const struct overview *p)
{
    static const char *const empty[] = {"statement", "precision_statement",
                                        "device_collectives_statement", "kernel_launch_statement",
                                        "all_other_statement"};
    static const char *const keys[] = {"bottleneck", "non_bottleneck_tip_types",
                                       "device_collectives_bottleneck", "kernel_launch_bottleneck",
                                       "all_other_bottleneck"};
    const struct step_summary *s = &p->steps;
    texts(j, empty, COUNT(empty), "");
    if (p->db.backend == OP_BACKEND_TPU) {
        texts(j, keys, COUNT(keys), "");
        return;
    }
    const str is = str_from(bottleneck(s));
    json_kstr(j, "bottleneck", is);
    json_kcstr(j, "non_bottleneck_tip_types",
               str_eq(is, S("device")) ? "host"
               : str_eq(is, S("host")) ? "device"
                                       : "");
    json_kcstr(j, "device_collectives_bottleneck",
               step_binds(s->collectives_percent, BINDS_MODERATE, BINDS_HIGH));
    json_kcstr(j, "kernel_launch_bottleneck",
               step_binds(s->launch_percent, BINDS_MODERATE, BINDS_HIGH));
    /* without input to blame, the other time already makes the verdict "both" */
    json_kcstr(j, "all_other_bottleneck",
               s->input_percent < BINDS_INPUT_MODERATE
                   ? "no"
                   : step_binds(s->other_percent, BINDS_MODERATE, BINDS_HIGH));
}

static void advice_table(struct json *j, const struct overview *p)
{
    static const struct datatable_column columns[] = {
        {"tip_type", "tip_type", "string", NULL},
        {"link", "link", "string", NULL},
        {"description", "description", "string", NULL},
    };
    const bool tpu = p->db.backend == OP_BACKEND_TPU;
    const struct {
        const char *type, *link, *description;
    } tips[] = {
        {"faq", "faq", "Questions and answers"},
        {"host", "input_pipeline_analyzer", "What the host does for input"},
        {"host", "trace_viewer", "The threads of the host over time"},
        {"device", tpu ? "op_profile" : "framework_op_stats", "The operations that take most"},
        {"device", "trace_viewer", "The devices over time"},
        {"doc", "https://www.tensorflow.org/guide/data_performance_analysis",
         "Analysing an input pipeline"},
        {"doc", "https://www.tensorflow.org/guide/data_performance", "Faster input pipelines"},
    };
    datatable_begin(j, columns, COUNT(columns));
    for (uint32_t i = 0; i < COUNT(tips); i++) {
        datatable_row(j);
        datatable_text(j, str_from(tips[i].type));
        datatable_text(j, str_from(tips[i].link));
        datatable_text(j, str_from(tips[i].description));
        datatable_row_end(j);
    }
    datatable_properties(j);
    advice_properties(j, p);
    datatable_end(j);
}

static void latency_table(struct json *j)
{
    static const struct datatable_column columns[] = {
        {"percentile", "percentile", "string", NULL},
        {"hostTimeMs", "Host time (in ms)", "number", NULL},
        {"deviceTimeMs", "Device time (in ms)", "number", NULL},
        {"communicationTimeMs", "Host-device communication time (in ms)", "number", NULL},
        {"totalTimeMs", "Total latency (in ms)", "number", NULL},
    };
    datatable_begin(j, columns, COUNT(columns)); /* serving profiles only */
    datatable_properties(j);
    datatable_end(j);
}

/* --- the page -------------------------------------------------------------------------------- */

static bool write_page(const struct overview *p, struct buf *out, struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    json_array(&j);
    operation_table(&j, p);
    step_table_xprof(&j, &p->steps);
    environment_table(&j, p);
    advice_table(&j, p);
    latency_table(&j);
    json_object(&j);
    json_end(&j);
    op_xprof_diagnostics(&j, p->steps.n == 0);
    json_end(&j);
    return json_done(&j, e);
}

bool overview_xprof(const struct tool_request *r, struct arena *a, struct buf *out, struct err *e)
{
    struct overview o;
    if (!overview_of(r->profile, a, &o, e))
        return false;
    const bool ok = write_page(&o, out, e);
    overview_release(&o);
    return ok;
}
