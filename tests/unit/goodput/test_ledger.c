/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of small runs whose answer is worked out by hand, and of random ones that must sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "goodput/ledger_build.h"

static void add(struct record_set *s, uint32_t process, enum record_kind kind,
                enum record_phase phase, int64_t wall_ns, int64_t step)
{
    struct record *r = record_set_add(s);
    assert_non_null(r);
    r->kind = kind;
    r->phase = phase;
    r->wall_ns = wall_ns;
    r->step = step;
    r->process = process;
    r->seq = s->n_records;
}

static void pair(struct record_set *s, uint32_t process, enum record_phase phase, int64_t from_ns,
                 int64_t to_ns, int64_t step)
{
    add(s, process, RECORD_BEGIN, phase, from_ns, step);
    add(s, process, RECORD_END, phase, to_ns, step);
}

static void pair_on(struct record_set *s, uint32_t thread, enum record_phase phase, int64_t from_ns,
                    int64_t to_ns, int64_t step)
{
    pair(s, 0, phase, from_ns, to_ns, step);
    s->records[s->n_records - 2].thread = s->records[s->n_records - 1].thread = thread;
}

static void add_process(struct record_set *s, int64_t start_ns, int64_t last_ns, bool runner)
{
    struct record_process *p = record_set_add_process(s);
    assert_non_null(p);
    p->rank = runner ? -1 : 0;
    p->start_ns = start_ns;
    p->last_ns = last_ns;
    p->runner = runner;
}

static int64_t total(const struct ledger *l, enum ledger_category c)
{
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category == c)
            return l->totals[i].total_ns;
    return 0;
}

/* Steps 0 1 2 and a cut step 3; the second attempt goes on at 2. */
static void lost_steps_are_wasted(void **state)
{
    (void)state;
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 1000, 1500, true);
    add_process(&s, 1010, 1400, false);
    add_process(&s, 2000, 2500, true);
    add_process(&s, 2020, 2490, false);
    pair(&s, 1, PHASE_TRAINING_PREP, 1010, 1050, -1);
    pair(&s, 1, PHASE_STEP, 1050, 1150, 0);
    pair(&s, 1, PHASE_STEP, 1150, 1250, 1);
    pair(&s, 1, PHASE_STEP, 1250, 1350, 2);
    add(&s, 1, RECORD_BEGIN, PHASE_STEP, 1350, 3);
    add(&s, 0, RECORD_RUNNER_END, PHASE_NONE, 1500, -1);
    pair(&s, 3, PHASE_DATA_LOADING, 2030, 2080, 2);
    pair(&s, 3, PHASE_STEP, 2080, 2180, 2);
    pair(&s, 3, PHASE_STEP, 2200, 2300, 3);
    add(&s, 2, RECORD_RUNNER_END, PHASE_NONE, 2500, -1);
    record_set_sort(&s);
    assert_true(ledger_build(&s, &l, &e));
    assert_true(ledger_check(&l));
    assert_int_equal(l.total_ns, 1500);
    assert_int_equal(total(&l, LEDGER_PRODUCTIVE_STEP), 400);
    assert_int_equal(total(&l, LEDGER_WASTED_PROGRESS), 100 + 150);
    assert_int_equal(total(&l, LEDGER_INFRASTRUCTURE_RECOVERY), 500);
    assert_int_equal(total(&l, LEDGER_DATA_LOADING_SYNC), 50);
    assert_int_equal(total(&l, LEDGER_TRAINING_PREP), 40);
    assert_int_equal(total(&l, LEDGER_OTHER), 10 + 30 + 20 + 200);
    assert_int_equal(l.n_disruptions, 1);
    assert_int_equal(l.max_productive_step, 3);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(s.processes[i].attempt, 1 + i / 2);
    record_set_release(&s);
}

/* A launcher restarts its ranks below one `tacho run`, which is of no attempt alone. */
static void a_runner_over_two_attempts(void **state)
{
    (void)state;
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 0, 1000, true);
    add_process(&s, 10, 400, false);
    add_process(&s, 500, 990, false);
    pair(&s, 1, PHASE_STEP, 50, 150, 0);
    pair(&s, 2, PHASE_STEP, 600, 700, 1);
    record_set_sort(&s);
    assert_true(ledger_build(&s, &l, &e));
    assert_int_equal(l.n_attempts, 2);
    assert_int_equal(s.processes[0].attempt, 0);
    assert_int_equal(s.processes[1].attempt, 1);
    assert_int_equal(s.processes[2].attempt, 2);
    record_set_release(&s);
}

