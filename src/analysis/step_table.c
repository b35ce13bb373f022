/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/step_table.h"

#include <math.h>

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

/* The first and the last of more than so many may be cut off by the profile's ends. */
#define STEPS_UNCUT 5

/* --- what the steps say in sum --------------------------------------------------------------- */

struct tpu_step { /* over the cores */
    double step_ms, compute_ms, infeed_ms, outfeed_ms, idle_ms, transfer_ms, active_ms;
    double infeed_percent_mean, infeed_percent_min, infeed_percent_max;
};

static struct tpu_step tpu_step_of(const struct pod_step *step)
{
    struct sample duration = {0}, active = {0}, outfeed = {0}, transfer = {0}, infeed = {0};
    for (uint32_t i = 0; i < step->cores.n; i++) {
        const struct pod_core *c = &step->cores.items[i];
        sample_add(&duration, (double)pod_core_ps(c));
        sample_add(&active, (double)c->tpu->active_ps);
        sample_add(&outfeed, (double)c->tpu->part_ps[CORE_OUTFEED]);
        sample_add(&transfer, (double)step_core_transfer_ps(c->tpu));
        sample_add(&infeed, (double)c->tpu->part_ps[CORE_INFEED]);
    }
    const double to_percent = duration.max > 0 ? 100.0 / duration.max : 0;
    struct tpu_step s = {.step_ms = duration.max / 1e9,
                         .compute_ms = active.min / 1e9,
                         .infeed_ms = infeed.max / 1e9,
                         .outfeed_ms = sample_mean(&outfeed) / 1e9,
                         .transfer_ms = transfer.max / 1e9,
                         .active_ms = sample_mean(&active) / 1e9,
                         .infeed_percent_mean = sample_mean(&infeed) * to_percent,
                         .infeed_percent_min = infeed.min * to_percent,
                         .infeed_percent_max = infeed.max * to_percent};
    s.idle_ms = fmax(0, s.step_ms - s.compute_ms - s.infeed_ms - s.outfeed_ms);
    return s;
}

static void sum_tpu(struct step_summary *s, const struct pod_step *step)
{
    const struct tpu_step t = tpu_step_of(step);
    sample_add(&s->step_ms, t.step_ms);
    sample_add(&s->tpu_compute_ms, t.compute_ms);
    sample_add(&s->infeed_ms, t.infeed_ms);
    sample_add(&s->outfeed_ms, t.outfeed_ms);
    sample_add(&s->idle_ms, t.idle_ms);
    sample_add(&s->transfer_ms, t.transfer_ms);
    sample_add(&s->active_ms, t.active_ms);
    sample_add(&s->infeed_percent, t.infeed_percent_max);
}

static void sum_generic(struct step_summary *s, const struct pod_step *step)
{
    const struct pod_core *c = pod_longest(&step->cores);
    sample_add(&s->step_ms, (double)pod_core_ps(c) / 1e9);
    for (uint32_t i = 0; i < POD_CLASSES; i++)
        sample_add(&s->part_ms[i], (double)c->class_ps[i] / 1e9);
    for (uint32_t i = 0; i < step->devices.n; i++) {
        const struct pod_core *d = &step->devices.items[i];
        s->compute_ps += (double)d->class_ps[POD_COMPUTE];
        s->compute_16_ps += (double)d->compute_16_ps;
    }
}

static double percent_of(const struct sample *part, const struct sample *step_ms)
{
    return step_ms->sum > 0 ? 100.0 * part->sum / step_ms->sum : 0;
}

