/* SPDX-License-Identifier: Apache-2.0 */
/* get_kpi_metrics: step time, duty cycle, use of the device's limits and the memory's peak. */
#include <math.h>

#include "analysis/memory_profile.h"
#include "analysis/overview_cli.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

struct kpis {
    struct overview overview;
    struct overview_percents percents;
    double step_ms, peak_bytes; /* NaN: unknown */
};

static bool kpis_of(const struct tool_request *r, struct arena *a, struct kpis *k, struct err *e)
{
    struct memory_profile memory;
    if (!memory_profile_of(r->profile, NULL, a, &memory, e) ||
        !overview_of(r->profile, a, &k->overview, e))
        return false;
    const struct memory_allocator *most = memory_fullest(&memory);
    const int64_t bytes = most == NULL ? MEMORY_UNKNOWN : memory_in_use(&most->peak);
    k->percents = overview_percents_of(&k->overview);
    k->peak_bytes = bytes == MEMORY_UNKNOWN ? NAN : (double)bytes;
    k->step_ms = k->overview.steps.n > 0 ? sample_mean(&k->overview.steps.step_ms) : NAN;
    return true;
}

static bool kpis_run(const struct tool_request *r, struct arena *a, struct table **out,
                     struct err *e)
{
    struct kpis k;
    if (!kpis_of(r, a, &k, e))
        return false;
    struct table *t = *out = overview_table(a, S("get_kpi_metrics"), S("Key numbers"));
    const bool ok = t != NULL && overview_row(t, "step_time_mean", k.step_ms, "ms") &&
                    overview_row(t, "duty_cycle", k.percents.duty, "%") &&
                    overview_row(t, "matrix_units", k.percents.mxu, "%") &&
                    overview_row(t, "roofline_efficiency", k.percents.roofline, "%") &&
                    overview_row(t, "memory_peak", k.peak_bytes, "bytes");
    if (ok) {
        table_value(t, S("device_type"), S("Device"), cell_text(k.overview.db.device.type), S(""));
        device_memory_note(&k.overview.db.device, t);
    }
    overview_release(&k.overview);
    return ok || arena_full(a, e);
}

static bool kpis_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                       struct err *e)
{
    struct kpis k;
    struct json j;
    if (!kpis_of(r, a, &k, e))
        return false;
    const struct program_cost *cost = &k.overview.cost;
    const double flops = (double)cost->work.flops;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    xprof_cli_number(&j, "step_time_ms", k.step_ms, 4);
    xprof_cli_number(&j, "duty_cycle_percent", k.percents.duty, 2);
    xprof_cli_number(&j, "mxu_utilization_percent", k.percents.mxu, 2);
    xprof_cli_number(&j, "roofline_utilization", k.percents.roofline, 2);
    json_kcstr(&j, "flops_provenance", program_provenance(cost));
    xprof_cli_number(&j, "derived_flops_fraction",
                     flops > 0 ? (double)cost->derived_flops / flops : 0, 4);
    xprof_cli_number(&j, "peak_hbm_gib", k.peak_bytes / BYTES_PER_GIB, 2);
    json_key(&j, "accelerator_info");
    json_object(&j);
    json_kstr(&j, "device_type", k.overview.db.device.type);
    json_ku64(&j, "device_core_count", overview_devices(&k.overview));
    json_end(&j);
    overview_cli_custom_calls(&j, &k.overview);
    const bool ok = overview_cli_hosts(&j, &k.overview, OVERVIEW_HOSTS_MEANS, a, e);
    overview_release(&k.overview);
    return ok && xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_kpi_metrics = {.run = kpis_run, .xprof = kpis_xprof};
