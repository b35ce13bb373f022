/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/facts.h"
#include "base/limits.h"
#include "format/xspace.h"

static struct device_fact devices[] = {
    {DEVICE_GPU, STR_INIT("/device:GPU:0"), STR_INIT("host-0"), 40, 60},
    {DEVICE_TPU, STR_INIT("/device:TPU:1"), STR_INIT("host-1"), UINT64_MAX, 0}};
static struct step_fact steps[] = {{STR_INIT("host-0"), -7, 5, 11, {true, 4}, {false, 0}}};

static struct profile_facts sample(void)
{
    struct profile_facts f = {.devices = devices,
                              .n_devices = 2,
                              .steps = steps,
                              .n_steps = 1,
                              .window_ps = {true, 100},
                              .window_from_ns = -3,
                              .n_top_ops = 2,
                              .op_self_ps = 9,
                              .n_dropped = 3,
                              .n_errors = 1,
                              .has_hlo = true,
                              .n_hosts = 2};
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
    assert_true(str_eq(got.devices[1].name, S("/device:TPU:1")) &&
                str_eq(got.devices[1].host, S("host-1")));
    assert_true(got.devices[1].busy_ps == UINT64_MAX && got.devices[0].idle_ps == 60);
    assert_true(got.steps[0].number == -7 && got.steps[0].dur_ps == 11 &&
                str_eq(got.steps[0].host, S("host-0")));
    assert_true(got.steps[0].device_busy_ps.known && got.steps[0].device_busy_ps.ps == 4);
    assert_false(got.steps[0].input_ps.known);
    assert_true(got.window_ps.known && got.window_ps.ps == 100 && !got.idle_ps.known);
    assert_true(str_eq(got.top_ops[0].name, S("fusion.1")) &&
                str_eq(got.top_ops[0].source, S("model.py:47")));
    assert_true(str_eq(got.top_ops[0].category, S("loop fusion")) && got.top_ops[1].self_ps == 4);
    assert_true(got.window_from_ns == -3 && got.n_dropped == 3 && got.n_errors == 1 &&
                got.n_hosts == 2);
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

static void put_line(struct buf *plane, str name, const int64_t (*events)[3], size_t n)
{
    struct buf line;
    buf_init(&line, 1 << 20);
    put_bytes(&line, 2, name);
    put_number(&line, 3, 1000);
    for (size_t i = 0; i < n; i++)
        put_event(&line, events[i][0], events[i][1], events[i][2]);
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

static void put_plane(struct buf *space, str name, struct buf *plane)
{
    static const char *const names[] = {
        "4", "5", "6", "fusion.1", "PjRtCpuClient::Compile (main)", "IsCompiled"};
    put_bytes(plane, 2, name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_entry(plane, 4, (int64_t)i + 1, str_from(names[i]));
    put_bytes(space, 1, buf_str(plane));
    buf_release(plane);
}

/* Three steps, two cores, a host that compiles once in the first step and once after the second. */
static void make_hand_made(struct buf *space)
{
    const int64_t marks[][3] = {{1, 0, 100}, {2, 200, 130}, {3, 400, 90}};
    const int64_t first[][3] = {{4, 10, 40}, {4, 210, 40}, {4, 240, 10}, {4, 410, 40}},
                  second[][3] = {{4, 30, 40}, {4, 345, 10}};
    const int64_t host[][3] = {{5, 50, 20}, {5, 340, 30}, {5, 350, 10}, {6, 390, 5}};
    struct buf plane;
    buf_init(space, 1 << 20);
    buf_init(&plane, 1 << 20);
    put_line(&plane, S("Steps"), marks, 3);
    put_line(&plane, S("XLA Ops"), first, 4);
    put_plane(space, S("/device:TPU:0"), &plane);
    buf_init(&plane, 1 << 20);
    put_line(&plane, S("XLA Ops"), second, 2);
    put_plane(space, S("/device:TPU:1"), &plane);
    buf_init(&plane, 1 << 20);
    put_line(&plane, S("main"), host, 4);
    put_plane(space, S("/host:CPU"), &plane);
}

static void test_measures_a_hand_made_trace(void **state)
{
    (void)state;
    struct buf space;
    struct arena a;
    struct err e = {0};
    struct profile_facts f;
    const struct xspace_options o = {
        .file = S("host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1, .index_fd = -1};
    make_hand_made(&space);
    struct trace *t = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(t);
    struct profile p = {.traces = &t, .n_traces = 1};
    profile_align(&p);
    arena_init(&a, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(profile_facts_of(&p, &a, &f, &e));
    assert_int_equal(f.n_devices, 2);
    assert_true(f.devices[0].kind == DEVICE_TPU && f.devices[0].busy_ps == 120 &&
                f.devices[0].idle_ps == 320);
    assert_true(f.devices[1].busy_ps == 50 &&
                f.devices[1].idle_ps == 390); /* its host's window: 10 to 450 */
    assert_true(f.window_ps.ps == 440 && f.busy_ps.ps == 170 && f.idle_ps.ps == 710);
    assert_true(f.has_steps && f.n_steps == 3 && f.median_step_ps.ps == 130);
    assert_false(f.input_wait_ps.known);
    assert_true(f.host_compile_ps.known && f.host_compile_ps.ps == 30);
    assert_true(f.host_compile_idle_ps.known && f.host_compile_idle_ps.ps == 20);
    assert_int_equal(f.n_compiles_after_warmup, 1);
    assert_true(f.n_hosts == 1 && !f.has_hlo && f.n_dropped == 0);
    arena_release(&a);
    trace_free(t);
    buf_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comes_back_as_it_was),
                                       cmocka_unit_test(test_damaged_bytes_are_refused),
                                       cmocka_unit_test(test_measures_a_hand_made_trace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
