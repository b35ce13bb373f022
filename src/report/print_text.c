/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "model/table_print.h"
#include "report/build.h"
#include "report/print.h"

struct text {
    struct arena *a;
    struct buf *out;
    bool colour;
};

/* Text of others, its control characters escaped. */
static str clean(struct text *t, str s)
{
    return text_printable(t->a, s);
}

static void add_clean(struct text *t, str s)
{
    buf_add_str(t->out, clean(t, s));
}

static void print_key_metrics(struct text *t, const struct report *r)
{
    for (uint32_t i = 0; i < r->n_key_metrics; i++) {
        const struct table_value *v = &r->key_metrics[i];
        const str value = cell_format(t->a, &v->cell, v->column.unit);
        buf_addf(t->out, "  %-34.*s %.*s\n", STR_ARG(v->column.title), STR_ARG(value));
    }
}

static void print_impact(struct text *t, const struct finding *f)
{
    if (f->impact.percent < 0)
        return;
    const struct cell amount = cell_f64(f->impact.amount);
    const str seconds = cell_format(t->a, &amount, f->impact.unit);
    const bool exact = str_eq(f->impact.bound, S("exact"));
    buf_addf(t->out, "    costs  %s%.*s, %.1f %% of the %s (confidence %s)\n",
             exact ? "" : "at most ", STR_ARG(seconds), f->impact.percent, report_whole(f),
             finding_confidence_word(f->confidence));
}

static void print_finding(struct text *t, const struct finding *f)
{
    const char *colour = f->priority == FINDING_P0   ? "\033[1;31m"
                         : f->priority == FINDING_P1 ? "\033[1;33m"
                                                     : "\033[1m";
    buf_addf(t->out, "\n%s%s  %.*s%s  (%.*s)\n    ", t->colour ? colour : "",
             finding_priority_word(f->priority), STR_ARG(f->title), t->colour ? "\033[0m" : "",
             STR_ARG(f->id));
    add_clean(t, f->what);
    buf_add_char(t->out, '\n');
    print_impact(t, f);
    for (uint32_t i = 0; i < f->n_evidence; i++) {
        const struct finding_evidence *v = &f->evidence[i];
        const str value = cell_format(t->a, &v->value, v->unit);
        buf_addf(t->out, "    %-6s %.*s %.*s = %.*s", i == 0 ? "seen" : "", STR_ARG(v->tool),
                 STR_ARG(v->metric), STR_ARG(value));
        if (v->where.n > 0) {
            buf_add_str(t->out, S("  "));
            add_clean(t, v->where);
        }
        buf_add_char(t->out, '\n');
    }
    for (uint32_t i = 0; i < f->n_fix; i++)
        buf_addf(t->out, "    %-6s %.*s\n", i == 0 ? "fix" : "", STR_ARG(f->fix[i]));
    for (uint32_t i = 0; i < f->n_explains; i++)
        buf_addf(t->out, "    %-6s %.*s\n", i == 0 ? "and so" : "", STR_ARG(f->explains[i]));
}

bool report_print_text(const struct report *r, bool colour, struct buf *out, struct err *e)
{
    struct arena a;
    arena_init(&a, "report text", LIMIT_ARENA_REQUEST_BYTES);
    struct text t = {&a, out, colour};
    add_clean(&t, r->summary);
    buf_add_str(out, S("\n\n"));
    print_key_metrics(&t, r);
    for (uint32_t i = 0; i < r->n_findings; i++)
        print_finding(&t, &r->findings[i]);
    if (r->n_findings == 0)
        buf_add_str(out, r->silent ? S("\nToo little was measured to find what costs time.\n")
                                   : S("\nNo finding.\n"));
    if (r->n_abstained > 0)
        buf_add_str(out, S("\nNot judged:\n"));
    for (uint32_t i = 0; i < r->n_abstained; i++)
        buf_addf(out, "  %-22.*s needs %.*s\n", STR_ARG(r->abstained[i].id),
                 STR_ARG(r->abstained[i].missing));
    for (uint32_t i = 0; i < r->n_notes; i++) {
        buf_add_str(out, S("note: "));
        add_clean(&t, r->notes[i].message);
        buf_addf(out, " (%llu)\n", (unsigned long long)r->notes[i].count);
    }
    const bool full = a.overflow;
    if (full)
        arena_full(&a, e);
    arena_release(&a);
    return !full && buf_ok(out, "the report", e);
}
