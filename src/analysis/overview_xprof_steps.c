/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/overview_xprof.h"

#include <math.h>

#include "analysis/step_parts.h"
#include "analysis/steps.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

void sample_add(struct sample *s, double v)
{
    s->min = s->n == 0 || v < s->min ? v : s->min;
    s->max = s->n == 0 || v > s->max ? v : s->max;
    s->sum += v;
    s->squares += v * v;
    s->n++;
}

double sample_mean(const struct sample *s)
{
    return s->n > 0 ? s->sum / s->n : 0;
}

double sample_deviation(const struct sample *s)
{
    if (s->n < 2)
        return 0;
    const double over = (s->squares - s->sum * s->sum / s->n) / (s->n - 1);
    return over > 0 ? sqrt(over) : 0; /* rounding may leave it just below 0 */
}

/* --- GPU and CPU: one breakdown a step ------------------------------------------------------- */

enum part {
    PART_COMPUTE = 0,
    PART_DEVICE_COPY,
    PART_COLLECTIVES,
    PART_HOST,
    PART_LAUNCH,
    PART_INPUT,
    PART_OUTPUT,
    PART_COMPILE,
    PART_OTHER,
    PARTS
};

static const struct datatable_column generic_columns[] = {
    {"stepnum", "Step number", "string", NULL},
    {"deviceComputeTimeMs", "Device compute", "number", NULL},
    {"deviceToDeviceTimeMs", "Device to device", "number", NULL},
    {"deviceCollectivesTimeMs", "Device collective communication", "number", NULL},
    {"hostComputeTimeMs", "Host compute", "number", NULL},
    {"kernelLaunchTimeMs", "Kernel launch", "number", NULL},
    {"infeedTimeMs", "Input", "number", NULL},
    {"outfeedTimeMs", "Output", "number", NULL},
    {"compileTimeMs", "Compilation", "number", NULL},
    {"otherTimeMs", "All others", "number", NULL},
    {"tooltip", "tooltip", "string", "tooltip"},
    {"stepTimeMs", "Step time", "number", NULL},
};
static const char *const part_names[PARTS] = {
    "device_compute", "device_to_device", "device_collectives",
    "host_compute",   "kernel_launch",    "infeed",
    "outfeed",        "compile",          "other"};

static void put_ms(struct json *j, const char *name, const char *ending, double v)
{
    char key[64];
    snprintf(key, sizeof key, "%s_ms_%s", name, ending);
    json_key(j, key);
    json_strf(j, "%.1f", v);
}

static void generic_properties(struct json *j, enum op_backend backend,
                               const struct sample *step_ms, const struct sample *parts)
{
    static const char *const empty[] = {"input_conclusion",
                                        "summary_nextstep",
                                        "device_collectives_bottleneck",
                                        "device_collectives_statement",
                                        "kernel_launch_bottleneck",
                                        "kernel_launch_statement",
                                        "all_other_bottleneck",
                                        "all_other_statement"};
    json_kcstr(j, "hardware_type", backend == OP_BACKEND_GPU ? "GPU" : "CPU_ONLY");
    json_kcstr(j, "step_time_graph_column_ids",
               "stepnum,deviceComputeTimeMs,deviceToDeviceTimeMs,deviceCollectivesTimeMs,"
               "hostComputeTimeMs,"
               "kernelLaunchTimeMs,infeedTimeMs,outfeedTimeMs,compileTimeMs,otherTimeMs, tooltip");
    put_ms(j, "steptime", "average", sample_mean(step_ms));
    put_ms(j, "steptime", "standard_deviation", sample_deviation(step_ms));
    put_ms(j, "steptime", "minimum", step_ms->min);
    put_ms(j, "steptime", "maximum", step_ms->max);
    for (uint32_t i = 0; i < PARTS; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s_time", part_names[i]);
        put_ms(j, name, "avg", sample_mean(&parts[i]));
        put_ms(j, name, "sdv", sample_deviation(&parts[i]));
    }
    for (uint32_t i = 0; i < COUNT(empty); i++)
        json_kcstr(j, empty[i], "");
}

/* The first and the last of more than five may be cut off by the profile's ends. */
#define STEPS_UNCUT 5

enum row_name { ROW_MARKER, ROW_GROUP, ROW_INDEX }; /* XProf's: CPU; GPU; GPU of several hosts */

