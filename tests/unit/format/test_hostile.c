/* SPDX-License-Identifier: Apache-2.0 */
/* A whole XSpace (tests/golden/seeds/tpu) cut at every byte, with bits flipped, and with numbers and lengths that no
 * writer means: one error that says the file and the byte, or a trace that can be walked. TACHO_LONG: more trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/tool.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/xspace.h"

enum { FLIPS = 3000, FLIPS_LONG = 60000, TOOL_EVERY = 100 };

static struct arena arena;
static str space;

static int read_once(void **state)
{
    (void)state;
    const char *tests = getenv("TACHO_TESTS");
    struct err e = {0};
    arena_init(&arena, "seed", 0);
    if (tests == NULL)
        return 0;
    const char *path =
        path_join(&arena, tests, S("golden/seeds/tpu/plugins/profile/s/host-0.xplane.pb"));
    return path != NULL && file_read(&arena, path, 1 << 20, &space, &e) ? 0 : -1;
}

static int release_once(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void walk(const struct trace *t)
{
    struct arena a;
    arena_init(&a, "walk", 64u << 20);
    for (uint32_t l = 0; l < t->n_lines; l++) {
        struct trace_cursor c;
        uint64_t before_ps = 0;
        for (trace_cursor_init(&c, t, l); trace_cursor_next(&c);) {
            struct trace_stats stats;
            struct err e = {0};
            const struct arena_mark m = arena_mark(&a);
            assert_true(c.event.start_ps >= before_ps);
            assert_true(c.event.dur_ps <= UINT64_MAX - c.event.start_ps);
            before_ps = c.event.start_ps;
            if (!trace_event_stats(t, &t->lines[l], &c.event, &a, &stats, &e))
                assert_true(e.code != ERR_NONE && e.msg[0] != '\0');
            arena_reset(&a, m);
        }
        struct err e = {0};
        trace_cursor_release(&c);
        assert_true(trace_cursor_ok(&c, &e));
    }
    arena_release(&a);
}

/* One error with file and byte, or a trace. */
static struct trace *judge(str bytes)
{
    const struct xspace_options o = {.file = S("seed.pb"), .spill_fd = -1, .index_fd = -1};
    struct err e = {0};
    struct trace *t = xspace_load_memory(bytes, &o, &e);
    if (t == NULL) {
        assert_true(e.code == ERR_PARSE || e.code == ERR_LIMIT);
        assert_non_null(strstr(e.msg, "byte "));
        assert_non_null(strstr(e.msg, "seed.pb"));
        assert_null(strchr(e.msg, '\n'));
    } else {
        assert_int_equal(e.code, ERR_NONE);
        walk(t);
    }
    return t;
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    if (space.n == 0)
        skip();
    size_t n_whole = 0;
    for (size_t n = 0; n < space.n; n++) {
        char *copy =
            malloc(n > 0 ? n : 1); /* exact, so that the sanitizer sees a read past its end */
        memcpy(copy, space.p, n);
        struct trace *t = judge((str){copy, n});
        n_whole += t != NULL;
        trace_free(t);
        free(copy);
    }
    assert_true(n_whole >= 2 && n_whole < 10); /* between two planes it is a whole XSpace */
}

static void run_tools(struct trace *t)
{
    struct profile p = {.traces = &t, .n_traces = 1};
    profile_align(&p);
    for (uint32_t i = 0; i < tool_count; i++) {
        const struct tool_request r = {.profile = &p, .whole = &p};
        struct buf out;
        struct err e = {0};
        buf_init(&out, 8u << 20);
        const bool ok = tool_print(&tool_table[i], &r, TOOL_JSON, &out, &e);
        assert_true(ok ? e.code == ERR_NONE : e.code != ERR_NONE && e.msg[0] != '\0');
        buf_release(&out);
    }
}

