/* SPDX-License-Identifier: Apache-2.0 */
/* Chosen stats beside all stats of the same events. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "format/xspace.h"
#include "model/trace_pick.h"

enum { FLOPS = 1, SHAPE = 2, WORD = 300, TWIN = 301, LABEL = 7 }; /* ids of names */

static void put_stat(struct buf *ev, int64_t id, uint32_t field, int64_t number, str text)
{
    struct buf stat;
    buf_init(&stat, 1 << 20);
    put_number(&stat, 1, id);
    if (field == 5)
        put_bytes(&stat, field, text);
    else if (field != 0)
        put_number(&stat, field, number);
    put_bytes(ev, 4, buf_str(&stat));
    buf_release(&stat);
}

/* Event i has flops i; every second a shape of i / 2 bytes; every third a word, which refers to
 * "label"; every fifth flops once more. Written last first when `backwards`. */
static struct trace *make(uint32_t n, bool backwards)
{
    static char shape[70000];
    struct buf space, plane, line;
    struct err e = {0};
    memset(shape, 'x', sizeof shape);
    buf_init(&space, 1 << 28);
    buf_init(&plane, 1 << 28);
    buf_init(&line, 1 << 28);
    put_bytes(&line, 2, S("Stream #7"));
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = backwards ? n - 1 - k : k;
        struct buf ev;
        buf_init(&ev, 1 << 20);
        put_number(&ev, 1, 1);
        put_number(&ev, 2, (int64_t)i * 10);
        put_number(&ev, 3, 5);
        put_stat(&ev, FLOPS, 3, i, S(""));
        if (i % 2 == 0)
            put_stat(&ev, SHAPE, 5, 0, (str){shape, i / 2});
        if (i % 3 == 0)
            put_stat(&ev, WORD, 7, LABEL, S(""));
        if (i % 5 == 0)
            put_stat(&ev, TWIN, 4, -1, S(""));
        put_bytes(&line, 4, buf_str(&ev));
        buf_release(&ev);
    }
    put_bytes(&plane, 2, S("/device:GPU:0"));
    put_bytes(&plane, 3, buf_str(&line));
    put_entry(&plane, 4, 1, S("kernel"));
    put_entry(&plane, 5, FLOPS, S("flops"));
    put_entry(&plane, 5, SHAPE, S("shape"));
    put_entry(&plane, 5, WORD, S("word"));
    put_entry(&plane, 5, TWIN, S("flops"));
    put_entry(&plane, 5, LABEL, S("label"));
    put_bytes(&space, 1, buf_str(&plane));
    const struct xspace_options o = {.file = S("t.xplane.pb"), .spill_fd = -1, .index_fd = -1};
    struct trace *t = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(t);
    buf_release(&line);
    buf_release(&plane);
    buf_release(&space);
    return t;
}

static void check_same(const struct trace_stat *all, const struct trace_stat *picked)
{
    assert_int_equal(picked->type, all == NULL ? TRACE_STAT_NONE : all->type);
    if (picked->type == TRACE_STAT_STR)
        assert_true(str_eq(picked->text, all->text));
    else if (picked->type != TRACE_STAT_NONE)
        assert_int_equal(picked->u64, all->u64);
}

static void check_line(uint32_t n_events, bool backwards)
{
    static const str names[] = {STR_INIT("word"), STR_INIT("no such"), STR_INIT("flops"),
                                STR_INIT("shape")};
    struct trace *t = make(n_events, backwards);
    struct arena a;
    struct err e = {0};
    struct trace_picker p;
    struct trace_cursor c;
    uint32_t n = 0;
    arena_init(&a, "test", 1 << 24);
    trace_picker_init(&p, t, 0, names, 4);
    for (trace_cursor_init(&c, t, 0); trace_cursor_next(&c); n++) {
        struct trace_stats stats;
        const struct arena_mark mark = arena_mark(&a);
        assert_true(trace_event_stats(t, &t->lines[0], &c.event, &a, &stats, &e));
        assert_true(trace_pick(&p, &c.event, &e));
        for (uint32_t i = 0; i < 4; i++)
            check_same(trace_stat_find(stats, names[i]), &p.values[i]);
        assert_int_equal(p.values[2].u64, n);
        assert_int_equal(p.values[0].type, n % 3 == 0 ? TRACE_STAT_STR : TRACE_STAT_NONE);
        arena_reset(&a, mark);
    }
    assert_int_equal(n, n_events);
    trace_picker_release(&p);
    arena_release(&a);
    trace_free(t);
}

static void test_picked_stats_are_those_of_the_event(void **state)
{
    (void)state;
    check_line(1, false);
    check_line(3000, false);
    check_line(3000, true);
}

static void test_lines_without_the_names_are_not_read(void **state)
{
    (void)state;
    static const str names[] = {STR_INIT("no such")};
    struct trace *t = make(10, false);
    struct err e = {0};
    struct trace_picker p;
    struct trace_cursor c;
    trace_picker_init(&p, t, 0, names, 1);
    for (trace_cursor_init(&c, t, 0); trace_cursor_next(&c);) {
        assert_true(trace_pick(&p, &c.event, &e));
        assert_int_equal(p.values[0].type, TRACE_STAT_NONE);
    }
    assert_null(p.bytes);
    trace_picker_release(&p);
    trace_free(t);
}

static void test_an_event_beyond_the_file_is_an_error(void **state)
{
    (void)state;
    static const str names[] = {STR_INIT("flops")};
    struct trace *t = make(10, false);
    struct err e = {0};
    struct trace_picker p;
    trace_picker_init(&p, t, 0, names, 1);
    const struct trace_event beyond = {.src = UINT64_C(1) << 40, .src_bytes = 8};
    assert_false(trace_pick(&p, &beyond, &e));
    assert_non_null(strstr(e.msg, "t.xplane.pb"));
    trace_picker_release(&p);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picked_stats_are_those_of_the_event),
        cmocka_unit_test(test_lines_without_the_names_are_not_read),
        cmocka_unit_test(test_an_event_beyond_the_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
