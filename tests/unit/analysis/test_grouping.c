/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "analysis/flows.h"
#include "analysis/grouping.h"
#include "base/limits.h"
#include "made_trace.h"

struct fixture {
    struct trace *trace;
    struct arena arena;
    struct grouping g;
    struct flows flows;
};

static void load(struct fixture *f, const struct made_plane *planes, size_t n)
{
    struct err e = {0};
    f->trace = made_trace(planes, n);
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(grouping_of(f->trace, &f->arena, &f->g, &e));
    assert_true(flows_of(f->trace, &f->g, &f->arena, &f->flows, &e));
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    trace_free(f->trace);
}

static void test_groups_follow_nesting_and_causes_but_not_asynchronous_events(void **state)
{
    (void)state;
    static const struct made stepping[] = {
        {0, 100, {{R, 1}, {STEP, 7}}},
        {10, 20, {{0}}},
        {12, 5, {{PT, 3}, {P, 42}}},
        {40, 10, {{A, 1}}},
        {60, 10, {{0}}},
        {200, 100, {{R, 1}, {STEP, 8}}},
        {210, 5, {{0}}},
        {400, 5, {{0}}},
    };
    static const struct made other[] = {
        {50, 30, {{CT, 3}, {C, 42}}}, {55, 5, {{0}}}, {90, 30, {{CT, 4}, {C, 42}}}};
    static const int32_t expected[2][8] = {{0, 0, 0, GROUP_NONE, 0, 1, 1, GROUP_NONE},
                                           {0, 0, GROUP_NONE}};
    const struct made_plane planes[] = {
        {S("/host:CPU"), {{S("python"), EVENTS(stepping)}, {S("worker"), EVENTS(other)}}}};
    struct fixture f;
    load(&f, planes, 1);
    assert_int_equal(f.g.n_groups, 2);
    for (uint32_t l = 0; l < 2; l++)
        for (uint64_t i = 0; i < f.trace->lines[l].n_events; i++)
            assert_int_equal(group_at(&f.g, l, i), expected[l][i]);
    assert_int_equal(grouping_root(&f.g, 0)->number, 7);
    assert_int_equal(grouping_root(&f.g, 1)->number, 8);
    assert_int_equal(grouping_root(&f.g, 1)->start_ps, 200);
    assert_null(grouping_root(&f.g, 2));
    assert_null(grouping_root(&f.g, GROUP_NONE));
    unload(&f);
}

/* A counter that wraps, and two devices of equal name: the last call before the work launched it. */
static void test_work_belongs_to_the_last_call_before_it(void **state)
{
    (void)state;
    static const struct made host[] = {{0, 100, {{R, 1}, {STEP, 0}}},
                                       {10, 5, {{ID, 7}}},
                                       {20, 5, {{ID, 8}}},
                                       {200, 100, {{R, 1}, {STEP, 1}}},
                                       {210, 5, {{ID, 7}}}};
    static const struct made first[] = {{50, 20, {{ID, 7}}}, {220, 30, {{ID, 7}}}},
                             second[] = {{80, 30, {{ID, 8}}},
                                         {90, 10, {{0}}},
                                         {130, 5, {{0}}},
                                         {250, 10, {{ID, 9}}}};
    const struct made_plane planes[] = {{S("/host:CPU"), {{S("python"), EVENTS(host)}}},
                                        {S("/device:GPU:0"), {{S("Stream #1"), EVENTS(first)}}},
                                        {S("/device:GPU:0"), {{S("Graphs"), EVENTS(second)}}}};
    struct fixture f;
    load(&f, planes, 3);
    assert_int_equal(group_at(&f.g, 1, 0), 0);
    assert_int_equal(group_at(&f.g, 1, 1), 1);
    assert_int_equal(group_at(&f.g, 2, 0), 0);
    assert_int_equal(group_at(&f.g, 2, 1), 0); /* inside launched work */
    assert_int_equal(group_at(&f.g, 2, 2), GROUP_NONE);
    assert_int_equal(group_at(&f.g, 2, 3), GROUP_NONE);
    assert_int_equal(f.g.n_unlaunched, 1);
    assert_int_equal(f.g.n_early, 0);
    struct event_ref call;
    assert_true(flows_launch(&f.flows, 1, 1, &call));
    assert_int_equal(call.line_index, 0);
    assert_int_equal(call.event_index, 4);
    assert_false(flows_launch(&f.flows, 2, 3, &call));
    unload(&f);
}

/* A CUDA graph is launched by one call; a kernel that begins before its call: clocks differ. */
static void test_one_call_many_kernels(void **state)
{
    (void)state;
    static const struct made host[] = {{0, 100, {{R, 1}, {STEP, 3}}}, {10, 5, {{KID, 5}}}};
    static const struct made work[] = {
        {9, 2, {{KID, 5}}}, {12, 2, {{KID, 5}}}, {30, 2, {{KID, 5}}}};
    const struct made_plane planes[] = {{S("/host:CPU"), {{S("python"), EVENTS(host)}}},
                                        {S("/device:GPU:0"), {{S("Stream #1"), EVENTS(work)}}}};
    struct fixture f;
    struct flow ends[4];
    load(&f, planes, 2);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(group_at(&f.g, 1, i), 0);
    assert_int_equal(f.g.n_early, 1);
    assert_int_equal(flows_at(&f.flows, 0, 1, ends, 2), 3); /* more than there is room for */
    assert_int_equal(flows_at(&f.flows, 0, 1, ends, 4), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(ends[i].is_source && ends[i].kind == FLOW_LAUNCH);
        assert_int_equal(ends[i].other.line_index, 1);
        assert_int_equal(ends[i].other.event_index, i);
    }
    const uint64_t id = ends[0].id;
    assert_int_equal(flows_at(&f.flows, 1, 2, ends, 4), 1);
    assert_false(ends[0].is_source);
    assert_int_equal(ends[0].id, id);
    assert_int_equal(ends[0].other.event_index, 1);
    unload(&f);
}

