/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pod_table.h"

static bool any(const struct pod_steps *s, enum pod_class class)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->items[i].cores.n; k++)
            if (s->items[i].cores.items[k].class_ps[class] > 0)
                return true;
    return false;
}

struct pod_table pod_table_of(const struct pod_steps *s)
{
    struct pod_table p = {.pods = s};
    bool has_devices = false;
    for (uint32_t i = 0; i < s->n; i++)
        has_devices |= s->items[i].devices.n > 0;
    for (uint32_t class = 0; class < POD_CLASSES; class ++)
        p.shown[class] = has_devices || any(s, (enum pod_class) class);
    p.shown[POD_HOST] = !s->is_tpu;
    p.shown[POD_LAUNCH] = !s->is_tpu && has_devices; /* a CPU is not launched on */
    p.shown[POD_INPUT] = any(s, POD_INPUT);
    p.shown[POD_COMPILE] = any(s, POD_COMPILE);
    p.shown[POD_OTHER] = true;
    return p;
}

static const struct {
    str name, title;
} parts[POD_CLASSES] = {{STR_INIT("compute_ps"), STR_INIT("Compute")},
                        {STR_INIT("device_copy_ps"), STR_INIT("Between devices")},
                        {STR_INIT("collective_ps"), STR_INIT("Collectives")},
                        {STR_INIT("host_compute_ps"), STR_INIT("Host")},
                        {STR_INIT("launch_ps"), STR_INIT("Launches")},
                        {STR_INIT("input_ps"), STR_INIT("Input")},
                        {STR_INIT("output_ps"), STR_INIT("Output")},
                        {STR_INIT("compile_ps"), STR_INIT("Compilation")},
                        {STR_INIT("other_ps"), STR_INIT("Rest")}};

void pod_columns(struct table *t)
{
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("duration_ps"), S("Duration"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < POD_CLASSES; i++)
        table_column(t, parts[i].name, parts[i].title, CELL_U64, S("ps"));
    table_column(t, S("bottleneck"), S("Most"), CELL_TEXT, S(""));
}

void pod_cells(const struct pod_table *p, const struct pod_step *step, const struct pod_core *c,
               struct cell *row)
{
    row[0] = cell_i64(step->number);
    row[1] = cell_u64(pod_core_ps(c));
    for (uint32_t i = 0; i < POD_CLASSES; i++)
        row[2 + i] = p->shown[i] ? cell_u64(c->class_ps[i]) : cell_unknown();
    row[2 + POD_CLASSES] = cell_text(str_from(pod_class_name(pod_bottleneck(c))));
}

bool pod_straggler_values(const struct pod_steps *s, struct table *t, struct err *e)
{
    struct straggler slow;
    if (!pod_straggler(s, t->arena, &slow, e))
        return false;
    if (slow.n_devices < 2)
        return true;
    table_value(t, S("straggler"), S("Slow device"),
                slow.core == NULL ? cell_text(S("none"))
                                  : cell_text(pod_core_name(s, slow.core, t->arena)),
                S(""));
    table_value(t, S("slowest_compute_ps"), S("Its compute a step"),
                cell_u64((uint64_t)slow.compute_ps), S("ps"));
    table_value(t, S("others_compute_ps"), S("That of the others"),
                cell_u64((uint64_t)slow.others_ps), S("ps"));
    return true;
}
