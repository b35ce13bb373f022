/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of op_metrics: the table (op_metrics.c) and what fills it from the planes of
 * each backend. Not for others. */
#ifndef TACHO_ANALYSIS_OP_COLLECT_H
#define TACHO_ANALYSIS_OP_COLLECT_H

#include "analysis/grouping.h"
#include "analysis/op_metrics.h"
#include "analysis/torch_cost.h"

struct op_tally { /* what one operation took, before it is named */
    uint64_t occurrences, time_ps, self_ps, min_ps, max_ps, dma_stall_ps;
    double normalized_ps;
};

void op_tally_add(struct op_tally *t, uint64_t time_ps, uint64_t self_ps);

/* The row of that key, added when new; NULL beyond the arena's cap. Valid until the next put. */
struct op_metrics *op_db_put(struct op_db *db, uint64_t program_id, str name);
void op_metrics_add(struct op_metrics *m, const struct op_tally *t);
/* Fills a new row from the program's HLO: category, text, names, source. */
MUST_CHECK bool op_metrics_describe(struct op_db *db, struct op_metrics *m,
                                    const struct hlo_program *program,
                                    const struct hlo_instruction *in, struct err *e);
/* Adds the static cost of n executions. */
void op_metrics_add_cost(struct op_metrics *m, uint64_t n);

/* Adds what one execution of an operator of PyTorch cost, before it is counted in: told by its shapes, and one
 * that is unknown leaves the sum unknown. */
void op_metrics_add_operator(struct op_metrics *m, const struct torch_cost *c);

MUST_CHECK bool op_collect_tpu(struct op_db *db, const struct trace *t, struct err *e);
MUST_CHECK bool op_collect_gpu(struct op_db *db, const struct trace *t, const struct grouping *g,
                               struct err *e);
MUST_CHECK bool op_collect_cpu(struct op_db *db, const struct trace *t, struct err *e);

#endif
