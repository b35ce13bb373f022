/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/run_find.h"
#include "base/file.h"
#include "journal/writer.h"

static void make_run(const char *data, const char *run, const char *start)
{
    struct journal_writer w;
    const struct journal_writer_opts o = {
        .data_dir = data, .run = run, .host = "h", .role = JOURNAL_ROLE_RUNNER, .rank = -1};
    assert_int_equal(journal_writer_open(&w, &o), 0);
    assert_true(journal_write(&w, JOURNAL_RUNNER_START, str_from(start), (str){0}));
    journal_writer_close(&w);
    usleep(1000);
}

static void test_find(void **state)
{
    (void)state;
    char data[] = "/tmp/tacho-find-XXXXXX";
    struct arena a;
    struct err e = {0};
    struct run_found f, *all = NULL;
    uint32_t n = 1;
    assert_non_null(mkdtemp(data));
    arena_init(&a, "test", 1 << 22);
    assert_true(run_find_all(&a, data, &all, &n, &e));
    assert_int_equal(n, 0);
    assert_false(run_find_id(&a, data, S("last"), &f, &e));
    assert_non_null(strstr(e.msg, "no run is recorded"));
    assert_non_null(strstr(e.hint, "tacho run --name"));
    e = (struct err){0};
    make_run(data, "aaaa", "{\"name\":\"one\"}");
    make_run(data, "aabb", "{\"name\":\"two\"}");
    make_run(data, "aaaa", "{\"name\":\"one\"}");
    assert_true(run_find_id(&a, data, S("last"), &f, &e));
    assert_true(str_eq(f.run, S("aaaa")));
    assert_int_equal(f.n_attempts, 2);
    assert_true(run_find_id(&a, data, S("aab"), &f, &e));
    assert_true(str_eq(f.name, S("two")));
    assert_false(run_find_id(&a, data, S("aa"), &f, &e));
    assert_int_equal(e.code, ERR_USAGE);
    e = (struct err){0};
    assert_false(run_find_id(&a, data, S("two"), &f, &e));
    assert_non_null(strstr(e.hint, "aabb"));
    assert_true(run_find_named(&a, data, S("two"), &f, &e));
    assert_false(run_find_named(&a, data, S("three"), &f, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_true(dir_remove(data, &e));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
