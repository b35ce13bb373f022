/* SPDX-License-Identifier: Apache-2.0 */
/* get_device_time_attribution: how long the devices ran anything, by line and by the name of what ran.
 *
 * Overlaps count once on each device, and the devices add up: two that work side by side for a second
 * spent two. (XProf lays all devices of all hosts over one another, whose clocks differ.) */
#include <math.h>

#include "analysis/device_work.h"
#include "analysis/kernel_times.h"
#include "analysis/op_brief.h"
#include "analysis/overview.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define KERNELS_SHOWN 10

struct line_time {
    str name;
    uint64_t lines, busy_ps;
};

struct attribution {
    struct overview overview;
    struct kernel_times kernels;
    struct line_time *lines; /* as they come */
    uint32_t n_lines, capacity;
    uint64_t total_ps;
};

static bool add_line(struct attribution *x, const struct trace_line *line, struct arena *a)
{
    uint32_t i = 0;
    while (i < x->n_lines && !str_eq(x->lines[i].name, line->name))
        i++;
    if (i == x->n_lines) {
        if (!ARENA_PUSH(a, x->lines, x->n_lines, x->capacity))
            return false;
        x->lines[i] = (struct line_time){.name = line->name};
    }
    x->lines[i].lines++;
    x->lines[i].busy_ps = op_add(x->lines[i].busy_ps, line->busy_ps);
    return true;
}

/* Lines of the devices, but those that an analyser derived from a GPU's streams. */
static bool add_trace(struct attribution *x, const struct trace *t, struct arena *a)
{
    for (uint32_t i = 0; i < t->n_lines; i++) {
        const struct trace_line *line = &t->lines[i];
        const enum trace_plane_kind kind = t->planes[line->plane_index].kind;
        const bool shown = kind == TRACE_PLANE_TPU
                               ? !str_starts(line->name, S("_"))
                               : kind == TRACE_PLANE_GPU && !spans_is_derived(line->name);
        if (!shown || line->n_events == 0)
            continue;
        if (kind == TRACE_PLANE_TPU && spans_is_work_line(t, i))
            x->total_ps = op_add(x->total_ps, line->busy_ps);
        if (!add_line(x, line, a))
            return false;
    }
    return true;
}

static bool add_gpus(struct attribution *x, const struct profile *p, struct arena *a, struct err *e)
{
    struct work_devices devices;
    if (!work_devices_of(p, a, &devices, e))
        return false;
    for (uint32_t i = 0; i < devices.n; i++) {
        const struct work_device *d = &devices.items[i];
        if (d->plane_index != UINT32_MAX &&
            d->trace->planes[d->plane_index].kind == TRACE_PLANE_GPU)
            x->total_ps = op_add(x->total_ps, spans_within(&d->busy, d->from_ps, d->to_ps));
    }
    return true;
}

static bool attribution_of(const struct tool_request *r, struct arena *a, struct attribution *x,
                           struct err *e)
{
    *x = (struct attribution){0};
    for (uint32_t i = 0; i < r->profile->n_traces; i++)
        if (!add_trace(x, r->profile->traces[i], a))
            return arena_full(a, e);
    return add_gpus(x, r->profile, a, e) && kernel_times_of(r->profile, a, &x->kernels, e) &&
           overview_of(r->profile, a, &x->overview, e);
}

/* --- our own tables ------------------------------------------------------------------------------- */

static bool add_lines(struct table *t, const struct attribution *x, struct err *e)
{
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("lines"), S("Devices"), CELL_U64, S(""));
    table_column(t, S("busy_ps"), S("In use"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < x->n_lines; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(t->arena, e);
        row[0] = cell_text(x->lines[i].name);
        row[1] = cell_u64(x->lines[i].lines);
        row[2] = cell_u64(x->lines[i].busy_ps);
    }
    if (x->n_lines == 0)
        table_note(t, S("no_device_lines"), 1,
                   "no line of a device is in the profile (CPUs run on the host's threads)");
    table_value(t, S("device_time_ps"), S("Device time"),
                x->n_lines > 0 ? cell_u64(x->total_ps) : cell_unknown(), S("ps"));
    table_value(t, S("custom_call_ps"), S("In custom calls"),
                x->n_lines > 0 ? cell_u64(x->overview.cost.custom_call_ps) : cell_unknown(),
                S("ps"));
    return true;
}

