/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/flows.h"
#include "analysis/grouping.h"
#include "base/limits.h"
#include "format/xspace.h"

enum { R = 1, STEP, A, PT, P, CT, C, ID, KID, RUN, N_STATS }; /* ids of stats */

struct made { /* an event and its stats: {id, value} up to id 0 */
    int64_t offset, duration, stats[4][2];
};

static void add_line(struct buf *plane, const struct made *events, size_t n)
{
    struct buf line;
    buf_init(&line, 1 << 20);
    put_number(&line, 3, 1000);
    for (size_t i = 0; i < n; i++) {
        struct buf ev;
        buf_init(&ev, 1 << 16);
        put_number(&ev, 1, 1);
        put_number(&ev, 2, events[i].offset);
        put_number(&ev, 3, events[i].duration);
        for (size_t k = 0; k < 4 && events[i].stats[k][0] != 0; k++) {
            struct buf stat;
            buf_init(&stat, 1 << 10);
            put_number(&stat, 1, events[i].stats[k][0]);
            put_number(&stat, 4, events[i].stats[k][1]);
            put_bytes(&ev, 4, buf_str(&stat));
            buf_release(&stat);
        }
        put_bytes(&line, 4, buf_str(&ev));
        buf_release(&ev);
    }
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
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
    static const char *const names[N_STATS] = {"",    "_r", "step_num", "_a",
                                               "_pt", "_p", "_ct",      "_c"};
    struct buf space, plane;
    struct err e = {0};
    buf_init(&space, 1 << 20);
    buf_init(&plane, 1 << 20);
    put_bytes(&plane, 2, S("/host:CPU"));
    add_line(&plane, stepping, 8);
    add_line(&plane, other, 3);
    put_entry(&plane, 4, 1, S("train"));
    for (int i = R; i < N_STATS; i++)
        put_entry(&plane, 5, i, str_from(names[i]));
    put_bytes(&space, 1, buf_str(&plane));
    const struct xspace_options o = {.file = S("t.xplane.pb"), .spill_fd = -1, .index_fd = -1};
    struct trace *t = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(t);
    struct arena a;
    struct grouping g;
    arena_init(&a, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(grouping_of(t, &a, &g, &e));
    assert_int_equal(g.n_groups, 2);
    for (uint32_t l = 0; l < 2; l++)
        for (uint64_t i = 0; i < t->lines[l].n_events; i++)
            assert_int_equal(group_at(&g, l, i), expected[l][i]);
    assert_int_equal(grouping_root(&g, 0)->number, 7);
    assert_int_equal(grouping_root(&g, 1)->number, 8);
    assert_int_equal(grouping_root(&g, 1)->start_ps, 200);
    assert_null(grouping_root(&g, 2));
    assert_null(grouping_root(&g, GROUP_NONE));
    arena_release(&a);
    trace_free(t);
    buf_release(&plane);
    buf_release(&space);
}

/* --- traces of a host and its devices ---------------------------------------------------------- */

static const char *const stat_names[N_STATS] = {
    "",    "_r", "step_num",       "_a",          "_pt",   "_p",
    "_ct", "_c", "correlation_id", "correlation", "run_id"};

struct made_line {
    str name;
    const struct made *events;
    size_t n;
};

struct made_plane {
    str name;
    struct made_line lines[4];
};

struct fixture {
    struct trace *trace;
    struct arena arena;
    struct grouping g;
    struct flows flows;
};

static void add_named_line(struct buf *plane, const struct made_line *l)
{
    struct buf line;
    buf_init(&line, 1 << 22);
    put_bytes(&line, 2, l->name);
    put_number(&line, 3, 1000);
    for (size_t i = 0; i < l->n; i++) {
        const struct made *m = &l->events[i];
        struct buf ev;
        buf_init(&ev, 1 << 16);
        put_number(&ev, 1, 1);
        put_number(&ev, 2, m->offset);
        put_number(&ev, 3, m->duration);
        for (size_t k = 0; k < 4 && m->stats[k][0] != 0; k++) {
            struct buf stat;
            buf_init(&stat, 1 << 10);
            put_number(&stat, 1, m->stats[k][0]);
            put_number(&stat, 4, m->stats[k][1]);
            put_bytes(&ev, 4, buf_str(&stat));
            buf_release(&stat);
        }
        put_bytes(&line, 4, buf_str(&ev));
        buf_release(&ev);
    }
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

static void load(struct fixture *f, const struct made_plane *planes, size_t n)
{
    struct buf space;
    struct err e = {0};
    buf_init(&space, 1 << 23);
    for (size_t i = 0; i < n; i++) {
        struct buf plane;
        buf_init(&plane, 1 << 23);
        put_bytes(&plane, 2, planes[i].name);
        for (size_t k = 0; k < 4 && planes[i].lines[k].n > 0; k++)
            add_named_line(&plane, &planes[i].lines[k]);
        put_entry(&plane, 4, 1, S("event"));
        for (int k = R; k < N_STATS; k++)
            put_entry(&plane, 5, k, str_from(stat_names[k]));
        put_bytes(&space, 1, buf_str(&plane));
        buf_release(&plane);
    }
    const struct xspace_options o = {.file = S("t.xplane.pb"), .spill_fd = -1};
    f->trace = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(f->trace);
    buf_release(&space);
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(grouping_of(f->trace, &f->arena, &f->g, &e));
    assert_true(flows_of(f->trace, &f->g, &f->arena, &f->flows, &e));
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    trace_free(f->trace);
}

#define EVENTS(list) (list), sizeof(list) / sizeof *(list)

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
