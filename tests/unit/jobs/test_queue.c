/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "jobs/queue.h"

#define N_JOBS 120
#define N_ADDERS 4

static char dir[64], path[128];
static struct store_meta *meta;
static atomic_int ran[N_JOBS], n_ran;

static int setup(void **state)
{
    (void)state;
    struct err e = {0};
    memcpy(dir, "/tmp/tacho-queue-XXXXXX", sizeof "/tmp/tacho-queue-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/tacho.db", dir);
    meta = sqlite_open(path, &e);
    assert_non_null(meta);
    for (int i = 0; i < N_JOBS; i++)
        ran[i] = 0;
    n_ran = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct err e = {0};
    meta->ops->close(meta);
    return dir_remove(dir, &e) ? 0 : -1;
}

/* Subjects are numbers; each seventh fails. */
static bool count_job(void *ctx, const struct store_job *job, struct err *e)
{
    uint64_t i;
    (void)ctx;
    if (!str_to_u64(job->subject, &i) || i >= N_JOBS)
        return err_set(e, ERR_INTERNAL, "subject '%.*s'", STR_ARG(job->subject));
    atomic_fetch_add(&ran[i], 1);
    atomic_fetch_add(&n_ran, 1);
    return i % 7 != 0 || err_set(e, ERR_PARSE, "job %d fails", (int)i);
}

static void wait_for(int n)
{
    for (int i = 0; i < 6000 && n_ran < n; i++)
        usleep(10000);
    assert_int_equal(n_ran, n);
}

struct adder {
    struct queue *q;
    int first;
};

static void *add_jobs(void *arg)
{
    const struct adder *a = arg;
    for (int i = a->first; i < N_JOBS; i += N_ADDERS) {
        struct err e = {0};
        char subject[16];
        int64_t id;
        snprintf(subject, sizeof subject, "%d", i);
        must(queue_add(a->q, S("count"), str_from(subject), &id, &e) && id > 0);
    }
    return NULL;
}

static void job_is(int64_t id, const char *state, const char *error, uint32_t tries)
{
    struct err e = {0};
    struct arena a;
    struct store_job job;
    arena_init(&a, "job", 0);
    assert_true(meta->ops->job_get(meta, id, &a, &job, &e));
    assert_true(str_eq(job.state, str_from(state)));
    assert_true(str_find(job.error, str_from(error)) == 0);
    assert_int_equal(job.tries, tries);
    arena_release(&a);
}

/* Several threads add, several work: every job runs once, and closing waits for those that run. */
static void runs_each_once(void **state)
{
    (void)state;
    struct err e = {0};
    struct queue *q = queue_open(meta, 4, count_job, NULL, &e);
    assert_non_null(q);
    pthread_t threads[N_ADDERS];
    struct adder adders[N_ADDERS];
    for (int i = 0; i < N_ADDERS; i++) {
        adders[i] = (struct adder){q, i};
        assert_int_equal(pthread_create(&threads[i], NULL, add_jobs, &adders[i]), 0);
    }
    for (int i = 0; i < N_ADDERS; i++)
        pthread_join(threads[i], NULL);
    wait_for(N_JOBS);
    queue_close(q);
    for (int i = 0; i < N_JOBS; i++)
        assert_int_equal(ran[i], 1);
    int n_failed = 0;
    for (int64_t id = 1; id <= N_JOBS; id++) {
        struct arena a;
        struct store_job job;
        arena_init(&a, "job", 0);
        assert_true(meta->ops->job_get(meta, id, &a, &job, &e));
        const bool fails = strtol(job.subject.p, NULL, 10) % 7 == 0;
        job_is(id, fails ? "failed" : "done", fails ? "job " : "", 1);
        n_failed += fails;
        arena_release(&a);
    }
    assert_int_equal(n_failed, (N_JOBS + 6) / 7);
}

static void keeps_one_of_the_same(void **state)
{
    (void)state;
    struct err e = {0};
    int64_t first, again, other;
    assert_true(meta->ops->job_add(meta, S("count"), S("1"), 1, &first, &e));
    assert_true(meta->ops->job_add(meta, S("count"), S("1"), 2, &again, &e));
    assert_true(meta->ops->job_add(meta, S("count"), S("2"), 3, &other, &e));
    assert_int_equal(again, first);
    assert_int_not_equal(other, first);
    struct queue *q = queue_open(meta, 1, count_job, NULL, &e);
    wait_for(2);
    queue_close(q);
    assert_int_equal(ran[1], 1);
    assert_int_equal(ran[2], 1);
}

/* A server that dies with a job takes it up again when it is back, until it died of it three times. */
static void takes_up_what_a_dead_server_left(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    struct store_job job;
    int64_t id;
    arena_init(&a, "job", 0);
    assert_true(meta->ops->job_add(meta, S("count"), S("3"), 1, &id, &e));
    assert_true(meta->ops->job_claim(meta, 2, &a, &job, &e)); /* and never ended */
    job_is(id, "running", "", 1);
    struct queue *q = queue_open(meta, 2, count_job, NULL, &e);
    wait_for(1);
    queue_close(q);
    job_is(id, "done", "", 2);
    assert_true(meta->ops->job_add(meta, S("count"), S("4"), 3, &id, &e));
    for (int i = 0; i < 3; i++) {
        assert_true(meta->ops->job_claim(meta, 4, &a, &job, &e));
        assert_true(meta->ops->jobs_recover(meta, &e));
    }
    assert_false(meta->ops->job_claim(meta, 5, &a, &job, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    job_is(id, "failed", "", 3);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_each_once, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_one_of_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_up_what_a_dead_server_left, setup, teardown),
    };
    return cmocka_run_group_tests_name("jobs/queue", tests, NULL, NULL);
}
