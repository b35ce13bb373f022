/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "analysis/op_tree.h"
#include "base/limits.h"

/* One core, 100 ps: a while of 60 ps that runs two alike fusions (20 and 30) and so has 10 itself,
 * a copy of another program that takes 25, and 15 of nothing. */
static struct op_metrics operations[] = {
    {.program_id = 1,
     .name = STR_INIT("fusion.2"),
     .category = STR_INIT("loop fusion"),
     .deduplicated_name = STR_INIT("fusion.1"),
     .provenance = STR_INIT("jit(f)/layer/add:Add"),
     .occurrences = 3,
     .time_ps = 30,
     .self_ps = 30,
     .flops = 600,
     .model_flops = 500,
     .bytes = 90,
     .has_cost = true,
     .has_breakdown = true,
     .read_bytes = {60, 5, 6, 7},
     .write_bytes = {30, 1, 2, 3}},
    {.program_id = 2,
     .name = STR_INIT("copy.1"),
     .category = STR_INIT("copy"),
     .provenance = STR_INIT("copy:"),
     .occurrences = 1,
     .time_ps = 25,
     .self_ps = 25,
     .bytes = 40},
    {.program_id = 1,
     .name = STR_INIT("fusion.1"),
     .category = STR_INIT("loop fusion"),
     .provenance = STR_INIT("jit(f)//layer/add:Add"),
     .occurrences = 2,
     .time_ps = 20,
     .self_ps = 20,
     .flops = 100,
     .model_flops = 100,
     .bytes = 10,
     .has_cost = true,
     .has_breakdown = true,
     .read_bytes = {10}},
    {.program_id = 1,
     .name = STR_INIT("while.1"),
     .category = STR_INIT("while"),
     .provenance = STR_INIT("jit(f)/while:"),
     .occurrences = 1,
     .time_ps = 60,
     .self_ps = 10,
     .flops = 700,
     .model_flops = 600,
     .bytes = 100,
     .has_cost = true},
};

static struct op_db make_db(void)
{
    return (struct op_db){.ops = operations,
                          .n_ops = 4,
                          .total_ps = 100,
                          .self_ps = 85,
                          .busy_ps = 85,
                          .named_ps = 85};
}

static const struct op_node *tree(struct arena *a, struct op_tree_options options)
{
    struct err e = {0};
    const struct op_db db = make_db();
    const struct op_node *root = op_tree_build(&db, options, a, &e);
    assert_non_null(root);
    return root;
}

static const struct op_node *child(const struct op_node *node, uint32_t i, enum op_node_kind kind,
                                   const char *name, uint64_t time_ps)
{
    assert_true(i < node->n_children);
    const struct op_node *c = node->children[i];
    assert_int_equal(c->kind, kind);
    assert_true(str_eq(c->name, str_from(name)));
    assert_int_equal(c->sum.time_ps, time_ps);
    return c;
}

static void test_by_program(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 0);
    const struct op_node *root = tree(&a, (struct op_tree_options){.group = OP_TREE_PROGRAM});
    assert_int_equal(root->sum.time_ps, 100);
    assert_int_equal(root->n_children, 3);
    const struct op_node *first = child(root, 0, OP_NODE_PROGRAM, "program 1", 60);
    child(root, 1, OP_NODE_PROGRAM, "program 2", 25);
    child(root, 2, OP_NODE_IDLE, "IDLE", 15);
    assert_int_equal(first->sum.flops, 700); /* the while's own 700 are those of what it runs */
    assert_int_equal(first->sum.model_flops, 600);
    assert_int_equal(first->sum.hbm_bytes, 100);
    assert_int_equal(first->sum.sram_read_bytes, 18);
    assert_int_equal(first->sum.sram_write_bytes, 6);
    assert_int_equal(first->sum.occurrences, 0);
    const struct op_node *category = child(first, 0, OP_NODE_CATEGORY, "loop fusion", 50);
    assert_int_equal(category->sum.occurrences, 5);
    const struct op_node *alike =
        child(category, 0, OP_NODE_DUPLICATES, "fusion.2 and its duplicate(s)", 50);
    child(alike, 0, OP_NODE_OPERATION, "fusion.2", 30);
    child(alike, 1, OP_NODE_OPERATION, "fusion.1", 20);
    const struct op_node *loop =
        child(child(first, 1, OP_NODE_CATEGORY, "while", 10), 0, OP_NODE_OPERATION, "while.1", 10);
    assert_false(loop->sum.has_cost);
    arena_release(&a);
}