/* Each rank below a `tacho run` of its own: the lead rank ended as its own says. */
static void a_runner_of_another_rank(void **state)
{
    (void)state;
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 0, 1000, true);
    add_process(&s, 0, 2000, true);
    add_process(&s, 10, 990, false);
    add_process(&s, 10, 1990, false);
    s.processes[0].rank = 0;
    s.processes[1].rank = s.processes[3].rank = 1;
    pair(&s, 2, PHASE_STEP, 50, 150, 0);
    pair(&s, 3, PHASE_STEP, 50, 150, 0);
    add(&s, 0, RECORD_RUNNER_END, PHASE_NONE, 1000, -1);
    add(&s, 1, RECORD_RUNNER_END, PHASE_NONE, 2000, -1);
    s.records[s.n_records - 1].code = 3;
    record_set_sort(&s);
    assert_true(ledger_build(&s, &l, &e));
    assert_int_equal(l.n_attempts, 1);
    assert_int_equal(l.attempts[0].code, 0);
    assert_int_equal(l.total_ns, 1000);
    record_set_release(&s);
}

/* A run that still goes on: its open step is in progress, not lost. */
static void running_step_is_in_progress(void **state)
{
    (void)state;
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 0, 300, false);
    pair(&s, 0, PHASE_STEP, 0, 100, 0);
    add(&s, 0, RECORD_BEGIN, PHASE_STEP, 100, 1);
    pair(&s, 0, PHASE_CHECKPOINT_SAVE, 200, 250, 1);
    record_set_sort(&s);
    assert_true(ledger_build(&s, &l, &e));
    assert_true(l.running);
    assert_int_equal(total(&l, LEDGER_IN_PROGRESS_STEP), 150);
    assert_int_equal(total(&l, LEDGER_CHECKPOINT_SAVE), 50);
    assert_int_equal(total(&l, LEDGER_WASTED_PROGRESS), 0);
    record_set_release(&s);
}

static void no_workload_is_said(void **state)
{
    (void)state;
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 0, 300, true);
    add_process(&s, 10, 400, true); /* on another host */
    assert_true(ledger_build(&s, &l, &e));
    assert_true(ledger_check(&l));
    assert_true(l.workload_silent);
    assert_int_equal(l.total_ns, 400);
    assert_int_equal(l.n_totals, 1);
    assert_int_equal(l.totals[0].category, LEDGER_OTHER);
    assert_int_equal(l.n_attempts, 1);
    assert_string_equal(s.notes[0].code.p, "workload_silent");
    record_set_release(&s);
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 500, 900, true);
    add_process(&s, 0, 300, true);
    add_process(&s, 100, 200, true); /* beside it, on another host or for another rank */
    assert_true(ledger_build(&s, &l, &e));
    assert_int_equal(l.n_attempts, 2);
    assert_int_equal(s.processes[0].attempt, 2);
    assert_int_equal(s.processes[1].attempt, 1);
    assert_int_equal(s.processes[2].attempt, 1);
    record_set_release(&s);
}

/* Steps on thread `steps`, each with a load of 30 before it on `loads` and one of 60 beside it on `beside`. */
static void build_loads(struct record_set *s, struct ledger *l, uint32_t steps, uint32_t loads,
                        uint32_t beside)
{
    struct err e = {0};
    record_set_init(s, LIMIT_ARENA_RUN_BYTES);
    add_process(s, 1000, 1400, false);
    for (int64_t i = 0; i < 4; i++) {
        pair_on(s, loads, PHASE_DATA_LOADING, 1000 + 100 * i, 1030 + 100 * i, i);
        pair_on(s, steps, PHASE_STEP, 1030 + 100 * i, 1100 + 100 * i, i);
        pair_on(s, beside, PHASE_DATA_LOADING, 1035 + 100 * i, 1095 + 100 * i, i + 1);
    }
    add(s, 0, RECORD_PROCESS_END, PHASE_NONE, 1400, -1);
    record_set_sort(s);
    assert_true(ledger_build(s, l, &e));
    assert_true(ledger_check(l));
    assert_int_equal(l->n_loads + l->n_prefetches, 8);
}

static void prefetching_does_not_block(void **state)
{
    (void)state;
    static const struct {
        uint32_t steps, loads, beside;
        int64_t blocked_ns;
        uint64_t n_prefetches;
    } rows[] = {
        {1, 1, 2, 120, 4},                  /* the loop's own loads, and a prefetching thread */
        {7, 7, 9, 120, 4}, {2, 1, 1, 0, 8}, /* two prefetching threads' loads: nothing blocks */
        {1, 1, 1, 360, 0},                  /* loads inside the step, on its own thread */
        {0, 0, 0, 360, 0},                  /* journals without threads: all may block */
        {0, 1, 2, 360, 0},                  /* steps of unknown threads: all may block */
        {1, 0, 2, 120, 4},                  /* an unknown load may block */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct record_set s;
        struct ledger l;
        build_loads(&s, &l, rows[i].steps, rows[i].loads, rows[i].beside);
        assert_int_equal(total(&l, LEDGER_DATA_LOADING_SYNC), rows[i].blocked_ns);
        assert_int_equal(l.n_prefetches, rows[i].n_prefetches);
        assert_int_equal(s.n_notes, rows[i].n_prefetches > 0);
        record_set_release(&s);
    }
}

