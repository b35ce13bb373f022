/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "analysis/step_lanes.h"
#include "base/limits.h"
#include "made_trace.h"

struct fixture {
    struct trace *trace;
    struct arena arena;
    struct grouping g;
    struct step_lanes lanes;
};

static void load(struct fixture *f, const struct made_plane *planes, size_t n)
{
    struct err e = {0};
    f->trace = made_trace(planes, n);
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(grouping_of(f->trace, &f->arena, &f->g, &e));
    assert_true(step_lanes_of(f->trace, &f->g, &f->arena, &f->lanes, &e));
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    trace_free(f->trace);
}

static void check(const struct step_lane *l, const int64_t (*windows)[3], uint32_t n)
{
    assert_non_null(l);
    assert_int_equal(l->n, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(l->items[i].number, windows[i][0]);
        assert_int_equal(l->items[i].begin_ps, windows[i][1]);
        assert_int_equal(l->items[i].end_ps, windows[i][2]);
    }
}

/* The host is two steps ahead; its lines are out of order in the file. */
static void test_a_device_has_its_own_windows(void **state)
{
    (void)state;
    static const struct made host[] = {{10, 8, {{R, 1}, {STEP, 5}}},
                                       {0, 8, {{R, 1}, {STEP, 4}}},
                                       {1, 2, {{ID, 1}}},
                                       {4, 2, {{ID, 2}}},
                                       {11, 2, {{ID, 3}}},
                                       {20, 8, {{R, 1}, {STEP, 6}}}};
    static const struct made work[] = {
        {30, 10, {{ID, 1}}}, {50, 10, {{ID, 2}}}, {70, 20, {{ID, 3}}}};
    const struct made_plane planes[] = {{S("/host:CPU"), {{S("python"), EVENTS(host)}}},
                                        {S("/device:GPU:0"), {{S("Stream #1"), EVENTS(work)}}},
                                        {S("/device:GPU:1"), {{S("Stream #1"), EVENTS(work)}}}};
    struct fixture f;
    load(&f, planes, 3);
    assert_int_equal(f.lanes.n, 3);
    check(&f.lanes.items[0], (const int64_t[][3]){{4, 0, 10}, {5, 10, 20}, {6, 20, 28}}, 3);
    check(step_lanes_for(&f.lanes, 1), (const int64_t[][3]){{4, 30, 70}, {5, 70, 90}}, 2);
    assert_int_equal(step_lanes_for(&f.lanes, 1)->mark, STEP_MARK_LAUNCHED);
    assert_int_equal(step_lanes_for(&f.lanes, 1)->items[0].own_end_ps, 60);
    assert_ptr_equal(step_lane_find(step_lanes_for(&f.lanes, 1), 5),
                     &step_lanes_for(&f.lanes, 1)->items[1]);
    assert_null(step_lane_find(step_lanes_for(&f.lanes, 1), 6));
    unload(&f);
}

/* A copy for step 1 runs before the kernels of step 0: the busiest stream tells. */
static void test_a_copy_ahead_moves_no_step(void **state)
{
    (void)state;
    static const struct made host[] = {{0, 9, {{R, 1}, {STEP, 0}}},
                                       {1, 1, {{ID, 1}}},
                                       {10, 9, {{R, 1}, {STEP, 1}}},
                                       {11, 1, {{ID, 2}}},
                                       {13, 1, {{ID, 3}}}};
    static const struct made kernels[] = {{50, 40, {{ID, 1}}}, {100, 40, {{ID, 3}}}},
                             copies[] = {{30, 5, {{ID, 2}}}};
    const struct made_plane planes[] = {
        {S("/host:CPU"), {{S("python"), EVENTS(host)}}},
        {S("/device:GPU:0"),
         {{S("Stream #1"), EVENTS(kernels)}, {S("Stream #2"), EVENTS(copies)}}}};
    struct fixture f;
    load(&f, planes, 2);
    check(step_lanes_for(&f.lanes, 1), (const int64_t[][3]){{0, 50, 100}, {1, 100, 140}}, 2);
    unload(&f);
}

/* Two loops that both count from 0: numbers would not tell steps apart. */
static void test_numbers_that_do_not_grow_are_counted(void **state)
{
    (void)state;
    static const struct made host[] = {
        {0, 8, {{R, 1}, {STEP, 0}}}, {10, 8, {{R, 1}, {STEP, 1}}}, {20, 8, {{R, 1}, {STEP, 0}}}};
    const struct made_plane planes[] = {{S("/host:CPU"), {{S("python"), EVENTS(host)}}}};
    struct fixture f;
    load(&f, planes, 1);
    assert_true(f.lanes.items[0].counted);
    check(&f.lanes.items[0], (const int64_t[][3]){{0, 0, 10}, {1, 10, 20}, {2, 20, 28}}, 3);
    unload(&f);
}

