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

static void make_journal(const char *data, const char *run, bool runner, const char *start)
{
    struct journal_writer w;
    const struct journal_writer_opts o = {.data_dir = data,
                                          .run = run,
                                          .host = "h",
                                          .role =
                                              runner ? JOURNAL_ROLE_RUNNER : JOURNAL_ROLE_WORKLOAD,
                                          .rank = -1};
    assert_int_equal(journal_writer_open(&w, &o), 0);
    assert_true(journal_write(&w, runner ? JOURNAL_RUNNER_START : JOURNAL_PROCESS_START,
                              str_from(start), (str){0}));
    journal_writer_close(&w);
    usleep(1000);
}

static void make_run(const char *data, const char *run, const char *start)
{
    make_journal(data, run, true, start);
}

/* Journals come in the order of their random ids: with eight of the workload, one of them is first. */
static void test_the_runner_names_it(void **state)
{
    (void)state;
    char data[] = "/tmp/tacho-find-XXXXXX";
    struct arena a;
    struct err e = {0};
    struct run_found f;
    assert_non_null(mkdtemp(data));
    arena_init(&a, "test", 1 << 22);
    for (int i = 0; i < 8; i++)
        make_journal(data, "cccc", false, "{\"name\":\"script\",\"group\":\"g\"}");
    make_journal(data, "cccc", true, "{\"name\":\"mine\"}");
    assert_true(run_find_named(&a, data, S("mine"), &f, &e));
    assert_true(str_eq(f.run, S("cccc")) && str_eq(f.group, S("g")));
    assert_false(run_find_named(&a, data, S("script"), &f, &e));
    assert_true(dir_remove(data, &e));
    arena_release(&a);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find),
                                       cmocka_unit_test(test_the_runner_names_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
