/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel that GPUs ran, with its launch shape, the operation it belongs to and its times.
 *
 * One row for each kernel name, launch (grid, block, registers, shared memory) and operation, summed
 * over devices and hosts. A kernel is an event of a stream that is no copy and no memset. Launches
 * are read from the stat kernel_details, "regs:32 static_shared:0 dynamic_shared:16384 grid:2,1,1
 * block:32,1,1 occ_pct:25.0" (ROCm: group_mem for shared memory).
 * What a writer did not know is unknown here: an occupancy of 0 of a kernel that ran, and registers
 * beyond any machine's (older ROCm writes a pointer over registers and static shared memory).
 *
 *     struct kernels k;
 *     if (!kernels_of(profile, KERNELS_SUM_ALL, a, &k, e)) return false;
 *     ... k.items[0 … n), by time ...
 *
 * Times: picoseconds. Everything lives in the arena. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_KERNELS_H
#define TACHO_ANALYSIS_KERNELS_H

#include "analysis/matrix_units.h"
#include "model/trace.h"

#define KERNEL_UNKNOWN (-1)

struct kernel_launch {
    int64_t registers_per_thread, static_shared_bytes, dynamic_shared_bytes; /* or KERNEL_UNKNOWN */
    uint32_t grid[3], block[3];                                              /* {0} = unknown */
    double occupancy_percent; /* theoretical; 0 = unknown */
};

struct kernel_times {
    uint64_t occurrences, total_ps, min_ps, max_ps;
};

struct kernel {
    str name;
    str op; /* framework name (of the HLO, where that is there), else HLO operation, else "CUDA graph 11", else
             * the operator of PyTorch that launched it; empty = unknown */
    struct kernel_launch launch;
    struct kernel_times times;
    struct kernel_times xprof; /* as XProf counts: each event's whole nanoseconds, none below one */
    enum matrix_units matrix_units;
    bool has_details;     /* says its launch in kernel_details: what XProf takes for a kernel */
    bool is_framework_op; /* op is a framework name */
    bool may_use_matrix_units; /* by its framework name, or because it does */
};

struct kernels {
    struct kernel *items; /* by total time, then name, operation and launch */
    uint32_t n, capacity;
    uint32_t n_devices; /* GPUs that ran kernels */
    uint64_t total_ps, matrix_ps, unknown_matrix_ps;
};

enum kernels_sum { KERNELS_SUM_ALL = 0, KERNELS_SUM_PER_HOST }; /* over what a row is summed */

MUST_CHECK bool kernels_of(const struct profile *p, enum kernels_sum sum, struct arena *a,
                           struct kernels *out, struct err *e);

/* "regs:32 … block:32,1,1"; what it does not say is unknown. */
struct kernel_launch kernel_launch_parse(str details);
/* Static and dynamic together, or KERNEL_UNKNOWN. */
int64_t kernel_shared_bytes(const struct kernel_launch *launch);
/* "256,1,1" in the arena; empty when unknown. */
str kernel_dims_text(const uint32_t dims[3], struct arena *a);
/* Whether an event of that name on a GPU's stream is a kernel: neither a copy nor a memset. */
bool kernel_is_name_of_one(str event_name);

#endif
