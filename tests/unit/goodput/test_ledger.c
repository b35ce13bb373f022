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
    assert_int_equal(l.disruptions, 1);
    assert_int_equal(l.max_productive_step, 3);
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
    assert_false(ledger_build(&s, &l, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    record_set_release(&s);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
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
        for (int k = 0; k < 60; k++)
            add(&s, (uint32_t)(next_random(&x) % n),
                next_random(&x) % 2 == 0 ? RECORD_BEGIN : RECORD_END,
                (enum record_phase)(next_random(&x) % 14), (int64_t)(next_random(&x) % 9000),
                (int64_t)(next_random(&x) % 9));
        record_set_sort(&s);
        assert_true(ledger_build(&s, &l, &e));
        assert_true(ledger_check(&l));
        record_set_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_steps_are_wasted),
        cmocka_unit_test(running_step_is_in_progress),
        cmocka_unit_test(no_workload_is_said),
        cmocka_unit_test(random_records_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
