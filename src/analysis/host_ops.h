/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's operations on the threads of a host: TensorFlow and JAX operations, stages of an
 * input pipeline ("Iterator::Prefetch::Map"). Markers that the program wrote itself do not count.
 *
 *     struct host_ops h = {0};
 *     if (!host_ops_add(&h, trace, e)) return false;
 *
 * Times are picoseconds and saturate. Rule: XProf's host OpMetricsDb, by the names of events. */
#ifndef TACHO_ANALYSIS_HOST_OPS_H
#define TACHO_ANALYSIS_HOST_OPS_H

#include "model/trace.h"

struct host_ops {
    uint64_t occurrences;
    uint64_t busy_ps;  /* Σ over threads of the time in which an operation ran */
    uint64_t total_ps; /* Σ over threads from the first operation's begin to the last one's end */
};

/* Adds the host threads of one trace. */
MUST_CHECK bool host_ops_add(struct host_ops *h, const struct trace *t, struct err *e);

#endif
