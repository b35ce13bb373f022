/* SPDX-License-Identifier: Apache-2.0 */
/* The index as it is used: views answered from it are those answered from the XSpace, byte for byte. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/tiles.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/index.h"
#include "format/xspace.h"
#include "jobs/index_place.h"
#include "jobs/profile_task.h"

enum { N_EVENTS = 70000 }; /* two row groups */

/* Every file is taken to lie in the data folder. */
static const struct index_places places = {.cache = ""};

static char folder[64], xspace_path[96], index_path[96];

static int set_up(void **state)
{
    (void)state;
    static int64_t events[N_EVENTS][3];
    struct buf b;
    struct err e = {0};
    for (int64_t i = 0; i < N_EVENTS; i++) {
        events[i][0] = i % 97 == 0 ? 9 : 1 + i % 2; /* 9 has no metadata */
        events[i][1] = i * 700;
        events[i][2] = i % 11 == 0 ? 0 : 100 + i % 900;
    }
    snprintf(folder, sizeof folder, "/tmp/tacho-test-index-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(xspace_path, sizeof xspace_path, "%s/host-0.xplane.pb", folder);
    snprintf(index_path, sizeof index_path, "%s/host-0.tacho", folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    make_space(&b, (const int64_t(*)[3])events, N_EVENTS);
    const bool written = file_replace(xspace_path, buf_str(&b), 0644, &e);
    buf_release(&b);
    return written ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    struct err e = {0};
    return dir_remove(folder, &e) ? 0 : -1;
}

struct question {
    enum tiles_view view;
    struct tool_param params[3];
    uint32_t n;
};

static const struct question questions[] = {
    {TILES_SUMMARY, {{{0}, {0}}}, 0},
    {TILES_TILE, {{STR_INIT("lines"), STR_INIT("0")}, {STR_INIT("level"), STR_INIT("16")}}, 2},
    {TILES_TILE,
     {{STR_INIT("lines"), STR_INIT("0")},
      {STR_INIT("level"), STR_INIT("9")},
      {STR_INIT("position"), STR_INIT("90")}},
     3},
    {TILES_EVENT, {{STR_INIT("line"), STR_INIT("0")}, {STR_INIT("index"), STR_INIT("69999")}}, 2},
    {TILES_SEARCH, {{STR_INIT("q"), STR_INIT("kern")}, {STR_INIT("limit"), STR_INIT("7")}}, 2},
    {TILES_SELECT,
     {{STR_INIT("from_ps"), STR_INIT("1000")}, {STR_INIT("to_ps"), STR_INIT("900000")}},
     2},
};
enum { N_QUESTIONS = sizeof questions / sizeof *questions };

static void ask(const struct question *q, struct buf *out)
{
    const struct parser_limits limits = {.indexes = &places};
    struct err e = {0};
    buf_init(out, 1 << 24);
    if (!profile_task_trace(folder, &limits, q->view, q->params, q->n, out, &e))
        fail_msg("view %d: %s", (int)q->view, e.msg);
    assert_true(out->n > 2);
}

static bool view_of_xspace(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    const struct question *q = ctx;
    const struct tool_request r = {.profile = p, .params = q->params, .n_params = q->n};
    struct arena a;
    arena_init(&a, "test", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = tiles_answer(q->view, &r, &a, out, e);
    arena_release(&a);
    return ok;
}

static void ask_xspace(const struct question *q, struct buf *out)
{
    const struct parser_limits limits = {0}; /* no index */
    struct question copy = *q;
    struct err e = {0};
    buf_init(out, 1 << 24);
    assert_true(profile_task_run(folder, &limits, view_of_xspace, &copy, out, &e));
}

static void assert_answers_equal(void)
{
    for (size_t i = 0; i < N_QUESTIONS; i++) {
        struct buf from_index, from_xspace;
        ask(&questions[i], &from_index);
        ask_xspace(&questions[i], &from_xspace);
        assert_int_equal(from_index.n, from_xspace.n);
        assert_memory_equal(from_index.p, from_xspace.p, from_xspace.n);
        buf_release(&from_index);
        buf_release(&from_xspace);
    }
}

static ino_t index_inode(void)
{
    struct stat st;
    assert_int_equal(stat(index_path, &st), 0);
    return st.st_ino;
}

static void test_answers_are_those_of_the_xspace(void **state)
{
    (void)state;
    unlink(index_path);
    assert_answers_equal();
    const ino_t made = index_inode();
    assert_answers_equal();
    assert_int_equal(index_inode(), made); /* used, not made again */
}

/* Every block is under a checksum: whichever byte is damaged, the answers stay right. */
static void test_damaged_index_costs_time_only(void **state)
{
    (void)state;
    struct arena a;
    struct err e = {0};
    str whole;
    struct buf first;
    ask(&questions[1], &first);
    arena_init(&a, "test", 1 << 26);
    assert_true(file_read(&a, index_path, 1 << 26, &whole, &e));
    for (size_t i = 0; i < 40; i++) {
        const size_t at = i < 8 ? whole.n - 1 - i * 9 : (whole.n - 1) * (i - 8) / 32;
        char *bytes = arena_alloc(&a, whole.n, 1);
        memcpy(bytes, whole.p, whole.n);
        bytes[at] ^= 0x41;
        const str damaged = {bytes, i % 10 == 9 ? at : whole.n};
        assert_true(file_replace(index_path, damaged, 0644, &e));
        struct buf again;
        ask(&questions[1], &again);
        assert_int_equal(again.n, first.n);
        assert_memory_equal(again.p, first.p, first.n);
        buf_release(&again);
    }
    buf_release(&first);
    arena_release(&a);
}

static void test_changed_xspace_is_indexed_anew(void **state)
{
    (void)state;
    struct buf out, b;
    struct err e = {0};
    const int64_t events[][3] = {{1, 10, 30}, {2, 50, 5}};
    ask(&questions[0], &out);
    buf_release(&out);
    const ino_t made = index_inode();
    const int old = open(index_path, O_RDONLY); /* keeps the number of the old one taken */
    make_space(&b, events, 2);
    assert_true(file_replace(xspace_path, buf_str(&b), 0644, &e));
    ask(&questions[0], &out);
    assert_non_null(strstr(out.p, "\"events\":2,"));
    assert_int_not_equal(index_inode(), made);
    close(old);
    buf_release(&out);
    buf_release(&b);
}

/* The new index has no name until it is whole: a parser that dies leaves none behind. */
static void test_dead_parser_leaves_nothing(void **state)
{
    (void)state;
    const struct parser_limits limits = {.indexes = &places};
    struct buf out;
    struct err e = {0};
    str *names;
    size_t n;
    struct arena a;
    unlink(index_path);
    buf_init(&out, 1 << 20);
    setenv("TACHO_TEST_PARSER_CRASH", "1", 1);
    assert_false(profile_task_trace(folder, &limits, TILES_SUMMARY, NULL, 0, &out, &e));
    unsetenv("TACHO_TEST_PARSER_CRASH");
    assert_int_equal(e.code, ERR_CRASH);
    arena_init(&a, "test", 1 << 20);
    assert_true(dir_list(&a, folder, &names, &n, &e));
    assert_int_equal(n, 1); /* the XSpace */
    arena_release(&a);
    buf_release(&out);
}

/* Cut anywhere, an index is none: nothing is half-read. */
static void test_every_cut_is_refused(void **state)
{
    (void)state;
    struct arena a;
    struct err e = {0};
    str whole;
    struct buf out;
    ask(&questions[0], &out);
    buf_release(&out);
    arena_init(&a, "test", 1 << 26);
    assert_true(file_read(&a, index_path, 1 << 26, &whole, &e));
    const int xspace = open(xspace_path, O_RDONLY), fd = memfd_create("index", MFD_CLOEXEC);
    for (size_t n = 0; n <= whole.n; n++) {
        assert_true(ftruncate(fd, 0) == 0 && file_pwrite_all(fd, whole.p, n, 0, &e));
        assert_int_equal(index_is_of(fd, xspace), n == whole.n);
    }
    close(fd);
    close(xspace);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_those_of_the_xspace),
        cmocka_unit_test(test_damaged_index_costs_time_only),
        cmocka_unit_test(test_changed_xspace_is_indexed_anew),
        cmocka_unit_test(test_dead_parser_leaves_nothing),
        cmocka_unit_test(test_every_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
