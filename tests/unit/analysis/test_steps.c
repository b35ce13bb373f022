/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/spans.h"
#include "analysis/steps.h"
#include "base/limits.h"
#include "format/xspace.h"

struct fixture {
    struct trace *trace;
    struct arena arena;
    struct host_steps steps;
};

static void add_line(struct buf *plane, str name, const int64_t (*events)[3], size_t n)
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

static void add_core(struct buf *space, str name, const int64_t (*steps)[3], size_t n_steps,
                     const int64_t (*ops)[3], size_t n_ops)
{
    struct buf plane;
    buf_init(&plane, 1 << 20);
    put_bytes(&plane, 2, name);
    if (n_steps > 0)
        add_line(&plane, S("Steps"), steps, n_steps);
    add_line(&plane, S("XLA Ops"), ops, n_ops);
    put_entry(&plane, 4, 1, S("4"));
    put_entry(&plane, 4, 2, S("5"));
    put_entry(&plane, 4, 3, S("fusion.1"));
    put_bytes(space, 1, buf_str(&plane));
    buf_release(&plane);
}

static void load(struct fixture *f, struct buf *space)
{
    struct err e = {0};
    const struct xspace_options o = {
        .file = S("host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1, .index_fd = -1};
    f->trace = xspace_load_memory(buf_str(space), &o, &e);
    assert_non_null(f->trace);
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(steps_of(f->trace, NULL, &f->arena, &f->steps, &e));
    buf_release(space);
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    trace_free(f->trace);
}

/* Two cores whose work overlaps; the lines are out of order in the file. */
static void test_longest_core_is_the_step(void **state)
{
    (void)state;
    const int64_t first[][3] = {{2, 200, 100}, {1, 0, 100}},
                  second[][3] = {{2, 200, 130}, {1, 0, 90}};
    const int64_t ops_first[][3] = {{3, 210, 40}, {3, 10, 40}},
                  ops_second[][3] = {{3, 240, 20}, {3, 30, 40}};
    struct fixture f;
    struct buf space;
    buf_init(&space, 1 << 20);
    add_core(&space, S("/device:TPU:0"), first, 2, ops_first, 2);
    add_core(&space, S("/device:TPU:1"), second, 2, ops_second, 2);
    load(&f, &space);
    assert_int_equal(f.steps.source, STEPS_DEVICE);
    assert_int_equal(f.steps.n, 2);
    const struct step *s = f.steps.items;
    assert_true(s[0].has_number && s[0].number == 4 && s[0].dur_ps == 100);
    assert_true(s[1].has_number && s[1].number == 5 && s[1].dur_ps == 130);
    assert_true(s[0].device_busy_ps.known && s[1].device_busy_ps.known);
    assert_int_equal(s[0].device_busy_ps.ps, 60); /* [10,50) and [30,70) */
    assert_int_equal(s[1].device_busy_ps.ps, 50); /* [210,250) and [240,260) */
    assert_false(s[0].input_ps.known);            /* no sign of input: unknown, not zero */
    unload(&f);
}

static void test_no_marker_is_no_step(void **state)
{
    (void)state;
    const int64_t ops[][3] = {{3, 10, 40}};
    struct fixture f;
    struct buf space;
    buf_init(&space, 1 << 20);
    add_core(&space, S("/device:TPU:0"), NULL, 0, ops, 1);
    load(&f, &space);
    assert_int_equal(f.steps.source, STEPS_NONE);
    assert_int_equal(f.steps.n, 0);
    unload(&f);
}

static void test_spans_join_and_clip(void **state)
{
    (void)state;
    struct arena a;
    struct spans s = {0};
    arena_init(&a, "test", 0);
    assert_true(spans_add(&s, &a, 50, 60));
    assert_true(spans_add(&s, &a, 10, 30));
    assert_true(spans_add(&s, &a, 20, 40));
    assert_true(spans_add(&s, &a, 45, 45));
    spans_close(&s);
    assert_int_equal(s.n, 2);
    assert_int_equal(spans_within(&s, 0, 100), 40);
    assert_int_equal(spans_within(&s, 35, 55), 10);
    assert_int_equal(spans_within(&s, 40, 50), 0);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_core_is_the_step),
        cmocka_unit_test(test_no_marker_is_no_step),
        cmocka_unit_test(test_spans_join_and_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
