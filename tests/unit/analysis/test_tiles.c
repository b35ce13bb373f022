/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
/* Names that base/json.h has too; the tests only read documents. */
#define json_object jansson_object
#define json_array jansson_array
#define json_null jansson_null
#include <jansson.h>
#undef json_object
#undef json_array
#undef json_null

#include "../xspace_build.h"
#include "analysis/tiles.h"
#include "base/limits.h"
#include "format/xspace.h"

struct fixture {
    struct profile profile;
    struct trace *trace;
};

static void open_space(struct fixture *f, const int64_t (*events)[3], size_t n)
{
    struct buf b;
    struct err e = {0};
    const struct xspace_options o = {
        .file = S("dir/host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1, .index_fd = -1};
    make_space(&b, events, n);
    f->trace = xspace_load_memory(buf_str(&b), &o, &e);
    assert_non_null(f->trace);
    f->profile = (struct profile){.traces = &f->trace, .n_traces = 1};
    profile_align(&f->profile);
    buf_release(&b);
}

static json_t *ask(struct fixture *f, enum tiles_view view, const struct tool_param *params,
                   uint32_t n, struct err *e)
{
    struct arena a;
    struct buf out;
    const struct tool_request r = {.profile = &f->profile, .params = params, .n_params = n};
    arena_init(&a, "test", LIMIT_ARENA_TOOL_BYTES);
    buf_init(&out, 1 << 24);
    *e = (struct err){0};
    json_t *doc = NULL;
    if (tiles_answer(view, &r, &a, &out, e)) {
        doc = json_loadb(out.p, out.n, 0, NULL);
        assert_non_null(doc);
    }
    buf_release(&out);
    arena_release(&a);
    return doc;
}

static json_int_t number(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

static void test_summary_names_target_and_lines(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 10, 30}, {2, 50, 5}};
    struct fixture f;
    struct err e;
    open_space(&f, events, 2);
    json_t *doc = ask(&f, TILES_SUMMARY, NULL, 0, &e);
    const json_t *target = json_array_get(json_object_get(doc, "targets"), 0);
    assert_string_equal(json_string_value(json_object_get(target, "target")), "host-0");
    assert_int_equal(number(doc, "start_ps"), 10);
    assert_int_equal(number(doc, "device_end_ps"), 55);
    const json_t *note = json_array_get(json_object_get(target, "notes"), 0);
    assert_string_equal(json_string_value(json_object_get(note, "code")), "profiler_warning");
    json_decref(doc);
    trace_note(f.trace, S("bad_event"), 3, "events were left out");
    doc = ask(&f, TILES_SUMMARY, NULL, 0, &e);
    target = json_array_get(json_object_get(doc, "targets"), 0);
    note = json_array_get(json_object_get(target, "notes"), 0);
    assert_string_equal(json_string_value(json_object_get(note, "code")), "bad_event");
    assert_int_equal(number(note, "count"), 3);
    json_decref(doc);
    trace_free(f.trace);
}

/* Every event is in exactly one place: shown itself, once, or counted in a cell. */
static void test_nothing_vanishes_at_any_level(void **state)
{
    (void)state;
    enum { N = 3000 };
    static int64_t events[N][3];
    struct fixture f;
    struct err e;
    for (int64_t i = 0; i < N; i++) {
        events[i][0] = 1 + i % 2;
        events[i][1] = i * 700;
        events[i][2] = i % 11 == 0 ? 0 : 100 + i % 500;
    }
    open_space(&f, (const int64_t(*)[3])events, N);
    for (uint64_t level = 0; level <= 30; level += 3) {
        uint64_t seen = 0;
        bool shown[N] = {false};
        const uint64_t span = UINT64_C(1024) << level;
        for (uint64_t position = 0; position * span <= N * 700; position++) {
            char at[24], deep[24];
            snprintf(at, sizeof at, "%llu", (unsigned long long)position);
            snprintf(deep, sizeof deep, "%llu", (unsigned long long)level);
            const struct tool_param p[] = {
                {S("lines"), S("0")}, {S("level"), str_from(deep)}, {S("position"), str_from(at)}};
            json_t *doc = ask(&f, TILES_TILE, p, 3, &e);
            assert_non_null(doc);
            const json_t *line = json_array_get(json_object_get(doc, "lines"), 0);
            size_t i;
            json_t *item;
            json_array_foreach(json_object_get(line, "events"), i, item)
            {
                const json_int_t start = json_integer_value(json_array_get(item, 0));
                const json_int_t index = json_integer_value(json_array_get(item, 4));
                assert_int_equal(start, index * 700);
                if ((uint64_t)start < position * span)
                    continue; /* it began in the tile before */
                assert_false(shown[index]);
                shown[index] = true;
                seen++;
            }
            json_array_foreach(json_object_get(line, "cells"), i, item) seen +=
                (uint64_t)json_integer_value(json_array_get(item, 2));
            json_decref(doc);
            if (level == 0 && position == 700)
                break; /* level 0 has two thousand tiles: a part of them is enough */
        }
        if (level > 0)
            assert_int_equal(seen, N);
    }
    trace_free(f.trace);
}

static void test_event_by_index(void **state)
{
    (void)state;
    const int64_t events[][3] = {{2, 50, 5}, {1, 10, 30}};
    struct fixture f;
    struct err e;
    open_space(&f, events, 2);
    const struct tool_param p[] = {{S("line"), S("0")}, {S("index"), S("1")}};
    json_t *doc = ask(&f, TILES_EVENT, p, 2, &e);
    assert_string_equal(json_string_value(json_object_get(doc, "name")), "copy");
    assert_int_equal(number(doc, "start_ps"), 50);
    json_decref(doc);
    const struct tool_param beyond[] = {{S("line"), S("0")}, {S("index"), S("2")}};
    assert_null(ask(&f, TILES_EVENT, beyond, 2, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    trace_free(f.trace);
}

static void test_search_counts_beyond_its_limit(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 5}, {1, 10, 5}, {2, 20, 5}};
    struct fixture f;
    struct err e;
    open_space(&f, events, 3);
    const struct tool_param p[] = {{S("q"), S("KERN")}, {S("limit"), S("1")}};
    json_t *doc = ask(&f, TILES_SEARCH, p, 2, &e);
    assert_int_equal(json_array_size(json_object_get(doc, "hits")), 1);
    assert_int_equal(number(doc, "total"), 2);
    json_decref(doc);
    trace_free(f.trace);
}

static void test_search_by_prefix_expression_and_length(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 5}, {1, 10, 9}, {2, 20, 5}};
    const struct {
        str q, mode, least;
        uint64_t total;
    } cases[] = {{S("kern"), S("prefix"), S("0"), 2},
                 {S("ern"), S("prefix"), S("0"), 0},
                 {S("^(kernel|copy)$"), S("regex"), S("0"), 3},
                 {S("kernel"), S("regex"), S("6"), 1},
                 {S("opy"), S("substring"), S("5"), 1}};
    struct fixture f;
    struct err e;
    open_space(&f, events, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tool_param p[] = {
            {S("q"), cases[i].q}, {S("mode"), cases[i].mode}, {S("min_dur_ps"), cases[i].least}};
        json_t *doc = ask(&f, TILES_SEARCH, p, 3, &e);
        assert_int_equal(number(doc, "total"), cases[i].total);
        json_decref(doc);
    }
    const struct tool_param bad[] = {{S("q"), S("(")}, {S("mode"), S("regex")}};
    assert_null(ask(&f, TILES_SEARCH, bad, 2, &e));
    assert_int_equal(e.code, ERR_USAGE);
    const struct tool_param other[] = {{S("q"), S("a")}, {S("mode"), S("glob")}};
    assert_null(ask(&f, TILES_SEARCH, other, 2, &e));
    assert_int_equal(e.code, ERR_USAGE);
    trace_free(f.trace);
}

