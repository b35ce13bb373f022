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
    const struct xspace_options o = {.file = S("t.json"), .spill_fd = -1, .index_fd = -1};
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
    assert_int_equal(t->n_lines, 1); /* the counter has no value */
    const struct trace_event out = event_at(t, 0, 0), in = event_at(t, 0, 1);
    assert_int_equal(out.dur_ps, 5000000);
    assert_int_equal(in.depth, 1);
    assert_int_equal(in.dur_ps, 1000000);
    assert_int_equal(t->n_warnings, 2); /* one without an end, one without a begin */
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
        {STR_INIT("[{\"a\":{\"b\":[1}}]"), 13},
        {STR_INIT("[{\"a\":\"\n\"}]"), 7},
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

static int64_t number_of(struct trace *t, uint32_t line, const struct trace_event *ev, str name)
{
    struct trace_stats stats;
    struct err e;
    int64_t v = -1;
    assert_true(trace_event_stats(t, &t->lines[line], ev, &t->arena, &stats, &e));
    assert_true(trace_stat_i64(trace_stat_find(stats, name), &v));
    return v;
}

static str text_of(struct trace *t, uint32_t line, const struct trace_event *ev, str name)
{
    struct trace_stats stats;
    struct err e;
    str v = {0};
    assert_true(trace_event_stats(t, &t->lines[line], ev, &t->arena, &stats, &e));
    assert_true(trace_stat_str(trace_stat_find(stats, name), &v));
    return v;
}

static uint32_t line_named(const struct trace *t, str name)
{
    for (uint32_t i = 0; i < t->n_lines; i++)
        if (str_eq(t->lines[i].name, name))
            return i;
    fail_msg("no line %.*s", STR_ARG(name));
    return 0;
}

static void test_arguments_have_xprofs_names(void **state)
{
    (void)state;
    struct err e;
    struct trace *t = import(
        S("{\"deviceProperties\":[{\"id\":3,\"name\":\"NVIDIA X\",\"numSms\":132,"
          "\"computeMajor\":9,\"computeMinor\":0,\"totalGlobalMem\":85018279936}],"
          "\"distributedInfo\":{\"rank\":5,\"world_size\":8},\"traceEvents\":["
          "{\"ph\":\"X\",\"cat\":\"kernel\",\"pid\":3,\"tid\":7,\"name\":\"k\",\"ts\":1,\"dur\":1,"
          "\"args\":{\"device\":3,\"correlation\":77,\"grid\":[1568, 1, 4],\"block\":[256, 1, 1],"
          "\"registers per thread\":32,\"shared memory\":2112,\"blocks per SM\":47.515152}},"
          "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"pid\":3,\"tid\":7,\"name\":\"Memcpy HtoD "
          "(Pageable -> "
          "Device)\",\"ts\":3,\"dur\":1,\"args\":{\"bytes\":4096}}]}"),
        &e);
    assert_non_null(t);
    assert_true(str_eq(t->planes[0].name, S("/device:GPU:3")));
    const struct trace_event k = event_at(t, 0, 0), copy = event_at(t, 0, 1);
    assert_int_equal(number_of(t, 0, &k, S("correlation_id")), 77);
    assert_true(
        str_eq(text_of(t, 0, &k, S("kernel_details")),
               S("regs:32 static_shared:2112 dynamic_shared:0 grid:1568,1,4 block:256,1,1")));
    assert_true(str_eq(text_of(t, 0, &copy, S("memcpy_details")),
                       S("kind_src:host kind_dst:device num_bytes:4096")));
    int64_t n = 0;
    assert_true(trace_stat_i64(trace_stat_find(t->planes[0].stats, S("core_count")), &n) &&
                n == 132);
    assert_true(trace_stat_i64(trace_stat_find(t->planes[0].stats, S("world_size")), &n) && n == 8);
    str kind = {0};
    assert_true(trace_stat_str(trace_stat_find(t->planes[0].stats, S("imported_from")), &kind) &&
                str_eq(kind, S("kineto")));
    trace_free(t);
}

#define PLACE "\"pid\":1,\"tid\":7,\"cat\":\"c\""

