/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a query that are made whole: the tools', and those of tables.def. */
#include "analysis/steps.h"
#include "model/stack_tree.h"
#include "query/sql_inside.h"

static const struct sql_source own[] = {
#define X(symbol, name, help) {name, "", help, NULL, sql_make_##symbol},
#include "query/tables.def"
#undef X
};
#define N_OWN ((uint32_t)(sizeof own / sizeof *own))

bool sql_sources(struct sql_db *d, struct err *e)
{
    d->sources = ARENA_ARRAY(d->arena, struct sql_source, tool_count + N_OWN);
    if (d->sources == NULL)
        return arena_full(d->arena, e);
    for (uint32_t i = 0; i < N_OWN; i++)
        d->sources[d->n_sources++] = own[i];
    for (uint32_t i = 0; i < tool_count; i++)
        d->sources[d->n_sources++] = (struct sql_source){.name = tool_table[i].name,
                                                         .parameters = tool_table[i].parameters,
                                                         .help = tool_table[i].help,
                                                         .tool = &tool_table[i]};
    return true;
}

bool sql_source_run(const struct sql_db *d, const struct sql_source *s,
                    const struct tool_param *params, uint32_t n, struct table **out, struct err *e)
{
    const struct tool_request r = {.profile = d->profile, .params = params, .n_params = n};
    return s->tool != NULL ? tool_run(s->tool, &r, d->arena, out, e)
                           : s->make(&r, d->arena, out, e) && table_ok(*out, e);
}

bool sql_make_ops(const struct tool_request *r, struct arena *a, struct table **out, struct err *e)
{
    return tool_run(tool_find(S("hlo_stats")), r, a, out, e);
}

