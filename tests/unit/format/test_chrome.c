/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "format/chrome.h"
#include "format/xspace.h"

static struct trace *import(str text, struct err *e)
{
    const int from = memfd_create("json", 0), to = memfd_create("xspace", 0);
    assert_true(from >= 0 && to >= 0);
    err_clear(e);
    assert_true(file_write_all(from, text.p, text.n, e));
    const bool ok = chrome_import(from, to, e);
    close(from);
    const struct xspace_options o = {.file = S("t.json"), .spill_fd = -1};
    if (ok)
        return xspace_load(to, &o, e);
    close(to);
    return NULL;
}

static struct trace_event event_at(const struct trace *t, uint32_t line, uint64_t index)
{
    struct trace_cursor c;
    struct trace_event found = {0};
    for (trace_cursor_init(&c, t, line); trace_cursor_next(&c);)
        if (c.index == index)
            found = c.event;
    return found;
}

#define SLICE(name, ts, dur)                                                                       \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"name\":\"" name "\",\"ts\":" ts ",\"dur\":" dur "}"

static void test_times_are_exact_to_the_picosecond(void **state)
{
    (void)state;
    struct err e;
    struct trace *t = import(S("[" SLICE("a", "1700000000000000.123456",
                                         "0.000001") "," SLICE("b", "1700000000000002", "3.5") "]"),
                             &e);
    assert_non_null(t);
    assert_int_equal(t->n_events, 2);
    assert_true(t->has_epoch);
    assert_int_equal(t->origin_ns, INT64_C(1700000000000000123));
    const struct trace_event a = event_at(t, 0, 0), b = event_at(t, 0, 1);
    assert_int_equal(a.start_ps, 456);
    assert_int_equal(a.dur_ps, 1);
    assert_int_equal(b.start_ps, 2000000 - 123000);
    assert_int_equal(b.dur_ps, 3500000);
    trace_free(t);
}

static void test_begin_and_end_nest(void **state)
{
    (void)state;
    struct err e;
    struct trace *t =
        import(S("{\"other\":{\"x\":[1,{}]},\"traceEvents\":["
                 "{\"ph\":\"B\",\"pid\":\"p\",\"tid\":\"t\",\"name\":\"out\",\"ts\":10,\"args\":{"
                 "\"k\":\"v\",\"n\":-3,\"l\":[1,2]}},"
                 "{\"ph\":\"B\",\"pid\":\"p\",\"tid\":\"t\",\"name\":\"in\",\"ts\":11},"
                 "{\"ph\":\"E\",\"pid\":\"p\",\"tid\":\"t\",\"ts\":12},{\"ph\":\"E\",\"pid\":\"p\","
                 "\"tid\":\"t\",\"ts\":15},"
                 "{\"ph\":\"E\",\"pid\":\"p\",\"tid\":\"t\",\"ts\":16},{\"ph\":\"B\",\"pid\":\"p\","
                 "\"tid\":\"t\",\"ts\":17},"
                 "{\"ph\":\"C\",\"pid\":\"p\",\"ts\":17}]}"),
               &e);
    assert_non_null(t);
    assert_int_equal(t->n_events, 2);
    const struct trace_event out = event_at(t, 0, 0), in = event_at(t, 0, 1);
    assert_int_equal(out.dur_ps, 5000000);
    assert_int_equal(in.depth, 1);
    assert_int_equal(in.dur_ps, 1000000);
    assert_int_equal(t->n_warnings, 3); /* one without an end, one without a begin, a counter */
    struct trace_stats stats;
    int64_t n = 0;
    str text = {0};
    assert_true(trace_event_stats(t, &t->lines[0], &out, &t->arena, &stats, &e));
    assert_true(trace_stat_i64(trace_stat_find(stats, S("n")), &n) && n == -3);
    assert_true(trace_stat_str(trace_stat_find(stats, S("l")), &text) && str_eq(text, S("[1,2]")));
    trace_free(t);
}

static void test_a_list_that_was_left_open(void **state)
{
    (void)state;
    struct err e;
    struct trace *t = import(S("[" SLICE("a", "1", "2") ",\n" SLICE("b", "4", "2") ",\n"), &e);
    assert_non_null(t);
    assert_int_equal(t->n_events, 2);
    assert_int_equal(t->n_warnings, 1);
    trace_free(t);
}

static void test_damage_has_its_byte(void **state)
{
    (void)state;
    static const struct {
        str text;
        uint64_t pos;
    } cases[] = {
        {STR_INIT(""), 0},
        {STR_INIT("[1,"), 0},
        {STR_INIT("[{]"), 2},
        {STR_INIT("[{\"a\" 1}]"), 6},
        {STR_INIT("[\"\\u12x\"]"), 7},
        {STR_INIT("[01]"), 3},
        {STR_INIT("{\"a\":1}"), 6},
        {STR_INIT("[] []"), 3},
        {STR_INIT("[{\"a\":tru}]"), 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        struct trace *t = import(cases[i].text, &e);
        assert_null(t);
        assert_int_equal(e.code, ERR_PARSE);
        if (cases[i].pos > 0)
            assert_int_equal(e.pos, cases[i].pos);
    }
}

/* Several members, cut in the middle of a string, and a stream that ends too early. */
static void test_gzip_of_many_members(void **state)
{
    (void)state;
    const str parts[] = {S("[" SLICE("a\\u00e9\\ud83d\\ude00", "1", "2") ",{\"ph\":\"X\",\"pi"),
                         S("d\":1,\"tid\":7,\"name\":\"b\",\"ts\":9,\"dur\":1}]")};
    unsigned char packed[4096];
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        z_stream z = {0};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        unsigned char in[256];
        memcpy(in, parts[i].p, parts[i].n);
        z.next_in = in;
        z.avail_in = (uInt)parts[i].n;
        z.next_out = packed + n;
        z.avail_out = (uInt)(sizeof packed - n);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        n += z.total_out;
        deflateEnd(&z);
    }
    struct err e;
    struct trace *t = import((str){(const char *)packed, n}, &e);
    assert_non_null(t);
    assert_int_equal(t->n_events, 2);
    const struct trace_event a = event_at(t, 0, 0);
    assert_true(str_eq(trace_event_name(t, &t->lines[0], &a), S("a\xc3\xa9\xf0\x9f\x98\x80")));
    trace_free(t);
    assert_null(import((str){(const char *)packed, n - 20}, &e));
    assert_int_equal(e.code, ERR_PARSE);
}

static void test_kernels_make_a_device(void **state)
{
    (void)state;
    struct err e;
    struct trace *t = import(S("[{\"ph\":\"X\",\"cat\":\"kernel\",\"pid\":0,\"tid\":\"stream "
                               "7\",\"name\":\"k\",\"ts\":1,\"dur\":1}," SLICE("a", "1", "2") "]"),
                             &e);
    assert_non_null(t);
    assert_int_equal(t->n_planes, 2);
    assert_int_equal(t->planes[0].kind, TRACE_PLANE_GPU);
    assert_true(str_eq(t->lines[0].name, S("Stream #7")));
    assert_int_equal(t->planes[1].kind, TRACE_PLANE_HOST);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_exact_to_the_picosecond),
        cmocka_unit_test(test_begin_and_end_nest),
        cmocka_unit_test(test_a_list_that_was_left_open),
        cmocka_unit_test(test_damage_has_its_byte),
        cmocka_unit_test(test_gzip_of_many_members),
        cmocka_unit_test(test_kernels_make_a_device),
    };
    return cmocka_run_group_tests_name("chrome", tests, NULL, NULL);
}
