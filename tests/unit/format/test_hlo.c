/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/cost.h"
#include "format/hlo.h"

#define CAP (1u << 20)

/* Appends a message field and gives its content back. */
static void put_message(struct buf *b, uint32_t field, struct buf *content)
{
    put_bytes(b, field, buf_str(content));
    buf_release(content);
}

static void put_shape(struct buf *b, int64_t type, int64_t rows, int64_t columns)
{
    struct buf shape, layout;
    buf_init(&shape, CAP);
    buf_init(&layout, CAP);
    put_bytes(&layout, 1, S("\x01\x00")); /* minor to major {1,0}, packed */
    put_number(&shape, 2, type);
    put_number(&shape, 3, rows); /* one by one */
    put_number(&shape, 3, columns);
    put_message(&shape, 5, &layout);
    put_message(b, 3, &shape);
}

static void begin_instruction(struct buf *b, str name, str opcode, int64_t id)
{
    buf_init(b, CAP);
    put_bytes(b, 1, name);
    put_bytes(b, 2, opcode);
    put_number(b, 35, id);
}

/* %dot.1 = f32[8,32] dot(bf16[8,16] %a, bf16[16,32] %b) in computation "main", whose source is
 * model.py:7:3, called from train.py:9:1. */
static void make_module(struct buf *proto)
{
    struct buf module, computation, in, part;
    buf_init(proto, CAP);
    buf_init(&module, CAP);
    buf_init(&computation, CAP);
    put_bytes(&module, 1, S("jit_f"));
    put_number(&module, 5, 42);
    put_bytes(&computation, 1, S("main"));
    put_number(&computation, 5, 1);
    begin_instruction(&in, S("a"), S("parameter"), 10);
    put_shape(&in, HLO_BF16, 8, 16);
    put_message(&computation, 2, &in);
    begin_instruction(&in, S("b"), S("parameter"), 11);
    put_shape(&in, HLO_BF16, 16, 32);
    put_number(&in, 9, 1);
    put_message(&computation, 2, &in);
    begin_instruction(&in, S("dot.1"), S("dot"), 12);
    put_shape(&in, HLO_F32, 8, 32);
    put_bytes(&in, 36, S("\x0a\x0b"));
    buf_init(&part, CAP);
    put_number(&part, 1, 1); /* contracts lhs 1 */
    put_number(&part, 2, 0); /* with rhs 0 */
    put_message(&in, 30, &part);
    buf_init(&part, CAP);
    put_bytes(&part, 2, S("jit(f)/dot_general"));
    put_number(&part, 15, 2); /* stack frame */
    put_message(&in, 7, &part);
    put_number(&in, 999, 5); /* a field of tomorrow */
    put_message(&computation, 2, &in);
    put_message(&module, 3, &computation);
    buf_init(&part, CAP);
    put_bytes(&part, 1, S("train.py"));
    put_bytes(&part, 1, S("model.py"));
    put_bytes(&part, 2, S("f"));
    put_bytes(&part, 3, S("\x08\x01\x10\x01\x18\x09\x20\x01")); /* train.py, f, 9:1 */
    put_bytes(&part, 3, S("\x08\x02\x10\x01\x18\x07\x20\x03")); /* model.py, f, 7:3 */
    put_bytes(&part, 4, S("\x08\x01"));
    put_bytes(&part, 4, S("\x08\x02\x10\x01"));
    put_message(&module, 17, &part);
    put_message(proto, 1, &module);
}