/* XProf counts as idle what ran and names no operation. */
static void test_busy_without_an_operation_is_not_idle(void **state)
{
    (void)state;
    struct arena a;
    struct err e = {0};
    struct op_db db = make_db();
    db.busy_ps = 92;
    arena_init(&a, "test", 0);
    const struct op_node *root =
        op_tree_build(&db, (struct op_tree_options){.group = OP_TREE_PROGRAM}, &a, &e);
    assert_non_null(root);
    assert_int_equal(root->sum.time_ps, 100);
    child(root, 2, OP_NODE_IDLE, "IDLE", 8);
    child(root, 3, OP_NODE_UNNAMED, "busy, of no operation", 7);
    root = op_tree_build(&db, (struct op_tree_options){.group = OP_TREE_PROGRAM, .as_xprof = true},
                         &a, &e);
    assert_non_null(root);
    for (uint32_t i = 0; i < root->n_children; i++)
        assert_true(
            root->children[i]->kind != OP_NODE_UNNAMED &&
            (root->children[i]->kind != OP_NODE_IDLE || root->children[i]->sum.time_ps == 15));
    arena_release(&a);
}

static void test_unknown_cost_stays_unknown(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 0);
    const struct op_node *root =
        tree(&a, (struct op_tree_options){.group = OP_TREE_CATEGORY, .exclude_idle = true});
    assert_int_equal(root->sum.time_ps, 85);
    assert_int_equal(root->n_children, 3);
    const struct op_node *copy =
        child(child(root, 1, OP_NODE_CATEGORY, "copy", 25), 0, OP_NODE_OPERATION, "copy.1", 25);
    assert_false(copy->sum.has_cost);
    assert_true(copy->sum.has_bytes);
    assert_int_equal(copy->sum.hbm_bytes, 40); /* no memory space said: the HBM's */
    arena_release(&a);
}

static void test_as_xprof_counts(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 0);
    const struct op_node *root =
        tree(&a, (struct op_tree_options){.group = OP_TREE_PROGRAM, .as_xprof = true});
    const struct op_node *first = child(root, 0, OP_NODE_PROGRAM, "main", 60);
    assert_int_equal(first->n_children, 1);
    child(first, 0, OP_NODE_CATEGORY, "loop fusion", 50);
    assert_int_equal(root->children[1]->sum.hbm_bytes, 0);
    arena_release(&a);
}

static void test_places_of_the_source(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 0);
    const struct op_node *root = tree(&a, (struct op_tree_options){.group = OP_TREE_PROVENANCE});
    const struct op_node *function = child(root->children[0], 0, OP_NODE_PLACE, "jit(f)", 60);
    const struct op_node *layer = child(function, 0, OP_NODE_PLACE, "layer", 50);
    const struct op_node *add =
        child(layer, 0, OP_NODE_PLACE, "add", 50); /* empty parts are none */
    child(add, 0, OP_NODE_CATEGORY, "loop fusion", 50);
    child(child(function, 1, OP_NODE_PLACE, "while", 10), 0, OP_NODE_CATEGORY, "while", 10);
    child(root->children[1], 0, OP_NODE_PLACE, "copy", 25);
    arena_release(&a);
}

static void test_deep_places_end_at_the_limit(void **state)
{
    (void)state;
    struct arena a;
    struct err e = {0};
    char text[2 * 5000];
    for (size_t i = 0; i < sizeof text; i += 2)
        memcpy(text + i, "a/", 2);
    arena_init(&a, "test", 0);
    struct op_metrics deep = {
        .name = S("x"), .provenance = {text, sizeof text}, .time_ps = 1, .self_ps = 1};
    const struct op_db db = {
        .ops = &deep, .n_ops = 1, .total_ps = 1, .self_ps = 1, .busy_ps = 1, .named_ps = 1};
    const struct op_node *node =
        op_tree_build(&db, (struct op_tree_options){.group = OP_TREE_PROVENANCE}, &a, &e);
    assert_non_null(node);
    uint32_t places = 0;
    for (; node->n_children > 0; node = node->children[0]) {
        places += node->kind == OP_NODE_PLACE;
        assert_int_equal(node->sum.time_ps, 1);
    }
    assert_int_equal(places, LIMIT_OP_TREE_PLACES);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_program),
        cmocka_unit_test(test_busy_without_an_operation_is_not_idle),
        cmocka_unit_test(test_unknown_cost_stays_unknown),
        cmocka_unit_test(test_as_xprof_counts),
        cmocka_unit_test(test_places_of_the_source),
        cmocka_unit_test(test_deep_places_end_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
