/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a GPU or CPU host went into, as XProf splits them: where events of several
 * classes overlap, the class named first here takes the time; what none covers is left over. An
 * event without length takes none: XProf's sweep lets one last until the step's next event, so
 * that its host compute of such a step is longer (tests/golden/test_host_steps.py).
 *
 * On GPU a step lasts as the longest span of its work on one device; without devices, as its marker
 * on the host: then the operations of XLA:CPU in it compute, whichever step caused them. Beside the host's parts, in which all its devices count together, stand those of each
 * device, in its own span of the step: a slow device shows there only. Kernels in names of 16-bit types
 * (bf16, which XProf takes for 32 bits, too) and shorter ones are COMPUTE_16. Times: picoseconds since the trace's origin. Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_STEP_PARTS_H
#define TACHO_ANALYSIS_STEP_PARTS_H

#include "analysis/grouping.h"
#include "analysis/spans.h"

enum step_class {
    STEP_COMPUTE_16 = 0,
    STEP_COMPUTE_32,
    STEP_D2H,
    STEP_D2D,
    STEP_WAIT_INPUT,
    STEP_COLLECTIVE,
    STEP_COPY_IN, /* host to device, on the device; XProf counts it behind launches */
    STEP_LAUNCH,
    STEP_H2D, /* the host's side of it */
    STEP_HOST,
    STEP_CLASSES
};

struct step_device { /* one device's part in a step */
    uint32_t plane_index;
    uint64_t begin_ps, end_ps;
    uint64_t class_ps[STEP_CLASSES];
    uint64_t other_ps;
};

struct step_parts {
    int32_t group; /* see grouping.h */
    str name;      /* of the marker on the host */
    int64_t number;
    bool has_number;
    uint64_t begin_ps, end_ps;
    uint64_t class_ps[STEP_CLASSES];
    uint64_t other_ps;
    struct step_device *devices; /* that worked in it, by plane; none on CPU */
    uint32_t n_devices;
};

struct steps_parts {
    struct step_parts *items; /* by group */
    uint32_t n;
};

/* g: the trace's grouping where it is at hand, else NULL. */
MUST_CHECK bool step_parts_of(const struct trace *t, const struct grouping *g, struct arena *a,
                              struct steps_parts *out, struct err *e);

#endif