static bool attribution_run(const struct tool_request *r, struct arena *a, struct table **out,
                            struct err *e)
{
    struct attribution x;
    if (!attribution_of(r, a, &x, e))
        return false;
    struct table *t = *out =
        table_new(a, S("get_device_time_attribution"), S("Device time by line"));
    const bool ok = t != NULL ? add_lines(t, &x, e) : arena_full(a, e);
    overview_release(&x.overview);
    return ok;
}

/* --- XProf's form ---------------------------------------------------------------------------------- */

static void put_totals(struct json *j, const struct attribution *x)
{
    const double ps = (double)x->total_ps, custom = (double)x->overview.cost.custom_call_ps;
    xprof_cli_number(j, "total_device_duration_ns", ps / 1e3, 0);
    xprof_cli_number(j, "total_device_duration_us", ps / 1e6, 3);
    xprof_cli_number(j, "total_device_duration_ms", ps / 1e9, 6);
    json_key(j, "by_line_duration_ns");
    json_object(j);
    for (uint32_t i = 0; i < x->n_lines; i++) {
        json_key_str(j, x->lines[i].name);
        json_f64(j, round((double)x->lines[i].busy_ps / 1e3));
    }
    json_end(j);
    xprof_cli_number(j, "custom_call_duration_us", custom / 1e6, 3);
    xprof_cli_number(j, "custom_call_share_pct", ps > 0 ? 100 * custom / ps : NAN, 2);
}

/* What encloses others (while) has their time in its own, so that of a TPU the lines tell the sum. */
static void put_kernels(struct json *j, const struct attribution *x, uint64_t limit)
{
    const struct kernel_times *k = &x->kernels;
    uint64_t all_ps = 0;
    const uint32_t shown = k->n < limit ? k->n : (uint32_t)limit;
    json_key(j, "kernel_records");
    json_array(j);
    for (uint32_t i = 0; i < k->n; i++) {
        all_ps = op_add(all_ps, k->items[i].total_ps);
        if (i < shown)
            kernel_time_put(j, &k->items[i]);
    }
    json_end(j);
    json_kbool(j, "truncated", shown < k->n);
    json_ku64(j, "total_records", k->n);
    json_ku64(j, "returned_records", shown);
    xprof_cli_number(j, "total_duration_us_all_records",
                     (double)(x->overview.pods.is_tpu ? x->total_ps : all_ps) / 1e6, 4);
}

static void put_steps(struct json *j, const struct step_summary *s)
{
    json_key(j, "step_durations_us");
    json_array(j);
    for (uint32_t i = 0; i < s->n; i++)
        json_f64(j, (double)pod_core_ps(pod_longest(&s->shown[i]->cores)) / 1e6);
    json_end(j);
    json_key(j, "stats");
    json_object(j);
    xprof_cli_number(j, "mean_us", s->n > 0 ? 1e3 * sample_mean(&s->step_ms) : NAN, 4);
    xprof_cli_number(j, "std_us", s->n > 1 ? 1e3 * sample_deviation(&s->step_ms) : NAN, 4);
    json_end(j);
}

static bool attribution_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                              struct err *e)
{
    struct attribution x;
    struct json j;
    uint64_t limit;
    if (!op_limit(r, S("limit"), KERNELS_SHOWN, &limit, e) || !attribution_of(r, a, &x, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    if (x.n_lines == 0) {
        json_kcstr(&j, "info",
                   "The profile has no lines of devices; hlo_stats has the operations of a CPU.");
    } else {
        put_totals(&j, &x);
        put_kernels(&j, &x, limit);
        put_steps(&j, &x.overview.steps);
    }
    overview_release(&x.overview);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_device_time_attribution = {.run = attribution_run,
                                                                .xprof = attribution_xprof};
