/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "model/table_print.h"
#include "report/build.h"
#include "report/print.h"

#define BAR_WIDTH 1000.0
#define TABLE_ROWS_MAX 50

struct page {
    struct arena *a;
    struct buf *out;
};

static const char style[] =
    ":root{color-scheme:light "
    "dark;--ground:#fff;--ink:#1b1f24;--soft:#5b6470;--line:#d9dee4;--p0:#b3261e;--p1:#8a5a00;--p2:"
    "#3b5b92}"
    "@media(prefers-color-scheme:dark){:root{--ground:#14171b;--ink:#e8eaed;--soft:#a3abb5;--line:#"
    "343a42;--p0:#ff8a80;--p1:#f2c14e;--p2:#9db9f2}}"
    "body{margin:2rem auto;max-width:60rem;padding:0 1rem;font:16px/1.5 "
    "system-ui,sans-serif;background:var(--ground);color:var(--ink)}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1.05rem;margin:0}"
    ".soft{color:var(--soft)}.p0{color:var(--p0)}.p1{color:var(--p1)}.p2{color:var(--p2)}"
    "article{border:1px solid var(--line);border-radius:.5rem;padding:1rem;margin:1rem "
    "0;break-inside:avoid}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:."
    "25rem .6rem .25rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}svg{width:100%;height:2.2rem;"
    "display:block}"
    ".swatch{display:inline-block;width:.8em;height:.8em;border-radius:.15em;margin-right:.5em}"
    "@media print{body{margin:0;max-width:none}}";

/* Escaped for text and for attributes in double quotes. */
static void text(struct page *p, str s)
{
    s = text_printable(p->a, s);
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '&':
            buf_add_str(p->out, S("&amp;"));
            break;
        case '<':
            buf_add_str(p->out, S("&lt;"));
            break;
        case '>':
            buf_add_str(p->out, S("&gt;"));
            break;
        case '"':
            buf_add_str(p->out, S("&quot;"));
            break;
        case '\'':
            buf_add_str(p->out, S("&#39;"));
            break;
        default:
            buf_add_char(p->out, s.p[i]);
        }
    }
}

static void raw(struct page *p, const char *s)
{
    buf_add_str(p->out, str_from(s));
}

static void element(struct page *p, const char *open, str s, const char *close)
{
    raw(p, open);
    text(p, s);
    raw(p, close);
}

