/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels run on matrix units (NVIDIA: Tensor Cores, Volta to Blackwell; AMD: MFMA, CDNA), and
 * which operations could. A profile says neither, so it is read off the names that the vendors'
 * libraries give their kernels; a name that tells nothing (compilers' own: Triton, XLA's gemm_fusion)
 * is unknown. XProf's words (xprof/utils/kernel_stats_utils.cc) end at Ampere; nvjet_, wgmma, tcgen05,
 * CUTLASS 3 and fused attention are ours. Pure functions of text. */
#ifndef TACHO_ANALYSIS_MATRIX_UNITS_H
#define TACHO_ANALYSIS_MATRIX_UNITS_H

#include "base/str.h"

enum matrix_units { MATRIX_UNITS_NO = 0, MATRIX_UNITS_YES, MATRIX_UNITS_UNKNOWN };

enum matrix_units matrix_units_of_kernel(str kernel_name);
/* True when an operation of that framework name could use them. */
bool matrix_units_may_serve(str op_name);
/* True for the equation of a contraction of two operands: "ab,bc->ac". */
bool matrix_units_may_serve_einsum(str equation);

#endif
