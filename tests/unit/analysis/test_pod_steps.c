/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/pod_steps.h"
#include "base/limits.h"
#include "format/xspace.h"

/* Metadata: 1 and 2 are steps 4 and 5, 3 computes, 4 all-reduces, 5 waits for input. */
static void add_line(struct buf *plane, str name, const int64_t (*events)[3], size_t n)
{
    struct buf line;
    buf_init(&line, 1 << 20);
    put_bytes(&line, 2, name);
    put_number(&line, 3, 1000);
    for (size_t i = 0; i < n; i++)
        put_event(&line, events[i][0], events[i][1], events[i][2]);
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

static void put_category(struct buf *plane, int64_t id, str name, str category)
{
    struct buf stat, metadata;
    buf_init(&stat, 1 << 10);
    buf_init(&metadata, 1 << 10);
    put_number(&stat, 1, 1); /* hlo_category */
    put_bytes(&stat, 5, category);
    put_number(&metadata, 1, id);
    put_bytes(&metadata, 2, name);
    put_bytes(&metadata, 5, buf_str(&stat));
    struct buf entry;
    buf_init(&entry, 1 << 10);
    put_number(&entry, 1, id);
    put_bytes(&entry, 2, buf_str(&metadata));
    put_bytes(plane, 4, buf_str(&entry));
    buf_release(&entry);
    buf_release(&metadata);
    buf_release(&stat);
}

static void add_core(struct buf *space, str name, const int64_t (*steps)[3], size_t n_steps,
                     const int64_t (*ops)[3], size_t n_ops)
{
    struct buf plane;
    buf_init(&plane, 1 << 20);
    put_bytes(&plane, 2, name);
    add_line(&plane, S("Steps"), steps, n_steps);
    add_line(&plane, S("XLA Ops"), ops, n_ops);
    put_entry(&plane, 4, 1, S("4"));
    put_entry(&plane, 4, 2, S("5"));
    put_category(&plane, 3, S("fusion.1"), S("loop fusion"));
    put_category(&plane, 4, S("all-reduce.1"), S("all-reduce"));
    put_category(&plane, 5, S("infeed.1"), S("infeed"));
    put_entry(&plane, 5, 1, S("hlo_category"));
    put_bytes(space, 1, buf_str(&plane));
    buf_release(&plane);
}

struct fixture {
    struct trace *traces[2];
    struct profile profile;
    struct arena arena;
    struct pod_steps pods;
};

static void load(struct fixture *f, struct buf *spaces, uint32_t n)
{
    struct err e = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct xspace_options o = {.file = i == 0 ? S("a.xplane.pb") : S("b.xplane.pb"),
                                         .host = i == 0 ? S("a") : S("b"),
                                         .spill_fd = -1};
        f->traces[i] = xspace_load_memory(buf_str(&spaces[i]), &o, &e);
        assert_non_null(f->traces[i]);
        buf_release(&spaces[i]);
    }
    f->profile = (struct profile){.traces = f->traces, .n_traces = n};
    arena_init(&f->arena, "test", LIMIT_ARENA_TOOL_BYTES);
    assert_true(pod_steps_of(&f->profile, NULL, &f->arena, &f->pods, &e));
}

static void unload(struct fixture *f)
{
    arena_release(&f->arena);
    for (uint32_t i = 0; i < f->profile.n_traces; i++)
        trace_free(f->traces[i]);
}

static void test_parts_of_a_core_sum_to_its_step(void **state)
{
    (void)state;
    const int64_t steps[][3] = {{1, 0, 100}, {2, 100, 80}};
    const int64_t ops[][3] = {{5, 5, 20}, {3, 25, 40}, {4, 65, 10}, {3, 100, 50}};
    struct fixture f;
    struct buf space;
    buf_init(&space, 1 << 20);
    add_core(&space, S("/device:TPU:0"), steps, 2, ops, 4);
    load(&f, &space, 1);
    assert_int_equal(f.pods.n, 2);
    const struct pod_step *s = &f.pods.items[0];
    assert_true(s->has_number && s->number == 4 && s->cores.n == 1);
    const struct pod_core *c = &s->cores.items[0];
    assert_int_equal(pod_core_ps(c), 100);
    assert_int_equal(c->class_ps[POD_INPUT], 20);
    assert_int_equal(c->class_ps[POD_COMPUTE], 40);
    assert_int_equal(c->class_ps[POD_COLLECTIVE], 10);
    assert_int_equal(c->class_ps[POD_OTHER], 30);
    assert_int_equal(pod_bottleneck(c), POD_COMPUTE);
    assert_int_equal(f.pods.items[1].cores.items[0].class_ps[POD_OTHER], 30);
    unload(&f);
}

