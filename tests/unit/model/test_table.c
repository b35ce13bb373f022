/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/table_print.h"

#define THIN "\xe2\x80\x89"

static struct arena a;

static struct table *sample(void)
{
    struct table *t = table_new(&a, S("ops"), S("Operations"));
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    struct cell *row = table_row(t);
    row[0] = cell_text(S("dot,\"1\""));
    row[1] = cell_u64(1412000000000);
    row = table_row(t);
    row[0] = cell_text(S("bad\x1b[0m"));
    table_row(t)[1] = cell_u64(5);
    table_value(t, S("total_percent"), S("Total"), cell_f64(99.99), S("%"));
    table_note(t, S("cut"), 1, "%d events were cut", 2);
    table_note(t, S("cut"), 2, "not used");
    return t;
}

static void text(void **state)
{
    struct buf b;
    const struct table_style style = {0};
    buf_init(&b, 4096);
    table_print_text(sample(), &style, &b);
    assert_string_equal(b.p, "Operations\nTotal  99.9 %\n\n"
                             "Operation   Self time\n"
                             "dot,\"1\"       1.412 s\n"
                             "bad\\x1b[0m          –\n"
                             "–            5.000 ps\n"
                             "note: 2 events were cut (3 times)\n");
    buf_release(&b);
}

static void json_and_csv(void **state)
{
    struct buf b;
    struct json j;
    struct err e;
    buf_init(&b, 4096);
    json_init_buf(&j, &b);
    table_print_json(sample(), &j);
    assert_true(json_done(&j, &e));
    assert_string_equal(
        b.p,
        "{\"table\":\"ops\",\"title\":\"Operations\",\"columns\":["
        "{\"name\":\"operation\",\"title\":\"Operation\",\"unit\":\"\",\"type\":\"text\"},"
        "{\"name\":\"self_time_ps\",\"title\":\"Self time\",\"unit\":\"ps\",\"type\":\"u64\"}],"
        "\"values\":{\"total_percent\":99.99},"
        "\"rows\":[[\"dot,\\\"1\\\"\",1412000000000],[\"bad\\u001b[0m\",null],[null,5]],"
        "\"notes\":[{\"code\":\"cut\",\"message\":\"2 events were cut\",\"count\":3}]}");
    buf_clear(&b);
    table_print_csv(sample(), &b);
    assert_string_equal(b.p, "operation,self_time_ps\r\n\"dot,\"\"1\"\"\",1412000000000\r\n"
                             "bad\x1b[0m,\r\n,5\r\n");
    buf_release(&b);
}

static void sorting(void **state)
{
    struct table *t = sample();
    table_sort(t, 1, TABLE_ASCENDING);
    assert_int_equal(table_cell(t, 0, 1)->u64, 5);
    assert_false(table_cell(t, 2, 1)->known);
    table_sort(t, 1, TABLE_DESCENDING);
    assert_int_equal(table_cell(t, 1, 1)->u64, 5);
    assert_false(table_cell(t, 2, 1)->known); /* unknown last in both orders */
    assert_int_equal(table_find_column(t, S("self_time_ps")), 1);
    assert_int_equal(table_find_column(t, S("none")), UINT32_MAX);
}

static void check(struct cell c, const char *unit, const char *expected)
{
    char got[64];
    const str s = cell_format(&a, &c, str_from(unit));
    snprintf(got, sizeof got, "%.*s", STR_ARG(s));
    assert_string_equal(got, expected);
}

static void numbers(void **state)
{
    check(cell_unknown(), "s", "–");
    check(cell_f64(1.4123), "s", "1.412 s");
    check(cell_u64(475600), "ns", "475.6 µs");
    check(cell_u64(192), "s", "3 m 12 s");
    check(cell_f64(59.99999), "s", "1 m 00 s");
    check(cell_u64(194400), "s", "2 d 06 h");
    check(cell_u64(7200), "s", "2 h 00 m");
    check(cell_u64(0), "ns", "0 s");
    check(cell_i64(-1500), "ms", "-1.500 s");
    check(cell_u64(67108864), "bytes", "64.0 MiB");
    check(cell_u64(512), "bytes", "512 B");
    check(cell_f64(12.3e6), "bytes/s", "12.30 MB/s");
    check(cell_f64(312.44e12), "FLOP/s", "312.4 TFLOP/s");
    check(cell_f64(84.1), "%", "84.1 %");
    check(cell_f64(100), "%", "100.0 %");
    check(cell_f64(99.97), "%", "99.9 %");
    check(cell_u64(1234567), "", "1" THIN "234" THIN "567");
    check(cell_i64(-1234), "", "-1" THIN "234");
    check(cell_u64(7), "steps", "7 steps");
    check(cell_bool(true), "", "yes");
}

static void limit(void **state)
{
    struct arena small;
    struct err e = {0};
    arena_init(&small, "small", 4096);
    struct table *t = table_new(&small, S("t"), S("t"));
    table_column(t, S("c"), S("c"), CELL_U64, S(""));
    while (table_row(t) != NULL)
        continue;
    assert_false(table_ok(t, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    arena_release(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),    cmocka_unit_test(json_and_csv), cmocka_unit_test(sorting),
        cmocka_unit_test(numbers), cmocka_unit_test(limit),
    };
    arena_init(&a, "test", 0);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_release(&a);
    return failed;
}
