/* SPDX-License-Identifier: Apache-2.0 */
/* check_host_boundness: whether the devices wait for their host.
 *
 * Each device's time from its first work to its last divides into computing, communication and copies
 * beside it, waiting for the host (infeed and its kin) and idle time (see device_work.h). One that is
 * idle while another works may wait for that one; so the device that waits least decides. XProf
 * decides by counters, takes one that is absent for 0, and finds idle what it does not add up. */
#include <math.h>

#include "analysis/device_work.h"
#include "analysis/overview_cli.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define HOST_BOUND_PERCENT 10.0 /* of the time in which even the busiest device does not work */

enum part { PART_COMPUTE = 0, PART_COPY, PART_COMM, PART_WAIT, PART_IDLE, PARTS };

struct boundness {
    struct overview overview;
    struct overview_percents percents;
    struct work_devices devices;
    double mean_ps[PARTS], span_ps; /* over the devices */
    uint32_t busiest;               /* into devices; UINT32_MAX: none */
    double least_percent;           /* of its time, waiting or idle */
};

static void parts_of(const struct work_device *d, double ps[PARTS])
{
    const uint64_t from = d->from_ps, to = d->to_ps;
    const uint64_t compute = spans_within(&d->compute, from, to);
    const uint64_t compute_comm = spans_within(&d->compute_comm, from, to);
    const uint64_t busy = spans_within(&d->busy, from, to);
    const uint64_t rest = to - from - busy, wait = spans_within(&d->wait, from, to);
    ps[PART_COMPUTE] = (double)compute;
    ps[PART_COMM] = (double)(compute_comm - compute);
    ps[PART_COPY] = (double)(busy - compute_comm);
    ps[PART_WAIT] = (double)(wait < rest ? wait : rest);
    ps[PART_IDLE] = (double)rest - ps[PART_WAIT];
}

/* Only a TPU says that it waits for its host, and a CPU has no memory of its own to copy to. */
static bool is_told(const struct work_device *d, enum part part)
{
    const bool is_cpu = d->plane_index == UINT32_MAX;
    return part == PART_COPY   ? !is_cpu
           : part == PART_WAIT ? !is_cpu && d->trace->planes[d->plane_index].kind == TRACE_PLANE_TPU
                               : true;
}

static double waits_percent(const struct work_device *d)
{
    double ps[PARTS];
    parts_of(d, ps);
    return 100.0 * (ps[PART_WAIT] + ps[PART_IDLE]) / (double)(d->to_ps - d->from_ps);
}

static bool boundness_of(const struct tool_request *r, struct arena *a, struct boundness *b,
                         struct err *e)
{
    uint32_t n = 0;
    *b = (struct boundness){.busiest = UINT32_MAX, .least_percent = NAN};
    if (!work_devices_of(r->profile, a, &b->devices, e) ||
        !overview_of(r->profile, a, &b->overview, e))
        return false;
    b->percents = overview_percents_of(&b->overview);
    for (uint32_t i = 0; i < b->devices.n; i++) {
        const struct work_device *d = &b->devices.items[i];
        double ps[PARTS];
        if (d->to_ps <= d->from_ps)
            continue;
        parts_of(d, ps);
        for (uint32_t k = 0; k < PARTS; k++)
            b->mean_ps[k] += ps[k];
        b->span_ps += (double)(d->to_ps - d->from_ps);
        n++;
        if (b->busiest == UINT32_MAX || waits_percent(d) < b->least_percent) {
            b->busiest = i;
            b->least_percent = waits_percent(d);
        }
    }
    for (uint32_t k = 0; k < PARTS && n > 0; k++)
        b->mean_ps[k] /= n;
    b->span_ps = n > 0 ? b->span_ps / n : NAN;
    return true;
}

static const char *status_of(const struct boundness *b)
{
    if (b->overview.steps.n == 0 || b->busiest == UINT32_MAX)
        return "INSUFFICIENT_DATA";
    return b->least_percent > HOST_BOUND_PERCENT ? "HOST_BOUND" : "NOT_HOST_BOUND";
}

/* --- our own table -------------------------------------------------------------------------------- */