bool step_summary_of(const struct pod_steps *pods, enum op_backend backend, struct arena *a,
                     struct step_summary *out, struct err *e)
{
    *out = (struct step_summary){.pods = pods, .backend = backend};
    out->shown = ARENA_ARRAY(a, const struct pod_step *, pods->n);
    if (out->shown == NULL && pods->n > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < pods->n; i++)
        if (pod_step_is_whole(pods, &pods->items[i]))
            out->shown[out->n++] = &pods->items[i];
    if (!pods->is_tpu && out->n > STEPS_UNCUT) {
        out->shown++;
        out->n -= 2;
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (pods->is_tpu)
            sum_tpu(out, out->shown[i]);
        else
            sum_generic(out, out->shown[i]);
    out->input_percent =
        percent_of(pods->is_tpu ? &out->infeed_ms : &out->part_ms[POD_INPUT], &out->step_ms);
    out->other_percent = percent_of(&out->part_ms[POD_OTHER], &out->step_ms);
    out->launch_percent = percent_of(&out->part_ms[POD_LAUNCH], &out->step_ms);
    out->collectives_percent = percent_of(&out->part_ms[POD_COLLECTIVE], &out->step_ms);
    return true;
}

const char *step_binds(double percent_of_step, double moderate, double high)
{
    return percent_of_step < moderate ? "no" : percent_of_step < high ? "moderate" : "high";
}

/* --- what they mean, in words ---------------------------------------------------------------- */

static void put_conclusion(struct json *j, const struct step_summary *s)
{
    const char *next = "";
    json_key(j, "input_conclusion");
    if (s->n == 0) {
        json_cstr(j, "No step is marked: how long steps take and wait is unknown.");
    } else if (s->input_percent >= BINDS_INPUT_MODERATE) {
        json_strf(j, "%.1f%% of the step time waits for input: %s.", s->input_percent,
                  s->input_percent >= BINDS_INPUT_HIGH ? "the input comes first"
                                                       : "both input and the rest count");
        next = "The table of the host's input operations says where it goes.";
    } else if (!s->pods->is_tpu && s->other_percent >= BINDS_MODERATE) {
        json_strf(j,
                  "%.1f%% of the step time is in none of the parts: the host may prepare input in "
                  "it, unseen.",
                  s->other_percent);
        next = "The trace viewer shows what the host's threads do in it.";
    } else {
        json_strf(j, "Only %.1f%% of the step time waits for input.", s->input_percent);
    }
    json_kcstr(j, "summary_nextstep", next);
}

static void put_statement(struct json *j, const char *part, const char *name, double percent,
                          bool counts)
{
    static const char *const endings[] = {"bottleneck", "statement"};
    for (uint32_t i = 0; i < COUNT(endings); i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_%s", part, endings[i]);
        json_key(j, key);
        if (counts && percent >= BINDS_MODERATE)
            json_strf(j, "%.1f%% of the step time goes into %s.", percent, name);
        else
            json_cstr(j, "");
    }
}

/* --- GPU and CPU: one breakdown a step ------------------------------------------------------- */

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
static const char *const part_names[POD_CLASSES] = {
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

static void generic_properties(struct json *j, const struct step_summary *s)
{
    json_kcstr(j, "hardware_type", s->backend == OP_BACKEND_GPU ? "GPU" : "CPU_ONLY");
    json_kcstr(j, "step_time_graph_column_ids",
               "stepnum,deviceComputeTimeMs,deviceToDeviceTimeMs,deviceCollectivesTimeMs,"
               "hostComputeTimeMs,"
               "kernelLaunchTimeMs,infeedTimeMs,outfeedTimeMs,compileTimeMs,otherTimeMs, tooltip");
    put_ms(j, "steptime", "average", sample_mean(&s->step_ms));
    put_ms(j, "steptime", "standard_deviation", sample_deviation(&s->step_ms));
    put_ms(j, "steptime", "minimum", s->step_ms.min);
    put_ms(j, "steptime", "maximum", s->step_ms.max);
    for (uint32_t i = 0; i < POD_CLASSES; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s_time", part_names[i]);
        put_ms(j, name, "avg", sample_mean(&s->part_ms[i]));
        put_ms(j, name, "sdv", sample_deviation(&s->part_ms[i]));
    }
    put_conclusion(j, s);
    put_statement(j, "device_collectives", "collective operations", s->collectives_percent, true);
    put_statement(j, "kernel_launch", "launching kernels", s->launch_percent, true);
    /* without input to blame, the conclusion has said it */
    put_statement(j, "all_other", "none of the parts", s->other_percent,
                  s->input_percent >= BINDS_INPUT_MODERATE);
}

static str generic_label(const struct step_summary *s, const struct pod_step *step,
                         struct buf *text)
{
    buf_clear(text);
    if (s->backend != OP_BACKEND_GPU && step->has_number)
        buf_addf(text, "%.*s ", STR_ARG(step->name));
    buf_addf(text, "%lld", (long long)step->number);
    return buf_str(text);
}

static void generic_row(struct json *j, const struct step_summary *s, const struct pod_step *step,
                        struct buf *text)
{
    const struct pod_core *c = pod_longest(&step->cores);
    const double ms = (double)pod_core_ps(c) / 1e9;
    datatable_row(j);
    datatable_text(j, generic_label(s, step, text));
    for (uint32_t i = 0; i < POD_CLASSES; i++)
        datatable_number(j, (double)c->class_ps[i] / 1e9);
    buf_addf(text, ": %.2f ms", ms);
    datatable_text(j, buf_str(text));
    datatable_number(j, ms);
    datatable_row_end(j);
}

/* --- TPU: cores combined --------------------------------------------------------------------- */

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

static void tpu_row(struct json *j, const struct pod_step *step, struct buf *text)
{
    const struct tpu_step s = tpu_step_of(step);
    const double cells[] = {s.compute_ms, 0, 0, s.infeed_ms, s.outfeed_ms, s.idle_ms,
                            s.transfer_ms};
    datatable_row(j);
    buf_clear(text);
    buf_addf(text, "%lld", (long long)step->number);
    datatable_text(j, buf_str(text));
    for (uint32_t i = 0; i < COUNT(cells); i++)
        datatable_number(j, cells[i]);
    buf_clear(text);
    buf_addf(text, "step %lld: %.3f ms, %.3f ms of it waiting for input", (long long)step->number,
             s.step_ms, s.infeed_ms);
    datatable_text(j, buf_str(text));
    datatable_number(j, s.infeed_percent_mean);
    datatable_number(j, s.infeed_percent_min);
    datatable_number(j, s.infeed_percent_max);
    datatable_row_end(j);
}

static void put(struct json *j, const char *key, int places, double v)
{
    json_key(j, key);
    json_strf(j, "%.*f", places, v);
}

static void tpu_properties(struct json *j, const struct step_summary *s)
{
    json_kcstr(j, "hardware_type", "TPU");
    json_kcstr(
        j, "step_time_graph_column_ids",
        "stepnum,tcComputeTimeMs,scv0ComputeTimeMs,scv0InfeedTimeMs,tcInfeedTimeMs,tcOutfeedTimeMs,"
        "tcIdleTimeMs,hostTransferTimeMs,tooltip");
    put(j, "steptime_ms_average", 2, sample_mean(&s->step_ms));
    put(j, "steptime_ms_standard_deviation", 2, sample_deviation(&s->step_ms));
    put(j, "steptime_ms_minimum", 2, s->step_ms.min);
    put(j, "steptime_ms_maximum", 2, s->step_ms.max);
    put(j, "infeed_percent_average", 1, sample_mean(&s->infeed_percent));
    put(j, "infeed_percent_standard_deviation", 1, sample_deviation(&s->infeed_percent));
    put(j, "infeed_percent_minimum", 1, s->infeed_percent.min);
    put(j, "infeed_percent_maximum", 1, s->infeed_percent.max);
    put(j, "tc_compute_ms_average", 2, sample_mean(&s->tpu_compute_ms));
    put(j, "tc_infeed_ms_average", 2, sample_mean(&s->infeed_ms));
    put(j, "tc_outfeed_ms_average", 2, sample_mean(&s->outfeed_ms));
    put(j, "tc_idle_ms_average", 2, sample_mean(&s->idle_ms));
    put(j, "host_transfer_ms_average", 2, sample_mean(&s->transfer_ms));
    put(j, "scv0_compute_ms_average", 2, 0);
    put(j, "scv0_infeed_ms_average", 2, 0);
    put(j, "active_steptime_ms_average", 2, sample_mean(&s->active_ms));
    put(j, "tc_active_ms_average", 2, sample_mean(&s->active_ms));
    json_kcstr(j, "output_conclusion", "");
    put_conclusion(j, s);
}

void step_table_xprof(struct json *j, const struct step_summary *s)
{
    struct buf text;
    buf_init(&text, 4096);
    if (s->pods->is_tpu)
        datatable_begin(j, tpu_columns, COUNT(tpu_columns));
    else
        datatable_begin(j, generic_columns, COUNT(generic_columns));
    for (uint32_t i = 0; i < s->n; i++)
        if (s->pods->is_tpu)
            tpu_row(j, s->shown[i], &text);
        else
            generic_row(j, s, s->shown[i], &text);
    datatable_properties(j);
    if (s->pods->is_tpu)
        tpu_properties(j, s);
    else
        generic_properties(j, s);
    datatable_end(j);
    buf_release(&text);
}
