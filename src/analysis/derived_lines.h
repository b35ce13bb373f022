/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that XProf draws above and below the operations of a device and that no recorder wrote: which program,
 * which operation, which framework operation under which name scopes, and which line of the source ran when.
 *
 *   recorded      | gemm | add | add |   copy   | gemm |
 *   name scope    | jit(step)                          |      level 0
 *                 | layer_0          |    | layer_1    |      level 1
 *   framework op  | dot_general | add |    | dot_general |
 *
 * An event grows while the next operation has the same name and step on its level; another name ends it and all
 * deeper ones, and on the outermost level also what hangs on that line (scopes and operations on the program,
 * framework operations on the scopes). Events come out when they end: per level by time, an outer one after those
 * inside of it. On a GPU: of kernels that name an HLO operation or a framework operation; on a TPU: of the line
 * "XLA Ops". Of scopes that cover the same time the inner one is a nanosecond shorter. Source: XProf's derived timeline. Memory: the open events only. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_DERIVED_LINES_H
#define TACHO_ANALYSIS_DERIVED_LINES_H

#include "analysis/grouping.h"
#include "analysis/hlo_index.h"

enum derived_kind { /* in the order in which XProf draws them */
                    DERIVED_NAME_SCOPES = 0,
                    DERIVED_FRAMEWORK_OPS,
                    DERIVED_MODULES,
                    DERIVED_OPS,
                    DERIVED_SOURCE,
                    DERIVED_KINDS
};
extern const char *const derived_names[DERIVED_KINDS]; /* "Framework Name Scope" … */

struct derived_event {
    enum derived_kind kind;
    uint32_t level;
    str name;      /* valid during the call */
    str long_name; /* where it says more than the name, else empty */
    uint64_t start_ps, end_ps;
    int32_t group;
};

/* False stops it: the callee has set the error. */
typedef bool (*derived_fn)(void *ctx, const struct derived_event *ev, struct err *e);

/* Whether lines are derived from that one. */
bool derived_from(const struct trace *t, uint32_t line_index);
/* Reads the line. hlo: of its trace. */
MUST_CHECK bool derived_lines(const struct trace *t, uint32_t line_index, const struct grouping *g,
                              const struct hlo_index *hlo, derived_fn fn, void *ctx, struct err *e);

#endif
