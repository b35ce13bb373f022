/* SPDX-License-Identifier: Apache-2.0 */
/* The host's work for input, and what kind each operation is: stages of tf.data ("Iterator::…"),
 * feeds of a TPU (InfeedEnqueue).
 *
 *     struct host_input in;
 *     if (!host_input_of(profile, a, &in, e)) return false;
 *     ... in.items[0 … n), by self time ...
 *
 * Where the host feeds devices by InfeedEnqueue, the loop around tells how long the rest of the work
 * for input takes, and the parts are scaled to it; what they leave of it is unclassified. Times:
 * picoseconds. Everything lives in the arena. Rules: XProf's op_stats_to_input_pipeline_analysis. */
#ifndef TACHO_ANALYSIS_HOST_INPUT_H
#define TACHO_ANALYSIS_HOST_INPUT_H

#include "analysis/host_ops.h"

enum input_kind {
    INPUT_ENQUEUE = 0,
    INPUT_DEMANDED_READ, /* a stage that reads files while somebody waits for it */
    INPUT_ADVANCED_READ, /* a stage that reads them ahead */
    INPUT_PREPROCESSING,
    INPUT_KINDS
};

struct input_op {
    const struct host_op *op;
    enum input_kind kind;
};

struct host_input {
    struct input_op *items; /* by self time, then name */
    uint32_t n, capacity;
    uint64_t self_ps; /* Σ of all */
    double part_ps[INPUT_KINDS], unclassified_ps;
};

MUST_CHECK bool host_input_of(const struct profile *p, struct arena *a, struct host_input *out,
                              struct err *e);
const char *input_kind_name(enum input_kind k); /* as XProf calls it */

#endif