static void generic_row(struct json *j, const struct step_parts *s, enum row_name name,
                        uint32_t index, struct sample *parts, struct buf *text)
{
    const uint64_t *ps = s->class_ps;
    const uint64_t values[PARTS] = {[PART_COMPUTE] = ps[STEP_COMPUTE_16] + ps[STEP_COMPUTE_32],
                                    [PART_DEVICE_COPY] = ps[STEP_D2D],
                                    [PART_COLLECTIVES] = ps[STEP_COLLECTIVE],
                                    [PART_HOST] = ps[STEP_HOST],
                                    [PART_LAUNCH] = ps[STEP_LAUNCH],
                                    [PART_INPUT] = ps[STEP_WAIT_INPUT] + ps[STEP_H2D],
                                    [PART_OUTPUT] = ps[STEP_D2H],
                                    [PART_OTHER] = s->other_ps};
    datatable_row(j);
    buf_clear(text);
    if (name != ROW_MARKER || !s->has_number)
        buf_addf(text, "%d", name == ROW_INDEX ? (int)index : s->group);
    else
        buf_addf(text, "%.*s %lld", STR_ARG(s->name), (long long)s->number);
    datatable_text(j, buf_str(text));
    for (uint32_t i = 0; i < PARTS; i++) {
        datatable_number(j, (double)values[i] / 1e9);
        sample_add(&parts[i], (double)values[i] / 1e9);
    }
    const double ms = (double)(s->end_ps - s->begin_ps) / 1e9;
    buf_addf(text, ": %.2f ms", ms);
    datatable_text(j, buf_str(text));
    datatable_number(j, ms);
    datatable_row_end(j);
}

static double percent_of(const struct sample *part, const struct sample *step_ms)
{
    return step_ms->sum > 0 ? 100.0 * part->sum / step_ms->sum : 0;
}

static uint32_t cut_of(const struct steps_parts *s)
{
    return s->n > STEPS_UNCUT ? 1 : 0;
}

static void generic_rows(struct json *j, const struct steps_parts *s, enum row_name name,
                         struct sample *parts, struct overview_steps *out)
{
    struct buf text;
    buf_init(&text, 4096);
    for (uint32_t i = cut_of(s); i < s->n - cut_of(s); i++) {
        generic_row(j, &s->items[i], name, i - cut_of(s), parts, &text);
        out->compute_16_ps += (double)s->items[i].class_ps[STEP_COMPUTE_16];
        out->compute_32_ps += (double)s->items[i].class_ps[STEP_COMPUTE_32];
    }
    buf_release(&text);
}

/* Of several hosts, the first one's rows are shown; a step lasts as long as on the host where it
 * lasts longest. */
static bool measure_hosts(const struct profile *p, const struct op_db *db, struct arena *a,
                          struct steps_parts *first, struct sample *step_ms, struct err *e)
{
    struct steps_parts *hosts = ARENA_ARRAY(a, struct steps_parts, p->n_traces);
    if (hosts == NULL && p->n_traces > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < p->n_traces; i++) {
        if (!step_parts_of(p->traces[i], db->groupings[i], a, &hosts[i], e))
            return false;
        if (hosts[i].n != hosts[0].n)
            return err_set(
                e, ERR_USAGE,
                "overview_page has no form of XProf's for hosts with unlike numbers of steps");
    }
    if (p->n_traces == 0)
        return true;
    *first = hosts[0];
    for (uint32_t k = cut_of(first); k < first->n - cut_of(first); k++) {
        uint64_t longest = 0;
        for (uint32_t i = 0; i < p->n_traces; i++) {
            const uint64_t ps = hosts[i].items[k].end_ps - hosts[i].items[k].begin_ps;
            longest = ps > longest ? ps : longest;
        }
        sample_add(step_ms, (double)longest / 1e9);
    }
    return true;
}