bool sql_make_tables(const struct tool_request *r, struct arena *a, struct table **out,
                     struct err *e)
{
    (void)r;
    struct table *t = *out = table_new(a, S("tables"), S("Tables"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("name"), S("Table"), CELL_TEXT, S(""));
    table_column(t, S("parameters"), S("Parameters"), CELL_TEXT, S(""));
    table_column(t, S("help"), S("What it holds"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < 1 + N_OWN + tool_count; i++) {
        const struct tool *tool = i > N_OWN ? &tool_table[i - 1 - N_OWN] : NULL;
        struct cell *row = table_row(t);
        if (row == NULL)
            break; /* table_ok says it */
        row[0] = cell_text(str_from(i == 0         ? "trace"
                                    : tool != NULL ? tool->name
                                                   : own[i - 1].name));
        row[1] = cell_text(str_from(tool != NULL ? tool->parameters : ""));
        row[2] = cell_text(str_from(i == 0         ? "every event"
                                    : tool != NULL ? tool->help
                                                   : own[i - 1].help));
    }
    return true;
}

/* ---- steps ---- */

static struct cell fact_cell(struct fact_ps f)
{
    return f.known ? cell_u64(f.ps) : cell_unknown();
}

static const char *source_word(enum steps_source source)
{
    switch (source) {
    case STEPS_DEVICE:
        return "device";
    case STEPS_HOST:
        return "host";
    case STEPS_IMPLICIT:
        return "implicit";
    case STEPS_NONE:
        break;
    }
    return "none";
}

static bool put_steps(struct table *t, const struct trace *tr, struct arena *a, struct err *e)
{
    struct host_steps s;
    if (!steps_of(tr, NULL, a, &s, e))
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        const struct step *step = &s.items[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(a, e);
        row[0] = tr->host.n > 0 ? cell_text(tr->host) : cell_unknown();
        row[1] = cell_i64(step->number);
        row[2] = cell_text(step->name);
        row[3] = cell_u64(step->start_ps + tr->shift_ps);
        row[4] = cell_u64(step->dur_ps);
        row[5] = fact_cell(step->device_busy_ps);
        row[6] = fact_cell(step->input_ps);
        row[7] = cell_text(str_from(source_word(s.source)));
    }
    return true;
}

bool sql_make_steps(const struct tool_request *r, struct arena *a, struct table **out,
                    struct err *e)
{
    struct table *t = *out = table_new(a, S("steps"), S("Steps"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("name"), S("Name"), CELL_TEXT, S(""));
    table_column(t, S("start_ps"), S("Begin"), CELL_U64, S("ps"));
    table_column(t, S("dur_ps"), S("Length"), CELL_U64, S("ps"));
    table_column(t, S("device_busy_ps"), S("Devices busy"), CELL_U64, S("ps"));
    table_column(t, S("input_ps"), S("Waiting for input"), CELL_U64, S("ps"));
    table_column(t, S("source"), S("Marked by"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < r->profile->n_traces; i++)
        if (!put_steps(t, r->profile->traces[i], a, e))
            return false;
    return true;
}

/* ---- stacks ---- */

static bool put_stack(struct table *t, const struct stack_tree *s, const struct trace *tr,
                      const str *texts, uint32_t node)
{
    const struct stack_node *n = &s->nodes[node];
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = tr->host.n > 0 ? cell_text(tr->host) : cell_unknown();
    row[1] = cell_text(interner_str(&s->names, s->nodes[s->nodes[n->line].parent].name_id));
    row[2] = cell_text(interner_str(&s->names, s->nodes[n->line].name_id));
    row[3] = cell_text(texts[node]);
    row[4] = cell_text(interner_str(&s->names, n->name_id));
    row[5] = cell_u64(n->n);
    row[6] = n->weight == 0 ? cell_u64(n->self_ps) : cell_unknown();
    row[7] = n->weight != 0 ? cell_f64(n->weight) : cell_unknown();
    return true;
}

/* Frames from the line's outermost inward, with ';' between, of each node below a line. */
static str *stack_texts(const struct stack_tree *s, struct arena *a)
{
    str *texts = ARENA_ARRAY(a, str, s->n);
    for (uint32_t i = 0; texts != NULL && i < s->n; i++) {
        const struct stack_node *n = &s->nodes[i];
        const str name = interner_str(&s->names, n->name_id);
        if (n->line == STACK_NONE || n->line == i)
            continue;
        texts[i] = n->parent == n->line
                       ? name
                       : arena_printf(a, "%.*s;%.*s", STR_ARG(texts[n->parent]), STR_ARG(name));
    }
    return texts;
}

static bool fill_stacks(struct stack_tree *s, const struct trace *tr, struct err *e)
{
    for (uint32_t l = 0; l < tr->n_lines; l++) {
        const struct trace_line *line = &tr->lines[l];
        const uint32_t plane = stack_tree_child(s, STACK_NONE, tr->planes[line->plane_index].name);
        const uint32_t node =
            plane == STACK_NONE ? STACK_NONE : stack_tree_line(s, plane, line->name);
        if (node == STACK_NONE)
            return arena_full(s->arena, e);
        if (!stack_tree_add(s, node, tr, l, 0, UINT64_MAX, e))
            return false;
    }
    return true;
}

static bool put_stacks(struct table *t, const struct trace *tr, struct arena *a, struct err *e)
{
    struct stack_tree s;
    stack_tree_init(&s, a);
    bool ok = fill_stacks(&s, tr, e);
    const str *texts = ok ? stack_texts(&s, a) : NULL;
    for (uint32_t i = 0; ok && i < s.n; i++)
        if (s.nodes[i].n > 0 && (texts == NULL || !put_stack(t, &s, tr, texts, i)))
            ok = arena_full(a, e);
    if (s.n_left_out > 0)
        table_note(t, S("stacks_left_out"), s.n_left_out,
                   "events overlapped too many others to stand on a stack: left out");
    stack_tree_release(&s);
    return ok;
}

bool sql_make_stacks(const struct tool_request *r, struct arena *a, struct table **out,
                     struct err *e)
{
    struct table *t = *out = table_new(a, S("stacks"), S("Stacks"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("stack"), S("Stack"), CELL_TEXT, S(""));
    table_column(t, S("name"), S("Innermost"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("self_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("weight"), S("Weight"), CELL_F64, S(""));
    for (uint32_t i = 0; i < r->profile->n_traces; i++)
        if (!put_stacks(t, r->profile->traces[i], a, e))
            return false;
    return true;
}
