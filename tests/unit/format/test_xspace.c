/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/limits.h"
#include "format/xspace.h"
#include "../xspace_build.h"

static struct trace *load(str bytes, struct err *e)
{
    const struct xspace_options o = {.file = S("t.xplane.pb"), .spill_fd = -1, .index_fd = -1};
    err_clear(e);
    return xspace_load_memory(bytes, &o, e);
}

static void test_unsorted_line_is_sorted_and_nested(void **state)
{
    (void)state;
    const int64_t events[][3] = {{2, 500, 10}, {1, 100, 50}, {1, 100, 200},
                                 {9, 120, 5},  {1, -4, 3},   {1, 5, -1}};
    struct buf b;
    struct err e;
    make_space(&b, events, 6);
    struct trace *t = load(buf_str(&b), &e);
    assert_non_null(t);
    assert_int_equal(t->n_planes, 1);
    assert_int_equal(t->planes[0].kind, TRACE_PLANE_GPU);
    assert_int_equal(t->planes[0].ordinal, 3);
    assert_int_equal(t->n_events, 4);
    assert_int_equal(t->origin_ns, 1000);
    assert_int_equal(t->n_warnings, 1);
    assert_true(str_eq(t->host, S("host-a")));
    assert_true(t->lines[0].was_unsorted);
    assert_int_equal(t->lines[0].busy_ps, 210);
    assert_int_equal(t->lines[0].max_depth, 2);
    const uint64_t starts[] = {100, 100, 120, 500}, durations[] = {200, 50, 5, 10};
    const uint16_t depths[] = {0, 1, 2, 0};
    struct trace_cursor c;
    size_t i = 0;
    for (trace_cursor_init(&c, t, 0); trace_cursor_next(&c); i++) {
        assert_int_equal(c.index, i);
        assert_int_equal(c.event.start_ps, starts[i]);
        assert_int_equal(c.event.dur_ps, durations[i]);
        assert_int_equal(c.event.depth, depths[i]);
    }
    assert_int_equal(i, 4);
    assert_true(trace_cursor_ok(&c, &e));
    uint64_t bad = 0, unknown = 0;
    for (uint32_t k = 0; k < t->n_notes; k++) {
        bad += str_eq(t->notes[k].code, S("bad_event")) ? t->notes[k].count : 0;
        unknown += str_eq(t->notes[k].code, S("unknown_event_name")) ? t->notes[k].count : 0;
    }
    assert_int_equal(bad, 2);
    assert_int_equal(unknown, 1);
    trace_free(t);
    buf_release(&b);
}

static void test_seek_finds_running_event(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 10}, {1, 20, 10}, {1, 40, 10}};
    struct buf b;
    struct err e;
    make_space(&b, events, 3);
    struct trace *t = load(buf_str(&b), &e);
    assert_non_null(t);
    struct trace_cursor c;
    trace_cursor_init(&c, t, 0);
    trace_cursor_seek(&c, 25);
    assert_true(trace_cursor_next(&c));
    assert_int_equal(c.event.start_ps, 20);
    assert_int_equal(c.index, 1);
    trace_cursor_release(&c);
    trace_cursor_init(&c, t, 0);
    trace_cursor_seek(&c, 1000);
    assert_false(trace_cursor_next(&c));
    trace_free(t);
    buf_release(&b);
}

static void test_what_contains_the_next_one_whole_is_cut(void **state)
{
    (void)state;
    /* contains the next that lasts, behind one that does not; reaches into the next; equal end */
    const int64_t events[][3] = {{1, 0, 1000}, {2, 5, 0},   {1, 10, 10}, {1, 15, 10},
                                 {1, 30, 20},  {1, 35, 15}, {1, 60, 5}};
    const uint64_t want[] = {10, 0, 10, 10, 20, 15, 5};
    struct buf b;
    struct err e;
    make_space(&b, events, 7);
    struct trace *t = load(buf_str(&b), &e);
    assert_non_null(t);
    struct trace_cursor c;
    for (trace_cursor_init_work(&c, t, 0); trace_cursor_next(&c);) {
        assert_int_equal(c.event.dur_ps, want[c.index]);
        assert_int_equal(c.is_cut, c.index == 0);
    }
    assert_true(trace_cursor_ok(&c, &e));
    for (trace_cursor_init(&c, t, 0); trace_cursor_next(&c);)
        assert_int_equal(c.event.dur_ps, events[c.index][2]); /* as the file says it */
    trace_free(t);
    buf_release(&b);
}

