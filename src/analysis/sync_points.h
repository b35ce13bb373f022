/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in which a thread of the host waits for the device: where they stand, how long they wait, and what
 * the device does meanwhile and after.
 *
 * A call that holds another one (aten::item holds cudaStreamSynchronize) waits in that one: only innermost
 * calls count. Calls are the runtimes' (cudaStreamSynchronize, hipDeviceSynchronize, a copy that is not
 * asynchronous …), PyTorch's (aten::item …, where the runtime's were not recorded) and JAX's
 * (block_until_ready, Await).
 *
 * While the host waits, the device works; what it costs is the device's idle time: while waiting (there was
 * nothing more to do), and after the call returned, until the host has new work for it. Of several calls that
 * return in one gap the first one ended the work: the gap is its. A target's devices are idle when none of
 * them runs anything. A gap that no work ends is the end of the profile and counts for none.
 *
 * Times: picoseconds. Everything lives in the arena; names borrow the trace. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_SYNC_POINTS_H
#define TACHO_ANALYSIS_SYNC_POINTS_H

#include "analysis/device_work.h"

struct sync_point {
    str call;      /* "cudaStreamSynchronize" */
    str operation; /* PyTorch's operation that holds it, "aten::item"; empty: none */
    str stack;     /* Python frames, outermost first, `;` between; empty: none recorded */
    uint64_t count, wait_ps, longest_ps;
    uint64_t in_steps;                      /* of count, within complete steps */
    uint64_t idle_during_ps, idle_after_ps; /* 0 where has_idle is false: unknown */
    bool has_idle; /* the target shows work of a device that is not the host itself */
};

struct sync_points {
    struct sync_point *items; /* by idle time, then waiting */
    uint32_t n, capacity;
    uint64_t
        n_steps; /* complete steps of all targets: the first and last of three and more are not */
};

MUST_CHECK bool sync_points_of(const struct profile *p, struct arena *a, struct sync_points *out,
                               struct err *e);

#endif
