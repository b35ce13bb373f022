/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on facts made by hand: what fires, with which priority, what is folded, what abstains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "report/build.h"
#include "report/print.h"

#define MS 1000000000ULL /* in picoseconds */
#define N_STEPS 10

static struct step_fact steps[N_STEPS];
static struct device_fact device = {.kind = DEVICE_GPU, .name = STR_INIT("/device:GPU:0")};

/* As devices that work in the same part of each step, and waits in the same part of each. */
static void in_steps(struct profile_facts *f, uint64_t busy_ps, uint64_t input_ps)
{
    f->busy_ps.ps = busy_ps * N_STEPS;
    f->idle_ps.ps = f->window_ps.ps - f->busy_ps.ps;
    f->input_wait_ps.ps = input_ps * N_STEPS;
    for (uint32_t i = 0; i < N_STEPS; i++) {
        steps[i].device_busy_ps = (struct fact_ps){true, busy_ps};
        steps[i].input_ps = (struct fact_ps){true, input_ps};
    }
}

static struct profile_facts healthy(void)
{
    struct profile_facts f = {.devices = &device,
                              .n_devices = 1,
                              .steps = steps,
                              .n_steps = N_STEPS,
                              .n_hosts = 1,
                              .has_hlo = true,
                              .has_steps = true,
                              .has_ops = true};
    for (uint32_t i = 0; i < N_STEPS; i++)
        steps[i] = (struct step_fact){
            .host = S("h"), .number = i, .start_ps = i * 100 * MS, .dur_ps = 100 * MS};
    f.window_ps = (struct fact_ps){true, 1000 * MS};
    f.busy_ps.known = f.idle_ps.known = f.input_wait_ps.known = true;
    f.median_step_ps = (struct fact_ps){true, 100 * MS};
    f.host_compile_ps = f.host_compile_idle_ps = (struct fact_ps){true, 0};
    in_steps(&f, 98 * MS, MS / 2);
    return f;
}

static void build(struct report *r, const struct profile_facts *f)
{
    struct err e = {0};
    const struct report_input in = {.subject = S("Profile p"), .facts = f, .profile = S("p")};
    assert_true(report_build(r, &in, &e));
}

static const struct finding *find(const struct report *r, str id)
{
    for (uint32_t i = 0; i < r->n_findings; i++)
        if (str_eq(r->findings[i].id, id))
            return &r->findings[i];
    return NULL;
}

static bool abstains(const struct report *r, str id)
{
    for (uint32_t i = 0; i < r->n_abstained; i++)
        if (str_eq(r->abstained[i].id, id))
            return true;
    return false;
}

static void healthy_profile_is_optimal(void **state)
{
    (void)state;
    struct report r;
    const struct profile_facts f = healthy();
    build(&r, &f);
    assert_true(r.optimal);
    assert_int_equal(r.n_findings, 0);
    report_release(&r);
}

static void input_explains_gaps(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    in_steps(&f, 70 * MS, 29 * MS);
    build(&r, &f);
    const struct finding *input = find(&r, S("input-bound"));
    assert_non_null(input);
    assert_int_equal(input->priority, FINDING_P0);
    assert_true(str_eq(input->impact.metric, S("step_time")));
    assert_true(input->impact.amount > 0.0289 && input->impact.amount < 0.0291);
    assert_int_equal(input->n_explains, 1);
    assert_null(find(&r, S("gpu-gaps")));
    assert_false(r.optimal);
    report_release(&r);
}

static void idle_without_cause_is_gaps(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    in_steps(&f, 85 * MS, 0);
    steps[0].device_busy_ps.ps = 40 * MS; /* cut by the capture: not a step to judge by */
    f.busy_ps.ps -= 45 * MS;
    f.idle_ps.ps += 45 * MS;
    build(&r, &f);
    const struct finding *gaps = find(&r, S("gpu-gaps"));
    assert_non_null(gaps);
    assert_int_equal(gaps->priority, FINDING_P1);
    assert_true(str_eq(gaps->impact.metric, S("step_time")));
    assert_true(gaps->impact.amount > 0.01499 && gaps->impact.amount < 0.01501);
    assert_null(find(&r, S("input-bound")));
    report_release(&r);
}

/* Steps of 10 ms that begin every 100 ms, devices busy for 9 ms of each: what lies between the steps is no time
 * of a step. */
