/* SPDX-License-Identifier: Apache-2.0 */
/* What rules have in common. A rule reads the input and either adds one finding, abstains with what
 * was missing, or says nothing. Private to report/. */
#ifndef TACHO_REPORT_RULES_H
#define TACHO_REPORT_RULES_H

#include "report/build.h"

enum finding_kind {
#define X(symbol, id, layer, trigger, listed, title, confirmed, fixes) FINDING_##symbol,
#include "report/findings.def"
#undef X
    FINDING_N_KINDS
};

struct rules {
    struct report *r;
    const struct report_input *in;
    double floor_percent; /* less than this is noise */
};

struct finding_dose { /* what a finding is worth */
    const char
        *metric; /* percent is of it: "elapsed" (the run), "profiled" (the window), "step_time" */
    double amount_s, percent;
    const char *bound;
    enum finding_confidence confidence;
    enum finding_priority cap; /* at most this */
};

/* Adds the finding when its dose passes the floor and findings.def; else NULL. */
struct finding *rules_fire(struct rules *x, enum finding_kind kind, struct finding_dose dose);
void rules_evidence(struct rules *x, struct finding *f, const char *tool, const char *metric,
                    struct cell value, const char *unit, str where);
/* `missing` is copied. Says it once an id. */
void rules_abstain(struct rules *x, enum finding_kind kind, const char *missing);
str rules_duration(struct rules *x, int64_t ns);
const char *rules_id(enum finding_kind kind);

void rules_of_run(struct rules *x);
void rules_of_profile(struct rules *x);

#endif
