/* SPDX-License-Identifier: Apache-2.0 */
/* The operations as the answers of XProf's command line list them: each with its place in the tree by
 * program, with what all its executions computed and moved, and where those numbers come from.
 *
 *     struct op_briefs b;
 *     if (!op_briefs_of(&b, &db, OP_BRIEFS_OURS, a, e)) return false;
 *     ... b.items[0 … b.n), by time ...
 *
 * XProf's command line takes every operation whose text has the word "custom-call", be it of an
 * operand, for such a call, puts the flops of one execution in the place of those of all, and says 0
 * of others whose flops its own tables have. Here a number is of all executions and known or not.
 *
 * Times are picoseconds and an operation's own. Everything lives in the arena; texts borrow the db. */
#ifndef TACHO_ANALYSIS_OP_BRIEF_H
#define TACHO_ANALYSIS_OP_BRIEF_H

#include "analysis/op_metrics.h"
#include "base/json.h"

enum op_cost_source {
    OP_COST_MODEL = 0, /* of the profile or the static model */
    OP_COST_SHAPES,    /* a library's matrix product, told from its shapes */
    OP_COST_UNKNOWN,   /* an opaque custom call */
};

struct op_brief {
    const struct op_metrics *op; /* NULL: IDLE */
    str path;                    /* "by_program/jit_f(3)/loop fusion/fusion.1" */
    str group_path;              /* the same with the group of duplicates where there is one */
    str name, category;
    uint64_t self_ps, occurrences, flops, bytes;
    enum op_cost_source source;
};

struct op_briefs {
    struct op_brief *items; /* by self time, then name */
    uint32_t n, capacity;
    uint64_t total_ps; /* of the whole tree: with idle time, and with what is not listed */
    uint64_t self_ps;  /* Σ of the items */
    bool with_idle;
};

/* As XProf lists them: with IDLE, without operations that run others. Ours: without IDLE, with all. */
enum op_briefs_form { OP_BRIEFS_OURS = 0, OP_BRIEFS_XPROF };
MUST_CHECK bool op_briefs_of(struct op_briefs *b, const struct op_db *db, enum op_briefs_form form,
                             struct arena *a, struct err *e);

/* What one operation's executions cost: as measured, else told from its shapes; OP_COST_UNKNOWN for calls of
 * which neither is known. *flops as the model counts. */
enum op_cost_source op_cost_source_of(const struct op_metrics *m, uint64_t *flops, uint64_t *bytes);
bool op_is_custom_call(const struct op_metrics *m);
/* "xla_cost_model", "derived_from_shapes", "opaque_custom_call" */
str op_cost_source_name(enum op_cost_source s);

/* Orders pointers to briefs. */
enum op_brief_order { OP_BRIEF_BY_TIME = 0, OP_BRIEF_BY_FLOPS, OP_BRIEF_BY_BYTES };
/* The briefs of that order, only those with a number, in the arena; NULL beyond its cap. */
const struct op_brief **op_briefs_by(const struct op_briefs *b, enum op_brief_order order,
                                     str category, struct arena *a, uint32_t *n);
/* "limit" and its kin: a count, -1 for all, `otherwise` when not said. */
struct tool_request;
MUST_CHECK bool op_limit(const struct tool_request *r, str key, uint64_t otherwise, uint64_t *out,
                         struct err *e);

#endif
