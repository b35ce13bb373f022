/* SPDX-License-Identifier: Apache-2.0 */
/* input_pipeline_analyzer: how long steps wait for input, and where the host spends its time for it. */
#include "analysis/host_input.h"
#include "analysis/op_xprof.h"
#include "analysis/pod_table.h"
#include "analysis/step_table.h"
#include "analysis/tool.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

struct analysis {
    struct op_db db;
    struct pod_steps pods;
    struct step_summary steps;
    struct host_input input;
};

static bool analyse(const struct tool_request *r, struct arena *a, struct analysis *x,
                    struct err *e)
{
    if (!op_db_build(&x->db, r->profile, (str){0}, a, e))
        return false;
    const bool ok = pod_steps_of(r->profile, x->db.groupings, a, &x->pods, e) &&
                    step_summary_of(&x->pods, x->db.backend, a, &x->steps, e) &&
                    host_input_of(r->profile, a, &x->input, e);
    if (!ok)
        op_db_release(&x->db);
    return ok;
}

/* --- our own tables --------------------------------------------------------------------------- */

static bool add_steps(struct table *t, const struct pod_steps *pods, struct err *e)
{
    const struct pod_table p = pod_table_of(pods);
    uint64_t steps_ps = 0, input_ps = 0;
    pod_columns(t);
    table_column(t, S("core"), S("Longest on"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < pods->n; i++) {
        const struct pod_core *c = pod_longest(&pods->items[i].cores);
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(t->arena, e);
        pod_cells(&p, &pods->items[i], c, row);
        row[POD_COLUMNS] = cell_text(pod_core_name(pods, c, t->arena));
        steps_ps = op_add(steps_ps, pod_core_ps(c));
        input_ps = op_add(input_ps, c->class_ps[POD_INPUT]);
    }
    const bool known = p.shown[POD_INPUT] && steps_ps > 0;
    table_value(t, S("steps"), S("Steps"), pods->n > 0 ? cell_u64(pods->n) : cell_unknown(), S(""));
    table_value(t, S("input_percent"), S("Input"),
                known ? cell_f64(100.0 * (double)input_ps / (double)steps_ps) : cell_unknown(),
                S("%"));
    if (pods->n == 0)
        table_note(t, S("no_steps"), 1, "no step marker: step times are unknown");
    return pod_straggler_values(pods, t, e);
}

static bool add_operations(struct table *t, const struct host_input *in, struct err *e)
{
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("kind"), S("Kind"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("self_share_percent"), S("Self share"), CELL_F64, S("%"));
    for (uint32_t i = 0; i < in->n; i++) {
        const struct host_op *op = in->items[i].op;
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(t->arena, e);
        row[0] = cell_text(op->name);
        row[1] = cell_text(str_from(input_kind_name(in->items[i].kind)));
        row[2] = cell_u64(op->occurrences);
        row[3] = cell_u64(op->time_ps);
        row[4] = cell_u64(op->self_ps);
        row[5] = in->self_ps > 0 ? cell_f64(100.0 * (double)op->self_ps / (double)in->self_ps)
                                 : cell_unknown();
    }
    if (in->n == 0)
        table_note(t, S("no_input_operations"), 1,
                   "nothing that the host did is known as work for input");
    return true;
}

static bool pipeline_run(const struct tool_request *r, struct arena *a, struct table **out,
                         struct err *e)
{
    struct analysis x = {0};
    if (!analyse(r, a, &x, e))
        return false;
    struct table *t = *out = table_new(a, S("input_pipeline_analyzer"), S("Steps"));
    struct table *ops = table_new(a, S("input_operations"), S("The host's work for input"));
    bool ok = t != NULL && ops != NULL;
    if (!ok)
        (void)arena_full(a, e);
    ok = ok && add_steps(t, &x.pods, e) && add_operations(ops, &x.input, e);
    if (ok)
        t->next = ops;
    op_db_release(&x.db);
    return ok;
}

/* --- XProf's form ------------------------------------------------------------------------------ */

/* Of the core that waits longest for input. */
static const struct pod_core *waits_longest(const struct pod_step *step)
{
    const struct pod_core *longest = &step->cores.items[0];
    for (uint32_t i = 1; i < step->cores.n; i++)
        if (step->cores.items[i].tpu->part_ps[CORE_INFEED] > longest->tpu->part_ps[CORE_INFEED])
            longest = &step->cores.items[i];
    return longest;
}

/* On TPU, a column a step: its number, and the core that waits longest in it. */
static bool cores_table(struct json *j, const struct analysis *x, struct arena *a, struct err *e)
{
    const struct step_summary *s = &x->steps;
    const uint32_t n = x->pods.is_tpu ? s->n + 1 : 0;
    struct datatable_column *columns = ARENA_ARRAY(a, struct datatable_column, n);
    if (columns == NULL && n > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < n; i++) {
        const str id = i == 0 ? S("index") : arena_printf(a, "%u", i - 1);
        columns[i] =
            (struct datatable_column){arena_cstr(a, id), i == 0 ? "Index" : "", "string", NULL};
        if (columns[i].id == NULL)
            return arena_full(a, e);
    }
    datatable_begin(j, columns, n);
    for (uint32_t row = 0; n > 0 && row < 2; row++) {
        datatable_row(j);
        datatable_text(j, row == 0 ? S("Step number") : S("Core name"));
        for (uint32_t i = 0; i < s->n; i++)
            datatable_text(j, row == 0 ? arena_printf(a, "%lld", (long long)s->shown[i]->number)
                                       : pod_core_name(&x->pods, waits_longest(s->shown[i]), a));
        datatable_row_end(j);
    }
    datatable_properties(j);
    datatable_end(j);
    return true;
}

static void put_us(struct json *j, const char *key, double ps)
{
    json_key(j, key);
    json_strf(j, "%.3f", ps / 1e6);
}

static void operations_table(struct json *j, const struct host_input *in)
{
    static const struct datatable_column columns[] = {
        {"opName", "Input operation", "string", NULL},
        {"count", "Count", "number", NULL},
        {"timeInMs", "Total time (in ms)", "number", NULL},
        {"timeInPercent", "Total time (of all work for input)", "number", NULL},
        {"selfTimeInMs", "Self time (in ms)", "number", NULL},
        {"selfTimeInPercent", "Self time (of all work for input)", "number", NULL},
        {"category", "Category", "string", NULL},
    };
    const double all = in->self_ps > 0 ? (double)in->self_ps : 1;
    datatable_begin(j, columns, COUNT(columns));
    for (uint32_t i = 0; i < in->n; i++) {
        const struct host_op *op = in->items[i].op;
        datatable_row(j);
        datatable_text(j, op->name);
        datatable_number(j, (double)op->occurrences);
        datatable_number(j, (double)op->time_ps / 1e9);
        datatable_number(j, (double)op->time_ps / all);
        datatable_number(j, (double)op->self_ps / 1e9);
        datatable_number(j, (double)op->self_ps / all);
        datatable_text(j, str_from(input_kind_name(in->items[i].kind)));
        datatable_row_end(j);
    }
    datatable_properties(j);
    put_us(j, "enqueue_us", in->part_ps[INPUT_ENQUEUE]);
    put_us(j, "demanded_file_read_us", in->part_ps[INPUT_DEMANDED_READ]);
    put_us(j, "advanced_file_read_us", in->part_ps[INPUT_ADVANCED_READ]);
    put_us(j, "preprocessing_us", in->part_ps[INPUT_PREPROCESSING]);
    put_us(j, "unclassified_nonequeue_us", in->unclassified_ps);
    datatable_end(j);
}

static void advice_table(struct json *j)
{
    static const struct datatable_column columns[] = {{"link", "link", "string", NULL}};
    static const char *const tips[] = {
        "Enqueuing: feed fewer and larger pieces.",
        "Preprocessing: use more workers of the loader, or do it once, before the training.",
        "Reading files ahead: read more of them at once, with larger buffers.",
        "Reading files on demand: read them ahead of the step that needs them (prefetch).",
        "Other reading and processing: mark it in the program, so that a profile shows it."};
    datatable_begin(j, columns, COUNT(columns));
    for (uint32_t i = 0; i < COUNT(tips); i++) {
        datatable_row(j);
        datatable_text(j, str_from(tips[i]));
        datatable_row_end(j);
    }
    datatable_properties(j);
    datatable_end(j);
}

static bool pipeline_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                           struct err *e)
{
    struct analysis x = {0};
    struct json j;
    if (!analyse(r, a, &x, e))
        return false;
    json_init_buf(&j, out);
    json_array(&j);
    const bool ok = cores_table(&j, &x, a, e);
    step_table_xprof(&j, &x.steps);
    operations_table(&j, &x.input);
    advice_table(&j);
    op_xprof_diagnostics(&j, x.steps.n == 0);
    json_end(&j);
    op_db_release(&x.db);
    return ok && json_done(&j, e);
}

const struct tool_functions tool_input_pipeline_analyzer = {.run = pipeline_run,
                                                            .xprof = pipeline_xprof};