static void test_select_clips_and_subtracts_children(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 100}, {2, 20, 30}, {2, 200, 10}};
    struct fixture f;
    struct err e;
    open_space(&f, events, 3);
    const struct tool_param p[] = {{S("from_ps"), S("10")}, {S("to_ps"), S("205")}};
    json_t *doc = ask(&f, TILES_SELECT, p, 2, &e);
    assert_int_equal(number(doc, "busy_ps"), 95);
    assert_int_equal(number(doc, "idle_ps"), 100);
    const json_t *kernel = json_array_get(json_object_get(doc, "rows"), 0);
    assert_int_equal(number(kernel, "total_ps"), 90);
    assert_int_equal(number(kernel, "self_ps"), 60);
    const json_t *copy = json_array_get(json_object_get(doc, "rows"), 1);
    assert_int_equal(number(copy, "count"), 2);
    assert_int_equal(number(copy, "total_ps"), 35);
    assert_int_equal(number(copy, "min_ps"), 5);
    json_decref(doc);
    trace_free(f.trace);
}

static void test_bad_parameters_are_refused(void **state)
{
    (void)state;
    const int64_t events[][3] = {{1, 0, 100}};
    struct fixture f;
    struct err e;
    open_space(&f, events, 1);
    const struct tool_param cases[][2] = {
        {{S("lines"), S("9")}, {S("level"), S("1")}},
        {{S("lines"), S("x")}, {S("level"), S("1")}},
        {{S("lines"), S("0")}, {S("level"), S("60")}},
        {{S("lines"), S("0")}, {S("position"), S("18446744073709551615")}},
        {{S("lines"), S("0,0")}, {S("target"), S("")}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(ask(&f, TILES_TILE, cases[i], 2, &e));
        assert_true(e.code == ERR_USAGE || e.code == ERR_NOT_FOUND);
    }
    trace_free(f.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary_names_target_and_lines),
        cmocka_unit_test(test_nothing_vanishes_at_any_level),
        cmocka_unit_test(test_event_by_index),
        cmocka_unit_test(test_search_counts_beyond_its_limit),
        cmocka_unit_test(test_search_by_prefix_expression_and_length),
        cmocka_unit_test(test_select_clips_and_subtracts_children),
        cmocka_unit_test(test_bad_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
