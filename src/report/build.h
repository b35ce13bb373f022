/* SPDX-License-Identifier: Apache-2.0 */
/* A report about a run, a profile, or a run with its newest profile: what costs time and what to do.
 *
 *     struct report r;
 *     if (!report_build(&r, &(struct report_input){.ledger = &l, .set = &set, …}, e)) …
 *     report_print_text(&r, …);
 *     report_release(&r);
 *
 * Pure: the input is read, nothing else is. Priorities, order, floor and status are FINDINGS 2;
 * thresholds and texts are findings.def. A rule whose operands were not measured abstains and says
 * which. r owns its text; the ledger, set and facts must outlive it. Thread: any. */
#ifndef TACHO_REPORT_BUILD_H
#define TACHO_REPORT_BUILD_H

#include "base/err.h"
#include "model/ledger.h"
#include "model/profile_facts.h"
#include "model/report.h"

struct report_input {
    str subject;                       /* "run demo", "profile x" */
    const struct ledger *ledger;       /* NULL: no run */
    const struct record_set *set;      /* the ledger's */
    const struct profile_facts *facts; /* NULL: no profile */
    str profile;                       /* name of the profile */
};

/* The caller releases r also on failure. */
MUST_CHECK bool report_build(struct report *r, const struct report_input *in, struct err *e);
void report_release(struct report *r);

const char *finding_priority_word(enum finding_priority p);     /* "P0" */
const char *finding_confidence_word(enum finding_confidence c); /* "high" */

#endif
