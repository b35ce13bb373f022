/* SPDX-License-Identifier: Apache-2.0 */
/* Which of PyTorch's operators launched what ran on GPUs: the innermost one ("category" cpu_op, as Kineto has
 * it) around the call that launched it (grouping.h). Where nothing names operations on the GPU's own
 * events, these are the operations.
 *
 *     struct torch_launches l;
 *     if (!torch_launches_of(&l, trace, g, a, e)) return false;
 *     struct torch_launch *x = torch_launches_find(&l, launch_at(g, line, event));     NULL: by none
 *
 * Times: picoseconds. Everything lives in the arena; names borrow the trace. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_TORCH_LAUNCH_H
#define TACHO_ANALYSIS_TORCH_LAUNCH_H

#include "analysis/grouping.h"
#include "analysis/torch_cost.h"

struct torch_launch { /* one execution of an operator that launched something */
    str name;
    struct torch_cost cost;
    int32_t group;               /* its step's, see grouping.h */
    uint64_t time_ps, matrix_ps; /* of what it launched: summed by who finds it */
    bool ran;
};

struct torch_launches {
    struct torch_launch *items; /* by thread, then time of their first launch */
    uint32_t n, capacity;
    uint32_t *of_launch; /* of each of the grouping's launches: its item, or UINT32_MAX */
    uint32_t n_launches;
};

/* False where no thread of the host shows an operator: nothing was launched by one. */
bool torch_may_launch(const struct trace *t);
MUST_CHECK bool torch_launches_of(struct torch_launches *out, const struct trace *t,
                                  const struct grouping *g, struct arena *a, struct err *e);
/* NULL: it was launched outside of any operator, or by nobody knows whom (GROUP_NO_LAUNCH). */
struct torch_launch *torch_launches_find(const struct torch_launches *l, uint32_t launch);

#endif
