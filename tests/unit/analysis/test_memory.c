/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/memory_profile.h"
#include "base/limits.h"
#include "format/xspace.h"

enum { NAME = 1, RESERVED, ALLOCATED, AVAILABLE, PEAK, BYTES, ADDRESS }; /* ids of stats */
enum { ALLOCATION = 1, RELEASE, OTHER };                                 /* ids of events */

struct made {
    int64_t kind, at, numbers[6]; /* from RESERVED on; -1: not said */
};

static void put_stat_number(struct buf *ev, int64_t id, int64_t v)
{
    struct buf stat;
    buf_init(&stat, 1 << 10);
    put_number(&stat, 1, id);
    put_number(&stat, 3, v);
    put_bytes(ev, 4, buf_str(&stat));
    buf_release(&stat);
}

static void put_made(struct buf *line, const struct made *m)
{
    struct buf ev, name;
    buf_init(&ev, 1 << 12);
    buf_init(&name, 1 << 10);
    put_number(&ev, 1, m->kind);
    put_number(&ev, 2, m->at);
    put_number(&name, 1, NAME);
    put_bytes(&name, 5, S("bfc"));
    put_bytes(&ev, 4, buf_str(&name));
    for (int64_t i = 0; i < 6; i++)
        if (m->numbers[i] >= 0)
            put_stat_number(&ev, RESERVED + i, m->numbers[i]);
    put_bytes(line, 4, buf_str(&ev));
    buf_release(&ev);
    buf_release(&name);
}

