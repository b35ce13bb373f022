/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/grouping.h"
#include "base/limits.h"
#include "format/xspace.h"

enum { R = 1, STEP, A, PT, P, CT, C, N_STATS }; /* ids of stats */

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
    const struct xspace_options o = {.file = S("t.xplane.pb"), .spill_fd = -1};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_follow_nesting_and_causes_but_not_asynchronous_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
