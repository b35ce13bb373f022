/* SPDX-License-Identifier: Apache-2.0 */
/* get_step_trace: each step as its slowest core had it, what it went into and what it had most of.
 *
 * XProf adds up parts that it takes from several cores (here the least, there the most or the mean) and
 * calls the sum the step. Here a step is that of the core where it lasts longest, with that core's own
 * parts, so that they sum to it; the slow device is named. */
#include "analysis/op_brief.h"
#include "analysis/pod_table.h"
#include "analysis/step_table.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define STEPS_SHOWN 20

enum part { PART_COMPUTE = 0, PART_COMMUNICATION, PART_INFEED, PART_OUTFEED, PART_IDLE, PARTS };

static const char *const part_keys[PARTS] = {"compute", "communication", "infeed", "outfeed",
                                             "idle"};
static const char *const part_names[PARTS] = {"Compute", "Communication", "Infeed", "Outfeed",
                                              "Idle / Other"};

struct trace_row {
    const struct pod_step *step;
    const struct pod_core *core;
    uint64_t ps[PARTS];
};

struct trace_rows {
    struct trace_row *items;
    uint32_t n;
    struct sample step_ms, part_ms[PARTS];
};

static struct trace_row row_of(const struct pod_step *step)
{
    const struct pod_core *c = pod_longest(&step->cores);
    struct trace_row row = {.step = step, .core = c};
    row.ps[PART_COMPUTE] = c->class_ps[POD_COMPUTE];
    row.ps[PART_COMMUNICATION] = c->class_ps[POD_COLLECTIVE] + c->class_ps[POD_DEVICE];
    row.ps[PART_INFEED] = c->class_ps[POD_INPUT];
    row.ps[PART_OUTFEED] = c->class_ps[POD_OUTPUT];
    row.ps[PART_IDLE] = pod_core_ps(c);
    for (uint32_t i = 0; i < PART_IDLE; i++)
        row.ps[PART_IDLE] -= row.ps[i] < row.ps[PART_IDLE] ? row.ps[i] : row.ps[PART_IDLE];
    return row;
}

static enum part most(const double *of)
{
    enum part max = PART_COMPUTE;
    for (uint32_t i = 1; i < PARTS; i++)
        if (of[i] > of[max])
            max = (enum part)i;
    return max;
}

static bool add_row(struct trace_rows *rows, const struct pod_step *step)
{
    struct trace_row *row = &rows->items[rows->n++];
    *row = row_of(step);
    sample_add(&rows->step_ms, (double)pod_core_ps(row->core) / 1e9);
    for (uint32_t i = 0; i < PARTS; i++)
        sample_add(&rows->part_ms[i], (double)row->ps[i] / 1e9);
    return true;
}

/* --- our own table ----------------------------------------------------------------------------- */

