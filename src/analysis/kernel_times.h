/* SPDX-License-Identifier: Apache-2.0 */
/* Time of the devices by the name of what ran: kernels and copies of a GPU's streams, operations of a TPU
 * core (one that encloses others with all its time), over all devices and hosts. */
#ifndef TACHO_ANALYSIS_KERNEL_TIMES_H
#define TACHO_ANALYSIS_KERNEL_TIMES_H

#include "base/json.h"
#include "model/trace.h"

struct kernel_time {
    str name;
    uint64_t count, total_ps;
};

struct kernel_times {
    struct kernel_time *items; /* by time, then name; in the arena */
    uint32_t n, capacity;
};

MUST_CHECK bool kernel_times_of(const struct profile *p, struct arena *a, struct kernel_times *out,
                                struct err *e);
/* As XProf's command line prints one. */
void kernel_time_put(struct json *j, const struct kernel_time *row);

#endif