static void test_flipped_bits(void **state)
{
    (void)state;
    if (space.n == 0)
        skip();
    const size_t n_trials = getenv("TACHO_LONG") != NULL ? FLIPS_LONG : FLIPS;
    size_t n_loaded = 0;
    for (size_t i = 0; i < n_trials; i++) {
        uint64_t random = i;
        char *copy = malloc(space.n);
        memcpy(copy, space.p, space.n);
        for (uint64_t k = next_random(&random) % 8 + 1; k > 0; k--) {
            const size_t at = (size_t)(next_random(&random) % space.n);
            copy[at] = (char)(copy[at] ^ (1 << next_random(&random) % 8));
        }
        struct trace *t = judge((str){copy, space.n});
        if (t != NULL && n_loaded++ % TOOL_EVERY == 0)
            run_tools(t);
        trace_free(t);
        free(copy);
    }
    assert_true(n_loaded > 10 && n_loaded < n_trials);
}

/* Lengths of 2 GB and more, of 64 bits, and varints without an end, in place of each length of a small XSpace. */
static void test_lengths_and_numbers_that_no_writer_means(void **state)
{
    (void)state;
    const str values[] = {
        S("\x80\x80\x80\x80\x08"),                     /* 2^31 */
        S("\xff\xff\xff\xff\x0f"),                     /* 2^32 - 1 */
        S("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),     /* 2^63 - 1 */
        S("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* 2^64 - 1 */
        S("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), /* of 65 bits */
        S("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
        S("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    };
    const int64_t events[][3] = {{1, 0, 10}, {2, 20, 10}, {1, INT64_MAX, INT64_MAX}, {1, -1, -1}};
    struct buf whole;
    make_space(&whole, events, 4);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (size_t at = 0; at <= whole.n; at++)
            for (int replace = 0; replace < 2; replace++) {
                struct buf b;
                buf_init(&b, 1 << 16);
                buf_add_str(&b, str_sub(buf_str(&whole), 0, at));
                buf_add_str(&b, values[i]);
                buf_add_str(&b, str_sub(buf_str(&whole), at + (size_t)replace, whole.n));
                trace_free(judge(buf_str(&b)));
                buf_release(&b);
            }
    buf_release(&whole);
}

/* A million messages within each other, as unknown fields and as groups, in each kind of message. */
static void test_nesting_without_end(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    struct buf deep, groups, plane, line, event;
    buf_init(&deep, 1u << 30);
    buf_init(&groups, 1u << 24);
    char *bytes = malloc(DEPTH * 6), *p = bytes + DEPTH * 6;
    uint64_t length = 0;
    for (int i = 0; i < DEPTH; i++) { /* from within: tag of field 15, length of 5 bytes */
        p -= 6;
        p[0] = 15 << 3 | 2;
        for (int k = 0; k < 5; k++)
            p[1 + k] = (char)((length >> 7 * k & 0x7f) | (k < 4 ? 0x80 : 0));
        length += 6;
    }
    buf_add_str(&deep, (str){bytes, DEPTH * 6});
    for (int i = 0; i < DEPTH; i++)
        buf_add_char(&groups, 15 << 3 | 3);
    const str inside[] = {buf_str(&deep), buf_str(&groups)};
    for (int i = 0; i < 2; i++)
        for (int where = 0; where < 4; where++) {
            struct buf out;
            buf_init(&event, 1u << 30);
            buf_init(&line, 1u << 30);
            buf_init(&plane, 1u << 30);
            buf_init(&out, 1u << 30);
            put_number(&event, 1, 1);
            buf_add_str(&event, where == 3 ? inside[i] : S(""));
            put_bytes(&line, 4, buf_str(&event));
            buf_add_str(&line, where == 2 ? inside[i] : S(""));
            put_bytes(&plane, 3, buf_str(&line));
            buf_add_str(&plane, where == 1 ? inside[i] : S(""));
            put_bytes(&out, 1, buf_str(&plane));
            buf_add_str(&out, where == 0 ? inside[i] : S(""));
            struct trace *t = judge(buf_str(&out));
            assert_true((t != NULL) ==
                        (i == 0)); /* passed over; groups are no part of the format */
            trace_free(t);
            buf_release(&event);
            buf_release(&line);
            buf_release(&plane);
            buf_release(&out);
        }
    free(bytes);
    buf_release(&deep);
    buf_release(&groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_lengths_and_numbers_that_no_writer_means),
        cmocka_unit_test(test_nesting_without_end),
    };
    return cmocka_run_group_tests(tests, read_once, release_once);
}
