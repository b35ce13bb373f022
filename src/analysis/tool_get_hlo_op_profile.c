/* SPDX-License-Identifier: Apache-2.0 */
/* get_hlo_op_profile: the time of each category, and the operations that took most in it; of one category,
 * all of them. */
#include <stdlib.h>

#include "analysis/op_brief.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define LIMIT 5 /* operations of a category, as XProf shows them; of the one asked for all */

struct category {
    str name;
    uint64_t self_ps, flops, bytes;
    bool has_cost;   /* of one operation at least, as XProf counts: all but custom calls */
    bool knows_cost; /* of one operation at least */
    uint32_t n;
    const struct op_brief **items; /* by time */
    uint32_t n_items, capacity;
};

struct answer {
    struct op_db db;
    struct op_briefs briefs;
    struct category *categories; /* by time, then name */
    uint32_t n, capacity;
    const struct category *asked; /* NULL: all are */
};

static int by_time(const void *x, const void *y)
{
    const struct category *a = x, *b = y;
    if (a->self_ps != b->self_ps)
        return a->self_ps > b->self_ps ? -1 : 1;
    return str_cmp(a->name, b->name);
}

/* An operation of PyTorch without its inputs' shapes has none. */
static bool knows_cost(const struct op_brief *o)
{
    return o->source == OP_COST_SHAPES ||
           (o->source == OP_COST_MODEL && (o->op == NULL || o->op->has_cost));
}

static bool gather(struct answer *x, struct arena *a)
{
    struct map_str_u32 at = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < x->briefs.n; i++) {
        const struct op_brief *o = &x->briefs.items[i];
        const uint32_t *known = map_str_u32_get(&at, o->category);
        if (known == NULL) {
            if (!(ok = ARENA_PUSH(a, x->categories, x->n, x->capacity)))
                break;
            x->categories[x->n - 1] = (struct category){.name = o->category};
            *map_str_u32_put(&at, o->category) = x->n - 1;
        }
        struct category *c = &x->categories[known == NULL ? x->n - 1 : *known];
        c->self_ps = op_add(c->self_ps, o->self_ps);
        if (o->source != OP_COST_UNKNOWN) {
            c->flops = op_add(c->flops, o->flops);
            c->bytes = op_add(c->bytes, o->bytes);
            c->has_cost = true;
            c->knows_cost |= knows_cost(o);
        }
        ok = ARENA_PUSH(a, c->items, c->n_items, c->capacity);
        if (ok)
            c->items[c->n_items - 1] = o;
    }
    map_str_u32_release(&at);
    if (x->n > 1)
        qsort(x->categories, x->n, sizeof *x->categories, by_time);
    return ok;
}

static bool find_asked(const struct tool_request *r, struct answer *x, struct err *e)
{
    const str name = tool_param(r, S("category"));
    for (uint32_t i = 0; i < x->n && x->asked == NULL; i++)
        if (str_eq(x->categories[i].name, name))
            x->asked = &x->categories[i];
    return name.n == 0 || x->asked != NULL ||
           err_set(e, ERR_NOT_FOUND, "the profile has no category '%.*s'", STR_ARG(name));
}

static bool answer_of(const struct tool_request *r, enum op_briefs_form form, struct arena *a,
                      struct answer *x, struct err *e)
{
    *x = (struct answer){0};
    if (!op_db_build(&x->db, r->profile, (str){0}, a, e))
        return false;
    const bool ok = op_briefs_of(&x->briefs, &x->db, form, a, e) &&
                    (gather(x, a) || arena_full(a, e)) && find_asked(r, x, e);
    if (!ok)
        op_db_release(&x->db);
    return ok;
}

/* --- our own table ---------------------------------------------------------------------------- */

static struct cell amount(uint64_t v, bool known)
{
    return known ? cell_u64(v) : cell_unknown();
}

static struct table *operations_table(const struct answer *x, struct arena *a)
{
    struct table *t = table_new(a, S("operations"), S("Operations of the category"));
    if (t == NULL)
        return NULL;
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("category_share_percent"), S("Of the category"), CELL_F64, S("%"));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    for (uint32_t i = 0; i < x->asked->n_items; i++) {
        const struct op_brief *o = x->asked->items[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        row[0] = cell_text(o->name);
        row[1] = cell_u64(o->self_ps);
        if (x->asked->self_ps > 0)
            row[2] = cell_f64(100.0 * (double)o->self_ps / (double)x->asked->self_ps);
        row[3] = cell_u64(o->occurrences);
    }
    return t;
}

