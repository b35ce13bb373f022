/* SPDX-License-Identifier: Apache-2.0 */
/* A report: findings P0–P2 about a session or a run, each with the numbers it rests on.
 * Rules, priorities and texts: FINDINGS and findings.def. JSON keys: SURFACE (`tacho report --json`).
 * Everything lives in the report's arena. */
#ifndef TACHO_MODEL_REPORT_H
#define TACHO_MODEL_REPORT_H

#include "model/table.h"

enum finding_priority { FINDING_P0 = 0, FINDING_P1, FINDING_P2 };
enum finding_confidence { FINDING_HIGH = 0, FINDING_MEDIUM, FINDING_LOW };

struct finding_evidence {
    str tool, metric;
    struct cell value;
    str unit, where;
};

struct finding_impact {
    str metric;     /* step_time, elapsed, memory */
    double amount;  /* in unit */
    str unit;       /* s, bytes */
    double percent; /* of step time or of elapsed */
    str bound;      /* "upper" or "exact" */
};

struct finding {
    enum finding_priority priority;
    str id, title, what;
    enum finding_confidence confidence;
    struct finding_evidence *evidence;
    uint32_t n_evidence, evidence_capacity;
    struct finding_impact impact;
    str *explains;
    uint32_t n_explains, explains_capacity;
    str *fix;
    uint32_t n_fix, fix_capacity;
    str *confirmed_by;
    uint32_t n_confirmed_by, confirmed_by_capacity;
    bool has_span;              /* where to look in the trace, or in the run */
    int64_t span_from, span_to; /* ps of the session for profiles, wall ns for runs */
};

struct report_abstained {
    str id, missing;
};

struct report {
    struct arena arena;
    str subject; /* "run demo (x7k2…)", "session …" */
    bool is_run;
    bool silent;  /* a run whose workload recorded nothing, without a profile */
    bool optimal; /* status OPTIMAL, else NEEDS_ATTENTION */
    str summary;  /* three to five sentences */
    struct table_value *key_metrics;
    uint32_t n_key_metrics, key_metrics_capacity;
    struct finding *findings; /* in order of the rules of FINDINGS §2 */
    uint32_t n_findings, findings_capacity;
    struct report_abstained *abstained;
    uint32_t n_abstained, abstained_capacity;
    struct report_section {
        str name; /* steps, roofline, memory, op_profile, kernel_stats, … */
        struct table *table;
    } * sections;
    uint32_t n_sections, sections_capacity;
    struct note *notes; /* what was repaired or left out */
    uint32_t n_notes, notes_capacity;
};

#endif