static const char *fill_of(enum ledger_category c)
{
    const str family = str_from(ledger_category_family(c));
    static const struct {
        str family;
        const char *colour;
    } rows[] = {
        {STR_INIT("productive"), "#2e8b57"}, {STR_INIT("startup"), "#6c8ebf"},
        {STR_INIT("input"), "#d98c21"},      {STR_INIT("checkpoint"), "#8f6bb3"},
        {STR_INIT("lost"), "#c0392b"},       {STR_INIT("recovery"), "#a8554b"},
        {STR_INIT("hang"), "#7b1e1e"},       {STR_INIT("custom"), "#3a8fa3"},
        {STR_INIT("idle"), "#9aa3ad"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (str_eq(rows[i].family, family))
            return rows[i].colour;
    return "#7c8591";
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void ledger_bar(struct page *p, const struct ledger *l)
{
    double x = 0;
    raw(p, "<h2>Where the time went</h2><svg viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" "
           "role=\"img\" aria-label=\"Share of each category, the table below has the numbers\">");
    for (uint32_t i = 0; i < l->n_totals; i++) {
        const double width = BAR_WIDTH * share(l->totals[i].total_ns, l->total_ns);
        buf_addf(p->out,
                 "<rect x=\"%.3f\" y=\"0\" width=\"%.3f\" height=\"40\" fill=\"%s\"><title>", x,
                 width, fill_of(l->totals[i].category));
        text(p, l->totals[i].word);
        raw(p, "</title></rect>");
        x += width;
    }
    raw(p, "</svg><table><thead><tr><th>Category</th><th class=\"n\">Time</th><th "
           "class=\"n\">Share</th><th class=\"n\">Count</th></tr></thead><tbody>");
    for (uint32_t i = 0; i < l->n_totals; i++) {
        const struct ledger_total *t = &l->totals[i];
        const str took = format_duration_ns(p->a, t->total_ns);
        buf_addf(p->out, "<tr><td><span class=\"swatch\" style=\"background:%s\"></span>",
                 fill_of(t->category));
        text(p, t->word);
        buf_addf(p->out,
                 "</td><td class=\"n\">%.*s</td><td class=\"n\">%.1f %%</td><td "
                 "class=\"n\">%llu</td></tr>",
                 STR_ARG(took), 100 * share(t->total_ns, l->total_ns),
                 (unsigned long long)t->count);
    }
    raw(p, "</tbody></table>");
}

static void finding(struct page *p, const struct finding *f)
{
    const char *word = finding_priority_word(f->priority);
    buf_addf(p->out, "<article><h3><span class=\"p%c\">%s</span> ", word[1], word);
    text(p, f->title);
    element(p, "</h3><p>", f->what, "</p>");
    if (f->impact.percent >= 0) {
        const struct cell amount = cell_f64(f->impact.amount);
        const str seconds = cell_format(p->a, &amount, f->impact.unit);
        buf_addf(
            p->out,
            "<p>Costs %s%.*s, %.1f %% of the %s <span class=\"soft\">(confidence %s)</span></p>",
            str_eq(f->impact.bound, S("exact")) ? "" : "at most ", STR_ARG(seconds),
            f->impact.percent, report_whole(f), finding_confidence_word(f->confidence));
    }
    raw(p, "<table><tbody>");
    for (uint32_t i = 0; i < f->n_evidence; i++) {
        const struct finding_evidence *v = &f->evidence[i];
        element(p, "<tr><td>", v->metric, "</td><td class=\"n\">");
        text(p, cell_format(p->a, &v->value, v->unit));
        element(p, "</td><td>", v->where, "</td><td class=\"soft\">");
        element(p, "", v->tool, "</td></tr>");
    }
    raw(p, "</tbody></table><ul>");
    for (uint32_t i = 0; i < f->n_fix; i++)
        element(p, "<li>", f->fix[i], "</li>");
    raw(p, "</ul></article>");
}

static void section(struct page *p, const struct table *t)
{
    element(p, "<h2>", t->title, "</h2><table><thead><tr>");
    for (uint32_t c = 0; c < t->n_columns; c++)
        element(p, t->columns[c].type == CELL_TEXT ? "<th>" : "<th class=\"n\">",
                t->columns[c].title, "</th>");
    raw(p, "</tr></thead><tbody>");
    const uint32_t shown = t->n_rows < TABLE_ROWS_MAX ? t->n_rows : TABLE_ROWS_MAX;
    for (uint32_t i = 0; i < shown; i++) {
        raw(p, "<tr>");
        for (uint32_t c = 0; c < t->n_columns; c++)
            element(p, t->columns[c].type == CELL_TEXT ? "<td>" : "<td class=\"n\">",
                    cell_format(p->a, table_cell(t, i, c), t->columns[c].unit), "</td>");
        raw(p, "</tr>");
    }
    raw(p, "</tbody></table>");
    if (shown < t->n_rows)
        buf_addf(p->out, "<p class=\"soft\">%u more rows are in the JSON report.</p>",
                 t->n_rows - shown);
}

static void head(struct page *p, const struct report *r)
{
    raw(p, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
           "content=\"width=device-width,initial-scale=1\">"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src "
           "'unsafe-inline'\"><title>");
    text(p, r->subject);
    raw(p, " – Tachograph report</title><style>");
    raw(p, style);
    element(p, "</style></head><body><main><h1>", r->subject, "</h1><p><strong class=\"");
    raw(p, r->optimal ? "p2\">OPTIMAL" : "p1\">NEEDS_ATTENTION");
    element(p, "</strong></p><p>", r->summary, "</p><table><tbody>");
    for (uint32_t i = 0; i < r->n_key_metrics; i++) {
        const struct table_value *v = &r->key_metrics[i];
        element(p, "<tr><th scope=\"row\">", v->column.title, "</th><td class=\"n\">");
        element(p, "", cell_format(p->a, &v->cell, v->column.unit), "</td></tr>");
    }
    raw(p, "</tbody></table>");
}

static void not_measured(struct page *p, const struct report *r)
{
    if (r->n_abstained > 0)
        raw(p, "<h2>Not judged</h2><table><tbody>");
    for (uint32_t i = 0; i < r->n_abstained; i++) {
        element(p, "<tr><th scope=\"row\">", r->abstained[i].id, "</th><td>needs ");
        element(p, "", r->abstained[i].missing, "</td></tr>");
    }
    if (r->n_abstained > 0)
        raw(p, "</tbody></table>");
    for (uint32_t i = 0; i < r->n_notes; i++) {
        element(p, "<p class=\"soft\">Note: ", r->notes[i].message, "");
        buf_addf(p->out, " (%llu)</p>", (unsigned long long)r->notes[i].count);
    }
}

bool report_print_html(const struct report *r, const struct ledger *ledger, struct buf *out,
                       struct err *e)
{
    struct arena a;
    arena_init(&a, "report page", LIMIT_ARENA_REQUEST_BYTES);
    struct page p = {&a, out};
    head(&p, r);
    raw(&p, r->n_findings > 0 ? "<h2>Findings</h2>"
            : r->silent ? "<h2>Findings</h2><p>Too little was measured to find what costs time.</p>"
                        : "<h2>Findings</h2><p>No finding.</p>");
    for (uint32_t i = 0; i < r->n_findings; i++)
        finding(&p, &r->findings[i]);
    if (ledger != NULL)
        ledger_bar(&p, ledger);
    for (uint32_t i = 0; i < r->n_sections; i++)
        if (!str_eq(r->sections[i].name, S("ledger")))
            section(&p, r->sections[i].table);
    not_measured(&p, r);
    raw(&p, "</main></body></html>\n");
    const bool full = a.overflow;
    if (full)
        arena_full(&a, e);
    arena_release(&a);
    return !full && buf_ok(out, "the page", e);
}