static bool get_hlo_op_profile_run(const struct tool_request *r, struct arena *a,
                                   struct table **out, struct err *e)
{
    struct answer x;
    if (!answer_of(r, OP_BRIEFS_OURS, a, &x, e))
        return false;
    struct table *t = *out = table_new(a, S("categories"), S("Categories of operations"));
    if (t != NULL) {
        table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
        table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
        table_column(t, S("self_share_percent"), S("Share"), CELL_F64, S("%"));
        table_column(t, S("operations"), S("Operations"), CELL_U64, S(""));
        table_column(t, S("flops"), S("FLOP"), CELL_U64, S(""));
        table_column(t, S("bytes"), S("Moved"), CELL_U64, S("bytes"));
        table_column(t, S("top_operation"), S("Most of it"), CELL_TEXT, S(""));
        for (uint32_t i = 0; i < x.n; i++) {
            const struct category *c = &x.categories[i];
            struct cell *row = table_row(t);
            if (row == NULL)
                break;
            row[0] = cell_text(c->name);
            row[1] = cell_u64(c->self_ps);
            if (x.db.total_ps > 0)
                row[2] = cell_f64(100.0 * (double)c->self_ps / (double)x.db.total_ps);
            row[3] = cell_u64(c->n_items);
            row[4] = amount(c->flops, c->knows_cost);
            row[5] = amount(c->bytes, c->knows_cost);
            row[6] = cell_text(c->items[0]->name);
        }
        op_db_values(&x.db, t);
        if (x.asked != NULL)
            t->next = operations_table(&x, a);
    }
    op_db_release(&x.db);
    return (t != NULL && (x.asked == NULL || t->next != NULL)) || arena_full(a, e);
}

/* --- XProf's form ------------------------------------------------------------------------------ */

static double ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}

static void write_amounts(struct json *j, const char *flops_key, uint64_t flops, uint64_t bytes,
                          bool known)
{
    if (known) {
        json_ku64(j, flops_key, flops);
        json_ku64(j, "bytes_accessed", bytes);
    } else {
        json_knull(j, flops_key);
        json_knull(j, "bytes_accessed");
    }
}

static void write_category(struct json *j, const struct answer *x, const struct category *c)
{
    json_object(j);
    json_kstr(j, "category", c->name);
    xprof_cli_number(j, "total_self_time_ms", (double)c->self_ps / 1e9, 4);
    xprof_cli_number(j, "fraction_of_total_time", ratio(c->self_ps, x->briefs.total_ps), 4);
    write_amounts(j, "total_flops", c->flops, c->bytes, c->has_cost);
    json_ku64(j, "op_count", c->n_items);
    json_kstr(j, "top_op", c->items[0]->name);
    json_end(j);
}

static void write_item(struct json *j, const struct op_brief *o, const struct category *c)
{
    json_object(j);
    json_kstr(j, "name", o->group_path);
    json_kstr(j, "category", o->category);
    xprof_cli_number(j, "total_self_time_ms", (double)o->self_ps / 1e9, 4);
    json_ku64(j, "occurrences", o->op == NULL ? 1 : o->occurrences); /* XProf's IDLE is once */
    write_amounts(j, "flops", o->flops, o->bytes, o->source != OP_COST_UNKNOWN);
    json_kstr(j, "flops_provenance", op_cost_source_name(o->source));
    if (o->op != NULL && o->op->source_file.n > 0) {
        json_kstr(j, "source_file", o->op->source_file);
        json_ki64(j, "source_line", o->op->source_line);
        if (o->op->source_stack.n > 0)
            json_kstr(j, "stack_frame", o->op->source_stack);
    }
    xprof_cli_number(j, "category_fraction", ratio(o->self_ps, c->self_ps), 4);
    json_end(j);
}

static bool get_hlo_op_profile_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                     struct err *e)
{
    struct answer x;
    struct json j;
    if (!answer_of(r, OP_BRIEFS_XPROF, a, &x, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    xprof_cli_number(&j, "total_profile_time_ms", (double)x.briefs.total_ps / 1e9, 4);
    json_key(&j, "category_summary");
    json_array(&j);
    for (uint32_t i = 0; i < x.n; i++)
        write_category(&j, &x, &x.categories[i]);
    json_end(&j);
    json_key(&j, "grouped_operations");
    json_object(&j);
    for (uint32_t i = 0; i < x.n; i++) {
        const struct category *c = &x.categories[i];
        if (x.asked != NULL && c != x.asked)
            continue;
        json_key_str(&j, c->name);
        json_array(&j);
        for (uint32_t k = 0; k < c->n_items && (k < LIMIT || c == x.asked); k++)
            write_item(&j, c->items[k], c);
        json_end(&j);
    }
    json_end(&j);
    op_db_release(&x.db);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_hlo_op_profile = {.run = get_hlo_op_profile_run,
                                                       .xprof = get_hlo_op_profile_xprof};
