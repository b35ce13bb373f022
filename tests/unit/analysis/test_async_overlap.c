/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/async_overlap.h"
#include "base/limits.h"
#include "format/xspace.h"

/* Metadata: 1 computes, 2 starts a copy, 3 ends it, 4 starts all-gather 7, 5 ends it, 6 is a window. */
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

struct fixture {
    struct trace *trace;
    struct profile profile;
    struct arena arena;
    struct async_overlap x;
};

static void load(struct fixture *f, const int64_t (*ops)[3], size_t n_ops,
                 const int64_t (*windows)[3], size_t n_windows)
{
    struct err e = {0};
    struct buf plane, space;
    buf_init(&plane, 1 << 20);
    buf_init(&space, 1 << 20);
    put_bytes(&plane, 2, S("/device:TPU:0"));
    add_line(&plane, S("XLA Ops"), ops, n_ops);
    if (n_windows > 0)
        add_line(&plane, S("Async XLA Ops"), windows, n_windows);
    put_entry(&plane, 4, 1, S("%fusion.1 = f32[8] fusion(%p)"));
    put_entry(&plane, 4, 2, S("copy-start.2"));
    put_entry(&plane, 4, 3, S("copy-done.2"));
    put_entry(&plane, 4, 4, S("all-gather-start.7"));
    put_entry(&plane, 4, 5, S("%all-gather-done.9 = f32[8] all-gather-done(%all-gather-start.7)"));
    put_entry(&plane, 4, 6, S("copy-start.2-async"));
    put_bytes(&space, 1, buf_str(&plane));
    const struct xspace_options o = {.file = S("a.xplane.pb"), .host = S("a"), .spill_fd = -1};
    f->trace = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(f->trace);
    f->profile = (struct profile){.traces = &f->trace, .n_traces = 1};
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(async_overlap_of(&f->profile, &f->arena, &f->x, &e));
    buf_release(&plane);
    buf_release(&space);
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    trace_free(f->trace);
}

/* The core starts, computes 60, waits 10. */
static void test_what_other_work_covers_is_hidden(void **state)
{
    (void)state;
    const int64_t ops[][3] = {{2, 0, 10}, {1, 20, 60}, {3, 90, 10}, {1, 100, 50}};
    const int64_t windows[][3] = {{6, 0, 100}, {6, 105, 40}};
    struct fixture f;
    load(&f, ops, 4, windows, 2);
    assert_int_equal(f.x.n_windows, 2);
    assert_int_equal(f.x.windows[0].span_ps, 100);
    assert_int_equal(f.x.windows[0].exposed_ps, 40);
    assert_int_equal(async_class_of(&f.x.windows[0]), ASYNC_PARTIAL);
    assert_int_equal(f.x.windows[1].exposed_ps, 0);
    assert_int_equal(async_class_of(&f.x.windows[1]), ASYNC_HIDDEN);
    assert_true(str_eq(f.x.windows[0].name, S("copy-start.2")));
    assert_true(str_eq(f.x.windows[0].op, S("copy")));
    assert_int_equal(f.x.sum.span_ps, 140);
    assert_int_equal(f.x.cores[0].most_at_once, 1);
    assert_false(f.x.cores[0].paired);
    unload(&f);
}

/* Without a line of windows: a copy by its number, a gather by its operand, one start too many. */
static void test_starts_and_dones_are_paired(void **state)
{
    (void)state;
    const int64_t ops[][3] = {{2, 0, 10},  {4, 10, 5},  {1, 15, 20},
                              {3, 40, 10}, {5, 50, 10}, {2, 70, 5}};
    struct fixture f;
    load(&f, ops, 6, NULL, 0);
    assert_int_equal(f.x.n_windows, 2);
    assert_int_equal(f.x.n_unpaired, 1);
    assert_true(f.x.cores[0].paired);
    assert_int_equal(f.x.cores[0].most_at_once, 2);
    assert_true(str_eq(f.x.windows[0].op, S("copy"))); /* both are exposed for 30: by start */
    assert_int_equal(f.x.windows[0].span_ps, 50);
    assert_int_equal(f.x.windows[0].exposed_ps, 30);
    assert_true(str_eq(f.x.windows[1].op, S("all-gather")));
    assert_int_equal(f.x.windows[1].span_ps, 50);
    assert_int_equal(f.x.windows[1].exposed_ps, 30);
    assert_int_equal(f.x.n_ops, 2);
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_other_work_covers_is_hidden),
        cmocka_unit_test(test_starts_and_dones_are_paired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
