/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/roofline.h"
#include "base/limits.h"
#include "format/xspace.h"

enum { CATEGORY = 1, FLOPS, BYTES, MODULE, PEAK_FLOPS, PEAK_HBM }; /* ids of stats */
enum { DOT = 1, FEED, LOOP, FIRST, SECOND };                       /* ids of events */

static void put_stat(struct buf *to, uint32_t field, int64_t id, int64_t v, str text)
{
    struct buf stat;
    buf_init(&stat, 1 << 10);
    put_number(&stat, 1, id);
    if (text.n > 0)
        put_bytes(&stat, 5, text);
    else
        put_number(&stat, 3, v);
    put_bytes(to, field, buf_str(&stat));
    buf_release(&stat);
}

static void put_operation(struct buf *plane, int64_t id, str name, str category, int64_t flops,
                          int64_t bytes)
{
    struct buf value, entry;
    buf_init(&value, 1 << 12);
    buf_init(&entry, 1 << 12);
    put_number(&value, 1, id);
    put_bytes(&value, 2, name);
    put_stat(&value, 5, CATEGORY, 0, category);
    if (flops > 0)
        put_stat(&value, 5, FLOPS, flops, (str){0});
    put_stat(&value, 5, BYTES, bytes, (str){0});
    put_number(&entry, 1, id);
    put_bytes(&entry, 2, buf_str(&value));
    put_bytes(plane, 4, buf_str(&entry));
    buf_release(&value);
    buf_release(&entry);
}

