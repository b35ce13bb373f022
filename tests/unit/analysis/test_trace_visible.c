/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers are those of XProf's own unit tests: a window of 1000 to 2000 ps at 100 ps a pixel. */
#include "analysis/trace_visible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct trace_visible view(uint64_t resolution_ps)
{
    struct trace_visible v;
    trace_visible_init(&v, 1000, 2000, resolution_ps);
    trace_visible_row(&v);
    return v;
}

static bool event(struct trace_visible *v, int64_t begin_ps, int64_t dur_ps)
{
    return trace_visible_event(v, begin_ps, begin_ps + dur_ps, 0);
}

static void short_events_need_a_gap(void **state)
{
    (void)state;
    struct trace_visible v = view(100);
    assert_true(event(&v, 950, 50));
    assert_false(event(&v, 1050, 50));
    assert_true(event(&v, 1055, 200));
    assert_true(event(&v, 1355, 50));
}

static void each_depth_is_for_itself(void **state)
{
    (void)state;
    struct trace_visible v = view(100);
    assert_true(event(&v, 1000, 200));
    assert_true(event(&v, 1200, 190));
    assert_true(event(&v, 1250, 20));
    assert_false(event(&v, 1270, 20));
    assert_true(event(&v, 1290, 100));
}

static void each_row_is_for_itself(void **state)
{
    (void)state;
    struct trace_visible v = view(100);
    assert_true(event(&v, 1000, 10));
    assert_false(event(&v, 1020, 10));
    trace_visible_row(&v);
    assert_true(event(&v, 1020, 10));
}

static void both_ends_of_the_window_belong_to_it(void **state)
{
    (void)state;
    struct trace_visible v = view(0);
    assert_false(event(&v, 999, 0));
    assert_true(event(&v, 1000, 0));
    assert_true(event(&v, 1500, 0));
    assert_true(event(&v, 2000, 0));
    assert_false(event(&v, 2001, 0));
}

static void arrows_need_a_gap_between_their_ends(void **state)
{
    (void)state;
    struct trace_visible v = view(100);
    assert_true(trace_visible_event(&v, 1000, 1050, 1));
    assert_false(trace_visible_event(&v, 1050, 1100, 2));
    assert_true(trace_visible_event(&v, 1100, 1150, 3));
    trace_visible_release(&v);
}

static void the_other_end_of_an_arrow_follows(void **state)
{
    (void)state;
    struct trace_visible v = view(100);
    assert_true(trace_visible_event(&v, 1000, 1050, 1));
    assert_false(trace_visible_event(&v, 1050, 1090, 2));
    trace_visible_row(&v);
    assert_true(event(&v, 1100, 10));
    assert_true(trace_visible_event(&v, 1120, 1130, 1)); /* too near, but its arrow is shown */
    assert_false(event(&v, 1140, 10));
    trace_visible_release(&v);
}

static void known_depths(void **state)
{
    (void)state;
    struct trace_visible v = view(100);
    assert_true(trace_visible_at(&v, 1000, 1010, 3)); /* the inner one ends first */
    assert_true(trace_visible_at(&v, 1000, 1500, 0));
    assert_false(trace_visible_at(&v, 1050, 1060, 3));
    assert_true(trace_visible_at(&v, 1110, 1120, 3));
    assert_false(trace_visible_at(&v, 1520, 1530, 0));
}

/* No input makes it write outside of its depths. */
static void deeper_than_it_counts(void **state)
{
    (void)state;
    struct trace_visible v = view(1);
    for (int64_t i = 0; i < 3 * TRACE_VISIBLE_DEPTHS; i++)
        event(&v, 1000, 1000 - i % 1000);
    assert_true(trace_visible_at(&v, 1000, 2000, UINT32_MAX));
    assert_true(v.n_depths <= TRACE_VISIBLE_DEPTHS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_events_need_a_gap),
        cmocka_unit_test(each_depth_is_for_itself),
        cmocka_unit_test(each_row_is_for_itself),
        cmocka_unit_test(both_ends_of_the_window_belong_to_it),
        cmocka_unit_test(arrows_need_a_gap_between_their_ends),
        cmocka_unit_test(the_other_end_of_an_arrow_follows),
        cmocka_unit_test(known_depths),
        cmocka_unit_test(deeper_than_it_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
