/* SPDX-License-Identifier: Apache-2.0 */
/* What an HLO instruction has to compute and to move, told from its shapes alone: the static cost
 * model that XLA:GPU's profiles are judged by (TPU profiles carry their costs themselves).
 *
 * Elementwise operations count clock cycles an element (3, more for transcendental functions), so
 * "flops" of a tanh is 190 an element: that is the model's convention, and XProf's. Opaque custom
 * calls cost what nobody knows: `known` is false. Values saturate; pure functions. */
#ifndef TACHO_ANALYSIS_COST_H
#define TACHO_ANALYSIS_COST_H

#include "model/hlo.h"

struct op_cost {
    bool known;
    int64_t flops;        /* one execution */
    int64_t device_flops; /* the same, 8-bit inputs counted half and 4-bit ones a quarter */
    int64_t bytes;        /* moved in all, collectives' network steps included */
    int64_t hbm_read, hbm_write;
};

/* What a library's matrix product (a custom call of cuBLAS and its kin) has to compute and to move, told from
 * the shapes of its first two operands and its first result. Unknown where these are no matrices that fit. */
struct op_cost cost_of_product_call(const struct hlo_module *m, const struct hlo_instruction *in);

struct op_cost cost_of(const struct hlo_module *m, const struct hlo_instruction *in);

#endif
