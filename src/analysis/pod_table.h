/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of the tools that stand on steps have in common: a step's parts as columns, and the
 * slow device as values. A part that the profile cannot show is unknown, not 0: launches on a TPU,
 * input where nothing in the profile is input. */
#ifndef TACHO_ANALYSIS_POD_TABLE_H
#define TACHO_ANALYSIS_POD_TABLE_H

#include "analysis/pod_steps.h"
#include "model/table.h"

struct pod_table {
    const struct pod_steps *pods;
    bool shown[POD_CLASSES]; /* parts that the profile can show */
};

#define POD_COLUMNS (2 + POD_CLASSES + 1)

struct pod_table pod_table_of(const struct pod_steps *s);
/* step, duration_ps, each part as compute_ps … other_ps, bottleneck. */
void pod_columns(struct table *t);
/* Fills POD_COLUMNS cells. */
void pod_cells(const struct pod_table *p, const struct pod_step *step, const struct pod_core *c,
               struct cell *row);
/* straggler, straggler_compute_ps, others_compute_ps: unknown where there is no device to compare. */
MUST_CHECK bool pod_straggler_values(const struct pod_steps *s, struct table *t, struct err *e);

#endif
