/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of all hosts of a profile, each with what every core did in it.
 *
 *     step 7 ─ cores    what XProf counts as one: a TPU core; else a host with all its devices
 *            └ devices  each device alone (TPU: the same as cores; CPU: none)
 *
 * Steps of several hosts are the same step when the program gave them the same number; without
 * numbers, the same position. A step lasts as long as on the core where it lasts longest: the others
 * wait for it. A core's parts sum to its time to the picosecond. Times: picoseconds of the core's own
 * trace. Everything lives in the arena. Source of the classes: XProf's GenericStepBreakdown. */
#ifndef TACHO_ANALYSIS_POD_STEPS_H
#define TACHO_ANALYSIS_POD_STEPS_H

#include "analysis/grouping.h"
#include "analysis/step_parts.h"
#include "analysis/steps.h"

enum pod_class { /* XProf's numbers, less one */
                 POD_COMPUTE = 0,
                 POD_DEVICE, /* copies and messages between devices */
                 POD_COLLECTIVE,
                 POD_HOST,
                 POD_LAUNCH,
                 POD_INPUT,
                 POD_OUTPUT,
                 POD_COMPILE,
                 POD_OTHER,
                 POD_CLASSES
};

struct pod_core {
    uint32_t trace_index;
    uint32_t plane_index; /* UINT32_MAX: a host with all its devices */
    uint64_t begin_ps, end_ps;
    uint64_t class_ps[POD_CLASSES];
    uint64_t compute_16_ps;      /* of POD_COMPUTE, by kernels of 16-bit types; not told on TPU */
    const struct step_core *tpu; /* of a TPU core, else NULL */
};

struct pod_list {
    struct pod_core *items; /* by trace, then plane */
    uint32_t n, capacity;
};

struct pod_step {
    str name;       /* of the marker */
    int64_t number; /* as the program numbered it, else counted from 0 */
    bool has_number;
    struct pod_list cores, devices;
};

struct pod_steps {
    const struct profile *profile;
    bool is_tpu;
    struct pod_step *items; /* by number */
    uint32_t n, capacity;
    uint32_t n_hosts;         /* with steps */
    struct host_steps *steps; /* of a TPU's traces, what they were made from; else NULL */
};

/* groupings: one a trace where they are at hand (else NULL). */
MUST_CHECK bool pod_steps_of(const struct profile *p, struct grouping *const *groupings,
                             struct arena *a, struct pod_steps *out, struct err *e);

const char *pod_class_name(enum pod_class class); /* as XProf calls it */

static inline uint64_t pod_core_ps(const struct pod_core *c)
{
    return c->end_ps - c->begin_ps;
}
/* The core where it lasts longest; of equals the first. NULL of an empty list. */
const struct pod_core *pod_longest(const struct pod_list *l);
/* True when every host with steps has a part in it. */
bool pod_step_is_whole(const struct pod_steps *s, const struct pod_step *step);
/* The class that took most; of equals the first. */
enum pod_class pod_bottleneck(const struct pod_core *c);
/* "host-0 /device:TPU:1", in the arena; a host alone is its name. */
str pod_core_name(const struct pod_steps *s, const struct pod_core *c, struct arena *a);

/* A device that computes longer than the others, step after step: they wait for it. */
struct straggler {
    const struct pod_core *core; /* its part of the last step; NULL: there is none */
    uint32_t n_devices;          /* that were compared; below two there is nothing to say */
    double compute_ps,
        others_ps; /* means over the steps: of the slowest; the median of the others */
};
#define STRAGGLER_RATIO 1.1 /* of its own to that of the others, from which on it is one */
MUST_CHECK bool pod_straggler(const struct pod_steps *s, struct arena *a, struct straggler *out,
                              struct err *e);

#endif
