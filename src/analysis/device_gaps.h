/* SPDX-License-Identifier: Apache-2.0 */
/* When a device did nothing, and why, as far as the trace can tell.
 *
 *      ──work──┐                 ┌──work── next
 *              ├─ starved ─┬─latency┤
 *   host       ·     ──────call──┘
 *
 * A gap is time in which nothing of the device's work ran (device_work.h). It is cut by what began
 * next:
 *
 *   starved   up to the end of the call that launched the next work: the host had not issued it. On
 *             XLA:CPU up to the begin of the call that dispatches the program, on PyTorch's CPU the whole
 *             gap: an operation there is issued as it begins
 *   latency   issued, nothing else of the device ran, and it had not begun
 *   blocked   a TPU core's operations that wait for the host (infeed, outfeed, host send and recv)
 *   unknown   all else: no launch is recorded or it is later than its work (clocks differ), within a
 *             module of a TPU core, behind the last work
 *
 * starved, latency and blocked are disjoint and within the gaps. A gap before the first work begins at 0.
 * Times: picoseconds of the device's trace. Everything lives in the arena. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_DEVICE_GAPS_H
#define TACHO_ANALYSIS_DEVICE_GAPS_H

#include "analysis/device_work.h"
#include "analysis/flows.h"

struct gap_op {
    uint32_t line_index; /* UINT32_MAX: none */
    uint32_t metadata_index;
};

struct device_gap {
    uint64_t begin_ps, end_ps;
    struct gap_op last, next; /* that ended where it begins, that begin where it ends */
    bool is_issued;           /* issued_ps is known */
    uint64_t issued_ps;       /* when the host had issued what came next; may be before the gap */
};

struct device_gaps {
    struct device_gap *items; /* by begin */
    uint32_t n;
    struct spans starved, latency, blocked;
};

/* The calls of grouping.launches, by index. */
struct launch_times {
    uint64_t *start_ps, *end_ps;
    uint32_t *metadata_index, *line_index; /* of the call */
    uint32_t n;
};

MUST_CHECK bool launch_times_of(const struct trace *t, const struct grouping *g, struct arena *a,
                                struct launch_times *out, struct err *e);
/* flows: needed of traces with TPU cores, else may be NULL. */
MUST_CHECK bool device_gaps_of(const struct work_device *d, const struct grouping *g,
                               const struct launch_times *launches, const struct flows *flows,
                               struct arena *a, struct device_gaps *out, struct err *e);
/* What a person calls it, or empty. */
str gap_op_name(const struct trace *t, struct gap_op op);

#endif
