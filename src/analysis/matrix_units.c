/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/matrix_units.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* As they stand in the name. */
static const str exact_words[] = {
    STR_INIT("16816"), STR_INIT("c1688"), STR_INIT("conv1x1"), STR_INIT("conv2d_c1_k1"),
    STR_INIT("dgrad_1x1_stride_2x2"), STR_INIT("direct_group"),
    STR_INIT("first_layer_wgrad_kernel"), STR_INIT("h1688"), STR_INIT("h884"), STR_INIT("hmma"),
    STR_INIT("i16832"), STR_INIT("i8816"), STR_INIT("s884"), STR_INIT("s1688"),
    STR_INIT("xmma_gemm"), STR_INIT("xmma_implicit_gemm"), STR_INIT("xmma_sparse_conv"),
    STR_INIT("xmma_sparse_gemm"), STR_INIT("xmma_warp_specialized_implicit_gemm"),
    /* not known to XProf */
    STR_INIT("nvjet_"), /* cuBLAS of Hopper and Blackwell */
    STR_INIT("xmma_fprop"), STR_INIT("xmma_dgrad"), STR_INIT("xmma_wgrad"),
    STR_INIT("d884"),                                       /* double precision */
    STR_INIT("d1684"), STR_INIT("z884"), STR_INIT("_gtcx"), /* MIOpen's assembly on MFMA */
};

/* Whatever the case: template arguments write TensorOp, names tensorop. */
static const str other_words[] = {
    STR_INIT("gmma"),    /* wgmma of Hopper */
    STR_INIT("tcgen05"), /* Blackwell */
    STR_INIT("wmma"),      STR_INIT("tensorop"),    STR_INIT("mfma"),
    STR_INIT("xdlop"),     STR_INIT("_xdl"),        STR_INIT("flash_fwd"),
    STR_INIT("flash_bwd"), STR_INIT("flash_fprop"), STR_INIT("flash_bprop"),
};

/* Names of compilers: a matrix product, on whatever units. */
static const str silent_words[] = {
    STR_INIT("gemm_fusion"),      STR_INIT("triton_gemm"), STR_INIT("triton_mm"),
    STR_INIT("triton_tem_fused"), STR_INIT("_attn_fwd"),   STR_INIT("_attn_bwd"),
};

static bool has_any(str s, const str *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_find(s, words[i]) >= 0)
            return true;
    return false;
}

static bool has_any_nocase(str s, const str *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_find_nocase(s, words[i]) >= 0)
            return true;
    return false;
}

/* Tensile names a kernel by its parameters: _MI16x16x16x1_ is its MFMA instruction. */
static bool is_tensile_mfma(str name)
{
    const ptrdiff_t at = str_find(name, S("_MI"));
    return str_find(name, S("Cijk_")) >= 0 && at >= 0 && (size_t)at + 3 < name.n &&
           name.p[at + 3] >= '1' && name.p[at + 3] <= '9';
}

/* Fused attention: on matrix units but for single precision before Ampere and all of Maxwell and Pascal. */
static bool is_fused_attention_on_them(str name)
{
    if (str_find_nocase(name, S("fmha")) < 0 || str_find(name, S("_sm50")) >= 0)
        return false;
    return str_find(name, S("_f32_")) < 0 || str_find(name, S("_sm7")) < 0;
}

enum matrix_units matrix_units_of_kernel(str name)
{
    if (has_any(name, exact_words, COUNT(exact_words)) ||
        has_any_nocase(name, other_words, COUNT(other_words)) || is_tensile_mfma(name) ||
        is_fused_attention_on_them(name))
        return MATRIX_UNITS_YES;
    return has_any(name, silent_words, COUNT(silent_words)) ? MATRIX_UNITS_UNKNOWN
                                                            : MATRIX_UNITS_NO;
}

bool matrix_units_may_serve(str op_name)
{
    static const str ends[] = {
        STR_INIT("Conv2D"),
        STR_INIT("Conv2DBackpropFilter"),
        STR_INIT("Conv2DBackpropInput"),
        STR_INIT("Conv3D"),
        STR_INIT("DepthwiseConv2dNative"),
        STR_INIT("DepthwiseConv2dNativeBackpropFilter"),
        STR_INIT("DepthwiseConv2dNativeBackpropInput"),
        STR_INIT("/MatMul"),
        STR_INIT("FusedMatMul"),
        STR_INIT("/CudnnRNN"),
        STR_INIT("XlaDot"),
        STR_INIT("XlaDotV2"),
    };
    static const str words[] = {
        STR_INIT("BatchMatMul"),      STR_INIT("CudnnRNNV"),   STR_INIT("CudnnRNNForward"),
        STR_INIT("CudnnRNNBackprop"), STR_INIT("dot_general"), STR_INIT("conv_general_dilated"),
    };
    for (size_t i = 0; i < COUNT(ends); i++)
        if (str_ends(op_name, ends[i]))
            return true;
    return has_any(op_name, words, COUNT(words));
}

bool matrix_units_may_serve_einsum(str equation)
{
    const ptrdiff_t arrow = str_find(equation, S("->"));
    if (arrow < 0 || str_find(str_sub(equation, (size_t)arrow + 2, equation.n), S("->")) >= 0)
        return false;
    uint32_t n_operands = 0;
    str operand, rest = str_sub(equation, 0, (size_t)arrow);
    while (str_cut(rest, ',', &operand, &rest))
        n_operands++;
    return n_operands == 2;
}
