/* SPDX-License-Identifier: Apache-2.0 */
/* How the host launches work: by the name of the call.
 *
 *   queue delay   from the end of the call to the begin of the first work that it launched; less than
 *                 0 where that begins before the call returns
 *   queue depth   at the end of the call: what was launched on the same device by then, this call
 *                 included, and had not begun. 0: the device is not behind the host at all
 *   short         all work of the call took less time than the call
 *
 * A launch is a call of a GPU's runtime with work of its correlation id, or what handed a module to a TPU
 * core (run_id). Calls with an id and no work in the trace (a synchronization) are counted apart.
 * Medians of an even number are the lower one. Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_LAUNCH_STATS_H
#define TACHO_ANALYSIS_LAUNCH_STATS_H

#include "analysis/step_budget.h"

struct launch_row {
    str name;
    uint64_t count;            /* launches */
    uint64_t n_works;          /* kernels, copies, modules: a CUDA graph is one call with many */
    uint64_t call_ps, work_ps; /* sums */
    uint64_t n_short;
    int64_t median_delay_ps, max_delay_ps;
    double mean_delay_ps;
    uint32_t median_depth, max_depth;
};

struct launch_stats {
    struct launch_row *items; /* by count, then name */
    uint32_t n;               /* 0: no launch is recorded */
    struct launch_row all;
    uint64_t n_without_work;
};

MUST_CHECK bool launch_stats_of(const struct budget_trace *traces, uint32_t n_traces,
                                struct arena *a, struct launch_stats *out, struct err *e);

#endif
