/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/torch_cost.h"

static const str floats = STR_INIT("[\"float\",\"float\",\"float\",\"Scalar\",\"Scalar\"]");

static void test_matrix_products_by_their_shapes(void **state)
{
    (void)state;
    struct torch_cost c = torch_cost(S("aten::addmm"), S("[[128],[32,64],[64,128],[],[]]"), floats);
    assert_true(c.known);
    assert_int_equal(c.flops, 2 * 32 * 64 * 128);
    assert_int_equal(c.read_bytes, 4 * (32 * 64 + 64 * 128));
    assert_int_equal(c.write_bytes, 4 * 32 * 128);
    c = torch_cost(S("aten::bmm"), S("[\n  [\n 8, 16,\n 4\n ],\n [8, 4, 5]]"),
                   S("[\n  \"c10::BFloat16\",\n \"c10::BFloat16\"]"));
    assert_true(c.known);
    assert_int_equal(c.flops, 2 * 8 * 16 * 4 * 5);
    assert_int_equal(c.read_bytes, 2 * 8 * (16 * 4 + 4 * 5));
    assert_int_equal(c.write_bytes, 2 * 8 * 16 * 5);
}

static void test_what_does_not_fit_is_unknown(void **state)
{
    (void)state;
    static const struct {
        str name, dims, types;
    } bad[] = {
        {STR_INIT("aten::relu"), STR_INIT("[[2,2],[2,2]]"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,3],[2,3]]"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,2,2],[2,2,2]]"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,2],[2,2]]"), STR_INIT("[\"Tensor\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,2],[2,2]]"), STR_INIT("")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,2]]"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,-2],[-2,2]]"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[2,2"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT("[[[2,2],[2,2]]]"), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::mm"), STR_INIT(""), STR_INIT("[\"float\",\"float\"]")},
        {STR_INIT("aten::bmm"), STR_INIT("[[2,2,2],[3,2,2]]"), STR_INIT("[\"float\",\"float\"]")},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(torch_cost(bad[i].name, bad[i].dims, bad[i].types).known);
}

static void test_huge_shapes_saturate(void **state)
{
    (void)state;
    const struct torch_cost c =
        torch_cost(S("aten::mm"), S("[[4000000000,4000000000],[4000000000,4000000000]]"), floats);
    assert_true(c.known);
    assert_true(c.flops == UINT64_MAX && c.write_bytes == UINT64_MAX);
}

static void test_categories(void **state)
{
    (void)state;
    assert_true(str_eq(torch_category(S("aten::mm")), S("aten")));
    assert_true(str_eq(torch_category(S("AddmmBackward0")), S("autograd")));
    assert_true(str_eq(torch_category(S("torch::autograd::AccumulateGrad")), S("autograd")));
    assert_true(str_eq(torch_category(S("autograd::engine::evaluate_function: X")), S("autograd")));
    assert_true(str_eq(torch_category(S("mylib::mm")), S("mylib")));
    assert_true(str_eq(torch_category(S("detach")), S("operator")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix_products_by_their_shapes),
        cmocka_unit_test(test_what_does_not_fit_is_unknown),
        cmocka_unit_test(test_huge_shapes_saturate),
        cmocka_unit_test(test_categories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
