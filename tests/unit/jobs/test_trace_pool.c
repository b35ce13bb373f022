/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers that stay: they answer as those that are asked once, survive what kills them, and show a part while the index
 * of a large profile is made. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../xspace_build.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "jobs/index_place.h"
#include "jobs/trace_pool.h"

enum { EVENTS = 300000 };

static char folder[64], xspace_path[96], index_path[96];
static const struct index_places places = {.cache = ""};
static const struct parser_limits limits = {.indexes = &places};

static void write_profile(int64_t step)
{
    static int64_t events[EVENTS][3];
    struct buf b;
    struct err e = {0};
    for (int64_t i = 0; i < EVENTS; i++) {
        events[i][0] = 1 + i % 2;
        events[i][1] = i * step;
        events[i][2] = 5 + i % 7;
    }
    make_space(&b, (const int64_t(*)[3])events, EVENTS);
    assert_true(file_replace(xspace_path, buf_str(&b), 0644, &e));
    buf_release(&b);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(folder, sizeof folder, "/tmp/tacho-test-pool-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(xspace_path, sizeof xspace_path, "%s/host-0.xplane.pb", folder);
    snprintf(index_path, sizeof index_path, "%s/host-0.tacho", folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    write_profile(50);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct err e = {0};
    return dir_remove(folder, &e) ? 0 : -1;
}

static const struct tool_param tile[] = {{STR_INIT("lines"), STR_INIT("0")},
                                         {STR_INIT("level"), STR_INIT("14")}};

static bool ask(struct trace_pool *p, enum tiles_view view, uint32_t n, struct buf *out,
                bool *partial, struct err *e)
{
    *e = (struct err){0};
    buf_init(out, 1 << 24);
    return trace_pool_ask(p, folder, &limits, view, n == 0 ? NULL : tile, n, out, partial, e);
}

static void assert_as_once(struct trace_pool *p)
{
    struct buf pooled, once;
    struct err e = {0};
    bool partial;
    buf_init(&once, 1 << 24);
    if (!ask(p, TILES_TILE, 2, &pooled, &partial, &e))
        fail_msg("%s", e.msg);
    assert_false(partial);
    assert_true(profile_task_trace(folder, &limits, TILES_TILE, tile, 2, &once, &e));
    assert_true(str_eq(buf_str(&pooled), buf_str(&once)));
    buf_release(&pooled);
    buf_release(&once);
}

static void test_answers_are_those_of_a_parser_that_is_asked_once(void **state)
{
    (void)state;
    struct trace_pool *p = trace_pool_new(UINT64_MAX, 0);
    struct buf out;
    struct err e;
    bool partial;
    for (int i = 0; i < 3; i++)
        assert_as_once(p);
    assert_false(ask(p, TILES_TILE, 0, &out, &partial, &e)); /* no lines */
    assert_int_equal(e.code, ERR_USAGE);
    buf_release(&out);
    assert_as_once(p);
    trace_pool_free(p);
}

static void test_a_changed_profile_is_read_anew(void **state)
{
    (void)state;
    struct trace_pool *p = trace_pool_new(UINT64_MAX, 0);
    assert_as_once(p);
    write_profile(60);
    assert_as_once(p);
    write_profile(50);
    trace_pool_free(p);
}

static void test_a_damaged_index_costs_time_only(void **state)
{
    (void)state;
    struct trace_pool *p = trace_pool_new(UINT64_MAX, 0);
    struct err e = {0};
    uint64_t size;
    assert_as_once(p);
    FILE *f = fopen(index_path, "r+");
    assert_non_null(f);
    fseek(f, 2000, SEEK_SET);
    for (int i = 0; i < 20000; i++)
        fputc(0x5a, f);
    fclose(f);
    trace_pool_free(p);
    p = trace_pool_new(UINT64_MAX, 0);
    assert_as_once(p);
    assert_true(file_size(fileno(f = fopen(index_path, "r")), &size, &e));
    fclose(f);
    trace_pool_free(p);
}

static void test_a_large_profile_is_shown_in_part_at_first(void **state)
{
    (void)state;
    struct trace_pool *p = trace_pool_new(0, 10000);
    struct buf out;
    struct err e;
    bool partial = true;
    unlink(index_path);
    assert_true(ask(p, TILES_SUMMARY, 0, &out, &partial, &e));
    assert_true(partial);
    assert_true(str_find(buf_str(&out), S("\"partial\":true")) >= 0);
    assert_true(str_find(buf_str(&out), S("\"events\":300000")) < 0);
    assert_true(str_find(buf_str(&out), S("\"partial\":true}]")) >= 0); /* the line says so too */
    buf_release(&out);
    const uint64_t until_ns = clock_monotonic_ns() + UINT64_C(60) * 1000000000;
    while (partial && clock_monotonic_ns() < until_ns) {
        usleep(20000);
        assert_true(ask(p, TILES_SUMMARY, 0, &out, &partial, &e));
        if (!partial)
            assert_true(str_find(buf_str(&out), S("\"events\":300000")) >= 0);
        buf_release(&out);
    }
    assert_false(partial);
    assert_as_once(p);
    trace_pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_those_of_a_parser_that_is_asked_once),
        cmocka_unit_test(test_a_changed_profile_is_read_anew),
        cmocka_unit_test(test_a_damaged_index_costs_time_only),
        cmocka_unit_test(test_a_large_profile_is_shown_in_part_at_first),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
