/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one host's trace, and what its devices did in each.
 *
 * Where steps come from, the first that there is: the Steps line of the TPU cores; the markers that
 * the program wrote on the host (jax.profiler.StepTraceAnnotation and its kin); the XLA Modules
 * line of the TPU cores, one execution a step (`implicit`). A step's time is its longest marker
 * over cores. On GPU the host's marker holds unless the device work that it caused reaches beyond
 * it (dispatch is asynchronous); then that work's longest span over devices does.
 *
 *     struct host_steps s;
 *     if (!steps_of(trace, NULL, a, &s, e)) return false;
 *     ... s.items[0 … s.n), by start ...
 *
 * A trace without markers has no steps (n = 0, source STEPS_NONE): nothing is made up. Times are
 * picoseconds since the trace's origin. Everything lives in the arena; names borrow the trace.
 * Source of the rules: XProf's StepDetails::StepTime; tsl/profiler/utils/group_events.
 * Thread: one at a time per arena. */
#ifndef TACHO_ANALYSIS_STEPS_H
#define TACHO_ANALYSIS_STEPS_H

#include "analysis/grouping.h"
#include "analysis/spans.h"
#include "model/profile_facts.h"

enum steps_source { STEPS_NONE = 0, STEPS_DEVICE, STEPS_HOST, STEPS_IMPLICIT };

struct step {
    str name;        /* of the marker: "train", or "7" on TPU */
    int64_t number;  /* as the program numbered it, else counted from 0 */
    bool has_number; /* the program said it */
    int32_t group;   /* of a marker on the host; else GROUP_NONE */
    uint64_t start_ps, dur_ps;
    /* Union over the host's devices of their work inside the step, without waiting for the host
     * (infeed, outfeed, send, receive). Unknown: the trace shows no work of any device. */
    struct fact_ps device_busy_ps;
    /* Waiting for input inside the step. TPU: infeed of the core that waits longest. Else: when
     * nothing computes while data is copied to a device or the stepping thread is in
     * IteratorGetNext. Unknown: the trace shows neither. */
    struct fact_ps input_ps;
};

/* A TPU core's own window of a step, and what it did in it: cores start a little apart. */
struct step_core {
    uint32_t plane_index, line_index;
    uint64_t event_index; /* of the marker on its line */
    int64_t number;       /* of the step */
    int32_t group;        /* as XProf numbers steps: see grouping.h */
    uint64_t begin_ps, end_ps;
    uint64_t part_ps[CORE_PARTS]; /* see spans.h */
    uint64_t active_ps;           /* in which operations ran that do not wait for the host */
};

/* To and from the host, but for infeed and outfeed. */
static inline uint64_t step_core_transfer_ps(const struct step_core *c)
{
    return c->part_ps[CORE_HOST_RECV] + c->part_ps[CORE_HOST_SEND];
}

struct host_steps {
    enum steps_source source;
    struct step_core *cores; /* by core, then start; none on GPU and CPU */
    uint32_t n_cores, cores_capacity;
    struct step *items; /* by start, then number */
    uint32_t n, capacity;
};

/* g: the trace's grouping where it is at hand, else NULL. */
MUST_CHECK bool steps_of(const struct trace *t, const struct grouping *g, struct arena *a,
                         struct host_steps *out, struct err *e);

#endif
