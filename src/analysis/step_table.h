/* SPDX-License-Identifier: Apache-2.0 */
/* The step table that XProf's overview_page and input_pipeline_analyzer share, and what it says in
 * sum. A step is numbered as the program numbered it (XProf: by its internal groups), and of several
 * hosts the row is that of the host where it lasts longest (XProf: the first host's).
 *
 *     struct step_summary s;
 *     if (!step_summary_of(&pods, backend, a, &s, e)) return false;
 *     step_table_xprof(&j, &s);
 *
 * Steps that not every host has are left out; on GPU and CPU so are the first and the last of more
 * than five, which the profile's ends may cut off. Formulas: XProf's op_stats_to_input_pipeline_analysis;
 * what it rounds to one place we round, too. Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_STEP_TABLE_H
#define TACHO_ANALYSIS_STEP_TABLE_H

#include "analysis/datatable.h"
#include "analysis/op_metrics.h"
#include "analysis/pod_steps.h"
#include "analysis/sample.h"

/* Percent of the step time from which on a part of it is said to bind: moderately, highly. */
#define BINDS_INPUT_MODERATE 5.0
#define BINDS_INPUT_HIGH 20.0
#define BINDS_MODERATE 3.0
#define BINDS_HIGH 15.0

struct step_summary {
    const struct pod_steps *pods;
    enum op_backend backend;
    const struct pod_step **shown; /* by number */
    uint32_t n;
    struct sample step_ms; /* each as long as on the core where it lasts longest */
    /* GPU and CPU: of the host where the step lasts longest */
    struct sample part_ms[POD_CLASSES];
    double compute_ps, compute_16_ps; /* GPU: sums over steps and devices; by kernels of 16 bits */
    /* TPU, of each step over its cores: the least compute, the longest infeed, mean outfeed, what then
     * is left of the longest step, the longest transfer with the host, and the mean of the compute */
    struct sample tpu_compute_ms, infeed_ms, outfeed_ms, idle_ms, transfer_ms, active_ms;
    struct sample infeed_percent;
    double input_percent, other_percent, launch_percent, collectives_percent; /* of the step time */
};

MUST_CHECK bool step_summary_of(const struct pod_steps *pods, enum op_backend backend,
                                struct arena *a, struct step_summary *out, struct err *e);
void step_table_xprof(struct json *j, const struct step_summary *s);

/* "no", "moderate" or "high". */
const char *step_binds(double percent_of_step, double moderate, double high);

#endif