static void test_arrows_bind_to_what_is_around_them(void **state)
{
    (void)state;
    struct err e;
    struct trace *t = import(S("[{\"ph\":\"X\"," PLACE ",\"name\":\"out\",\"ts\":1,\"dur\":9},"
                               "{\"ph\":\"X\"," PLACE ",\"name\":\"in\",\"ts\":2,\"dur\":3},"
                               "{\"ph\":\"X\"," PLACE ",\"name\":\"later\",\"ts\":20,\"dur\":3},"
                               "{\"ph\":\"f\"," PLACE ",\"name\":\"a\",\"id\":\"0x1\",\"ts\":15},"
                               "{\"ph\":\"s\"," PLACE ",\"name\":\"a\",\"id\":\"0x1\",\"ts\":3},"
                               "{\"ph\":\"s\"," PLACE ",\"name\":\"a\",\"id\":2,\"ts\":3}]"),
                             &e);
    assert_non_null(t);
    const struct trace_event in = event_at(t, 0, 1), later = event_at(t, 0, 2);
    assert_int_equal(number_of(t, 0, &in, S("_p")), number_of(t, 0, &later, S("_c")));
    assert_int_equal(t->n_warnings, 1); /* the second arrow leads nowhere */
    trace_free(t);
}

static void test_counters_instants_and_async(void **state)
{
    (void)state;
    struct err e;
    struct trace *t =
        import(S("[{\"ph\":\"C\",\"pid\":1,\"name\":\"mem\",\"ts\":5,\"args\":{\"a\":1.5,\"b\":2}},"
                 "{\"ph\":\"i\"," PLACE ",\"name\":\"now\",\"ts\":6},"
                 "{\"ph\":\"b\"," PLACE ",\"id\":1,\"name\":\"op\",\"ts\":7},"
                 "{\"ph\":\"b\"," PLACE ",\"id\":2,\"name\":\"op\",\"ts\":8},"
                 "{\"ph\":\"n\"," PLACE ",\"id\":2,\"name\":\"point\",\"ts\":8.5},"
                 "{\"ph\":\"e\"," PLACE ",\"id\":1,\"name\":\"op\",\"ts\":10},"
                 "{\"ph\":\"e\"," PLACE ",\"id\":2,\"name\":\"op\",\"ts\":12}]"),
               &e);
    assert_non_null(t);
    assert_int_equal(t->n_events, 6);
    const uint32_t counters = line_named(t, S("_counters_")), async = line_named(t, S("Async: c"));
    const struct trace_event a = event_at(t, counters, 0), op = event_at(t, async, 0);
    assert_true(str_eq(trace_event_name(t, &t->lines[counters], &a), S("mem a")));
    struct trace_stats stats;
    double value = 0;
    assert_true(trace_event_stats(t, &t->lines[counters], &a, &t->arena, &stats, &e));
    assert_true(trace_stat_f64(trace_stat_find(stats, S("counter_value")), &value) && value == 1.5);
    assert_int_equal(op.dur_ps, 3000000);
    assert_int_equal(event_at(t, async, 1).dur_ps, 4000000);
    assert_int_equal(event_at(t, line_named(t, S("7")), 0).dur_ps, 0);
    trace_free(t);
}

static void test_allocator_records(void **state)
{
    (void)state;
    struct err e;
#define MEMORY(ts, bytes, allocated)                                                               \
    "{\"ph\":\"i\"," PLACE ",\"s\":\"t\",\"name\":\"[memory]\",\"ts\":" ts ",\"args\":{\"Total "   \
    "Reserved\":1000,\"Total Allocated\":" allocated ",\"Bytes\":" bytes                           \
    ",\"Addr\":140737488355328,"                                                                   \
    "\"Device Id\":2,\"Device Type\":1}}"
    struct trace *t =
        import(S("[" MEMORY("9", "-300", "100") "," MEMORY("5", "400", "400") "]"), &e);
    assert_non_null(t);
    const struct trace_event first = event_at(t, 0, 0), second = event_at(t, 0, 1);
    assert_true(str_eq(trace_event_name(t, &t->lines[0], &first), S("MemoryAllocation")));
    assert_true(str_eq(trace_event_name(t, &t->lines[0], &second), S("MemoryDeallocation")));
    assert_true(str_eq(text_of(t, 0, &first, S("allocator_name")), S("GPU:2")));
    assert_int_equal(number_of(t, 0, &second, S("allocation_bytes")), 300);
    assert_int_equal(number_of(t, 0, &second, S("bytes_available")), 900);
    assert_int_equal(number_of(t, 0, &second, S("peak_bytes_in_use")), 400);
    trace_free(t);
}

