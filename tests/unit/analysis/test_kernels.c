/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/kernels.h"
#include "base/limits.h"
#include "format/xspace.h"

static void test_launches_as_they_are_written(void **state)
{
    (void)state;
    struct kernel_launch l = kernel_launch_parse(
        S("regs:32 static_shared:16\ndynamic_shared:16384 grid:2,1,1 block:32,4,1 occ_pct:25.5 x"));
    assert_int_equal(l.registers_per_thread, 32);
    assert_int_equal(kernel_shared_bytes(&l), 16400);
    assert_int_equal(l.grid[0], 2);
    assert_int_equal(l.block[1], 4);
    assert_true(l.occupancy_percent > 25.4 && l.occupancy_percent < 25.6);
    l = kernel_launch_parse(
        S(" grid:219,40,1 block:256,1,1 private_mem:0 group_mem:49280 occ_pct:0"));
    assert_int_equal(l.registers_per_thread, KERNEL_UNKNOWN);
    assert_int_equal(kernel_shared_bytes(&l), 49280);
    assert_int_equal(l.grid[1], 40);
    assert_true(l.occupancy_percent <= 0);
    l = kernel_launch_parse(S(
        "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:1,2 block:1,2,3,4 occ_pct=13"));
    assert_int_equal(l.registers_per_thread, KERNEL_UNKNOWN);
    assert_int_equal(kernel_shared_bytes(&l), KERNEL_UNKNOWN);
    assert_int_equal(l.grid[0], 0);
    assert_int_equal(l.block[0], 0);
    l = kernel_launch_parse(S("regs:-1 regs:99999999999 grid:4294967296,1,1 block:,,"));
    assert_int_equal(l.registers_per_thread, KERNEL_UNKNOWN);
    assert_int_equal(l.grid[0], 0);
}

