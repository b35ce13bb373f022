/* SPDX-License-Identifier: Apache-2.0 */
#include "model/table_print.h"
#include "report/build.h"
#include "report/print.h"

static void put_impact(struct json *j, const struct finding_impact *i)
{
    json_key(j, "impact");
    json_object(j);
    json_kstr(j, "metric", i->metric);
    const struct cell amount = i->percent < 0 ? cell_unknown() : cell_f64(i->amount);
    const struct cell percent = i->percent < 0 ? cell_unknown() : cell_f64(i->percent);
    json_key(j, "amount");
    cell_print_json(j, &amount);
    json_kstr(j, "unit", i->unit);
    json_key(j, "percent");
    cell_print_json(j, &percent);
    json_kstr(j, "bound", i->bound);
    json_end(j);
}

static void put_finding(struct json *j, const struct finding *f)
{
    json_object(j);
    json_kcstr(j, "priority", finding_priority_word(f->priority));
    json_kstr(j, "id", f->id);
    json_kstr(j, "title", f->title);
    json_kcstr(j, "confidence", finding_confidence_word(f->confidence));
    json_kstr(j, "what", f->what);
    json_key(j, "evidence");
    json_array(j);
    for (uint32_t i = 0; i < f->n_evidence; i++) {
        json_object(j);
        json_kstr(j, "tool", f->evidence[i].tool);
        json_kstr(j, "metric", f->evidence[i].metric);
        json_key(j, "value");
        cell_print_json(j, &f->evidence[i].value);
        json_kstr(j, "unit", f->evidence[i].unit);
        json_kstr(j, "where", f->evidence[i].where);
        json_end(j);
    }
    json_end(j);
    put_impact(j, &f->impact);
    json_kstrs(j, "explains", f->explains, f->n_explains);
    json_kstrs(j, "fix", f->fix, f->n_fix);
    json_kstrs(j, "confirmed_by", f->confirmed_by, f->n_confirmed_by);
    json_end(j);
}

static void put_abstained(struct json *j, const struct report *r)
{
    json_array(j);
    for (uint32_t i = 0; i < r->n_abstained; i++) {
        json_object(j);
        json_kstr(j, "id", r->abstained[i].id);
        json_kstr(j, "missing", r->abstained[i].missing);
        json_end(j);
    }
    json_end(j);
}

/* Sections that nothing was measured for are null: the keys are always there. */
static void put_sections(struct json *j, const struct report *r)
{
    static const char *const names[] = {"ledger",         "steps",      "roofline",
                                        "memory",         "op_profile", "kernel_stats",
                                        "custom_kernels", "environment"};
    json_key(j, "sections");
    json_object(j);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct table *t = NULL;
        for (uint32_t k = 0; k < r->n_sections; k++)
            if (str_eq(r->sections[k].name, str_from(names[i])))
                t = r->sections[k].table;
        json_key(j, names[i]);
        if (t == NULL)
            json_null(j);
        else
            table_print_json(t, j);
    }
    json_key(j, "not_measured");
    put_abstained(j, r);
    json_end(j);
}

void report_print_json(const struct report *r, struct json *j)
{
    json_object(j);
    json_kcstr(j, "status", r->optimal ? "OPTIMAL" : "NEEDS_ATTENTION");
    json_kstr(j, "summary", r->summary);
    json_key(j, "key_metrics");
    json_array(j);
    for (uint32_t i = 0; i < r->n_key_metrics; i++) {
        json_object(j);
        json_kstr(j, "name", r->key_metrics[i].column.name);
        json_key(j, "value");
        cell_print_json(j, &r->key_metrics[i].cell);
        json_kstr(j, "unit", r->key_metrics[i].column.unit);
        json_end(j);
    }
    json_end(j);
    json_key(j, "findings");
    json_array(j);
    for (uint32_t i = 0; i < r->n_findings; i++)
        put_finding(j, &r->findings[i]);
    json_end(j);
    json_key(j, "abstained");
    put_abstained(j, r);
    put_sections(j, r);
    json_key(j, "warnings");
    json_array(j);
    for (uint32_t i = 0; i < r->n_notes; i++) {
        json_object(j);
        json_kstr(j, "code", r->notes[i].code);
        json_kstr(j, "message", r->notes[i].message);
        json_ku64(j, "count", r->notes[i].count);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}
