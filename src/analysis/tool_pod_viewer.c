/* SPDX-License-Identifier: Apache-2.0 */
/* pod_viewer: what every core of every host did in every step, and which device the others wait for. */
#include "analysis/pod_table.h"
#include "analysis/step_table.h"
#include "analysis/tool.h"

#define CORES_OF_A_HOST 1000 /* XProf: core 1 of host 2 is 2001 */

/* --- our own table ----------------------------------------------------------------------------- */

static bool add_rows(struct table *t, const struct pod_steps *pods, struct err *e)
{
    const struct pod_table p = pod_table_of(pods);
    table_column(t, S("core"), S("Core"), CELL_TEXT, S(""));
    pod_columns(t);
    for (uint32_t i = 0; i < pods->n; i++) {
        const struct pod_step *step = &pods->items[i];
        const struct pod_list *l = step->devices.n > 0 ? &step->devices : &step->cores;
        for (uint32_t k = 0; k < l->n; k++) {
            struct cell *row = table_row(t);
            if (row == NULL)
                return arena_full(t->arena, e);
            row[0] = cell_text(pod_core_name(pods, &l->items[k], t->arena));
            pod_cells(&p, step, &l->items[k], &row[1]);
        }
    }
    if (pods->n == 0)
        table_note(t, S("no_steps"), 1, "no step marker: step times are unknown");
    return pod_straggler_values(pods, t, e);
}

static bool pod_run(const struct tool_request *r, struct arena *a, struct table **out,
                    struct err *e)
{
    struct pod_steps pods;
    if (!pod_steps_of(r->profile, NULL, a, &pods, e))
        return false;
    *out = table_new(a, S("pod_viewer"), S("Steps of every core"));
    return *out != NULL ? add_rows(*out, &pods, e) : arena_full(a, e);
}

/* --- XProf's form ------------------------------------------------------------------------------ */

static void put_core(struct json *j, const struct pod_steps *pods, const struct pod_step *step,
                     const struct pod_core *c)
{
    const struct trace *t = pods->profile->traces[c->trace_index];
    const bool alone = c->plane_index != UINT32_MAX;
    const int32_t ordinal =
        alone && t->planes[c->plane_index].ordinal >= 0 ? t->planes[c->plane_index].ordinal : 0;
    char key[16];
    snprintf(key, sizeof key, "%u", c->trace_index * CORES_OF_A_HOST + (alone ? ordinal : 1));
    json_key(j, key);
    json_object(j);
    json_kstr(j, "hostName", t->n_hostnames > 0 ? t->hostnames[0] : trace_target(t));
    json_ki64(j, "chipId", ordinal);
    json_ku64(j, "nodeId", 0);
    json_ki64(j, "stepNum", step->number);
    json_kf64(j, "totalDurationUs", (double)pod_core_ps(c) / 1e6);
    json_kcstr(j, "bottleneck", pod_class_name(pod_bottleneck(c)));
    json_key(j, "stepBreakdownUs");
    json_object(j);
    for (uint32_t i = 0; i < POD_CLASSES; i++) {
        snprintf(key, sizeof key, "%u", i + 1);
        json_kf64(j, key, (double)c->class_ps[i] / 1e6);
    }
    json_end(j);
    json_end(j);
}

static void put_empty(struct json *j, const char *key, void (*open)(struct json *))
{
    json_key(j, key);
    open(j);
    json_end(j);
}

static void put_step(struct json *j, const struct pod_steps *pods, const struct pod_step *step)
{
    json_object(j);
    json_ki64(j, "stepNum", step->number);
    json_key(j, "podStatsPerCore");
    json_object(j);
    for (uint32_t i = 0; i < step->cores.n; i++)
        put_core(j, pods, step, &step->cores.items[i]);
    json_end(j);
    put_empty(j, "channelDb", json_array);
    put_empty(j, "coreIdToReplicaIdMap", json_object);
    put_empty(j, "allReduceOpDb", json_array);
    json_end(j);
}

static void put_diagnostics(struct json *j, uint32_t n_steps)
{
    json_key(j, "diagnostics");
    json_object(j);
    put_empty(j, "info", json_array);
    json_key(j, "warnings");
    json_array(j);
    if (n_steps == 0)
        json_cstr(j, "No step marker: step times are unknown. Mark the steps, or profile longer "
                     "than a step.");
    json_end(j);
    put_empty(j, "errors", json_array);
    json_end(j);
}

static void put_all(struct json *j, const struct step_summary *s, str device_type)
{
    json_object(j);
    json_key(j, "podStatsSequence");
    json_object(j);
    json_key(j, "podStatsMap");
    json_array(j);
    for (uint32_t i = 0; i < s->n; i++)
        put_step(j, s->pods, s->shown[i]);
    json_end(j);
    json_end(j);
    put_diagnostics(j, s->n);
    json_key(j, "stepBreakdownEvents");
    json_array(j);
    for (uint32_t i = 0; i < POD_CLASSES; i++) {
        json_object(j);
        json_ku64(j, "id", i + 1);
        json_kcstr(j, "name", pod_class_name((enum pod_class)i));
        json_end(j);
    }
    json_end(j);
    json_kstr(j, "deviceType", device_type);
    json_end(j);
}

static bool pod_xprof(const struct tool_request *r, struct arena *a, struct buf *out, struct err *e)
{
    struct op_db db;
    struct pod_steps pods;
    struct step_summary s;
    struct json j;
    if (!op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    const bool ok = pod_steps_of(r->profile, db.groupings, a, &pods, e) &&
                    step_summary_of(&pods, db.backend, a, &s, e);
    if (ok) {
        json_init_buf(&j, out);
        put_all(&j, &s, db.device.type);
    }
    op_db_release(&db);
    return ok && json_done(&j, e);
}

const struct tool_functions tool_pod_viewer = {.run = pod_run, .xprof = pod_xprof};
