/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "analysis/facts.h"
#include "base/limits.h"

static struct device_fact devices[] = {{DEVICE_GPU, STR_INIT("/device:GPU:0"), STR_INIT("host-0"), 40, 60},
                                       {DEVICE_TPU, STR_INIT("/device:TPU:1"), STR_INIT("host-1"), UINT64_MAX, 0}};
static struct step_fact steps[] = {{STR_INIT("host-0"), -7, 5, 11, {true, 4}, {false, 0}}};

static struct profile_facts sample(void)
{
    struct profile_facts f = {.devices = devices, .n_devices = 2, .steps = steps, .n_steps = 1,
                              .window_ps = {true, 100}, .window_from_ns = -3, .n_top_ops = 2,
                              .op_self_ps = 9, .n_dropped = 3, .n_errors = 1, .has_hlo = true, .n_hosts = 2};
    f.top_ops[0] = (struct op_fact){S("fusion.1"), S("loop fusion"), S("model.py:47"), 5, 2};
    f.top_ops[1] = (struct op_fact){S("dot"), S(""), S(""), 4, 1};
    return f;
}

static void pack(struct buf *b, const struct profile_facts *f)
{
    struct err e = {0};
    buf_init(b, 1 << 20);
    assert_true(profile_facts_pack(f, b, &e));
}

static void test_comes_back_as_it_was(void **state)
{
    (void)state;
    struct arena a;
    struct buf b;
    struct err e = {0};
    struct profile_facts got;
    const struct profile_facts f = sample();
    arena_init(&a, "test", 0);
    pack(&b, &f);
    assert_true(profile_facts_unpack(buf_str(&b), &a, &got, &e));
    assert_int_equal(got.n_devices, 2);
    assert_int_equal(got.devices[0].kind, DEVICE_GPU);
    assert_true(str_eq(got.devices[1].name, S("/device:TPU:1")) && str_eq(got.devices[1].host, S("host-1")));
    assert_true(got.devices[1].busy_ps == UINT64_MAX && got.devices[0].idle_ps == 60);
    assert_true(got.steps[0].number == -7 && got.steps[0].dur_ps == 11 && str_eq(got.steps[0].host, S("host-0")));
    assert_true(got.steps[0].device_busy_ps.known && got.steps[0].device_busy_ps.ps == 4);
    assert_false(got.steps[0].input_ps.known);
    assert_true(got.window_ps.known && got.window_ps.ps == 100 && !got.idle_ps.known);
    assert_true(str_eq(got.top_ops[0].name, S("fusion.1")) && str_eq(got.top_ops[0].source, S("model.py:47")));
    assert_true(str_eq(got.top_ops[0].category, S("loop fusion")) && got.top_ops[1].self_ps == 4);
    assert_true(got.window_from_ns == -3 && got.n_dropped == 3 && got.n_errors == 1 && got.n_hosts == 2);
    assert_true(got.has_hlo && !got.has_steps && got.op_self_ps == 9);
    buf_release(&b);
    arena_release(&a);
}

/* A parser that was taken over may answer anything: each cut and each changed byte is refused or read
 * as other numbers, never beyond the bytes (ASan). */
static void test_damaged_bytes_are_refused(void **state)
{
    (void)state;
    struct buf b;
    const struct profile_facts f = sample();
    pack(&b, &f);
    for (size_t n = 0; n < b.n; n++) {
        struct arena a;
        struct err e = {0};
        struct profile_facts got;
        arena_init(&a, "test", 1 << 20);
        assert_false(profile_facts_unpack((str){b.p, n}, &a, &got, &e));
        assert_true(e.code == ERR_PARSE);
        const char was = b.p[n];
        b.p[n] = (char)0xff;
        e = (struct err){0};
        if (!profile_facts_unpack(buf_str(&b), &a, &got, &e))
            assert_true(e.code == ERR_PARSE);
        b.p[n] = was;
        arena_release(&a);
    }
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comes_back_as_it_was),
                                       cmocka_unit_test(test_damaged_bytes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