static bool trace_run(const struct tool_request *r, struct arena *a, struct table **out,
                      struct err *e)
{
    struct pod_steps pods;
    if (!pod_steps_of(r->profile, NULL, a, &pods, e))
        return false;
    struct table *t = *out = table_new(a, S("get_step_trace"), S("Steps"));
    if (t == NULL)
        return arena_full(a, e);
    const struct pod_table p = pod_table_of(&pods);
    pod_columns(t);
    table_column(t, S("core"), S("Longest on"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < pods.n; i++) {
        const struct pod_list *l =
            pods.items[i].devices.n > 0 ? &pods.items[i].devices : &pods.items[i].cores;
        const struct pod_core *c = pod_longest(l);
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(a, e);
        pod_cells(&p, &pods.items[i], c, row);
        row[POD_COLUMNS] = cell_text(pod_core_name(&pods, c, a));
    }
    if (pods.n == 0)
        table_note(t, S("no_steps"), 1, "no step marker: step times are unknown");
    return pod_straggler_values(&pods, t, e);
}

/* --- XProf's form ------------------------------------------------------------------------------ */

static void put_part(struct json *j, enum part part, const char *ending, double ms, double step_ms)
{
    char key[64];
    snprintf(key, sizeof key, "%s_time_ms%s", part_keys[part], ending);
    xprof_cli_number(j, key, ms, 4);
    snprintf(key, sizeof key, "%s_percent", part_keys[part]);
    xprof_cli_number(j, key, step_ms > 0 ? 100 * ms / step_ms : 0, 2);
}

static void put_communication(struct json *j, const struct pod_core *c)
{
    json_key(j, "communication_breakdown_ms");
    json_object(j);
    xprof_cli_number(j, "all_reduce_ms", (double)c->class_ps[POD_COLLECTIVE] / 1e9, 4);
    xprof_cli_number(j, "between_devices_ms", (double)c->class_ps[POD_DEVICE] / 1e9, 4);
    json_end(j);
}

static void put_step(struct json *j, const struct step_summary *s, const struct trace_row *row,
                     struct arena *a)
{
    double ms[PARTS];
    const double step_ms = (double)pod_core_ps(row->core) / 1e9;
    json_object(j);
    if (s->backend == OP_BACKEND_CPU && row->step->has_number) { /* as the program marked it */
        json_key(j, "step_num");
        json_strf(j, "%.*s %lld", STR_ARG(row->step->name), (long long)row->step->number);
    } else {
        json_ki64(j, "step_num", row->step->number);
    }
    xprof_cli_number(j, "step_time_ms", step_ms, 4);
    for (uint32_t i = 0; i < PARTS; i++) {
        ms[i] = (double)row->ps[i] / 1e9;
        put_part(j, (enum part)i, "", ms[i], step_ms);
    }
    json_kcstr(j, "bottleneck", part_names[most(ms)]);
    json_kstr(j, "longest_on", pod_core_name(s->pods, row->core, a));
    if (row->ps[PART_COMMUNICATION] > 0)
        put_communication(j, row->core);
    json_end(j);
}

static bool put_straggler(struct json *j, const struct pod_steps *pods, struct arena *a,
                          struct err *e)
{
    struct straggler slow;
    if (!pod_straggler(pods, a, &slow, e))
        return false;
    json_key(j, "straggler");
    if (slow.core == NULL) {
        json_null(j);
        return true;
    }
    json_object(j);
    json_kstr(j, "core", pod_core_name(pods, slow.core, a));
    xprof_cli_number(j, "compute_time_ms", slow.compute_ps / 1e9, 4);
    xprof_cli_number(j, "others_compute_time_ms", slow.others_ps / 1e9, 4);
    json_end(j);
    return true;
}

static bool put_summary(struct json *j, const struct step_summary *s, const struct trace_rows *rows,
                        struct arena *a, struct err *e)
{
    double ms[PARTS];
    const double step_ms = sample_mean(&rows->step_ms);
    json_key(j, "summary");
    json_object(j);
    json_ku64(j, "total_steps", rows->n);
    xprof_cli_number(j, "step_time_ms_average", step_ms, 4);
    xprof_cli_number(j, "step_time_ms_min", rows->step_ms.min, 4);
    xprof_cli_number(j, "step_time_ms_max", rows->step_ms.max, 4);
    xprof_cli_number(j, "step_time_ms_stddev", sample_deviation(&rows->step_ms), 4);
    for (uint32_t i = 0; i < PARTS; i++) {
        ms[i] = sample_mean(&rows->part_ms[i]);
        put_part(j, (enum part)i, "_average", ms[i], step_ms);
    }
    json_kcstr(j, "primary_bottleneck", part_names[most(ms)]);
    json_kbool(j, "is_aggregate", false);
    const bool ok = put_straggler(j, s->pods, a, e);
    json_end(j);
    return ok;
}

/* GPU: all steps; CPU: without the first and the last, as XProf does. */
static bool rows_of(const struct step_summary *s, struct arena *a, struct trace_rows *rows,
                    struct err *e)
{
    rows->items = ARENA_ARRAY(a, struct trace_row, s->pods->n);
    if (rows->items == NULL && s->pods->n > 0)
        return arena_full(a, e);
    if (s->backend == OP_BACKEND_CPU) {
        for (uint32_t i = 0; i < s->n; i++)
            add_row(rows, s->shown[i]);
        return true;
    }
    for (uint32_t i = 0; i < s->pods->n; i++)
        if (pod_step_is_whole(s->pods, &s->pods->items[i]))
            add_row(rows, &s->pods->items[i]);
    return true;
}

static bool put_all(struct json *j, const struct tool_request *r, const struct step_summary *s,
                    uint64_t limit, struct arena *a, struct err *e)
{
    struct trace_rows rows = {0};
    bool ok = rows_of(s, a, &rows, e);
    const uint32_t shown = rows.n < limit ? rows.n : (uint32_t)limit;
    xprof_cli_begin(j, r);
    if (rows.n == 0) {
        json_kcstr(j, "status", "NO_DATA");
        json_kcstr(j, "message", "no step is marked in the profile");
    } else {
        ok = ok && put_summary(j, s, &rows, a, e);
    }
    json_key(j, "step_breakdown");
    json_array(j);
    for (uint32_t i = 0; i < shown; i++)
        put_step(j, s, &rows.items[i], a);
    json_end(j);
    json_kbool(j, "truncated", shown < rows.n);
    json_ku64(j, "total_records", rows.n);
    json_ku64(j, "returned_records", shown);
    return ok;
}

static bool trace_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                        struct err *e)
{
    struct op_db db;
    struct pod_steps pods;
    struct step_summary s;
    struct json j;
    uint64_t limit;
    if (!op_limit(r, S("limit"), STEPS_SHOWN, &limit, e) ||
        !op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    bool ok = pod_steps_of(r->profile, db.groupings, a, &pods, e) &&
              step_summary_of(&pods, db.backend, a, &s, e);
    if (ok) {
        json_init_buf(&j, out);
        ok = put_all(&j, r, &s, limit, a, e);
    }
    op_db_release(&db);
    return ok && xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_step_trace = {.run = trace_run, .xprof = trace_xprof};
