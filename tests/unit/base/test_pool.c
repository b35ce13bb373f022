/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"

static void add_one(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void add_index(void *arg, size_t i)
{
    atomic_fetch_add((_Atomic uint64_t *)arg, i);
}

static void all_tasks_run(void **state)
{
    _Atomic int n = 0;
    int taken = 0;
    struct pool *p = pool_new("test", 4, 100);
    for (int i = 0; i < 1000; i++)
        taken += pool_submit(p, add_one, &n);
    pool_drain(p);
    assert_int_equal(atomic_load(&n), taken);
    assert_true(taken >= 100);
    assert_true(pool_submit(p, add_one, &n));
    pool_free(p);
    assert_int_equal(atomic_load(&n), taken + 1);
    pool_free(NULL);
}

static void loop_visits_each(void **state)
{
    _Atomic uint64_t sum = 0;
    pool_for(8, 1000, add_index, &sum);
    assert_int_equal(atomic_load(&sum), 499500);
    pool_for(8, 0, add_index, &sum);
    assert_true(pool_cpu_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tasks_run),
        cmocka_unit_test(loop_visits_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