bool overview_steps_generic(struct json *j, const struct profile *p, const struct op_db *db,
                            struct arena *a, struct overview_steps *out, struct err *e)
{
    struct sample step_ms = {0}, parts[PARTS] = {{0}};
    struct steps_parts steps = {0};
    if (!measure_hosts(p, db, a, &steps, &step_ms, e))
        return false;
    const enum row_name name = db->backend != OP_BACKEND_GPU ? ROW_MARKER
                               : p->n_traces > 1             ? ROW_INDEX
                                                             : ROW_GROUP;
    datatable_begin(j, generic_columns, COUNT(generic_columns));
    generic_rows(j, &steps, name, parts, out);
    out->n = step_ms.n;
    out->input_percent = percent_of(&parts[PART_INPUT], &step_ms);
    out->other_percent = percent_of(&parts[PART_OTHER], &step_ms);
    out->launch_percent = percent_of(&parts[PART_LAUNCH], &step_ms);
    out->collectives_percent = percent_of(&parts[PART_COLLECTIVES], &step_ms);
    datatable_properties(j);
    generic_properties(j, db->backend, &step_ms, parts);
    datatable_end(j);
    return true;
}

/* --- TPU: cores combined --------------------------------------------------------------------- */

struct tpu_step {  /* over the cores; in picoseconds, a core's own time each */
    int64_t shown; /* the number that XProf shows */
    struct sample duration, active, outfeed, transfer, infeed;
};

static const struct datatable_column tpu_columns[] = {
    {"stepnum", "stepnum", "string", NULL},
    {"tcComputeTimeMs", "TensorCore compute (in ms)", "number", NULL},
    {"scv0ComputeTimeMs", "SparseCoreV0 compute (in ms)", "number", NULL},
    {"scv0InfeedTimeMs", "SparseCoreV0 input (in ms)", "number", NULL},
    {"tcInfeedTimeMs", "TensorCore input (in ms)", "number", NULL},
    {"tcOutfeedTimeMs", "TensorCore output (in ms)", "number", NULL},
    {"tcIdleTimeMs", "TensorCore idle (in ms)", "number", NULL},
    {"hostTransferTimeMs", "Host transfer (in ms)", "number", NULL},
    {"tooltip", "tooltip", "string", "tooltip"},
    {"infeedPercentAverage", "% step time waiting for input data", "number", NULL},
    {"infeedPercentMin", "Infeed percent min", "number", "interval"},
    {"infeedPercentMax", "Infeed percent max", "number", "interval"},
};

static void add_core(struct tpu_step *s, const struct step_core *c)
{
    if (s->duration.n == 0)
        s->shown = c->group == -1 ? c->number : c->group;
    sample_add(&s->duration, (double)(c->end_ps - c->begin_ps));
    sample_add(&s->active, (double)c->active_ps);
    sample_add(&s->outfeed, (double)c->outfeed_ps);
    sample_add(&s->transfer, (double)c->transfer_ps);
    sample_add(&s->infeed, (double)c->infeed_ps);
}

struct tpu_table {
    struct tpu_step *steps; /* in the order of the first core */
    uint32_t n, capacity;
    struct map_u64_u32 by_number;
    struct sample step_ms, compute_ms, infeed_ms, outfeed_ms, idle_ms, transfer_ms, infeed_percent;
};

static bool add_trace(struct tpu_table *t, const struct trace *trace, struct arena *a,
                      struct err *e)
{
    struct host_steps steps;
    if (!steps_of(trace, NULL, a, &steps, e))
        return false;
    for (uint32_t i = 0; i < steps.n_cores; i++) {
        const uint64_t number = (uint64_t)steps.cores[i].number;
        const uint32_t *at = map_u64_u32_get(&t->by_number, number);
        if (at == NULL) {
            if (!ARENA_PUSH(a, t->steps, t->n, t->capacity))
                return arena_full(a, e);
            t->steps[t->n - 1] = (struct tpu_step){0};
            *map_u64_u32_put(&t->by_number, number) = t->n - 1;
        }
        add_core(&t->steps[at == NULL ? t->n - 1 : *at], &steps.cores[i]);
    }
    return true;
}

/* Compute is what the least busy core computed; input what the longest wait took; what then is
 * left of the longest step is idle. */
