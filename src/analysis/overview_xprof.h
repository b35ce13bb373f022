/* SPDX-License-Identifier: Apache-2.0 */
/* overview_page as XProf's JSON: an array of seven tables (operations, steps, run environment,
 * advice, inference latency, {}, diagnostics). Formulas: XProf's op_stats_to_overview_page and
 * op_stats_to_input_pipeline_analysis; what it rounds to one place we round, too. */
#ifndef TACHO_ANALYSIS_OVERVIEW_XPROF_H
#define TACHO_ANALYSIS_OVERVIEW_XPROF_H

#include "analysis/datatable.h"
#include "analysis/op_metrics.h"
#include "analysis/tool.h"

struct sample { /* of one number over the steps */
    double sum, squares, min, max;
    uint32_t n;
};

void sample_add(struct sample *s, double v);
double sample_mean(const struct sample *s);
double sample_deviation(const struct sample *s); /* of a sample: over n - 1; 0 below two */

struct overview_steps { /* what the step table says to the others */
    uint32_t n;
    struct sample active_ms;             /* TPU: the cores' mean of what they computed */
    double compute_16_ps, compute_32_ps; /* GPU: kernels of 16 and 32 bits */
    double input_percent, other_percent, launch_percent, collectives_percent; /* of the step time */
};

/* The step table of a TPU profile. */
MUST_CHECK bool overview_steps_tpu(struct json *j, const struct profile *p, struct arena *a,
                                   struct overview_steps *out, struct err *e);
/* The step table of a GPU or CPU profile. */
MUST_CHECK bool overview_steps_generic(struct json *j, const struct profile *p,
                                       const struct op_db *db, struct arena *a,
                                       struct overview_steps *out, struct err *e);

MUST_CHECK bool overview_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                               struct err *e);

#endif
