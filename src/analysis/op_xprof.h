/* SPDX-License-Identifier: Apache-2.0 */
/* How XProf writes an operation into its tables. */
#ifndef TACHO_ANALYSIS_OP_XPROF_H
#define TACHO_ANALYSIS_OP_XPROF_H

#include "analysis/op_metrics.h"
#include "base/json.h"

/* "fusion.15" of the HLO text, else the operation's name. */
str op_xprof_name(const struct op_metrics *m);
/* The place in the source as XProf's piece of HTML, or empty; written into b, valid until its next use. */
str op_xprof_source(const struct op_metrics *m, struct buf *b);
/* The place in the source as its command line has it: the frames with " -> " behind each, else "file:line", or
 * empty. In the arena; empty beyond its cap. */
str op_xprof_place(const struct op_metrics *m, struct arena *a);
/* "TensorCore", "SparseCore", or empty. */
str op_xprof_core(const struct op_metrics *m);
/* The table of severities and messages that ends several of its answers. */
void op_xprof_diagnostics(struct json *j, bool no_steps);

#endif
