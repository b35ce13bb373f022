/* SPDX-License-Identifier: Apache-2.0 */
#include "report/rules.h"

#include "model/table_print.h"

#define P0_PERCENT 20.0
#define P1_PERCENT 5.0

static const struct {
    const char *id, *title, *confirmed_by, *fixes;
    int layer;
    double trigger, listed;
} kinds[FINDING_N_KINDS] = {
#define X(symbol, id, layer, trigger, listed, title, confirmed, fixes)                             \
    [FINDING_##symbol] = {id, title, confirmed, fixes, layer, trigger, listed},
#include "report/findings.def"
#undef X
};

const char *rules_id(enum finding_kind kind)
{
    return kinds[kind].id;
}

static enum finding_priority priority_of(enum finding_kind kind, const struct finding_dose *d)
{
    enum finding_priority p = d->percent >= P0_PERCENT   ? FINDING_P0
                              : d->percent >= P1_PERCENT ? FINDING_P1
                                                         : FINDING_P2;
    if (d->percent < kinds[kind].trigger)
        p = FINDING_P2;
    if (d->confidence == FINDING_LOW && p < FINDING_P1)
        p = FINDING_P1;
    return p < d->cap ? d->cap : p;
}

static void add_fixes(struct arena *a, struct finding *f, const char *fixes)
{
    str fix, rest = str_from(fixes);
    while (str_cut(rest, '\n', &fix, &rest))
        if (ARENA_PUSH(a, f->fix, f->n_fix, f->fix_capacity))
            f->fix[f->n_fix - 1] = fix;
}

struct finding *rules_fire(struct rules *x, enum finding_kind kind, struct finding_dose d)
{
    struct report *r = x->r;
    /* What is incomplete has no share of its own: it stands for all that cannot be said. */
    const bool fixed = kinds[kind].layer == 9;
    if (!fixed && (d.percent < x->floor_percent || d.percent < kinds[kind].listed ||
                   (d.percent < kinds[kind].trigger && d.confidence != FINDING_HIGH)))
        return NULL;
    if (!ARENA_PUSH(&r->arena, r->findings, r->n_findings, r->findings_capacity))
        return NULL;
    struct finding *f = &r->findings[r->n_findings - 1];
    f->id = str_from(kinds[kind].id);
    f->title = str_from(kinds[kind].title);
    f->priority = fixed ? FINDING_P1 : priority_of(kind, &d);
    f->confidence = d.confidence;
    f->impact = (struct finding_impact){.metric = str_from(d.metric),
                                        .amount = d.amount_s,
                                        .unit = S("s"),
                                        .percent = d.percent,
                                        .bound = str_from(d.bound)};
    add_fixes(&r->arena, f, kinds[kind].fixes);
    if (ARENA_PUSH(&r->arena, f->confirmed_by, f->n_confirmed_by, f->confirmed_by_capacity))
        f->confirmed_by[0] = str_from(kinds[kind].confirmed_by);
    return f;
}

void rules_evidence(struct rules *x, struct finding *f, const char *tool, const char *metric,
                    struct cell value, const char *unit, str where)
{
    if (!ARENA_PUSH(&x->r->arena, f->evidence, f->n_evidence, f->evidence_capacity))
        return;
    f->evidence[f->n_evidence - 1] =
        (struct finding_evidence){str_from(tool), str_from(metric), value, str_from(unit), where};
}

void rules_abstain(struct rules *x, enum finding_kind kind, const char *missing)
{
    struct report *r = x->r;
    const str id = str_from(kinds[kind].id);
    for (uint32_t i = 0; i < r->n_abstained; i++)
        if (str_eq(r->abstained[i].id, id))
            return;
    if (ARENA_PUSH(&r->arena, r->abstained, r->n_abstained, r->abstained_capacity))
        r->abstained[r->n_abstained - 1] =
            (struct report_abstained){id, arena_str(&r->arena, str_from(missing))};
}

str rules_duration(struct rules *x, int64_t ns)
{
    return format_duration_ns(&x->r->arena, ns);
}