static void tpu_row(struct json *j, struct tpu_table *t, const struct tpu_step *s, struct buf *text)
{
    const double compute = s->active.min / 1e9, infeed = s->infeed.max / 1e9;
    const double outfeed = sample_mean(&s->outfeed) / 1e9, transfer = s->transfer.max / 1e9;
    const double idle = fmax(0, s->duration.max / 1e9 - compute - infeed - outfeed);
    const double to_percent = s->duration.max > 0 ? 100.0 / s->duration.max : 0;
    const double cells[] = {compute, 0, 0, infeed, outfeed, idle, transfer};
    datatable_row(j);
    buf_clear(text);
    buf_addf(text, "%lld", (long long)s->shown);
    datatable_text(j, buf_str(text));
    for (uint32_t i = 0; i < COUNT(cells); i++)
        datatable_number(j, cells[i]);
    buf_clear(text);
    buf_addf(text, "step %lld: %.3f ms, %.3f ms of it waiting for input", (long long)s->shown,
             s->duration.max / 1e9, infeed);
    datatable_text(j, buf_str(text));
    datatable_number(j, sample_mean(&s->infeed) * to_percent);
    datatable_number(j, s->infeed.min * to_percent);
    datatable_number(j, s->infeed.max * to_percent);
    datatable_row_end(j);
    sample_add(&t->step_ms, s->duration.max / 1e9);
    sample_add(&t->compute_ms, compute);
    sample_add(&t->infeed_ms, infeed);
    sample_add(&t->outfeed_ms, outfeed);
    sample_add(&t->idle_ms, idle);
    sample_add(&t->transfer_ms, transfer);
    sample_add(&t->infeed_percent, s->infeed.max * to_percent);
}

static void put(struct json *j, const char *key, int places, double v)
{
    json_key(j, key);
    json_strf(j, "%.*f", places, v);
}

static void tpu_properties(struct json *j, const struct tpu_table *t, double active_ms)
{
    json_kcstr(j, "hardware_type", "TPU");
    json_kcstr(
        j, "step_time_graph_column_ids",
        "stepnum,tcComputeTimeMs,scv0ComputeTimeMs,scv0InfeedTimeMs,tcInfeedTimeMs,tcOutfeedTimeMs,"
        "tcIdleTimeMs,hostTransferTimeMs,tooltip");
    put(j, "steptime_ms_average", 2, sample_mean(&t->step_ms));
    put(j, "steptime_ms_standard_deviation", 2, sample_deviation(&t->step_ms));
    put(j, "steptime_ms_minimum", 2, t->step_ms.min);
    put(j, "steptime_ms_maximum", 2, t->step_ms.max);
    put(j, "infeed_percent_average", 1, sample_mean(&t->infeed_percent));
    put(j, "infeed_percent_standard_deviation", 1, sample_deviation(&t->infeed_percent));
    put(j, "infeed_percent_minimum", 1, t->infeed_percent.min);
    put(j, "infeed_percent_maximum", 1, t->infeed_percent.max);
    put(j, "tc_compute_ms_average", 2, sample_mean(&t->compute_ms));
    put(j, "tc_infeed_ms_average", 2, sample_mean(&t->infeed_ms));
    put(j, "tc_outfeed_ms_average", 2, sample_mean(&t->outfeed_ms));
    put(j, "tc_idle_ms_average", 2, sample_mean(&t->idle_ms));
    put(j, "host_transfer_ms_average", 2, sample_mean(&t->transfer_ms));
    put(j, "scv0_compute_ms_average", 2, 0);
    put(j, "scv0_infeed_ms_average", 2, 0);
    put(j, "active_steptime_ms_average", 2, active_ms);
    put(j, "tc_active_ms_average", 2, active_ms);
    json_kcstr(j, "input_conclusion", "");
    json_kcstr(j, "output_conclusion", "");
    json_kcstr(j, "summary_nextstep", "");
}

bool overview_steps_tpu(struct json *j, const struct profile *p, struct arena *a,
                        struct overview_steps *out, struct err *e)
{
    struct tpu_table t = {0};
    struct buf text;
    bool ok = true;
    buf_init(&text, 4096);
    for (uint32_t i = 0; ok && i < p->n_traces; i++)
        ok = add_trace(&t, p->traces[i], a, e);
    if (ok) {
        datatable_begin(j, tpu_columns, COUNT(tpu_columns));
        for (uint32_t i = 0; i < t.n; i++) {
            tpu_row(j, &t, &t.steps[i], &text);
            sample_add(&out->active_ms, sample_mean(&t.steps[i].active) / 1e9);
        }
        out->n = t.n;
        datatable_properties(j);
        tpu_properties(j, &t, sample_mean(&out->active_ms));
        datatable_end(j);
    }
    buf_release(&text);
    map_u64_u32_release(&t.by_number);
    return ok;
}
