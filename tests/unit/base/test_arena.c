/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/arena.h"

/* Scratch that does not fit into the rest of a chunk: the second time its chunk is there already, and zero. */
static void test_scratch_at_the_end_of_a_chunk(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 1 << 20);
    assert_non_null(arena_alloc(&a, 1, 1));
    assert_non_null(arena_alloc(&a, a.used_bytes - 1 - 64, 1));
    const struct arena_mark m = arena_mark(&a);
    const size_t before = a.used_bytes;
    const char *first = NULL;
    for (int i = 0; i < 3; i++) {
        char *p = arena_alloc(&a, 1000, 8);
        assert_non_null(p);
        for (size_t k = 0; k < 1000; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, 1000);
        assert_true(a.used_bytes > before);
        assert_true(first == NULL || p == first);
        first = p;
        arena_reset(&a, m);
        assert_int_equal(a.used_bytes, before);
    }
    arena_release(&a);
}

static void test_cap_holds_with_a_spare_chunk(void **state)
{
    (void)state;
    struct arena a;
    struct err e = {0};
    arena_init(&a, "test", 100000);
    const struct arena_mark m = arena_mark(&a);
    assert_non_null(arena_alloc(&a, 90000, 1));
    arena_reset(&a, m);
    assert_non_null(arena_alloc(&a, 50000, 1));
    assert_true(a.used_bytes <= 100000);
    assert_null(arena_alloc(&a, 60000, 1));
    assert_true(a.overflow);
    assert_false(arena_full(&a, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch_at_the_end_of_a_chunk),
        cmocka_unit_test(test_cap_holds_with_a_spare_chunk),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
