/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation of PyTorch has to compute and to move, told from the shapes that Kineto records beside
 * it (profile(record_shapes=True)): matrix products only. All others are unknown, not 0.
 *
 *     torch_cost(S("aten::addmm"), S("[[128],[32,64],[64,128],[],[]]"), S("[\"float\",\"float\",\"float\"…]"))
 *
 * A product of (m, k) and (k, n) has 2mnk FLOP and moves both operands and the result once, as the
 * profiler's own with_flops counts it. Values saturate; pure functions of text from a file. */
#ifndef TACHO_ANALYSIS_TORCH_COST_H
#define TACHO_ANALYSIS_TORCH_COST_H

#include "base/str.h"

struct torch_cost {
    bool known;
    uint64_t flops, read_bytes, write_bytes;
};

/* True for the names whose cost is told from their shapes. */
bool torch_has_cost(str name);
/* dims: "Input Dims", types: "Input type", both as JSON. */
struct torch_cost torch_cost(str name, str dims, str types);
/* "aten" of "aten::mm"; "autograd" of its own operations; else "operator". */
str torch_category(str name);

#endif