/* Two threads at once each end their own; what a dead thread began ends with the next of its kind; an end on
 * another thread than the begin still ends it. */
static void threads_pair_their_own(void **state)
{
    (void)state;
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
    add_process(&s, 1000, 2000, false);
    pair_on(&s, 1, PHASE_STEP, 1000, 1010, 0);
    pair_on(&s, 2, PHASE_EVAL, 1100, 1150, -1);
    pair_on(&s, 3, PHASE_EVAL, 1120, 1180, -1); /* 80 together */
    pair_on(&s, 2, PHASE_CHECKPOINT_SAVE, 1300, 9999, -1);
    s.n_records--;                                         /* died in it */
    pair_on(&s, 3, PHASE_CHECKPOINT_SAVE, 1340, 1360, -1); /* 60 together */
    pair_on(&s, 2, PHASE_COMPILE, 1500, 1570, -1);
    s.records[s.n_records - 1].thread = 4; /* handed over: 70 */
    add(&s, 0, RECORD_PROCESS_END, PHASE_NONE, 2000, -1);
    record_set_sort(&s);
    assert_true(ledger_build(&s, &l, &e));
    assert_true(ledger_check(&l));
    assert_int_equal(total(&l, LEDGER_CUSTOM), 80);
    assert_int_equal(total(&l, LEDGER_CHECKPOINT_SAVE), 60);
    assert_int_equal(total(&l, LEDGER_PROGRAM_STARTUP), 70);
    assert_int_equal(s.n_notes, 0);
    record_set_release(&s);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static int64_t sum_of(const struct ledger *l, const struct ledger_part *parts, uint32_t n)
{
    struct arena a;
    uint32_t n_totals;
    int64_t sum = 0;
    arena_init(&a, "test", 0);
    const struct ledger_total *totals = ledger_sum(l, parts, n, &a, &n_totals);
    for (uint32_t i = 0; i < n_totals; i++)
        sum += totals[i].total_ns;
    arena_release(&a);
    return sum;
}

/* Parts of a ledger and what is between them, each summed alone, make its time exactly. */
static void check_parts(const struct ledger *l, uint64_t *x)
{
    struct ledger_part kept[8], cut[8];
    uint32_t n = 0;
    int64_t at = l->from_ns, kept_ns = 0;
    for (; n < 8 && at + 2 < l->to_ns; n++) {
        const int64_t middle = at + 1 + (int64_t)(next_random(x) % (uint64_t)(l->to_ns - at - 1));
        kept[n] = (struct ledger_part){at, middle};
        kept_ns += middle - at;
        at = n == 7 ? l->to_ns
                    : middle + 1 + (int64_t)(next_random(x) % (uint64_t)(l->to_ns - middle));
        cut[n] = (struct ledger_part){middle, at};
    }
    assert_int_equal(sum_of(l, kept, n), kept_ns);
    assert_int_equal(sum_of(l, kept, n) + sum_of(l, cut, n) + (n < 8 ? l->to_ns - at : 0),
                     l->total_ns);
    for (uint32_t i = 0; i < n; i++) {
        assert_ptr_equal(ledger_part_at(kept, n, kept[i].from_ns), &kept[i]);
        assert_null(ledger_part_at(kept, n, kept[i].to_ns));
    }
}

/* Any nonsense of begins and ends still gives each nanosecond one category. */
static void random_records_sum(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        struct record_set s;
        struct ledger l;
        struct err e = {0};
        record_set_init(&s, LIMIT_ARENA_RUN_BYTES);
        const uint32_t n = 1 + (uint32_t)(next_random(&x) % 4);
        for (uint32_t p = 0; p < n; p++) {
            const int64_t start = (int64_t)(next_random(&x) % 5000);
            add_process(&s, start, start + (int64_t)(next_random(&x) % 3000), p % 2 == 1);
        }
        for (int k = 0; k < 60; k++) {
            add(&s, (uint32_t)(next_random(&x) % n),
                next_random(&x) % 2 == 0 ? RECORD_BEGIN : RECORD_END,
                (enum record_phase)(next_random(&x) % 14), (int64_t)(next_random(&x) % 9000),
                (int64_t)(next_random(&x) % 9));
            s.records[s.n_records - 1].thread = (uint32_t)(next_random(&x) % 4);
        }
        record_set_sort(&s);
        assert_true(ledger_build(&s, &l, &e));
        assert_true(ledger_check(&l));
        check_parts(&l, &x);
        record_set_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_steps_are_wasted),    cmocka_unit_test(running_step_is_in_progress),
        cmocka_unit_test(no_workload_is_said),      cmocka_unit_test(prefetching_does_not_block),
        cmocka_unit_test(threads_pair_their_own),   cmocka_unit_test(random_records_sum),
        cmocka_unit_test(a_runner_of_another_rank), cmocka_unit_test(a_runner_over_two_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
