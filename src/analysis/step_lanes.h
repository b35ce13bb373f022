/* SPDX-License-Identifier: Apache-2.0 */
/* When each step ran on the host and on each device of one trace: a lane of windows for each.
 *
 *   host   ├──── 3 ────┼──── 4 ────┼─
 *   GPU:0        ├──── 3 ────┼──── 4 ────┼─      the host runs ahead of its devices
 *
 * A window goes from the first start of a step to the first start of the next, the last one to its
 * own end: windows of a lane are disjoint and without holes. Where they begin, the first of these
 * that the trace has:
 *
 *   marker    a TPU core's own Steps line; on the host, what the program marked (see grouping.h)
 *   launched  a GPU: the first start of work that the host launched inside its marker; of the busiest stream's work
 *             where others run ahead into the step before (batches copied early)
 *   module    a TPU core without markers: executions of the module that took most time
 *   period    a GPU without markers: the period of its kernels (step_period.h), begun where the device
 *             idled longest
 *
 * A device without windows of its own is cut by the host's, a host without markers by those of its
 * first device (`borrowed`).
 *
 * Steps keep the program's numbers where those grow from step to step, else they count from 0.
 * Everything lives in the arena; names
 * borrow the trace. Times: picoseconds of the trace. Thread: one at a time per arena. */
#ifndef TACHO_ANALYSIS_STEP_LANES_H
#define TACHO_ANALYSIS_STEP_LANES_H

#include "analysis/grouping.h"

enum step_mark {
    STEP_MARK_NONE = 0,
    STEP_MARK_MARKER,
    STEP_MARK_LAUNCHED,
    STEP_MARK_MODULE,
    STEP_MARK_PERIOD
};

struct step_window {
    int64_t number;
    str name;                  /* of the marker or module; may be empty */
    uint64_t begin_ps, end_ps; /* up to the next step */
    uint64_t own_end_ps;       /* of the marker, or of the last work of the step that began in it */
};

#define STEP_LANE_HOST UINT32_MAX

struct step_lane {
    uint32_t plane_index; /* of a device; STEP_LANE_HOST */
    enum step_mark mark;
    bool borrowed;             /* the windows are another lane's */
    bool counted;              /* numbers are ours: the program's are missing or do not grow */
    struct step_window *items; /* by begin */
    uint32_t n, capacity;
};

struct step_lanes {
    struct step_lane *items; /* the host's first, then devices by plane */
    uint32_t n, capacity;
};

/* g: the trace's grouping. */
MUST_CHECK bool step_lanes_of(const struct trace *t, const struct grouping *g, struct arena *a,
                              struct step_lanes *out, struct err *e);
/* The lane that cuts the lines of that plane: a device's own, else the host's. NULL: no steps. */
const struct step_lane *step_lanes_for(const struct step_lanes *l, uint32_t plane_index);
/* The window of that number, or NULL. */
const struct step_window *step_lane_find(const struct step_lane *l, int64_t number);
const char *step_mark_word(enum step_mark m);
/* "high": the trace says when the step is; "medium", "low": it is made out. */
const char *step_mark_confidence(enum step_mark m, bool borrowed);

#endif
