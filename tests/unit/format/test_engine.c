/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on lines longer than a row group: side columns beside the stats in the file, levels beside the events they
 * merge, lines in no order, and the same bytes whatever the number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../xspace_build.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/index.h"
#include "format/xspace.h"
#include "model/trace_pick.h"
#include "model/trace_pyramid.h"

enum { LINES = 11, EVENTS = 50000, NAMES = 5 };
enum { CORRELATION = 1, OFFSET = 2, OP = 3, DETAILS = 4, WORD = 5 }; /* ids of names of stats */
enum order { SORTED, SHUFFLED_NEAR, BACKWARDS };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void put_value(struct buf *ev, int64_t id, uint32_t field, int64_t number, str text)
{
    struct buf stat;
    buf_init(&stat, 4096);
    put_number(&stat, 1, id);
    if (field == 5)
        put_bytes(&stat, field, text);
    else
        put_number(&stat, field, number);
    put_bytes(ev, 4, buf_str(&stat));
    buf_release(&stat);
}

/* Event i of a line: its stats depend on i alone, so that they can be told from its start. */
static void put_made_event(struct buf *line, uint64_t i, uint64_t start, uint64_t dur)
{
    struct buf ev;
    buf_init(&ev, 4096);
    put_number(&ev, 1, (int64_t)(i % NAMES) + 1);
    put_number(&ev, 2, (int64_t)start);
    put_number(&ev, 3, (int64_t)dur);
    put_value(&ev, OFFSET, 4, (int64_t)start + 7, S(""));
    if (i % 2 == 0)
        put_value(&ev, CORRELATION, 3, (int64_t)(i * 3), S(""));
    if (i % 3 == 0)
        put_value(&ev, OP, 7, WORD, S(""));
    if (i % 1000 == 0)
        put_value(&ev, DETAILS, 5, 0, S("regs:3"));
    put_bytes(line, 4, buf_str(&ev));
    buf_release(&ev);
}

static uint64_t place_of(uint64_t k, enum order order)
{
    if (order == BACKWARDS)
        return EVENTS - 1 - k;
    return order == SHUFFLED_NEAR ? k ^ 5 : k; /* EVENTS is a multiple of eight */
}

static void make(struct buf *space, uint64_t *total_ps)
{
    struct buf plane, line;
    uint64_t state = 1;
    buf_init(space, 1 << 30);
    buf_init(&plane, 1 << 30);
    *total_ps = 0;
    for (uint32_t l = 0; l < LINES; l++) {
        buf_init(&line, 1 << 28);
        put_bytes(&line, 2, S("XLA Ops"));
        for (uint64_t k = 0; k < EVENTS; k++) {
            const uint64_t i = place_of(k, (enum order)(l % 3));
            const uint64_t dur = i % 10 == 0 ? 9 : next_random(&state) % 3 + 1;
            *total_ps += dur;
            put_made_event(&line, i, i * 10, dur);
        }
        put_bytes(&plane, 3, buf_str(&line));
        buf_release(&line);
    }
    put_bytes(&plane, 2, S("/device:TPU:0"));
    for (int64_t i = 1; i <= NAMES; i++)
        put_entry(&plane, 4, i, S("op"));
    put_entry(&plane, 5, CORRELATION, S("correlation_id"));
    put_entry(&plane, 5, OFFSET, S("device_offset_ps"));
    put_entry(&plane, 5, OP, S("hlo_op"));
    put_entry(&plane, 5, DETAILS, S("kernel_details"));
    put_entry(&plane, 5, WORD, S("fusion.1"));
    put_bytes(space, 1, buf_str(&plane));
    buf_release(&plane);
}

static struct buf made;
static uint64_t made_ps;

static int make_once(void **state)
{
    (void)state;
    make(&made, &made_ps);
    return 0;
}

static int release_once(void **state)
{
    (void)state;
    buf_release(&made);
    return 0;
}