static void idle_between_steps_is_of_the_window(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    for (uint32_t i = 0; i < N_STEPS; i++)
        steps[i].dur_ps = 10 * MS;
    f.median_step_ps.ps = 10 * MS;
    in_steps(&f, 9 * MS, 0);
    build(&r, &f);
    const struct finding *gaps = find(&r, S("gpu-gaps"));
    assert_non_null(gaps);
    assert_true(str_eq(gaps->impact.metric, S("profiled")));
    assert_true(gaps->impact.amount > 0.9099 && gaps->impact.amount < 0.9101);
    assert_true(gaps->impact.percent > 90.99 && gaps->impact.percent < 91.01);
    report_release(&r);
}

/* As above, and of each step 0.9 ms wait for input: 9 % of a step, and 0.9 % of the window. */
static void waits_inside_steps_do_not_explain_what_is_between(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    for (uint32_t i = 0; i < N_STEPS; i++)
        steps[i].dur_ps = 10 * MS;
    f.median_step_ps.ps = 10 * MS;
    in_steps(&f, 9 * MS, MS * 9 / 10);
    build(&r, &f);
    const struct finding *input = find(&r, S("input-bound")), *gaps = find(&r, S("gpu-gaps"));
    assert_non_null(input);
    assert_true(input->impact.amount > 0.00089 && input->impact.amount < 0.00091);
    assert_int_equal(input->n_explains, 0);
    assert_non_null(gaps);
    assert_true(gaps->impact.amount > 0.9009 && gaps->impact.amount < 0.9011);
    report_release(&r);
}

/* The copy engine is busy, but nothing computes: such a wait is none of the idle time. */
static void an_exposed_copy_is_a_wait_for_input(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    in_steps(&f, 98 * MS, 50 * MS);
    build(&r, &f);
    const struct finding *input = find(&r, S("input-bound"));
    assert_non_null(input);
    assert_true(input->impact.amount > 0.0499 && input->impact.amount < 0.0501);
    assert_int_equal(input->n_explains, 0);
    report_release(&r);
}

static void compiles_are_named(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    in_steps(&f, 92 * MS, 0);
    f.host_compile_ps.ps = 200 * MS; /* most of it beside devices that work */
    f.host_compile_idle_ps.ps = 70 * MS;
    f.n_compiles_after_warmup = 4;
    build(&r, &f);
    const struct finding *compile = find(&r, S("recompilation"));
    assert_non_null(compile);
    assert_int_equal(compile->priority, FINDING_P1);
    assert_true(str_eq(compile->impact.metric, S("profiled")));
    assert_true(compile->impact.amount > 0.0699 && compile->impact.amount < 0.0701);
    report_release(&r);
}

static void unknown_is_not_zero(void **state)
{
    (void)state;
    struct report r;
    const struct profile_facts nothing = {.n_hosts = 1};
    build(&r, &nothing);
    assert_false(r.optimal);
    assert_int_equal(r.n_findings, 1);
    assert_true(str_eq(r.findings[0].id, S("profile-incomplete")));
    assert_int_equal(r.findings[0].priority, FINDING_P1);
    assert_true(abstains(&r, S("input-bound")) && abstains(&r, S("gpu-gaps")) &&
                abstains(&r, S("recompilation")));
    report_release(&r);
}

/* Two steps carry no P0, whatever the share. */
static void few_steps_cap_the_priority(void **state)
{
    (void)state;
    struct report r;
    struct profile_facts f = healthy();
    in_steps(&f, 40 * MS, 0);
    f.n_steps = 2;
    build(&r, &f);
    assert_int_equal(find(&r, S("gpu-gaps"))->priority, FINDING_P1);
    assert_non_null(find(&r, S("profile-incomplete")));
    report_release(&r);
}

