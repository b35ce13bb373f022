/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/op_metrics.h"
#include "base/limits.h"
#include "format/xspace.h"

enum { GRAPH = 1, CORRELATION }; /* ids of stats */

struct made {
    int64_t offset, duration, graph, correlation; /* 0: not said */
};

static void put_stat(struct buf *ev, int64_t id, int64_t v)
{
    struct buf stat;
    buf_init(&stat, 1 << 10);
    put_number(&stat, 1, id);
    put_number(&stat, 3, v);
    if (v != 0)
        put_bytes(ev, 4, buf_str(&stat));
    buf_release(&stat);
}

static void add_stream(struct buf *plane, str name, const struct made *events, size_t n)
{
    struct buf line;
    buf_init(&line, 1 << 20);
    put_bytes(&line, 2, name);
    for (size_t i = 0; i < n; i++) {
        struct buf ev;
        buf_init(&ev, 1 << 12);
        put_number(&ev, 1, 1);
        put_number(&ev, 2, events[i].offset);
        put_number(&ev, 3, events[i].duration);
        put_stat(&ev, GRAPH, events[i].graph);
        put_stat(&ev, CORRELATION, events[i].correlation);
        put_bytes(&line, 4, buf_str(&ev));
        buf_release(&ev);
    }
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

static const struct op_metrics *find(const struct op_db *db, str name)
{
    for (uint32_t i = 0; i < db->n_ops; i++)
        if (str_eq(db->ops[i].name, name))
            return &db->ops[i];
    return NULL;
}

/* A launch is one execution, on however many streams it ran; without an id, while its graph goes on. */
static void test_launches_of_graphs(void **state)
{
    (void)state;
    static const struct made first[] = {
        {0, 10, 11, 90}, {10, 10, 11, 90}, {30, 5, 11, 91}, {40, 3, 12, 0},
        {45, 3, 12, 0},  {50, 1, 0, 0},    {60, 4, 12, 0},
    };
    static const struct made second[] = {{5, 20, 11, 90}, {30, 7, 11, 91}};
    struct buf plane, space;
    struct arena a;
    struct err e = {0};
    struct op_db db;
    buf_init(&plane, 1 << 20);
    buf_init(&space, 1 << 20);
    arena_init(&a, "test", LIMIT_ARENA_TOOL_BYTES);
    put_bytes(&plane, 2, S("/device:GPU:0"));
    add_stream(&plane, S("Stream #7"), first, sizeof first / sizeof *first);
    add_stream(&plane, S("Stream #8"), second, sizeof second / sizeof *second);
    put_entry(&plane, 4, 1, S("body"));
    put_entry(&plane, 5, GRAPH, S("cuda_graph_id"));
    put_entry(&plane, 5, CORRELATION, S("correlation_id"));
    put_bytes(&space, 1, buf_str(&plane));
    const struct xspace_options o = {
        .file = S("host-0.xplane.pb"), .host = S("host-0"), .spill_fd = -1};
    struct trace *t = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(t);
    const struct profile p = {.traces = &t, .n_traces = 1};
    assert_true(op_db_build(&db, &p, S(""), &a, &e));
    assert_int_equal(db.n_ops, 2);
    const struct op_metrics *g = find(&db, S("CUDA graph 11"));
    assert_non_null(g);
    assert_int_equal(g->occurrences, 2);
    assert_int_equal(g->time_ps, 52);
    assert_int_equal(g->min_ps, 12);
    assert_int_equal(g->max_ps, 40);
    g = find(&db, S("CUDA graph 12"));
    assert_non_null(g);
    assert_int_equal(g->occurrences, 2);
    assert_int_equal(g->max_ps, 6);
    assert_int_equal(g->min_ps, 4);
    assert_int_equal(db.named_ps, 25 + 7 + 3 + 3 + 4);
    assert_int_equal(op_db_unnamed_ps(&db), 1);
    op_db_release(&db);
    trace_free(t);
    arena_release(&a);
    buf_release(&plane);
    buf_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches_of_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