/* The last event of a row group, and one whose next that lasts is two groups ahead. */
static void test_a_cut_looks_into_the_next_row_groups(void **state)
{
    (void)state;
    enum { GROUP = 65536, N = 3 * GROUP };
    int64_t(*events)[3] = calloc(N, sizeof *events);
    for (int64_t i = 0; i < N; i++) {
        events[i][0] = 1;
        events[i][1] = i * 10;
        events[i][2] = i < GROUP || i > 2 * GROUP + 4 ? 5 : 0;
    }
    events[GROUP - 1][2] = INT64_C(1) << 40;
    struct buf b;
    struct err e;
    make_space(&b, (const int64_t(*)[3])events, N);
    struct trace *t = load(buf_str(&b), &e);
    assert_non_null(t);
    struct trace_cursor c;
    uint64_t n_cut = 0;
    for (trace_cursor_init_work(&c, t, 0); trace_cursor_next(&c); n_cut += c.is_cut)
        if (c.index == GROUP - 1)
            assert_int_equal(c.event.dur_ps, (2 * GROUP + 5 - (GROUP - 1)) * 10);
    assert_int_equal(c.index, N - 1);
    trace_cursor_init_work(&c, t, 0);
    trace_cursor_seek(&c, 100);
    assert_true(trace_cursor_next(&c));
    assert_int_equal(c.event.start_ps, 100);
    assert_int_equal(c.event.dur_ps, 5);
    trace_cursor_release(&c);
    assert_int_equal(n_cut, 1);
    trace_free(t);
    buf_release(&b);
    free(events);
}

static void test_every_truncation_is_refused_with_its_byte(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 10}, {2, 20, 10}};
    struct buf b;
    make_space(&b, events, 2);
    size_t n_refused = 0;
    for (size_t n = 0; n < b.n; n++) {
        struct err e;
        struct trace *t = load((str){b.p, n}, &e);
        if (t == NULL) {
            assert_int_equal(e.code, ERR_PARSE);
            assert_non_null(strstr(e.msg, "byte "));
            n_refused++;
        }
        trace_free(t);
    }
    assert_true(n_refused >=
                b.n - 3); /* a cut between two top-level fields leaves a whole message */
    buf_release(&b);
}

static void test_every_flipped_byte_is_survived(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 10}, {2, 20, 10}};
    struct buf b;
    make_space(&b, events, 2);
    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            struct err e;
            b.p[i] = (char)(b.p[i] ^ (1 << bit));
            trace_free(load(buf_str(&b), &e));
            b.p[i] = (char)(b.p[i] ^ (1 << bit));
        }
    buf_release(&b);
}

static void test_other_formats_are_refused_in_words(void **state)
{
    (void)state;
    const struct {
        str bytes;
        const char *word;
    } cases[] = {
        {S(""), "empty"},
        {S("\x1f\x8b\x08\x00"), "gzip"},
        {S("{\"a\":1}"), "JSON"},
        {S("\x28\xb5\x2f\xfd\x00"), "zstd"},
        {S("hello, world"), "byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        assert_null(load(cases[i].bytes, &e));
        assert_int_equal(e.code, ERR_PARSE);
        assert_non_null(strstr(e.msg, cases[i].word));
    }
}

static void test_long_unsorted_line_is_merged(void **state)
{
    (void)state;
    enum { N = 70000 };
    int64_t(*events)[3] = calloc(N, sizeof *events);
    for (int64_t i = 0; i < N; i++) {
        events[i][0] = 1;
        events[i][1] = (N - i) * 10;
        events[i][2] = 5;
    }
    struct buf b;
    struct err e;
    make_space(&b, (const int64_t(*)[3])events, N);
    struct trace *t = load(buf_str(&b), &e);
    assert_non_null(t);
    assert_int_equal(t->lines[0].n_groups,
                     (N + LIMIT_TRACE_GROUP_EVENTS - 1) / LIMIT_TRACE_GROUP_EVENTS);
    assert_int_equal(t->lines[0].busy_ps, N * 5);
    uint64_t before = 0, n = 0;
    struct trace_cursor c;
    for (trace_cursor_init(&c, t, 0); trace_cursor_next(&c); n++) {
        assert_true(c.event.start_ps > before);
        before = c.event.start_ps;
    }
    assert_int_equal(n, N);
    trace_free(t);
    buf_release(&b);
    free(events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsorted_line_is_sorted_and_nested),
        cmocka_unit_test(test_seek_finds_running_event),
        cmocka_unit_test(test_what_contains_the_next_one_whole_is_cut),
        cmocka_unit_test(test_a_cut_looks_into_the_next_row_groups),
        cmocka_unit_test(test_every_truncation_is_refused_with_its_byte),
        cmocka_unit_test(test_every_flipped_byte_is_survived),
        cmocka_unit_test(test_other_formats_are_refused_in_words),
        cmocka_unit_test(test_long_unsorted_line_is_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