static void missing_ranks_are_said(void **state)
{
    (void)state;
    struct report r;
    struct record_set set;
    struct err e = {0};
    uint32_t world;
    const struct profile_facts f = healthy();
    record_set_init(&set, 0);
    const int32_t ranks[] = {1, 0, 1, -1}; /* rank 1 twice: it was started again */
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct record_process *p = record_set_add_process(&set);
        *p = (struct record_process){.rank = ranks[i], .runner = ranks[i] < 0};
    }
    assert_int_equal(record_set_missing_ranks(&set, &world), 0); /* nobody tells the world's size */
    set.processes[1].world_size = 4;
    assert_int_equal(record_set_missing_ranks(&set, &world), 2);
    assert_int_equal(world, 4);
    const struct report_input in = {.subject = S("run x"), .facts = &f, .set = &set};
    assert_true(report_build(&r, &in, &e));
    const struct finding *said = find(&r, S("profile-incomplete"));
    assert_non_null(said);
    assert_non_null(memmem(said->what.p, said->what.n, "2 of the run's 4 ranks", 22));
    report_release(&r);
    record_set_release(&set);
}

static void hostile_text_is_escaped(void **state)
{
    (void)state;
    struct report r;
    struct buf page;
    struct err e = {0};
    struct profile_facts f = healthy();
    f.top_ops[0] = (struct op_fact){.name = S("<script>alert(1)</script>\x1b[31m"), .self_ps = 5};
    f.n_top_ops = 1;
    f.op_self_ps = 5;
    const struct report_input in = {.subject = S("\"><img src=x>"), .facts = &f, .profile = S("p")};
    assert_true(report_build(&r, &in, &e));
    buf_init(&page, LIMIT_HTTP_BODY_BYTES);
    assert_true(report_print_html(&r, NULL, &page, &e));
    assert_true(str_find(buf_str(&page), S("<script")) < 0);
    assert_true(str_find(buf_str(&page), S("<img")) < 0);
    assert_true(str_find(buf_str(&page), S("\x1b")) < 0);
    assert_true(str_find(buf_str(&page), S("&lt;script&gt;")) > 0);
    buf_release(&page);
    report_release(&r);
}

/* A run beside the profile: what its ledger says of the profiled window. */
static bool gaps_of_run(enum ledger_category rest, bool has_epoch, int64_t from_ns)
{
    const int64_t second = 1000000000;
    struct ledger_segment segments[] = {
        {from_ns, from_ns + second * 8 / 10, LEDGER_PRODUCTIVE_STEP, {0}, 1, 1},
        {from_ns + second * 8 / 10, from_ns + second, rest, {0}, -1, 1}};
    const struct ledger l = {.segments = segments,
                             .n_segments = 2,
                             .from_ns = from_ns,
                             .to_ns = from_ns + second,
                             .total_ns = second};
    struct record_set set;
    struct report r;
    struct err e = {0};
    struct profile_facts f = healthy();
    in_steps(&f, 80 * MS, 0);
    f.has_epoch = has_epoch;
    f.window_from_ns = 5 * second;
    record_set_init(&set, 1 << 20);
    const struct report_input in = {
        .subject = S("Run r"), .ledger = &l, .set = &set, .facts = &f, .profile = S("p")};
    assert_true(report_build(&r, &in, &e));
    const bool fired = find(&r, S("gpu-gaps")) != NULL;
    report_release(&r);
    record_set_release(&set);
    return fired;
}

static void idle_that_the_run_recorded_has_a_cause(void **state)
{
    (void)state;
    const int64_t same = 5000000000, earlier = 1000000000;
    assert_false(gaps_of_run(LEDGER_DATA_LOADING_SYNC, true, same));
    assert_false(gaps_of_run(LEDGER_CHECKPOINT_SAVE, true, same));
    assert_true(gaps_of_run(LEDGER_OTHER, true, same));
    assert_true(
        gaps_of_run(LEDGER_DATA_LOADING_SYNC, false, same)); /* no common clock: nothing is known */
    assert_true(gaps_of_run(LEDGER_DATA_LOADING_SYNC, true, earlier));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_profile_is_optimal),
        cmocka_unit_test(input_explains_gaps),
        cmocka_unit_test(idle_without_cause_is_gaps),
        cmocka_unit_test(idle_between_steps_is_of_the_window),
        cmocka_unit_test(waits_inside_steps_do_not_explain_what_is_between),
        cmocka_unit_test(an_exposed_copy_is_a_wait_for_input),
        cmocka_unit_test(compiles_are_named),
        cmocka_unit_test(unknown_is_not_zero),
        cmocka_unit_test(few_steps_cap_the_priority),
        cmocka_unit_test(missing_ranks_are_said),
        cmocka_unit_test(hostile_text_is_escaped),
        cmocka_unit_test(idle_that_the_run_recorded_has_a_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
