/* SPDX-License-Identifier: Apache-2.0 */
/* get_overview: the numbers of overview_page as numbers, the same in each form. */
#include <math.h>

#include "analysis/overview_cli.h"
#include "analysis/pod_table.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

/* --- our own table ------------------------------------------------------------------------------ */

static double known_ms(const struct overview *o, const struct sample *ms)
{
    return o->steps.n > 0 && ms->n > 0 ? sample_mean(ms) : NAN;
}

static bool add_rows(struct table *t, const struct overview *o)
{
    const struct overview_percents p = overview_percents_of(o);
    const struct step_summary *s = &o->steps;
    const bool no_steps = s->n == 0;
    const bool sees_input = !no_steps && pod_table_of(&o->pods).shown[POD_INPUT];
    const struct {
        const char *metric;
        double v;
        const char *unit;
    } rows[] = {
        {"step_time_mean", known_ms(o, &s->step_ms), "ms"},
        {"step_time_min", no_steps ? NAN : s->step_ms.min, "ms"},
        {"step_time_max", no_steps ? NAN : s->step_ms.max, "ms"},
        {"step_time_deviation", s->n > 1 ? sample_deviation(&s->step_ms) : NAN, "ms"},
        {"input", sees_input ? s->input_percent : NAN, "% of steps"},
        {"duty_cycle", p.duty, "%"},
        {"device_idle", p.device_idle, "%"},
        {"host_idle", p.host_idle, "%"},
        {"roofline_efficiency", p.roofline, "%"},
        {"compute_efficiency", p.compute, "% of peak"},
        {"hbm_bandwidth", p.hbm_rate, "% of peak"},
        {"matrix_units", p.mxu, "%"},
        {"custom_calls", p.custom_calls, "% of devices"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!overview_row(t, rows[i].metric, rows[i].v, rows[i].unit))
            return false;
    return true;
}

static bool overview_run(const struct tool_request *r, struct arena *a, struct table **out,
                         struct err *e)
{
    struct overview o;
    if (!overview_of(r->profile, a, &o, e))
        return false;
    struct table *t = *out = overview_table(a, S("get_overview"), S("Overview"));
    bool ok = (t != NULL && add_rows(t, &o)) || arena_full(a, e);
    if (ok) {
        table_value(t, S("device_type"), S("Device"), cell_text(o.db.device.type), S(""));
        table_value(t, S("hosts"), S("Hosts"), cell_u64(o.profile->n_traces), S(""));
        table_value(t, S("bound_by"), S("Bound by"),
                    o.rates.bound == OP_RESOURCE_NONE
                        ? cell_unknown()
                        : cell_text(op_resource_name(&o.db.device, o.rates.bound)),
                    S(""));
        device_memory_note(&o.db.device, t);
        ok = pod_straggler_values(&o.pods, t, e);
    }
    overview_release(&o);
    return ok;
}

/* --- XProf's form --------------------------------------------------------------------------------- */

static void put_steps(struct json *j, const struct step_summary *s)
{
    const bool none = s->n == 0;
    xprof_cli_number(j, "steptime_ms_average", none ? NAN : sample_mean(&s->step_ms), 4);
    xprof_cli_number(j, "steptime_ms_standard_deviation",
                     none ? NAN : sample_deviation(&s->step_ms), 4);
    xprof_cli_number(j, "input_percent", none ? NAN : s->input_percent, 2);
    if (!s->pods->is_tpu)
        return;
    xprof_cli_number(j, "active_steptime_ms_average", none ? NAN : sample_mean(&s->active_ms), 4);
    xprof_cli_number(j, "tc_active_ms_average", none ? NAN : sample_mean(&s->active_ms), 4);
    xprof_cli_number(j, "host_transfer_ms_average", none ? NAN : sample_mean(&s->transfer_ms), 4);
    xprof_cli_number(j, "tc_idle_ms_average", none ? NAN : sample_mean(&s->idle_ms), 4);
    xprof_cli_number(j, "tc_infeed_ms_average", none ? NAN : sample_mean(&s->infeed_ms), 4);
    xprof_cli_number(j, "tc_outfeed_ms_average", none ? NAN : sample_mean(&s->outfeed_ms), 4);
}

static void put_rates(struct json *j, const struct overview *o, const struct overview_percents *p)
{
    const bool bound = o->rates.bound != OP_RESOURCE_NONE;
    xprof_cli_number(j, "flop_rate_utilization_relative_to_roofline", p->roofline, 2);
    xprof_cli_number(j, "memory_bw_utilization_relative_to_hw_limit", p->memory, 2);
    xprof_cli_number(j, "roofline_efficiency_percent", p->roofline, 2);
    xprof_cli_number(j, "compute_efficiency_percent", p->compute, 2);
    xprof_cli_number(j, "max_mem_bw_utilization_percent", p->memory, 2);
    xprof_cli_number(j, "hbm_bw_utilization_percent", p->hbm_rate, 2);
    json_key(j, "bound_by");
    if (bound)
        json_str(j, op_resource_name(&o->db.device, o->rates.bound));
    else
        json_null(j);
    xprof_cli_number(j, "operational_intensity_flop_per_byte",
                     o->cost.work.has_cost ? o->rates.intensity_of[OP_COMPUTE] : NAN, 4);
}

static bool put_performance(struct json *j, const struct overview *o, struct arena *a,
                            struct err *e)
{
    const struct overview_percents p = overview_percents_of(o);
    json_key(j, "performance_summary");
    json_object(j);
    xprof_cli_number(j, "device_duty_cycle_percent", p.duty, 2);
    xprof_cli_number(j, "device_idle_time_percent", p.device_idle, 2);
    xprof_cli_number(j, "device_op_time_eager_percent", p.device_eager, 2);
    xprof_cli_number(j, "device_tf_op_percent", p.device_ops, 2);
    xprof_cli_number(j, "host_idle_time_percent", p.host_idle, 2);
    xprof_cli_number(j, "host_op_time_eager_percent", p.host_eager, 2);
    xprof_cli_number(j, "host_tf_op_percent", p.host_ops, 2);
    xprof_cli_number(j, "mxu_utilization_percent", p.mxu, 2);
    xprof_cli_number(j, "hbm_utilization_percent", p.hbm, 2);
    put_steps(j, &o->steps);
    put_rates(j, o, &p);
    overview_cli_custom_calls(j, o);
    const bool ok = overview_cli_hosts(j, o, OVERVIEW_HOSTS_ALL, a, e);
    json_end(j);
    return ok;
}

static void put_environment(struct json *j, const struct overview *o)
{
    const uint32_t tasks = o->profile->n_traces, machines = overview_machines(o->profile);
    json_key(j, "run_environment");
    json_object(j);
    json_ku64(j, "device_core_count", overview_devices(o));
    json_kstr(j, "device_type", o->db.device.type);
    json_ku64(j, "host_count", machines);
    json_kcstr(j, "is_training", hlo_index_is_training(&o->db.hlo) ? "true" : "false");
    json_key(j, "task_count");
    json_strf(j, "%u (num tasks per host = %u)", tasks, machines > 0 ? tasks / machines : 0);
    json_end(j);
}

static bool overview_xprof_cli(const struct tool_request *r, struct arena *a, struct buf *out,
                               struct err *e)
{
    struct overview o;
    struct json j;
    if (!overview_of(r->profile, a, &o, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    const bool ok = put_performance(&j, &o, a, e);
    put_environment(&j, &o);
    overview_release(&o);
    return ok && xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_overview = {.run = overview_run, .xprof = overview_xprof_cli};