/* Host a has steps 4 and 5, host b only 5, on which it computes longest. */
static void test_hosts_meet_in_the_step_of_that_number(void **state)
{
    (void)state;
    const int64_t both[][3] = {{1, 0, 100}, {2, 100, 80}}, late[][3] = {{2, 7, 90}};
    const int64_t ops_both[][3] = {{3, 0, 50}, {3, 100, 50}}, ops_late[][3] = {{3, 10, 80}};
    struct fixture f;
    struct buf spaces[2];
    buf_init(&spaces[0], 1 << 20);
    buf_init(&spaces[1], 1 << 20);
    add_core(&spaces[0], S("/device:TPU:0"), both, 2, ops_both, 2);
    add_core(&spaces[1], S("/device:TPU:0"), late, 1, ops_late, 1);
    load(&f, spaces, 2);
    assert_int_equal(f.pods.n, 2);
    assert_int_equal(f.pods.items[0].number, 4);
    assert_false(pod_step_is_whole(&f.pods, &f.pods.items[0]));
    assert_true(pod_step_is_whole(&f.pods, &f.pods.items[1]));
    const struct pod_core *longest = pod_longest(&f.pods.items[1].cores);
    assert_int_equal(longest->trace_index, 1);
    assert_int_equal(pod_core_ps(longest), 90);
    struct straggler slow;
    struct err e = {0};
    assert_true(pod_straggler(&f.pods, &f.arena, &slow, &e));
    assert_non_null(slow.core);
    assert_int_equal(slow.core->trace_index, 1);
    assert_true(slow.compute_ps == 80 && slow.others_ps == 50 && slow.n_devices == 2);
    unload(&f);
}

/* A number that comes back is another step. */
static void test_a_repeated_number_is_another_step(void **state)
{
    (void)state;
    const int64_t steps[][3] = {{1, 0, 10}, {1, 10, 20}};
    const int64_t ops[][3] = {{3, 0, 5}, {3, 10, 5}};
    struct fixture f;
    struct buf space;
    buf_init(&space, 1 << 20);
    add_core(&space, S("/device:TPU:0"), steps, 2, ops, 2);
    load(&f, &space, 1);
    assert_int_equal(f.pods.n, 2);
    assert_int_equal(pod_core_ps(&f.pods.items[0].cores.items[0]), 10);
    assert_int_equal(pod_core_ps(&f.pods.items[1].cores.items[0]), 20);
    struct straggler slow;
    struct err e = {0};
    assert_true(pod_straggler(&f.pods, &f.arena, &slow, &e));
    assert_true(slow.core == NULL && slow.n_devices == 1);
    unload(&f);
}

/* A host that has no steps does not make those of the others incomplete. */
static void test_a_host_without_steps_is_not_missed(void **state)
{
    (void)state;
    const int64_t steps[][3] = {{1, 0, 100}};
    const int64_t ops[][3] = {{3, 0, 50}};
    struct fixture f;
    struct buf spaces[2];
    buf_init(&spaces[0], 1 << 20);
    buf_init(&spaces[1], 1 << 20);
    add_core(&spaces[0], S("/device:TPU:0"), steps, 1, ops, 1);
    add_core(&spaces[1], S("/host:CPU"), steps, 0, ops, 1);
    load(&f, spaces, 2);
    assert_int_equal(f.pods.n, 1);
    assert_int_equal(f.pods.n_hosts, 1);
    assert_true(pod_step_is_whole(&f.pods, &f.pods.items[0]));
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_a_core_sum_to_its_step),
        cmocka_unit_test(test_hosts_meet_in_the_step_of_that_number),
        cmocka_unit_test(test_a_repeated_number_is_another_step),
        cmocka_unit_test(test_a_host_without_steps_is_not_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
