/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of op_metrics: which step an execution of an operation belongs to, and the sums
 * of each. Not for others: they ask op_db_steps().
 *
 *     op_steps_enter(s, trace, grouping, db, e)          before a trace's events
 *     step = op_steps_at(s, plane_index, start_ps)       TPU, CPU
 *     step = op_steps_of_group(s, group)                 GPU
 *     if (step != NULL) op_step_add(step, &once, self_ps, stall_ps, runs_others)
 *
 * Steps of several hosts with the same number are one. */
#ifndef TACHO_ANALYSIS_OP_STEPS_H
#define TACHO_ANALYSIS_OP_STEPS_H

#include "analysis/grouping.h"
#include "analysis/op_metrics.h"

struct op_window { /* in which a plane's events belong to a step */
    uint32_t plane_index, step;
    uint64_t begin_ps, end_ps;
};

struct op_steps {
    struct op_step *items;
    uint32_t n, capacity;
    struct map_u64_u32 by_number;
    struct op_window *windows; /* of the trace at hand, by plane, then begin */
    uint32_t n_windows, windows_capacity;
    uint32_t hint;      /* the window found last: events come in order */
    uint32_t *of_group; /* of the trace at hand; UINT32_MAX: no step */
    uint32_t n_groups;
};

MUST_CHECK bool op_steps_enter(struct op_steps *s, const struct trace *t, const struct grouping *g,
                               const struct op_db *db, struct err *e);
/* NULL: in no step; also when s is. On a CPU backend the plane does not matter. */
struct op_step *op_steps_at(struct op_steps *s, uint32_t plane_index, uint64_t start_ps);
struct op_step *op_steps_of_group(const struct op_steps *s, int32_t group);
/* One execution of an operation; `once` is what one costs. */
void op_step_add(struct op_step *step, const struct op_metrics *once, uint64_t self_ps,
                 uint64_t stall_ps, bool runs_others);
/* m->once, computed when first asked for; NULL beyond the arena's cap. */
const struct op_metrics *op_metrics_once(struct op_db *db, struct op_metrics *m);
void op_steps_release(struct op_steps *s);

#endif