static void test_module_is_read(void **state)
{
    (void)state;
    struct buf b;
    struct arena a;
    struct hlo_module m;
    struct err e = {0};
    str text;
    make_module(&b);
    arena_init(&a, "test", 0);
    assert_true(hlo_parse(buf_str(&b), 0, &a, &m, &e));
    assert_true(str_eq(m.name, S("jit_f")) && m.id == 42);
    assert_int_equal(m.n_computations, 1);
    assert_int_equal(m.n_instructions, 3);
    const struct hlo_instruction *dot = hlo_find(&m, S("dot.1"));
    assert_non_null(dot);
    assert_ptr_equal(dot, hlo_by_id(&m, 12));
    assert_true(str_eq(hlo_operand(&m, dot, 1)->name, S("b")));
    assert_null(hlo_operand(&m, dot, 2));
    assert_true(hlo_text(&m, dot, &a, &text));
    assert_true(
        str_eq(text, S("%dot.1 = f32[8,32]{1,0} dot(bf16[8,16]{1,0} %a, bf16[16,32]{1,0} %b), "
                       "lhs_contracting_dims={1}, rhs_contracting_dims={0}")));
    assert_true(str_eq(hlo_category(&m, dot), S("dot")));
    assert_true(str_eq(hlo_stack(&m, dot, &a), S("model.py:7:3\ntrain.py:9:1\n")));
    assert_int_equal(hlo_shape_bytes(&dot->shape), 8 * 32 * 4);
    const struct op_cost c = cost_of(&m, dot);
    assert_true(c.known);
    assert_int_equal(c.flops, 2 * 8 * 32 * 16);
    assert_int_equal(c.hbm_read, (8 * 16 + 16 * 32) * 2);
    assert_int_equal(c.hbm_write, 8 * 32 * 4);
    hlo_module_release(&m);
    arena_release(&a);
    buf_release(&b);
}

static void test_cut_module_names_its_byte(void **state)
{
    (void)state;
    struct buf b;
    struct arena a;
    make_module(&b);
    arena_init(&a, "test", 0);
    for (size_t n = 1; n < buf_str(&b).n; n++) {
        struct hlo_module m;
        struct err e = {0};
        const struct arena_mark mark = arena_mark(&a);
        assert_false(hlo_parse(str_sub(buf_str(&b), 0, n), 1000, &a, &m, &e));
        assert_int_equal(e.code, ERR_PARSE);
        assert_true(e.pos >= 1000 && e.pos <= 1000 + n);
        arena_reset(&a, mark);
    }
    arena_release(&a);
    buf_release(&b);
}