static void put_line(struct buf *plane, str name, const int64_t (*events)[3], size_t n)
{
    struct buf line;
    buf_init(&line, 1 << 16);
    put_bytes(&line, 2, name);
    for (size_t i = 0; i < n; i++)
        put_event(&line, events[i][0], events[i][1], events[i][2]);
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

/* One core at 1 TFLOP/s and 1 GB/s: two steps, each an infeed, a product and a loop around a product. The
 * product at 900 is in no step. */
static void put_core(struct buf *space, str name, int64_t late, int64_t longer)
{
    const int64_t steps[][3] = {{FIRST, late, 400 + longer}, {SECOND, late + 400 + longer, 300}};
    const int64_t ops[][3] = {
        {FEED, late, 50},
        {DOT, late + 50, 100},
        {LOOP, late + 150, 200},
        {DOT, late + 160, 150},
        {FEED, late + 400 + longer, 30},
        {DOT, late + 430 + longer, 120},
        {LOOP, late + 550 + longer, 100},
        {DOT, late + 560 + longer, 80},
        {DOT, 900, 10},
    };
    static const char *const names[] = {"hlo_category", "flops", "bytes_accessed", "program_id"};
    struct buf plane;
    buf_init(&plane, 1 << 20);
    put_bytes(&plane, 2, name);
    put_line(&plane, S("Steps"), steps, 2);
    put_line(&plane, S("XLA Ops"), ops, sizeof ops / sizeof *ops);
    put_operation(&plane, DOT, S("dot.1"), S("convolution fusion"), 1000, 20);
    put_operation(&plane, FEED, S("infeed.1"), S("infeed"), 0, 8);
    put_operation(&plane, LOOP, S("while.1"), S("while"), 1000, 20);
    put_entry(&plane, 4, FIRST, S("7"));
    put_entry(&plane, 4, SECOND, S("8"));
    for (int64_t i = 0; i < 4; i++)
        put_entry(&plane, 5, i + 1, str_from(names[i]));
    put_entry(&plane, 5, PEAK_FLOPS, S("peak_teraflops_per_second"));
    put_entry(&plane, 5, PEAK_HBM, S("peak_hbm_bw_gigabytes_per_second"));
    put_stat(&plane, 6, PEAK_FLOPS, 1, (str){0});
    put_stat(&plane, 6, PEAK_HBM, 1, (str){0});
    put_bytes(space, 1, buf_str(&plane));
    buf_release(&plane);
}

static struct trace *load(struct buf *space)
{
    const struct xspace_options o = {
        .file = S("host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1};
    struct err e = {0};
    buf_init(space, 1 << 24);
    put_core(space, S("/device:TPU:0"), 0, 0);
    put_core(space, S("/device:TPU:1"), 5, 20);
    struct trace *t = xspace_load_memory(buf_str(space), &o, &e);
    assert_non_null(t);
    return t;
}

static void test_whole_and_steps_of_two_cores(void **state)
{
    (void)state;
    struct buf space;
    struct trace *t = load(&space);
    struct profile p = {.traces = &t, .n_traces = 1};
    struct roofline f;
    struct arena a;
    struct err e = {0};
    arena_init(&a, "roofline", LIMIT_ARENA_TOOL_BYTES);
    assert_true(roofline_of(&f, &p, &a, &e));
    assert_int_equal(f.n_devices, 2);
    assert_int_equal(f.whole.time_ps, 910 + 905);
    assert_int_equal(f.whole.feeds_ps, 2 * (50 + 30));
    assert_int_equal(f.whole.work.flops, 2 * 5 * 1000); /* what the loop has is its product's */
    assert_int_equal(f.whole.all.bytes, 2 * (5 * 20 + 2 * 8));
    assert_int_equal(f.n_steps, 2);
    assert_int_equal(f.steps[0].step->number, 7);
    assert_int_equal(f.steps[0].time_ps, 2 * 420);
    assert_int_equal(f.steps[0].feeds_ps, 2 * 50);
    assert_int_equal(f.steps[0].work.flops, 2 * 2 * 1000);
    assert_int_equal(f.steps[0].work.bytes, 2 * 2 * 20);
    assert_int_equal(f.steps[0].all.bytes, 2 * (2 * 20 + 8));
    assert_int_equal(f.steps[0].all.self_ps, 2 * (50 + 100 + 200));
    assert_int_equal(f.steps[1].time_ps, 2 * 300);
    assert_int_equal(roofline_time_ps(&f.steps[1], ROOFLINE_WITHOUT_FEEDS), 2 * (300 - 30));
    roofline_release(&f);
    arena_release(&a);
    trace_free(t);
    buf_release(&space);
}

static void test_what_bounds_and_how_far(void **state)
{
    (void)state;
    const struct device_info d = {.peak_tera_flops = 1, .hbm_gb = 100, .is_tpu = true};
    struct op_metrics m = {.flops = 500, .bytes = 10, .has_cost = true, .time_ps = 1000};
    struct op_rates r = op_rates_of(&m, m.time_ps, &d);
    assert_int_equal(r.bound, OP_COMPUTE); /* 500 of 1000 GFLOP/s, 10 of 100 GB/s */
    assert_true(r.efficiency == 0.5 && r.intensity_of[OP_HBM] == 50);
    assert_true(r.memory_use > 0.0999 && r.memory_use < 0.1001);
    m.bytes = 80;
    r = op_rates_of(&m, m.time_ps, &d);
    assert_int_equal(r.bound, OP_HBM);
    assert_true(r.optimal_giga_flops > 624.9 && r.optimal_giga_flops < 625.1);
    assert_true(op_ridge(&d, OP_HBM) > 9.999 && op_ridge(&d, OP_HBM) < 10.001);
    m.has_breakdown = true; /* none of the bytes are HBM's */
    assert_int_equal(op_rates_of(&m, m.time_ps, &d).bound, OP_COMPUTE);
    const struct device_info unknown = {.type = STR_INIT("CPU")};
    assert_int_equal(op_rates_of(&m, m.time_ps, &unknown).bound, OP_RESOURCE_NONE);
    assert_int_equal(op_rates_of(&m, 0, &d).bound, OP_RESOURCE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_and_steps_of_two_cores),
        cmocka_unit_test(test_what_bounds_and_how_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
