/* SPDX-License-Identifier: Apache-2.0 */
/* Part of a profile: some hosts, one device, some steps. Every tool takes these parameters; they are
 * applied here, before the tool runs, by a view of the profile that shows the rest of it no more:
 *
 *   host    traces of other hosts are left out ("h1", or the target "h1.3"; several with commas
 *           between; "ALL_HOSTS": all)
 *   device  planes of other devices are empty ("GPU:3", "TPU:0" with its SparseCores, or a plane's
 *           whole name); the host's planes stay
 *   steps   "3" or "3..7": of each line the events that start in those steps, a device's lines cut
 *           by the device's own windows, all others by the host's (analysis/step_lanes.h)
 *
 * Planes and lines keep their indexes; n_events, start, end and busy time of lines are those of
 * what is shown. Events that stand for many occurrences have no place in time: a view of steps
 * leaves out those that the line begins with. ERR_NOT_FOUND names what there is. The view borrows
 * the profile and lives in the arena: it is not freed by profile_free. */
#ifndef TACHO_ANALYSIS_SELECTION_H
#define TACHO_ANALYSIS_SELECTION_H

#include "model/trace.h"

struct selection {
    str host, device, steps; /* as the parameters say; empty: all */
};

/* *out is p itself where nothing is selected. */
MUST_CHECK bool selection_view(const struct selection *s, struct profile *p, struct arena *a,
                               struct profile **out, struct err *e);

#endif
