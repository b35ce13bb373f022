/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's operations on the threads of a host: TensorFlow and JAX operations, stages of an
 * input pipeline ("Iterator::Prefetch::Map"). Markers that the program wrote itself do not count,
 * nor does an allocation that names the operation it was made for (XProf counts those too).
 *
 *     struct host_ops h = {.arena = a};
 *     if (!host_ops_add(&h, trace, e)) return false;
 *     host_ops_finish(&h);
 *     ... h.items ...
 *
 * Times are picoseconds and saturate; texts borrow the trace. Rule: XProf's host OpMetricsDb, by the
 * names of events. */
#ifndef TACHO_ANALYSIS_HOST_OPS_H
#define TACHO_ANALYSIS_HOST_OPS_H

#include "analysis/op_metrics.h"

struct host_op {
    str name, type;
    uint64_t occurrences;
    uint64_t time_ps, self_ps; /* self: without the operations nested inside */
    bool is_eager;             /* all of it ran inside of EagerKernelExecute */
};

struct host_ops {
    struct arena *arena; /* for the items; NULL: only sums are wanted */
    bool says_eager;     /* an EagerKernelExecute is there */
    uint64_t occurrences;
    uint64_t busy_ps;  /* Σ over threads of the time in which an operation ran */
    uint64_t total_ps; /* Σ over threads from the first operation's begin to the last one's end */
    struct host_op *items; /* by self time, then name, once finished */
    uint32_t n, capacity;
    struct op_map by_name;
};

/* Adds the host threads of one trace. */
MUST_CHECK bool host_ops_add(struct host_ops *h, const struct trace *t, struct err *e);
/* Sorts the items and lets go of what the adding needed; also after a failure. */
void host_ops_finish(struct host_ops *h);

#endif