static void add_line(struct buf *plane, int64_t timestamp_ns, const struct made *events, size_t n)
{
    struct buf line;
    buf_init(&line, 1 << 22);
    put_number(&line, 3, timestamp_ns);
    for (size_t i = 0; i < n; i++)
        put_made(&line, &events[i]);
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

static void end_plane(struct buf *plane, struct buf *space)
{
    static const char *const stats[] = {"",
                                        "allocator_name",
                                        "bytes_reserved",
                                        "bytes_allocated",
                                        "bytes_available",
                                        "peak_bytes_in_use",
                                        "allocation_bytes",
                                        "addr"};
    put_bytes(plane, 2, S("/host:CPU"));
    put_entry(plane, 4, ALLOCATION, S("MemoryAllocation"));
    put_entry(plane, 4, RELEASE, S("MemoryDeallocation"));
    put_entry(plane, 4, OTHER, S("work"));
    for (int64_t i = NAME; i <= ADDRESS; i++)
        put_entry(plane, 5, i, str_from(stats[i]));
    put_bytes(space, 1, buf_str(plane));
    buf_release(plane);
}

struct fixture {
    struct arena arena;
    struct trace *trace;
    struct memory_profile m;
};

static void load(struct fixture *f, struct buf *plane)
{
    struct err e = {0};
    struct buf space;
    const struct xspace_options o = {
        .file = S("host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1};
    buf_init(&space, 1 << 24);
    end_plane(plane, &space);
    f->trace = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(f->trace);
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    const struct profile p = {.traces = &f->trace, .n_traces = 1};
    assert_true(memory_profile_of(&p, NULL, &f->arena, &f->m, &e));
    buf_release(&space);
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    trace_free(f->trace);
}

/* Two lines whose timestamps differ: the offsets alone would put the release first. */
static void test_peak_and_what_is_live_at_it(void **state)
{
    (void)state;
    static const struct made first[] = {
        {ALLOCATION, 40000, {2000, 3000, 5000, 8500, 256, 100}},
        {OTHER, 45000, {-1, -1, -1, -1, -1, -1}},
        {ALLOCATION, 70000, {2000, 5000, 3000, 9500, 300, 200}},
    };
    static const struct made second[] = {
        {RELEASE, 0, {2000, 2744, 5256, 8500, 256, 100}},
        {ALLOCATION, 5000, {-1, -1, -1, -1, 7, 300}},
        {RELEASE, 30000, {2000, 4000, 4000, 9500, 1000, 999}},
    };
    struct fixture f;
    struct buf plane;
    buf_init(&plane, 1 << 20);
    add_line(&plane, 0, first, 3);
    add_line(&plane, 50, second, 3);
    load(&f, &plane);
    assert_int_equal(f.m.n_allocators, 1);
    const struct memory_allocator *a = &f.m.allocators[0];
    assert_true(str_eq(a->name, S("bfc")));
    assert_int_equal(a->lifetime_peak_bytes, 9500);
    assert_int_equal(memory_in_use(&a->peak), 7000);
    assert_int_equal(a->peak_time_ps, 70000);
    assert_int_equal(memory_capacity(a), 10000);
    assert_int_equal(a->n_allocations, 3);
    assert_int_equal(a->n_releases, 2);
    assert_int_equal(a->n_unmatched, 1);
    assert_int_equal(a->n_live, 2); /* the one whose sums are not said too */
    assert_int_equal(a->live[0].address, 200);
    assert_int_equal(a->live[1].address, 300);
    assert_int_equal(a->before_bytes, 5000 - 300 - 7);
    assert_int_equal(a->n_timeline, 4);
    assert_int_equal(a->timeline[1].time_ps, 50000);
    assert_true(a->timeline[1].is_release && a->timeline[1].has_piece);
    assert_int_equal(a->timeline[1].piece.at.start_ps, 40000);
    assert_false(a->timeline[3].has_piece);
    assert_ptr_equal(memory_fullest(&f.m), a);
    unload(&f);
}

/* 2,500 pieces in and out: the timeline keeps the fullest moment of each run, addresses are used again. */
static void test_long_timelines_keep_the_fullest_moments(void **state)
{
    (void)state;
    enum { N = 5000 };
    struct fixture f;
    struct buf plane;
    struct made *events = calloc(N, sizeof *events);
    assert_non_null(events);
    for (int64_t i = 0; i < N; i++)
        events[i] = (struct made){i % 2 == 0 ? ALLOCATION : RELEASE,
                                  1000 * i,
                                  {0, i % 2 == 0 ? 100 + i : 100, 10, 0, i, 4096 * (1 + i / 2)}};
    buf_init(&plane, 1 << 23);
    add_line(&plane, 0, events, N);
    free(events);
    load(&f, &plane);
    const struct memory_allocator *a = &f.m.allocators[0];
    assert_int_equal(a->n_timeline, MEMORY_TIMELINE);
    assert_int_equal(a->peak_time_ps, 1000 * (N - 2));
    assert_int_equal(a->n_live, 1);
    assert_int_equal(a->live[0].bytes, N - 2);
    assert_int_equal(a->before_bytes, 100);
    for (uint32_t i = 0; i < a->n_timeline; i++) { /* runs of five */
        const int64_t last_even = 5 * (int64_t)i + 4 - (5 * (int64_t)i + 4) % 2;
        assert_int_equal(a->timeline[i].use.heap, 100 + last_even);
    }
    unload(&f);
}

static void test_unknown_is_not_zero(void **state)
{
    (void)state;
    static const struct made events[] = {{ALLOCATION, 10, {-1, -1, -1, -1, 64, 100}}};
    struct fixture f;
    struct buf plane;
    buf_init(&plane, 1 << 20);
    add_line(&plane, 0, events, 1);
    load(&f, &plane);
    const struct memory_allocator *a = &f.m.allocators[0];
    assert_true(memory_in_use(&a->peak) == MEMORY_UNKNOWN);
    assert_true(memory_capacity(a) == MEMORY_UNKNOWN);
    assert_true(a->lifetime_peak_bytes == MEMORY_UNKNOWN);
    assert_int_equal(a->n_timeline, 0);
    assert_null(memory_fullest(&f.m));
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak_and_what_is_live_at_it),
        cmocka_unit_test(test_long_timelines_keep_the_fullest_moments),
        cmocka_unit_test(test_unknown_is_not_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
