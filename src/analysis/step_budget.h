/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of each step of each device went.
 *
 *     struct step_budget b;
 *     if (!step_budget_of(profile, a, &b, e)) return false;
 *     ... b.devices[i].steps[k].part_ps[BUDGET_COMM] ...
 *
 * Steps are those of step_lanes.h: from a step's first work to the next step's, on each device its
 * own. A step is cut by unions of intervals over all streams of the device: compute; communication
 * beside no compute; copies beside neither; and idle, by why nothing ran (device_gaps.h). The parts
 * sum to the step to the picosecond. A device whose trace has no steps has one window, from its first
 * to its last work (`lane` NULL).
 *
 * Complete steps are all but the first and the last of a device with more than two: the profile may
 * have cut those off, and the last has no next. Times: picoseconds of the device's trace. Everything lives in
 * the arena. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_STEP_BUDGET_H
#define TACHO_ANALYSIS_STEP_BUDGET_H

#include "analysis/device_gaps.h"
#include "analysis/step_lanes.h"

enum budget_part {
    BUDGET_COMPUTE = 0,
    BUDGET_COMM, /* exposed */
    BUDGET_COPY, /* exposed */
    BUDGET_STARVED,
    BUDGET_BLOCKED,
    BUDGET_LATENCY,
    BUDGET_UNKNOWN,
    BUDGET_PARTS
};

struct budget_step {
    int64_t number;
    str name;
    uint64_t begin_ps, end_ps;
    uint64_t part_ps[BUDGET_PARTS];
    bool is_complete;
};

struct budget_device {
    const struct work_device *device;
    const struct step_lane *lane; /* NULL: the trace has no steps, the one here is the window */
    struct device_gaps gaps;      /* empty unless they were asked for */
    struct budget_step *steps;    /* by begin */
    uint32_t n_steps;
    bool has_copies, has_comm, has_waits; /* false: nothing of the kind is recorded, unknown */
};

struct budget_trace {
    const struct trace *trace;
    struct grouping grouping;
    struct step_lanes lanes;
    struct launch_times launches;
    struct flows *flows; /* of a trace with TPU cores, else NULL */
};

struct step_budget {
    const struct profile *profile;
    struct budget_trace *traces; /* as in the profile */
    uint32_t n_traces;
    struct work_devices work;
    struct budget_device *devices; /* as in work */
};

/* What is known of the traces alone: groupings, lanes, calls, flows of TPU cores. */
MUST_CHECK bool budget_traces_of(const struct profile *p, struct arena *a,
                                 struct budget_trace **out, struct err *e);
MUST_CHECK bool step_budget_of(const struct profile *p, struct arena *a, struct step_budget *out,
                               struct err *e);
/* The same with each device's gaps, which take up to 100 bytes a stretch of work. */
MUST_CHECK bool step_budget_with_gaps(const struct profile *p, struct arena *a,
                                      struct step_budget *out, struct err *e);

static inline uint64_t budget_idle_ps(const struct budget_step *s)
{
    return s->part_ps[BUDGET_STARVED] + s->part_ps[BUDGET_BLOCKED] + s->part_ps[BUDGET_LATENCY] +
           s->part_ps[BUDGET_UNKNOWN];
}
/* "compute", "comm_exposed", "copy_exposed", "launch_starved", "blocked", "launch_latency", "unknown". */
const char *budget_part_word(enum budget_part p);
/* False for what is not recorded: copies and communication of a CPU, waits but of a TPU core. */
bool budget_part_known(const struct budget_device *d, enum budget_part p);
/* How many steps are complete; their median duration and the mean of a part, of all where none is. */
uint32_t budget_complete(const struct budget_device *d);
uint64_t budget_median_ps(const struct budget_device *d, struct arena *a);
double budget_mean_ps(const struct budget_device *d, enum budget_part p);
/* The step in which that moment is, or NULL. */
const struct budget_step *budget_step_at(const struct budget_device *d, uint64_t ps);
/* How sure the windows are: "high" for markers and launched work, else "medium" or "low". */
const char *budget_confidence(const struct budget_device *d);
/* The trace's part of the budget. */
const struct budget_trace *budget_trace_of(const struct step_budget *b, const struct trace *t);

#endif