static bool boundness_run(const struct tool_request *r, struct arena *a, struct table **out,
                          struct err *e)
{
    struct boundness b;
    if (!boundness_of(r, a, &b, e))
        return false;
    struct table *t = *out =
        table_new(a, S("check_host_boundness"), S("What the devices spent their time on"));
    bool ok = t != NULL;
    static const char *const names[PARTS] = {"compute_ps", "copy_ps", "collective_ps",
                                             "host_wait_ps", "idle_ps"};
    static const char *const titles[PARTS] = {
        "Compute", "Copies beside it", "Collectives beside it", "Waiting for the host", "Idle"};
    if (ok) {
        table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
        table_column(t, S("span_ps"), S("First work to last"), CELL_U64, S("ps"));
        for (uint32_t k = 0; k < PARTS; k++)
            table_column(t, str_from(names[k]), str_from(titles[k]), CELL_U64, S("ps"));
    }
    for (uint32_t i = 0; ok && i < b.devices.n; i++) {
        const struct work_device *d = &b.devices.items[i];
        struct cell *row = table_row(t);
        double ps[PARTS];
        ok = row != NULL;
        if (!ok)
            break;
        parts_of(d, ps);
        row[0] = cell_text(d->label);
        row[1] = cell_u64(d->to_ps - d->from_ps);
        for (uint32_t k = 0; k < PARTS; k++)
            row[2 + k] = is_told(d, (enum part)k) ? cell_u64((uint64_t)ps[k]) : cell_unknown();
    }
    if (ok) {
        table_value(t, S("status"), S("Verdict"), cell_text(str_from(status_of(&b))), S(""));
        table_value(t, S("least_waiting_percent"), S("Waiting or idle, of the busiest"),
                    isfinite(b.least_percent) ? cell_f64(b.least_percent) : cell_unknown(), S("%"));
    }
    overview_release(&b.overview);
    return ok || arena_full(a, e);
}

/* --- XProf's form ---------------------------------------------------------------------------------- */

static void put_metrics(struct json *j, const struct boundness *b)
{
    const double idle = b->mean_ps[PART_WAIT] + b->mean_ps[PART_IDLE];
    const double ratio = b->span_ps > 0 ? idle / b->span_ps : NAN;
    json_key(j, "metrics");
    json_object(j);
    xprof_cli_number(j, "tpu_duty_cycle_percent", b->percents.duty, 1);
    xprof_cli_number(j, "idle_time_ratio_percent", 100 * ratio, 2);
    xprof_cli_number(j, "least_idle_time_ratio_percent", b->least_percent, 2);
    xprof_cli_number(j, "idle_to_active_compute_ratio", ratio < 1 ? ratio / (1 - ratio) : NAN, 4);
    xprof_cli_number(j, "equivalent_idle_chips", ratio * b->devices.n, 2);
    xprof_cli_number(j, "mxu_idleness_percent", 100 - b->percents.mxu, 2);
    xprof_cli_number(j, "hbm_bandwidth_utilization_percent", b->percents.hbm, 2);
    json_knull(j, "ici_read_utilization_percent"); /* no counter of a link is read from a profile */
    json_knull(j, "ici_write_utilization_percent");
    xprof_cli_number(j, "scaled_compute_time_ms", b->mean_ps[PART_COMPUTE] / 1e9, 2);
    xprof_cli_number(j, "scaled_hbm_time_ms", b->mean_ps[PART_COPY] / 1e9, 2);
    xprof_cli_number(j, "scaled_ici_time_ms", b->mean_ps[PART_COMM] / 1e9, 2);
    xprof_cli_number(j, "host_wait_time_ms", b->mean_ps[PART_WAIT] / 1e9, 2);
    xprof_cli_number(j, "pure_idle_time_ms", b->mean_ps[PART_IDLE] / 1e9, 2);
    xprof_cli_number(j, "total_duration_ms", b->span_ps / 1e9, 2);
    json_ku64(j, "number_of_steps", b->overview.steps.n);
    json_ku64(j, "core_count", b->devices.n);
    json_end(j);
}

static void put_reasons(struct json *j, const struct boundness *b, bool enough)
{
    const bool bound = enough && b->least_percent > HOST_BOUND_PERCENT;
    json_key(j, "reasons");
    json_array(j);
    if (enough)
        json_strf(j,
                  "Even the busiest device (%.*s) waits or is idle for %.1f%% of its time; from "
                  "%.0f%% on the "
                  "host binds.",
                  STR_ARG(b->devices.items[b->busiest].label), b->least_percent,
                  HOST_BOUND_PERCENT);
    else
        json_cstr(j, "The profile marks no steps, or shows no work of a device.");
    json_end(j);
    json_key(j, "recommendations");
    json_array(j);
    if (bound)
        json_cstr(j, "Prepare input ahead of the step that needs it, and launch work without "
                     "waiting for the "
                     "step before.");
    if (!enough)
        json_cstr(j, "Profile more than one step, with the steps marked.");
    json_end(j);
}

static bool boundness_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                            struct err *e)
{
    struct boundness b;
    struct json j;
    if (!boundness_of(r, a, &b, e))
        return false;
    const bool enough = b.overview.steps.n > 0 && b.busiest != UINT32_MAX;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_kcstr(&j, "status", status_of(&b));
    if (enough)
        put_metrics(&j, &b);
    put_reasons(&j, &b, enough);
    overview_release(&b.overview);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_check_host_boundness = {.run = boundness_run,
                                                         .xprof = boundness_xprof};
