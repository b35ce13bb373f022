/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a trace: what their cursors show, and that parts add up to the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/selection.h"
#include "base/limits.h"
#include "format/xspace.h"

#define N_OPS 200000 /* three row groups and a part of one */
#define N_STEPS 8

struct fixture {
    struct profile profile;
    struct trace *traces[2];
    struct arena arena;
};

static void add_line(struct buf *plane, str name, const struct buf *events)
{
    struct buf line;
    buf_init(&line, 1 << 24);
    put_bytes(&line, 2, name);
    put_number(&line, 3, 1000);
    buf_add_str(&line, buf_str(events));
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

/* A core with N_STEPS steps and an operation of 2 ps every 4 ps; `late` shifts all of it. */
static void add_core(struct buf *space, str name, int64_t late, uint32_t n_ops)
{
    struct buf plane, steps, ops;
    const int64_t step_ps = (int64_t)n_ops * 4 / N_STEPS;
    buf_init(&plane, 1 << 24);
    buf_init(&steps, 1 << 24);
    buf_init(&ops, 1 << 24);
    put_bytes(&plane, 2, name);
    for (int64_t i = 0; i < N_STEPS; i++)
        put_event(&steps, 1 + i, late + i * step_ps, step_ps - 1);
    for (int64_t i = 0; i < n_ops; i++)
        put_event(&ops, 100, late + 4 * i, 2);
    add_line(&plane, S("Steps"), &steps);
    add_line(&plane, S("XLA Ops"), &ops);
    for (int64_t i = 0; i < N_STEPS; i++) {
        char number[2] = {(char)('0' + i), '\0'};
        put_entry(&plane, 4, 1 + i, str_from(number));
    }
    put_entry(&plane, 4, 100, S("fusion.1"));
    put_bytes(space, 1, buf_str(&plane));
    buf_release(&plane);
    buf_release(&steps);
    buf_release(&ops);
}

static struct trace *load(const struct buf *space, str host)
{
    struct err e = {0};
    const struct xspace_options o = {.file = host, .host = host, .spill_fd = -1};
    struct trace *t = xspace_load_memory(buf_str(space), &o, &e);
    assert_non_null(t);
    return t;
}

static int setup(void **state)
{
    static struct fixture f;
    struct buf space;
    f = (struct fixture){.profile = {.traces = f.traces, .n_traces = 2}};
    buf_init(&space, 1 << 24);
    add_core(&space, S("/device:TPU:0"), 0, N_OPS);
    add_core(&space, S("/device:TPU:0 SparseCore 1"), 0, 0);
    add_core(&space, S("/device:TPU:1"), 5, N_OPS);
    f.traces[0] = load(&space, S("h0"));
    f.traces[1] = load(&space, S("h1"));
    buf_release(&space);
    arena_init(&f.arena, "test", LIMIT_ARENA_TOOL_BYTES);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    trace_free(f->traces[0]);
    trace_free(f->traces[1]);
    arena_release(&f->arena);
    return 0;
}

static struct profile *view_of(struct fixture *f, str host, str device, str steps)
{
    const struct selection s = {host, device, steps};
    struct profile *out = NULL;
    struct err e = {0};
    assert_true(selection_view(&s, &f->profile, &f->arena, &out, &e));
    return out;
}

static void test_nothing_selected_is_the_profile(void **state)
{
    struct fixture *f = *state;
    assert_ptr_equal(view_of(f, (str){0}, (str){0}, (str){0}), &f->profile);
}

static void test_host(void **state)
{
    struct fixture *f = *state;
    const struct profile *p = view_of(f, S("h1"), (str){0}, (str){0});
    assert_int_equal(p->n_traces, 1);
    assert_ptr_equal(p->traces[0], f->traces[1]);
    assert_int_equal(view_of(f, S("ALL_HOSTS"), (str){0}, (str){0})->n_traces, 2);
}

static void test_device_takes_its_sparse_cores(void **state)
{
    struct fixture *f = *state;
    const struct trace *t = view_of(f, (str){0}, S("TPU:0"), (str){0})->traces[0];
    assert_false(t->planes[0].left_out);
    assert_false(t->planes[1].left_out);
    assert_true(t->planes[2].left_out);
    assert_int_equal(t->planes[2].n_lines, 0);
    t = view_of(f, (str){0}, S("/device:TPU:1"), (str){0})->traces[1];
    assert_true(t->planes[0].left_out && t->planes[1].left_out && !t->planes[2].left_out);
    assert_int_equal(t->n_events, N_OPS + N_STEPS);
    struct trace_cursor c;
    trace_cursor_init(&c, t, t->planes[2].first_line - 1); /* a line that is left out */
    assert_false(trace_cursor_next(&c));
}

/* Each step by itself: every event once, indexes from 0, sums as of the cursor. */
static void test_steps_add_up(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    uint64_t n = 0, busy = 0;
    for (uint32_t s = 0; s < N_STEPS; s++) {
        const struct trace *t = view_of(f, S("h0"), (str){0}, str_from(words[s]))->traces[0];
        const uint32_t line = t->planes[2].first_line + 1;
        struct trace_cursor c;
        uint64_t index = 0, sum = 0;
        for (trace_cursor_init(&c, t, line); trace_cursor_next(&c); index++) {
            assert_int_equal(c.index, index);
            assert_int_equal(c.event.start_ps, 5 + 4 * (n + index));
            sum += c.event.dur_ps;
        }
        assert_int_equal(index, t->lines[line].n_events);
        assert_int_equal(sum, t->lines[line].busy_ps);
        n += index;
        busy += sum;
    }
    assert_int_equal(n, N_OPS);
    assert_int_equal(busy, f->traces[0]->lines[f->traces[0]->planes[2].first_line + 1].busy_ps);
}

static void test_range_is_its_steps(void **state)
{
    struct fixture *f = *state;
    const struct trace *t = view_of(f, S("h0"), (str){0}, S("2..5"))->traces[0];
    const uint32_t line = t->planes[0].first_line + 1;
    assert_int_equal(t->lines[line].n_events, N_OPS / N_STEPS * 4);
    assert_int_equal(t->lines[line].start_ps, N_OPS / N_STEPS * 2 * 4);
    assert_int_equal(t->lines[line].end_ps, N_OPS / N_STEPS * 6 * 4 - 2);
}

static void test_seek_within_a_view(void **state)
{
    struct fixture *f = *state;
    const struct trace *t = view_of(f, S("h0"), (str){0}, S("5..6"))->traces[0];
    const uint32_t line = t->planes[0].first_line + 1;
    const uint64_t first = N_OPS / N_STEPS * 5;
    struct trace_cursor c;
    trace_cursor_init(&c, t, line);
    trace_cursor_seek(&c, 4 * (first + 700));
    assert_true(trace_cursor_next(&c));
    assert_int_equal(c.index, 700);
    assert_int_equal(c.event.start_ps, 4 * (first + 700));
    trace_cursor_release(&c);
    trace_cursor_init(&c, t, line);
    trace_cursor_seek(&c, 0); /* before the view: its first event */
    assert_true(trace_cursor_next(&c));
    assert_int_equal(c.index, 0);
    assert_int_equal(c.event.start_ps, 4 * first);
    trace_cursor_release(&c);
    trace_cursor_init(&c, t, line);
    trace_cursor_seek(&c, 4 * (N_OPS / N_STEPS * 7)); /* behind it */
    assert_false(trace_cursor_next(&c));
}

static void refuse(struct fixture *f, struct selection s, enum err_code code, const char *hint)
{
    struct profile *out;
    struct err e = {0};
    assert_false(selection_view(&s, &f->profile, &f->arena, &out, &e));
    assert_int_equal(e.code, code);
    assert_string_equal(e.hint, hint);
}

static void test_what_is_not_there(void **state)
{
    struct fixture *f = *state;
    refuse(f, (struct selection){.host = S("h2")}, ERR_NOT_FOUND, "hosts: h0, h1");
    refuse(f, (struct selection){.device = S("TPU:")}, ERR_NOT_FOUND,
           "devices: TPU:0, TPU:0 SparseCore 1, TPU:1");
    refuse(f, (struct selection){.steps = S("8")}, ERR_NOT_FOUND, "steps: 0..7");
    refuse(f, (struct selection){.steps = S("3..8")}, ERR_NOT_FOUND, "steps: 0..7");
    refuse(f, (struct selection){.steps = S("5..3")}, ERR_USAGE, "");
    refuse(f, (struct selection){.steps = S("3..")}, ERR_USAGE, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_selected_is_the_profile),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_device_takes_its_sparse_cores),
        cmocka_unit_test(test_steps_add_up),
        cmocka_unit_test(test_range_is_its_steps),
        cmocka_unit_test(test_seek_within_a_view),
        cmocka_unit_test(test_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
