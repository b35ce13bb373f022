/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the devices summed by the framework's operation that they stand for: XLA makes
 * several fusions of one "dot_general", and the model's author knows only that.
 *
 * An operation without provenance stands for itself. Occurrences are the most that one of its
 * parts has. Times: picoseconds, saturating. Texts borrow the op_db. */
#ifndef TACHO_ANALYSIS_FRAMEWORK_OPS_H
#define TACHO_ANALYSIS_FRAMEWORK_OPS_H

#include "analysis/op_metrics.h"

struct framework_row {
    str name, type; /* "jit(f)/dot_general", "dot_general"; type "Unknown" when it cannot be told */
    uint64_t occurrences, time_ps, self_ps;
    uint64_t matrix_ps;               /* of its time, in kernels on matrix units (GPU) */
    struct op_metrics work;           /* flops and bytes, for op_rates_of */
    bool is_eager, uses_matrix_units; /* the latter: one of its kernels does (GPU) */
};

struct framework_rows {
    struct framework_row *items; /* by self time, then name */
    uint32_t n, capacity;
};

MUST_CHECK bool framework_rows_of(const struct op_db *db, struct arena *a,
                                  struct framework_rows *out, struct err *e);

#endif