static void test_shape_of_endless_tuples_is_refused(void **state)
{
    (void)state;
    struct buf inner, outer, computation, in, module, proto;
    struct arena a;
    struct hlo_module m;
    struct err e = {0};
    buf_init(&inner, CAP);
    for (int i = 0; i < 100; i++) {
        buf_init(&outer, CAP);
        put_number(&outer, 2, HLO_TUPLE);
        put_message(&outer, 4, &inner);
        inner = outer;
    }
    begin_instruction(&in, S("x"), S("tuple"), 1);
    put_message(&in, 3, &inner);
    buf_init(&computation, CAP);
    buf_init(&module, CAP);
    buf_init(&proto, CAP);
    put_message(&computation, 2, &in);
    put_message(&module, 3, &computation);
    put_message(&proto, 1, &module);
    arena_init(&a, "test", 0);
    assert_false(hlo_parse(buf_str(&proto), 0, &a, &m, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    arena_release(&a);
    buf_release(&proto);
}

static void test_sizes_saturate(void **state)
{
    (void)state;
    const int64_t huge[] = {INT64_MAX, 3}, negative[] = {-4, 3};
    const struct hlo_shape s = {.type = HLO_F32, .dims = {huge, 2}},
                           t = {.type = HLO_F32, .dims = {negative, 2}};
    assert_true(hlo_shape_elements(&s) == INT64_MAX);
    assert_true(hlo_shape_bytes(&s) > 0);
    assert_int_equal(hlo_shape_bytes(&t), 0);
}

/* An all-reduce %r over %p with one field of groups, and the line that it becomes. */
static void check_groups(uint32_t field, struct buf *groups, const char *line, int64_t group_of_2,
                         int64_t largest)
{
    struct buf proto, module, computation, in;
    struct arena a;
    struct hlo_module m;
    struct err e = {0};
    str text;
    int64_t group = -1;
    buf_init(&proto, CAP);
    buf_init(&module, CAP);
    buf_init(&computation, CAP);
    begin_instruction(&in, S("r"), S("all-reduce"), 1);
    put_shape(&in, HLO_F32, 8, 32);
    put_message(&in, field, groups);
    put_message(&computation, 2, &in);
    put_message(&module, 3, &computation);
    put_message(&proto, 1, &module);
    arena_init(&a, "test", 0);
    assert_true(hlo_parse(buf_str(&proto), 0, &a, &m, &e));
    const struct hlo_instruction *r = hlo_find(&m, S("r"));
    assert_true(hlo_text(&m, r, &a, &text));
    assert_string_equal(arena_cstr(&a, text), line);
    assert_int_equal(hlo_group_of(r->groups, 2, &group), group_of_2 >= 0);
    assert_true(group == group_of_2);
    assert_int_equal(hlo_groups_largest(r->groups), largest);
    assert_false(hlo_group_of(r->groups, INT64_MIN, &group));
    assert_false(hlo_group_of(r->groups, INT64_MAX, &group));
    hlo_module_release(&m);
    arena_release(&a);
    buf_release(&proto);
}

#define ALL_REDUCE "%r = f32[8,32]{1,0} all-reduce(), replica_groups="

/* tests/golden/test_replica_groups.py has these beside numpy. */
static void test_groups_of_replicas(void **state)
{
    (void)state;
    struct buf g, part, more;
    buf_init(&g, CAP);
    put_number(&g, 1, 2);
    put_number(&g, 2, 4);
    put_bytes(&g, 3, S("\x04\x02"));
    put_bytes(&g, 4, S("\x01\x00")); /* {0,2,4,6}, {1,3,5,7} */
    check_groups(92, &g, ALL_REDUCE "[2,4]<=[4,2]T(1,0)", 0, 4);
    buf_init(&g, CAP);
    put_number(&g, 1, 1);
    put_number(&g, 2, 3);
    put_bytes(&g, 3, S("\x03"));
    put_bytes(&g, 4, S("\x00"));
    check_groups(92, &g, ALL_REDUCE "[1,3]<=[3]", 0, 3);
    buf_init(&g, CAP);
    put_bytes(&g, 1, S("\x0a\x02\x00\x01"));
    put_bytes(&g, 1, S("\x0a\x03\x02\x03\x04"));
    check_groups(87, &g, ALL_REDUCE "{{0,1},{2,3,4}}", 1, 3);
    buf_init(&g, CAP);
    buf_init(&part, CAP);
    put_bytes(&part, 1, S("\x0a\x01x\x10\x02")); /* x=2 */
    put_bytes(&part, 1, S("\x0a\x01y\x10\x04")); /* y=4 */
    put_message(&g, 1, &part);
    buf_init(&part, CAP);
    buf_init(&more, CAP);
    put_number(&part, 1, 1);
    put_number(&more, 1, 2);
    put_number(&more, 2, 2);
    put_message(&part, 2, &more); /* the inner half of y: {0,1} {2,3} {4,5} {6,7} */
    put_message(&g, 2, &part);
    check_groups(93, &g, ALL_REDUCE "mesh['x'=2,'y'=4] {'y':(2)2}", 1, 2);
    buf_init(&g, CAP);
    put_number(&g, 1, 2); /* 2 of 4 are not 4 by 3 */
    put_number(&g, 2, 4);
    put_bytes(&g, 3, S("\x04\x03"));
    check_groups(92, &g, ALL_REDUCE "{}", -1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_module_is_read),
        cmocka_unit_test(test_cut_module_names_its_byte),
        cmocka_unit_test(test_shape_of_endless_tuples_is_refused),
        cmocka_unit_test(test_sizes_saturate),
        cmocka_unit_test(test_groups_of_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
