/* SPDX-License-Identifier: Apache-2.0 */
/* get_profile_summary, also called export_json: how long the profile was and which operations took
 * most. XProf ranks the whole, its programs, categories and operations in one list; these are
 * operations only. */
#include "analysis/op_brief.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define OPERATIONS 10

static bool briefs_of(const struct tool_request *r, enum op_briefs_form form, struct arena *a,
                      struct op_db *db, struct op_briefs *b, struct err *e)
{
    if (!op_db_build(db, r->profile, (str){0}, a, e))
        return false;
    if (op_briefs_of(b, db, form, a, e))
        return true;
    op_db_release(db);
    return false;
}

/* The next operation at *i or behind it, of those that are shown; NULL: none. */
static const struct op_brief *next(const struct op_briefs *b, uint32_t *i, uint32_t *shown)
{
    while (*i < b->n && *shown < OPERATIONS) {
        const struct op_brief *o = &b->items[(*i)++];
        if (o->op == NULL)
            continue; /* IDLE */
        (*shown)++;
        return o;
    }
    return NULL;
}

static bool are_more(const struct op_briefs *b, uint32_t i)
{
    while (i < b->n && b->items[i].op == NULL)
        i++;
    return i < b->n;
}

static double share(const struct op_brief *o, uint64_t whole_ps)
{
    return whole_ps > 0 ? (double)o->self_ps / (double)whole_ps : 0;
}

static bool get_profile_summary_run(const struct tool_request *r, struct arena *a,
                                    struct table **out, struct err *e)
{
    struct op_db db;
    struct op_briefs b;
    if (!briefs_of(r, OP_BRIEFS_OURS, a, &db, &b, e))
        return false;
    struct table *t = *out = table_new(a, S("profile_summary"), S("Operations that took most"));
    if (t != NULL) {
        table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
        table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
        table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
        table_column(t, S("self_share_percent"), S("Share"), CELL_F64, S("%"));
        uint32_t i = 0, shown = 0;
        for (const struct op_brief *o; (o = next(&b, &i, &shown)) != NULL;) {
            struct cell *row = table_row(t);
            if (row == NULL)
                break;
            row[0] = cell_text(o->name);
            row[1] = cell_text(o->category);
            row[2] = cell_u64(o->self_ps);
            row[3] = cell_f64(100 * share(o, db.total_ps));
        }
        op_db_values(&db, t);
    }
    op_db_release(&db);
    return t != NULL || arena_full(a, e);
}

static void write_markdown(struct json *j, const struct tool_request *r, const struct op_briefs *b,
                           struct buf *text)
{
    uint32_t i = 0, shown = 0;
    buf_addf(text,
             "Profile summary of %.*s\nTotal time of all cores: %.4f s\n\n"
             "Operations by self time:\n| Name | Self time (s) | Share |\n|---|---|---|",
             STR_ARG(r->profile->name), (double)b->total_ps / 1e12);
    for (const struct op_brief *o; (o = next(b, &i, &shown)) != NULL;)
        buf_addf(text, "\n| %.*s | %.4f | %.1f%% |", STR_ARG(o->name), (double)o->self_ps / 1e12,
                 100 * share(o, b->total_ps));
    json_kstr(j, "summary_markdown", buf_str(text));
    json_kstr(j, "markdown_summary", buf_str(text));
}

static bool get_profile_summary_xprof(const struct tool_request *r, struct arena *a,
                                      struct buf *out, struct err *e)
{
    struct op_db db;
    struct op_briefs b;
    struct buf text;
    struct json j;
    if (!briefs_of(r, OP_BRIEFS_XPROF, a, &db, &b, e))
        return false;
    buf_init(&text, out->cap);
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_kcstr(&j, "status", "SUCCESS");
    json_kstr(&j, "session_id", r->profile->name);
    xprof_cli_number(&j, "total_time_s", (double)b.total_ps / 1e12, 6);
    json_key(&j, "top_operations");
    json_array(&j);
    uint32_t i = 0, shown = 0;
    for (const struct op_brief *o; (o = next(&b, &i, &shown)) != NULL;) {
        json_object(&j);
        json_kstr(&j, "name", o->name);
        xprof_cli_number(&j, "self_time_s", (double)o->self_ps / 1e12, 6);
        xprof_cli_number(&j, "fraction", share(o, b.total_ps), 6);
        json_end(&j);
    }
    json_end(&j);
    write_markdown(&j, r, &b, &text);
    json_kbool(&j, "truncated", are_more(&b, i));
    json_key(&j, "notes");
    json_array(&j);
    json_end(&j);
    op_db_release(&db);
    const bool ok = buf_ok(&text, "the summary", e);
    buf_release(&text);
    return xprof_cli_end(&j, e) && ok;
}

const struct tool_functions tool_get_profile_summary = {.run = get_profile_summary_run,
                                                        .xprof = get_profile_summary_xprof};
const struct tool_functions tool_export_json = {.run = get_profile_summary_run,
                                                .xprof = get_profile_summary_xprof};
