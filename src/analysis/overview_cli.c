/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/overview_cli.h"

#include <math.h>

#include "analysis/xprof_cli.h"

/* The steps of one host alone, the first and the last left out as elsewhere. */
static bool host_steps_ms(const struct overview *o, uint32_t trace_index, struct arena *a,
                          struct sample *ms, struct err *e)
{
    struct trace *only = o->profile->traces[trace_index];
    const struct profile one = {.traces = &only, .n_traces = 1};
    struct grouping *g = o->db.groupings[trace_index];
    struct pod_steps pods;
    struct step_summary s;
    if (!pod_steps_of(&one, &g, a, &pods, e) || !step_summary_of(&pods, o->db.backend, a, &s, e))
        return false;
    *ms = s.step_ms;
    return true;
}

static void put_host(struct json *j, const struct sample *ms, enum overview_hosts form)
{
    if (form == OVERVIEW_HOSTS_ALL) {
        json_object(j);
        xprof_cli_number(j, "steptime_ms_average", sample_mean(ms), 4);
        xprof_cli_number(j, "steptime_ms_standard_deviation", sample_deviation(ms), 4);
        xprof_cli_number(j, "steptime_ms_minimum", ms->min, 4);
        xprof_cli_number(j, "steptime_ms_maximum", ms->max, 4);
        json_end(j);
    } else if (ms->n > 0) {
        json_f64(j, sample_mean(ms));
    } else {
        json_null(j);
    }
}

static bool put_hosts(struct json *j, const struct overview *o, enum overview_hosts form,
                      struct arena *a, struct err *e)
{
    bool ok = true;
    json_kcstr(j, "step_time_scope", "per_step_max_across_hosts");
    json_kcstr(j, "step_time_warning",
               "A step takes as long as on the host and core where it takes longest.");
    json_key(j, "per_host_step_time_ms");
    json_object(j);
    for (uint32_t i = 0; ok && i < o->profile->n_traces; i++) {
        struct sample ms = {0};
        ok = host_steps_ms(o, i, a, &ms, e);
        json_key_str(j, trace_target(o->profile->traces[i]));
        put_host(j, &ms, form);
    }
    json_end(j);
    return ok;
}

bool overview_cli_hosts(struct json *j, const struct overview *o, enum overview_hosts form,
                        struct arena *a, struct err *e)
{
    struct straggler slow;
    if (o->profile->n_traces > 1 && !put_hosts(j, o, form, a, e))
        return false;
    if (!pod_straggler(&o->pods, a, &slow, e))
        return false;
    json_key(j, "straggler");
    if (slow.core == NULL)
        json_null(j);
    else
        json_str(j, pod_core_name(&o->pods, slow.core, a));
    return true;
}

void overview_cli_custom_calls(struct json *j, const struct overview *o)
{
    const double share = overview_percents_of(o).custom_calls;
    xprof_cli_number(j, "custom_call_share_pct", share, 2);
    if (!o->cost.has_opaque)
        return;
    json_key(j, "custom_call_warning");
    json_strf(j,
              "%.2f%% of the devices' time is in custom calls; what some of them compute is not "
              "known, so that rates are too low.",
              isfinite(share) ? share : 0.0);
}

struct table *overview_table(struct arena *a, str name, str title)
{
    struct table *t = table_new(a, name, title);
    if (t == NULL)
        return NULL;
    table_column(t, S("metric"), S("What"), CELL_TEXT, S(""));
    table_column(t, S("value"), S("Value"), CELL_F64, S(""));
    table_column(t, S("unit"), S("Unit"), CELL_TEXT, S(""));
    return t;
}

bool overview_row(struct table *t, const char *metric, double v, const char *unit)
{
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(str_from(metric));
    row[1] = isfinite(v) ? cell_f64(v) : cell_unknown();
    row[2] = cell_text(str_from(unit));
    return true;
}
