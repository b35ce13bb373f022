/* SPDX-License-Identifier: Apache-2.0 */
/* What all operations of a profile cost together, as XProf's command line counts it: matrix products of
 * libraries, which have no cost of their own, count with what their shapes tell. */
#ifndef TACHO_ANALYSIS_PROGRAM_COST_H
#define TACHO_ANALYSIS_PROGRAM_COST_H

#include "analysis/op_brief.h"
#include "analysis/op_rates.h"

/* An operation with a cost told from its shapes where it has no other. */
struct op_costed {
    struct op_metrics work;
    enum op_cost_source source;
};

struct program_cost {
    struct op_metrics work; /* sums, for op_rates_of */
    uint64_t derived_flops; /* of the model's, told from shapes */
    uint64_t custom_call_ps;
    bool has_opaque, has_derived; /* custom calls of unknown cost; of cost told from shapes */
};

struct op_costed op_costed_of(const struct op_metrics *m);
struct program_cost program_cost_of(const struct op_db *db);
/* "xla_cost_model", "derived_from_shapes", "mixed", "opaque_custom_call" */
const char *program_provenance(const struct program_cost *p);

#endif