static void test_matrix_units_by_name(void **state)
{
    (void)state;
    static const struct {
        str name;
        enum matrix_units want;
    } known[] = {
        {STR_INIT("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"), MATRIX_UNITS_YES},
        {STR_INIT("turing_fp16_s1688cudnn_fp16_256x64_ldg8_relu"), MATRIX_UNITS_YES},
        {STR_INIT("ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_tn"), MATRIX_UNITS_YES},
        {STR_INIT("ampere_sgemm_128x64_nn"), MATRIX_UNITS_NO},
        {STR_INIT("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"), MATRIX_UNITS_YES},
        {STR_INIT("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"), MATRIX_UNITS_YES},
        {STR_INIT("nvjet_sm100_tst_256x256_64x3_2x1_2cta_v_bz_TNT"), MATRIX_UNITS_YES},
        {STR_INIT("cutlass3x_sm100_tensorop_s256x128x16gemm_bf16"), MATRIX_UNITS_YES},
        {STR_INIT("void cutlass::Kernel<cutlass::arch::OpClassTensorOp>(Params)"),
         MATRIX_UNITS_YES},
        {STR_INIT("cutlass_80_simt_sgemm_128x64_8x5_nn_align1"), MATRIX_UNITS_NO},
        {STR_INIT("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16"), MATRIX_UNITS_YES},
        {STR_INIT("fmha_cutlassF_bf16_aligned_64x64_rf_sm80"), MATRIX_UNITS_YES},
        {STR_INIT("fmha_cutlassF_f32_aligned_64x64_rf_sm75"), MATRIX_UNITS_NO},
        {STR_INIT("fmha_cutlassB_f16_aligned_64x64_k64_sm50"), MATRIX_UNITS_NO},
        {STR_INIT("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN"), MATRIX_UNITS_YES},
        {STR_INIT("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_MIAV0_K1"), MATRIX_UNITS_NO},
        {STR_INIT("kernel_gemm_xdlops_v2r3"), MATRIX_UNITS_YES},
        {STR_INIT("gemm_fusion_dot_3"), MATRIX_UNITS_UNKNOWN},
        {STR_INIT("triton_tem_fused_mm_2"), MATRIX_UNITS_UNKNOWN},
        {STR_INIT("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), MATRIX_UNITS_NO},
        {STR_INIT("loop_add_fusion_4"), MATRIX_UNITS_NO},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (matrix_units_of_kernel(known[i].name) != known[i].want)
            fail_msg("%s", known[i].name.p);
    assert_true(matrix_units_may_serve_einsum(S("ab,bc->ac")));
    assert_false(matrix_units_may_serve_einsum(S("ab->ba")));
    assert_false(matrix_units_may_serve_einsum(S("a,b,c->abc")));
    assert_false(matrix_units_may_serve_einsum(S("ab,bc")));
    assert_true(matrix_units_may_serve(S("model/dense/MatMul")));
    assert_false(matrix_units_may_serve(S("model/MyMatMul")));
}

enum { DETAILS = 1, TF_OP, EQUATION };

struct made { /* an event: its name, duration, texts by stat */
    int64_t name, offset, duration;
    str texts[4];
};

static void put_stat(struct buf *ev, int64_t id, str text)
{
    struct buf stat;
    buf_init(&stat, 1 << 12);
    put_number(&stat, 1, id);
    put_bytes(&stat, 5, text);
    put_bytes(ev, 4, buf_str(&stat));
    buf_release(&stat);
}

static void make_kernels(struct buf *space, const struct made *events, size_t n)
{
    struct buf line, plane;
    buf_init(&line, 1 << 20);
    buf_init(&plane, 1 << 20);
    buf_init(space, 1 << 20);
    put_bytes(&line, 2, S("Stream #7(Kernel)"));
    for (size_t i = 0; i < n; i++) {
        struct buf ev;
        buf_init(&ev, 1 << 14);
        put_number(&ev, 1, events[i].name);
        put_number(&ev, 2, events[i].offset);
        put_number(&ev, 3, events[i].duration);
        for (int64_t id = DETAILS; id <= EQUATION; id++)
            if (events[i].texts[id].n > 0)
                put_stat(&ev, id, events[i].texts[id]);
        put_bytes(&line, 4, buf_str(&ev));
        buf_release(&ev);
    }
    put_bytes(&plane, 2, S("/device:GPU:3"));
    put_bytes(&plane, 3, buf_str(&line));
    put_entry(&plane, 4, 1, S("volta_fp16_s884gemm"));
    put_entry(&plane, 4, 2, S("kernel_name_middle"));
    put_entry(&plane, 4, 3, S("kernel_name_shortest"));
    put_entry(&plane, 4, 4, S("MemcpyD2H"));
    put_entry(&plane, 5, DETAILS, S("kernel_details"));
    put_entry(&plane, 5, TF_OP, S("tf_op"));
    put_entry(&plane, 5, EQUATION, S("equation"));
    put_bytes(space, 1, buf_str(&plane));
    buf_release(&line);
    buf_release(&plane);
}

static void test_kernels_by_time(void **state)
{
    (void)state;
    static const struct made events[] = {
        {3, 0, 1000, {{0}, STR_INIT("regs:16 grid:1,1,1 block:1,1,1")}},
        {2,
         10000,
         2000,
         {{0},
          STR_INIT("dynamic_shared:16384 static_shared:0 grid:2,1,1 block:32,1,1"),
          STR_INIT("Conv2D:Conv2D")}},
        {1, 20000, 2999, {{0}, STR_INIT("regs:32"), STR_INIT("Einsum_80:Einsum"), STR_INIT("")}},
        {4, 30000, 9000, {{0}}},
        {1, 40000, 1, {{0}, STR_INIT("regs:32"), STR_INIT("Einsum_80:Einsum"), STR_INIT("")}},
    };
    struct buf space;
    struct arena a;
    struct err e = {0};
    struct kernels k;
    arena_init(&a, "test", LIMIT_ARENA_TOOL_BYTES);
    make_kernels(&space, events, 5);
    const struct xspace_options o = {
        .file = S("host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1};
    struct trace *t = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(t);
    struct profile p = {.traces = &t, .n_traces = 1};
    assert_true(kernels_of(&p, KERNELS_SUM_ALL, &a, &k, &e));
    assert_int_equal(k.n, 3);
    assert_true(str_eq(k.items[0].name, S("volta_fp16_s884gemm")));
    assert_true(k.items[0].may_use_matrix_units); /* because it does */
    assert_true(k.items[0].matrix_units == MATRIX_UNITS_YES);
    assert_int_equal(k.items[0].times.total_ps, 3000);
    assert_int_equal(k.items[0].times.min_ps, 1);
    assert_int_equal(k.items[0].times.occurrences, 2);
    assert_int_equal(k.items[0].xprof.total_ps, 2000);
    assert_int_equal(k.items[0].xprof.occurrences, 1);
    assert_true(str_eq(k.items[1].op, S("Conv2D")) && k.items[1].may_use_matrix_units);
    assert_true(k.items[1].matrix_units == MATRIX_UNITS_NO);
    assert_int_equal(kernel_shared_bytes(&k.items[1].launch), 16384);
    assert_int_equal(k.items[2].launch.registers_per_thread, 16);
    assert_int_equal(k.total_ps, 6000);
    assert_int_equal(k.matrix_ps, 3000);
    trace_free(t);
    arena_release(&a);
    buf_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches_as_they_are_written),
        cmocka_unit_test(test_matrix_units_by_name),
        cmocka_unit_test(test_kernels_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