/* Four steps of three kernels behind a copy; the host marks nothing and goes with the device. */
static void test_kernels_that_repeat_are_steps(void **state)
{
    (void)state;
    static struct made kernels[12], copies[4];
    for (int64_t i = 0; i < 4; i++) {
        copies[i] = (struct made){.offset = 100 * i + 5, .duration = 10, .name = 6};
        kernels[3 * i] = (struct made){.offset = 100 * i + 20, .duration = 10, .name = 2};
        kernels[3 * i + 1] = (struct made){.offset = 100 * i + 31, .duration = 10, .name = 3};
        kernels[3 * i + 2] = (struct made){.offset = 100 * i + 42, .duration = 10, .name = 3};
    }
    static const struct made host[] = {{0, 500, {{0}}}};
    const struct made_plane planes[] = {
        {S("/device:GPU:0"), {{S("Stream #1"), EVENTS(kernels)}, {S("Stream #2"), EVENTS(copies)}}},
        {S("/host:CPU"), {{S("python"), EVENTS(host)}}}};
    const int64_t want[][3] = {{0, 5, 105}, {1, 105, 205}, {2, 205, 305}, {3, 305, 352}};
    struct fixture f;
    load(&f, planes, 2);
    check(step_lanes_for(&f.lanes, 0), want, 4);
    assert_int_equal(step_lanes_for(&f.lanes, 0)->mark, STEP_MARK_PERIOD);
    check(&f.lanes.items[0], want, 4);
    assert_true(f.lanes.items[0].borrowed);
    unload(&f);
}

/* Neither a sequence that never comes again nor one that comes at any time. */
static void test_what_does_not_repeat_is_no_step(void **state)
{
    (void)state;
    static const struct made once[] = {{0, 5, {{0}}, 2},  {10, 5, {{0}}, 3}, {20, 5, {{0}}, 4},
                                       {30, 5, {{0}}, 5}, {40, 5, {{0}}, 2}, {50, 5, {{0}}, 7}};
    static const struct made at_any_time[] = {{0, 5, {{0}}, 2},    {10, 5, {{0}}, 2},
                                              {900, 5, {{0}}, 2},  {910, 5, {{0}}, 2},
                                              {1900, 5, {{0}}, 2}, {1910, 5, {{0}}, 2}};
    const struct made_plane planes[] = {
        {S("/device:GPU:0"), {{S("Stream #1"), EVENTS(once)}}},
        {S("/device:GPU:1"), {{S("Stream #1"), EVENTS(at_any_time)}}}};
    struct fixture f;
    load(&f, planes, 2);
    assert_int_equal(f.lanes.n, 1);
    assert_null(step_lanes_for(&f.lanes, 0));
    assert_null(step_lanes_for(&f.lanes, 1));
    unload(&f);
}

/* A core's own line wins; another core has modules only and goes with the host. */
static void test_cores(void **state)
{
    (void)state;
    static const struct made steps[] = {{7, 20, {{0}}, 8}, {40, 30, {{0}}, 9}};
    static const struct made modules[] = {{5, 20, {{0}}, 2}, {30, 1, {{0}}, 3}, {45, 20, {{0}}, 2}};
    static const struct made host[] = {{0, 10, {{R, 1}, {STEP, 8}}}, {20, 10, {{R, 1}, {STEP, 9}}}};
    const struct made_plane planes[] = {
        {S("/device:TPU:0"), {{S("Steps"), EVENTS(steps)}, {S("XLA Modules"), EVENTS(modules)}}},
        {S("/device:TPU:1"), {{S("XLA Modules"), EVENTS(modules)}}},
        {S("/host:CPU"), {{S("python"), EVENTS(host)}}}};
    struct fixture f;
    load(&f, planes, 3);
    check(step_lanes_for(&f.lanes, 0), (const int64_t[][3]){{8, 7, 40}, {9, 40, 70}}, 2);
    check(step_lanes_for(&f.lanes, 1), (const int64_t[][3]){{8, 0, 20}, {9, 20, 30}}, 2);
    unload(&f);
    load(&f, planes, 2); /* without the host */
    check(step_lanes_for(&f.lanes, 1), (const int64_t[][3]){{0, 5, 45}, {1, 45, 65}}, 2);
    assert_int_equal(step_lanes_for(&f.lanes, 1)->mark, STEP_MARK_MODULE);
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_device_has_its_own_windows),
        cmocka_unit_test(test_a_copy_ahead_moves_no_step),
        cmocka_unit_test(test_numbers_that_do_not_grow_are_counted),
        cmocka_unit_test(test_kernels_that_repeat_are_steps),
        cmocka_unit_test(test_what_does_not_repeat_is_no_step),
        cmocka_unit_test(test_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
