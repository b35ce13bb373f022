/* SPDX-License-Identifier: Apache-2.0 */
#include "model/table_print.h"
#include "report/build.h"
#include "report/print.h"

static str joined(struct arena *a, const str *items, uint32_t n)
{
    str out = {0};
    for (uint32_t i = 0; i < n; i++)
        out = arena_printf(a, "%.*s%s%.*s", STR_ARG(out), i > 0 ? "; " : "", STR_ARG(items[i]));
    return out;
}

/* "goodput data_loading_sync = 2.1 s (lead rank); …" */
static str evidence(struct arena *a, const struct finding *f)
{
    str out = {0};
    for (uint32_t i = 0; i < f->n_evidence; i++) {
        const struct finding_evidence *v = &f->evidence[i];
        const str value = cell_format(a, &v->value, v->unit);
        out =
            arena_printf(a, "%.*s%s%.*s %.*s = %.*s%s%.*s%s", STR_ARG(out), i > 0 ? "; " : "",
                         STR_ARG(v->tool), STR_ARG(v->metric), STR_ARG(value),
                         v->where.n > 0 ? " (" : "", STR_ARG(v->where), v->where.n > 0 ? ")" : "");
    }
    return out;
}

static void put_finding(struct arena *a, const struct finding *f, struct cell *row)
{
    row[0] = cell_text(str_from(finding_priority_word(f->priority)));
    row[1] = cell_text(f->id);
    row[2] = cell_text(f->title);
    row[3] = cell_text(str_from(finding_confidence_word(f->confidence)));
    row[4] = cell_text(f->what);
    if (f->impact.percent >= 0) {
        row[5] = cell_text(f->impact.metric);
        row[6] = cell_f64(f->impact.amount);
        row[7] = cell_text(f->impact.unit);
        row[8] = cell_f64(f->impact.percent);
        row[9] = cell_text(f->impact.bound);
    }
    row[10] = cell_text(evidence(a, f));
    row[11] = cell_text(joined(a, f->fix, f->n_fix));
}

struct table *report_table(const struct report *r, struct arena *a)
{
    static const struct column columns[] = {
        {STR_INIT("priority"), STR_INIT("Priority"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("id"), STR_INIT("Finding"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("title"), STR_INIT("Title"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("confidence"), STR_INIT("Confidence"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("what"), STR_INIT("What"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("impact_metric"), STR_INIT("Costs"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("impact_amount"), STR_INIT("Amount"), STR_INIT(""), CELL_F64},
        {STR_INIT("impact_unit"), STR_INIT("Unit"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("impact_percent"), STR_INIT("Share"), STR_INIT("%"), CELL_F64},
        {STR_INIT("impact_bound"), STR_INIT("Bound"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("evidence"), STR_INIT("Evidence"), STR_INIT(""), CELL_TEXT},
        {STR_INIT("fix"), STR_INIT("Fix"), STR_INIT(""), CELL_TEXT},
    };
    struct table *t = table_new(a, S("findings"), S("Findings"));
    for (size_t i = 0; t != NULL && i < sizeof columns / sizeof *columns; i++)
        table_column(t, columns[i].name, columns[i].title, columns[i].type, columns[i].unit);
    for (uint32_t i = 0; t != NULL && i < r->n_findings; i++) {
        struct cell *row = table_row(t);
        if (row != NULL)
            put_finding(a, &r->findings[i], row);
    }
    return t;
}

const char *report_whole(const struct finding *f)
{
    return str_eq(f->impact.metric, S("elapsed"))    ? "elapsed time"
           : str_eq(f->impact.metric, S("profiled")) ? "profiled time"
                                                     : "step time";
}
