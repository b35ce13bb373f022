/* SPDX-License-Identifier: Apache-2.0 */
/* get_top_hlo_ops: the operations that took most time, computed most and moved most. */
#include "analysis/op_brief.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define LIMIT 10 /* XProf's, unless asked for more */

enum { LISTS = OP_BRIEF_BY_BYTES + 1 };

struct question {
    str category;
    uint64_t limit;
};

struct answer {
    struct op_db db;
    struct op_briefs briefs;
    const struct op_brief **lists[LISTS];
    uint32_t n[LISTS];
};

static bool read_question(const struct tool_request *r, struct question *q, struct err *e)
{
    q->category = tool_param(r, S("category_filter"));
    return op_limit(r, S("limit"), LIMIT, &q->limit, e);
}

static bool answer_of(const struct tool_request *r, enum op_briefs_form form,
                      const struct question *q, struct arena *a, struct answer *x, struct err *e)
{
    *x = (struct answer){0};
    if (!op_db_build(&x->db, r->profile, (str){0}, a, e))
        return false;
    bool ok = op_briefs_of(&x->briefs, &x->db, form, a, e);
    for (int i = 0; ok && i < LISTS; i++) {
        x->lists[i] = op_briefs_by(&x->briefs, (enum op_brief_order)i, q->category, a, &x->n[i]);
        ok = x->lists[i] != NULL || arena_full(a, e);
    }
    if (!ok)
        op_db_release(&x->db);
    return ok;
}

/* --- our own tables --------------------------------------------------------------------------- */

static struct table *list_table(const struct answer *x, int list, uint64_t limit, struct arena *a)
{
    static const str names[LISTS][2] = {
        {STR_INIT("top_by_time"), STR_INIT("By time")},
        {STR_INIT("top_by_flops"), STR_INIT("By FLOP")},
        {STR_INIT("top_by_bytes_accessed"), STR_INIT("By bytes moved")},
    };
    struct table *t = table_new(a, names[list][0], names[list][1]);
    if (t == NULL)
        return NULL;
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("flops"), S("FLOP"), CELL_U64, S(""));
    table_column(t, S("bytes"), S("Moved"), CELL_U64, S("bytes"));
    table_column(t, S("cost_source"), S("Cost from"), CELL_TEXT, S(""));
    table_column(t, S("program_id"), S("Program"), CELL_U64, S(""));
    for (uint32_t i = 0; i < x->n[list] && i < limit; i++) {
        const struct op_brief *o = x->lists[list][i];
        const bool known = o->op != NULL && o->source != OP_COST_UNKNOWN &&
                           (o->source == OP_COST_SHAPES || o->op->has_cost);
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        row[0] = cell_text(o->name);
        row[1] = cell_text(o->category);
        row[2] = cell_u64(o->self_ps);
        row[3] = cell_u64(o->occurrences);
        row[4] = known ? cell_u64(o->flops) : cell_unknown();
        row[5] = known || o->bytes > 0 ? cell_u64(o->bytes) : cell_unknown();
        if (known)
            row[6] = cell_text(op_cost_source_name(o->source));
        if (o->op != NULL)
            row[7] = o->op->program_id > 0 ? cell_u64(o->op->program_id) : cell_unknown();
    }
    return t;
}

static bool get_top_hlo_ops_run(const struct tool_request *r, struct arena *a, struct table **out,
                                struct err *e)
{
    struct question q;
    struct answer x;
    if (!read_question(r, &q, e) || !answer_of(r, OP_BRIEFS_OURS, &q, a, &x, e))
        return false;
    struct table **to = out;
    *out = NULL;
    for (int i = 0; i < LISTS; i++, to = &(*to)->next)
        if ((*to = list_table(&x, i, q.limit, a)) == NULL)
            break;
    const bool ok = a->overflow == 0 && *out != NULL;
    if (ok)
        op_db_values(&x.db, *out);
    op_db_release(&x.db);
    return ok || arena_full(a, e);
}

/* --- XProf's form ------------------------------------------------------------------------------ */

static void write_name(struct json *j, const struct op_brief *o)
{
    json_key(j, "name");
    if (o->op != NULL && str_eq(o->category, S("custom-call")) && o->op->provenance.n > 0)
        json_strf(j, "%.*s [%.*s]", STR_ARG(o->path), STR_ARG(o->op->provenance));
    else
        json_str(j, o->path);
}

static void write_amount(struct json *j, const char *key, const struct op_brief *o, uint64_t v)
{
    if (o->source == OP_COST_UNKNOWN)
        json_knull(j, key);
    else
        json_ku64(j, key, v);
}

static void write_item(struct json *j, const struct op_brief *o)
{
    json_object(j);
    write_name(j, o);
    json_kstr(j, "category", o->category);
    json_kf64(j, "total_self_time_ms", (double)o->self_ps / 1e9);
    json_ku64(j, "occurrences", o->occurrences);
    write_amount(j, "flops", o, o->flops);
    write_amount(j, "bytes_accessed", o, o->bytes);
    json_kstr(j, "flops_provenance", op_cost_source_name(o->source));
    const bool placed = o->op != NULL && o->op->source_file.n > 0;
    json_kstr(j, "source_file", placed ? o->op->source_file : (str){0});
    if (placed)
        json_ki64(j, "source_line", o->op->source_line);
    else
        json_knull(j, "source_line");
    if (o->op != NULL && o->op->source_stack.n > 0)
        json_kstr(j, "stack_frame", o->op->source_stack);
    json_end(j);
}

static bool get_top_hlo_ops_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                  struct err *e)
{
    static const char *const keys[LISTS] = {"top_by_time", "top_by_flops", "top_by_bytes_accessed"};
    struct question q;
    struct answer x;
    struct json j;
    if (!read_question(r, &q, e) || !answer_of(r, OP_BRIEFS_XPROF, &q, a, &x, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    for (int i = 0; i < LISTS; i++) {
        json_key(&j, keys[i]);
        json_array(&j);
        for (uint32_t k = 0; k < x.n[i] && k < q.limit; k++)
            write_item(&j, x.lists[i][k]);
        json_end(&j);
    }
    const uint32_t matched = x.n[OP_BRIEF_BY_TIME];
    json_ku64(&j, "total_matched", matched);
    json_kbool(&j, "truncated", q.limit < matched);
    json_ku64(&j, "total_records", x.briefs.n);
    json_ku64(&j, "returned_records", q.limit < matched ? q.limit : matched);
    xprof_cli_number(&j, "total_self_time_ms_all_records", (double)x.briefs.self_ps / 1e9, 4);
    json_key(&j, "metric_semantics");
    json_object(&j);
    json_kcstr(&j, "source", "op_profile");
    json_kcstr(&j, "total_self_time_ms",
               "time of the operation itself, without those it runs, on all cores together");
    json_kcstr(&j, "flops",
               "of all occurrences, as the model counts them; null where they are not known");
    json_kcstr(&j, "bytes_accessed",
               "of all occurrences, in the memories that the profile names; null where not known");
    json_end(&j);
    op_db_release(&x.db);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_top_hlo_ops = {.run = get_top_hlo_ops_run,
                                                    .xprof = get_top_hlo_ops_xprof};