static int memory_file(void)
{
    const int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static struct trace *load(bool spills, int index_fd, unsigned n_threads)
{
    const struct xspace_options o = {.file = S("t.xplane.pb"),
                                     .spill_fd = spills ? memory_file() : -1,
                                     .index_fd = index_fd,
                                     .n_threads = n_threads};
    struct err e = {0};
    struct trace *t = xspace_load_memory(buf_str(&made), &o, &e);
    assert_non_null(t);
    return t;
}

static void check_line(const struct trace *t, uint32_t l)
{
    static const str names[] = {STR_INIT("correlation_id"), STR_INIT("device_offset_ps"),
                                STR_INIT("hlo_op"), STR_INIT("kernel_details")};
    struct trace_cursor c;
    struct trace_picker p;
    struct err e = {0};
    uint64_t i = 0;
    trace_picker_init(&p, t, l, names, 4);
    for (trace_cursor_init(&c, t, l); trace_cursor_next(&c); i++) {
        assert_int_equal(c.event.start_ps, i * 10);
        assert_int_equal(c.index, i);
        assert_int_equal(c.event.metadata_index, i % NAMES);
        assert_true(trace_pick(&p, &c.event, &e));
        assert_int_equal(p.values[0].type, i % 2 == 0 ? TRACE_STAT_U64 : TRACE_STAT_NONE);
        assert_true(i % 2 != 0 || p.values[0].u64 == i * 3);
        assert_int_equal(p.values[1].type, TRACE_STAT_I64);
        assert_int_equal(p.values[1].i64, i * 10 + 7);
        assert_int_equal(p.values[2].type, i % 3 == 0 ? TRACE_STAT_STR : TRACE_STAT_NONE);
        assert_true(i % 3 != 0 || str_eq(p.values[2].text, S("fusion.1")));
        assert_int_equal(p.values[3].type, i % 1000 == 0 ? TRACE_STAT_STR : TRACE_STAT_NONE);
        assert_true(i % 1000 != 0 || str_eq(p.values[3].text, S("regs:3")));
    }
    assert_int_equal(i, EVENTS);
    trace_picker_release(&p);
}

static void test_side_columns_hold_what_the_file_has(void **state)
{
    (void)state;
    for (int spills = 0; spills < 2; spills++) {
        struct trace *t = load(spills != 0, -1, 2);
        for (uint32_t l = 0; l < LINES; l++) {
            check_line(t, l);
            assert_int_equal(t->lines[l].was_unsorted, l % 3 != SORTED);
        }
        trace_free(t);
    }
}

static void test_levels_hold_every_event_once(void **state)
{
    (void)state;
    struct trace *t = load(false, -1, 1);
    for (uint32_t l = 0; l < LINES; l++) {
        assert_true(t->lines[l].n_levels > 3);
        uint64_t events_ps = 0;
        struct trace_cursor c;
        for (trace_cursor_init(&c, t, l); trace_cursor_next(&c);)
            events_ps += c.event.dur_ps;
        for (uint32_t k = 0; k < t->lines[l].n_levels; k++) {
            const uint32_t log2 = t->levels[t->lines[l].first_level + k].bucket_log2;
            uint64_t n = 0, sum_ps = 0, before = 0, rows = 0;
            for (trace_cursor_init_level(&c, t, l, k); trace_cursor_next(&c); rows++) {
                const bool cell = c.event.src_bytes == PYRAMID_CELL;
                assert_true(c.event.start_ps >= before);
                assert_true(!cell || c.event.start_ps % (UINT64_C(1) << log2) == 0);
                assert_true(cell || c.event.start_ps == c.event.src * 10);
                n += cell ? c.event.num_occurrences : 1;
                sum_ps += c.event.dur_ps;
                before = c.event.start_ps;
            }
            assert_int_equal(n, EVENTS);
            assert_int_equal(sum_ps, events_ps);
            assert_true(rows <= (EVENTS * UINT64_C(10) >> log2) + 1);
        }
    }
    trace_free(t);
}

static void test_seek_in_long_lines(void **state)
{
    (void)state;
    struct trace *t = load(true, -1, 2);
    struct trace_cursor c;
    for (uint64_t at = 0; at <= (EVENTS - 1) * 10; at += 33333) {
        trace_cursor_init(&c, t, 4);
        trace_cursor_seek(&c, at);
        assert_true(trace_cursor_next(&c));
        assert_true(c.event.start_ps + c.event.dur_ps > at || c.event.start_ps >= at);
        assert_true(c.event.start_ps <= at + 10);
        assert_int_equal(c.index * 10, c.event.start_ps);
        struct trace_stats stats;
        struct arena a;
        struct err e = {0};
        arena_init(&a, "stats", 0);
        assert_true(trace_event_stats(t, &t->lines[4], &c.event, &a, &stats, &e));
        assert_int_equal(stats.items[0].i64, c.event.start_ps + 7);
        arena_release(&a);
        trace_cursor_release(&c);
    }
    trace_free(t);
}

static char *index_bytes(unsigned n_threads, size_t *n)
{
    const int fd = memory_file(), copy = dup(fd);
    struct trace *t = load(true, fd, n_threads);
    const struct index_identity of = {.size_bytes = made.n};
    struct err e = {0};
    uint64_t size;
    assert_true(index_end(t, &of, &e));
    check_line(t, 2);
    trace_free(t);
    assert_true(file_size(copy, &size, &e));
    char *bytes = malloc(size);
    assert_true(file_pread_all(copy, bytes, size, 0, &e));
    close(copy);
    *n = size;
    return bytes;
}

static void test_an_index_does_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    size_t n_one, n_many;
    char *one = index_bytes(1, &n_one), *many = index_bytes(5, &n_many);
    assert_int_equal(n_one, n_many);
    assert_memory_equal(one, many, n_one);
    free(one);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_columns_hold_what_the_file_has),
        cmocka_unit_test(test_levels_hold_every_event_once),
        cmocka_unit_test(test_seek_in_long_lines),
        cmocka_unit_test(test_an_index_does_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, make_once, release_once);
}