/* One id used again: the second consumer waited for the second producer only. The line of the
 * consumers is out of order in the file. */
static void test_an_id_comes_again(void **state)
{
    (void)state;
    static const struct made steps[] = {{0, 100, {{R, 1}, {STEP, 0}}},
                                        {10, 5, {{PT, 1}, {P, 42}}},
                                        {200, 100, {{R, 1}, {STEP, 1}}},
                                        {210, 5, {{PT, 1}, {P, 42}}}};
    static const struct made workers[] = {{230, 5, {{CT, 1}, {C, 42}}},
                                          {30, 5, {{CT, 1}, {C, 42}}}};
    const struct made_plane planes[] = {
        {S("/host:CPU"), {{S("python"), EVENTS(steps)}, {S("worker"), EVENTS(workers)}}}};
    struct fixture f;
    struct flow ends[4];
    load(&f, planes, 1);
    assert_int_equal(f.g.n_edges, 2);
    assert_int_equal(group_at(&f.g, 1, 0), 0);
    assert_int_equal(group_at(&f.g, 1, 1), 1);
    assert_int_equal(flows_at(&f.flows, 1, 1, ends, 4), 1);
    assert_int_equal(ends[0].kind, FLOW_CAUSE);
    assert_int_equal(ends[0].other.event_index, 3);
    const uint64_t id = ends[0].id;
    assert_int_equal(flows_at(&f.flows, 0, 3, ends, 4), 1);
    assert_true(ends[0].is_source && ends[0].id == id && ends[0].other.event_index == 1);
    unload(&f);
}

/* A batch: 300 requests wait for one id, 300 consumers take it. None is lost, and no edge for each
 * pair is made. */
static void test_many_to_many(void **state)
{
    (void)state;
    static struct made requests[301], takers[300];
    requests[0] = (struct made){0, 10000, {{R, 1}, {STEP, 0}}};
    for (int64_t i = 0; i < 300; i++) {
        requests[i + 1] = (struct made){10 + 4 * i, 2, {{PT, 1}, {P, 9}}};
        takers[i] = (struct made){5000 + 4 * i, 2, {{CT, 1}, {C, 9}}};
    }
    const struct made_plane planes[] = {
        {S("/host:CPU"), {{S("python"), EVENTS(requests)}, {S("worker"), EVENTS(takers)}}}};
    struct fixture f;
    struct flow in, out;
    load(&f, planes, 1);
    assert_int_equal(f.g.n_edges, 600);
    for (uint64_t i = 0; i < 300; i++)
        assert_int_equal(group_at(&f.g, 1, i), 0);
    assert_int_equal(flows_at(&f.flows, 0, 17, &out, 1), 1);
    assert_int_equal(flows_at(&f.flows, 1, 200, &in, 1), 1);
    assert_int_equal(in.id, out.id);
    assert_true(out.is_source && !in.is_source);
    unload(&f);
}

/* Roots of one level that cause each other are one group. */
static void test_roots_below_a_root(void **state)
{
    (void)state;
    static const struct made steps[] = {{0, 100, {{R, 1}, {STEP, 0}}},
                                        {10, 5, {{PT, 1}, {P, 1}}},
                                        {20, 30, {{R, 1}, {STEP, 5}}},
                                        {200, 50, {{R, 2}, {STEP, 1}}}};
    static const struct made worker[] = {{60, 20, {{CT, 1}, {C, 1}}}, {62, 5, {{R, 1}}}};
    const struct made_plane planes[] = {
        {S("/host:CPU"), {{S("python"), EVENTS(steps)}, {S("worker"), EVENTS(worker)}}}};
    struct fixture f;
    load(&f, planes, 1);
    assert_int_equal(f.g.n_groups, 2);
    assert_int_equal(grouping_root(&f.g, 0)->number, 1); /* the higher level comes first */
    assert_int_equal(grouping_root(&f.g, 1)->number, 0);
    assert_int_equal(group_at(&f.g, 0, 2), 1);
    assert_int_equal(group_at(&f.g, 1, 1), 1);
    unload(&f);
}

/* A core's modules are launched by the call that names their run. */
static void test_modules_of_a_core_by_run(void **state)
{
    (void)state;
    static const struct made host[] = {{0, 5, {{RUN, 77}}}, {100, 5, {{RUN, 78}}}};
    static const struct made modules[] = {
        {10, 50, {{RUN, 77}}}, {110, 50, {{RUN, 78}}}, {300, 5, {{RUN, 9}}}};
    const struct made_plane planes[] = {{S("/device:TPU:0"), {{S("XLA Modules"), EVENTS(modules)}}},
                                        {S("/host:CPU"), {{S("python"), EVENTS(host)}}}};
    struct fixture f;
    struct event_ref call;
    load(&f, planes, 2);
    assert_true(flows_launch(&f.flows, 0, 1, &call));
    assert_true(call.line_index == 1 && call.event_index == 1);
    assert_false(flows_launch(&f.flows, 0, 2, &call));
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_follow_nesting_and_causes_but_not_asynchronous_events),
        cmocka_unit_test(test_work_belongs_to_the_last_call_before_it),
        cmocka_unit_test(test_one_call_many_kernels),
        cmocka_unit_test(test_an_id_comes_again),
        cmocka_unit_test(test_many_to_many),
        cmocka_unit_test(test_roots_below_a_root),
        cmocka_unit_test(test_modules_of_a_core_by_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