/* The windows of the scanner are 256 KiB: texts lie across their seams at every place. */
static void test_text_across_windows(void **state)
{
    (void)state;
    struct buf b;
    struct err e;
    buf_init(&b, SIZE_MAX / 2);
    buf_add_str(&b, S("["));
    uint32_t n = 0;
    for (; b.n < (3u << 20); n++)
        buf_addf(&b,
                 "%s{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"name\":\"n\\u00e9\\\\%u\",\"ts\":%u.5,"
                 "\"dur\":0.25,"
                 "\"args\":{\"x\":%u,\"l\":[[%u, \"]\"],{}]}}\n",
                 n == 0 ? "" : ",", n % 10, n, n, n);
    buf_add_str(&b, S("]"));
    struct trace *t = import(buf_str(&b), &e);
    buf_release(&b);
    assert_non_null(t);
    assert_int_equal(t->n_events, n);
    struct trace_cursor c;
    struct arena a;
    arena_init(&a, "test", 0);
    for (trace_cursor_init(&c, t, 0); trace_cursor_next(&c);) {
        char name[16], list[40];
        snprintf(name, sizeof name, "n\xc3\xa9\\%u", (unsigned)c.index % 10);
        snprintf(list, sizeof list, "[[%u, \"]\"],{}]", (unsigned)c.index);
        assert_true(str_eq(trace_event_name(t, &t->lines[0], &c.event), str_from(name)));
        assert_int_equal(c.event.dur_ps, 250000);
        struct trace_stats stats;
        const struct arena_mark m = arena_mark(&a);
        assert_true(trace_event_stats(t, &t->lines[0], &c.event, &a, &stats, &e));
        str text = {0};
        int64_t x = 0;
        assert_true(trace_stat_i64(trace_stat_find(stats, S("x")), &x) && x == (int64_t)c.index);
        assert_true(trace_stat_str(trace_stat_find(stats, S("l")), &text) &&
                    str_eq(text, str_from(list)));
        arena_reset(&a, m);
    }
    arena_release(&a);
    trace_free(t);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    static const str whole = STR_INIT("{\"schemaVersion\": 1, \"traceEvents\": [" SLICE(
        "a", "1",
        "2") ",\n  {\"ph\": \"X\", \"pid\": 1, \"tid\": \"7\", \"name\": \"b\\n\\u00e9\", "
             "\"ts\": 4.5e1, \"dur\": 2, \"args\": {\"l\": [1, [\"x\"]], \"t\": true}}], "
             "\"baseTimeNanoseconds\": 12}");
    for (size_t n = 0; n <= whole.n; n++) {
        struct err e;
        struct trace *t = import(str_sub(whole, 0, n), &e);
        assert_true(t != NULL || (e.code == ERR_PARSE && e.msg[0] != '\0'));
        if (t != NULL && n < whole.n)
            assert_true(t->n_warnings > 0); /* said to be cut */
        trace_free(t);
    }
}

static void test_hostile_depth_and_length(void **state)
{
    (void)state;
    struct err e;
    struct buf b;
    buf_init(&b, SIZE_MAX / 2);
    buf_add_str(&b, S("[{\"args\":{\"x\":"));
    for (int i = 0; i < 1000000; i++)
        buf_add_char(&b, '[');
    assert_null(import(buf_str(&b), &e));
    assert_int_equal(e.code, ERR_PARSE);
    assert_int_equal(e.pos, 14 + 64 - 3);
    buf_clear(&b);
    buf_add_str(&b, S("[{\"name\":\""));
    for (int i = 0; i < 18 * 1024 * 1024; i++)
        buf_add_char(&b, 'x');
    assert_null(import(buf_str(&b), &e));
    assert_int_equal(e.code, ERR_LIMIT);
    buf_release(&b);
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
        cmocka_unit_test(test_arguments_have_xprofs_names),
        cmocka_unit_test(test_arrows_bind_to_what_is_around_them),
        cmocka_unit_test(test_counters_instants_and_async),
        cmocka_unit_test(test_allocator_records),
        cmocka_unit_test(test_text_across_windows),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_hostile_depth_and_length),
    };
    return cmocka_run_group_tests_name("chrome", tests, NULL, NULL);
}
