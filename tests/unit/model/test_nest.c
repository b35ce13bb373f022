/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "model/nest.h"

static uint32_t place(struct nest *n, uint64_t start_ps, uint64_t end_ps)
{
    struct nest_open ended;
    const uint32_t lane = nest_find(n, start_ps, end_ps);
    if (lane == NEST_NONE)
        return lane;
    while (nest_pop(n, lane, start_ps, &ended))
        assert_true(ended.end_ps <= start_ps);
    nest_push(n, lane, (struct nest_open){.start_ps = start_ps, .end_ps = end_ps});
    return lane;
}

static void what_nests_shares_a_lane(void **state)
{
    struct nest n = {0};
    (void)state;
    assert_int_equal(place(&n, 0, 100), 0);
    assert_int_equal(place(&n, 0, 50), 0);
    assert_int_equal(place(&n, 10, 50), 0); /* ends with the one around it */
    assert_int_equal(place(&n, 50, 50), 0); /* of no length, where others end */
    assert_int_equal(n.lanes[0].n, 2);
    assert_int_equal(place(&n, 100, 120), 0);
    nest_release(&n);
}

static void what_overlaps_in_part_does_not(void **state)
{
    struct nest n = {0};
    struct nest_open ended;
    (void)state;
    assert_int_equal(place(&n, 0, 30), 0);
    assert_int_equal(place(&n, 20, 50), 1);
    assert_int_equal(place(&n, 25, 60), 2);
    assert_int_equal(place(&n, 26, 28), 0);
    assert_int_equal(place(&n, 30, 70), 0);
    assert_true(nest_pop(&n, 1, UINT64_MAX, &ended));
    assert_int_equal(ended.end_ps, 50);
    assert_false(nest_pop(&n, 1, UINT64_MAX, &ended));
    nest_release(&n);
}

static void lanes_and_levels_are_bounded(void **state)
{
    struct nest n = {0};
    (void)state;
    for (uint64_t i = 0; i < NEST_LANES; i++)
        assert_int_equal(place(&n, i, 1000 + i), i);
    assert_int_equal(place(&n, 999, 5000), NEST_NONE);
    nest_release(&n);
    for (uint64_t i = 0; i < LIMIT_TRACE_DEPTH; i++)
        assert_int_equal(place(&n, i, 10000 - i), 0);
    assert_int_equal(place(&n, LIMIT_TRACE_DEPTH, 5000), 1);
    nest_release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nests_shares_a_lane),
        cmocka_unit_test(what_overlaps_in_part_does_not),
        cmocka_unit_test(lanes_and_levels_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
