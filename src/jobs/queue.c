/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "jobs"
#include "jobs/queue.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"

#define THREADS_MAX 64
#define POLL_S 10 /* a job may come from another server of the same store */

struct queue {
    struct store_meta *meta;
    queue_fn fn;
    void *ctx;
    pthread_t threads[THREADS_MAX];
    unsigned n_threads;
    pthread_mutex_t lock;
    pthread_cond_t work;
    uint64_t n_added;
    bool closing;
};

static void run_job(struct queue *q, const struct store_job *job)
{
    struct err e = {.pos = ERR_NO_POS}, failed = {0};
    const bool ok = q->fn(q->ctx, job, &e);
    if (!ok)
        log_warn("job %lld (%.*s of '%.*s') failed: %s", (long long)job->id, STR_ARG(job->kind),
                 STR_ARG(job->subject), e.msg);
    if (!q->meta->ops->job_end(q->meta, job->id, ok ? S("done") : S("failed"), str_from(e.msg),
                               clock_wall_ns(), &failed))
        log_error("cannot end job %lld: %s", (long long)job->id, failed.msg);
}

static void wait_for_work(struct queue *q, uint64_t *seen)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += POLL_S;
    pthread_mutex_lock(&q->lock);
    while (!q->closing && *seen == q->n_added)
        if (pthread_cond_timedwait(&q->work, &q->lock, &until) != 0)
            break;
    *seen = q->n_added;
    pthread_mutex_unlock(&q->lock);
}

static bool is_closing(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    const bool closing = q->closing;
    pthread_mutex_unlock(&q->lock);
    return closing;
}

static void *work(void *arg)
{
    struct queue *q = arg;
    uint64_t seen = 0;
    while (!is_closing(q)) {
        struct err e = {0};
        struct arena a;
        struct store_job job;
        arena_init(&a, "job", 0);
        if (q->meta->ops->job_claim(q->meta, clock_wall_ns(), &a, &job, &e)) {
            run_job(q, &job);
        } else {
            if (e.code != ERR_NOT_FOUND)
                log_error("cannot take a job: %s", e.msg);
            wait_for_work(q, &seen);
        }
        arena_release(&a);
    }
    return NULL;
}

struct queue *queue_open(struct store_meta *meta, unsigned n_threads, queue_fn fn, void *ctx,
                         struct err *e)
{
    if (!meta->ops->jobs_recover(meta, e))
        return NULL;
    struct queue *q = map_alloc(1, sizeof *q);
    q->meta = meta;
    q->fn = fn;
    q->ctx = ctx;
    q->n_threads = n_threads == 0 ? 1 : n_threads > THREADS_MAX ? THREADS_MAX : n_threads;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    for (unsigned i = 0; i < q->n_threads; i++)
        must(pthread_create(&q->threads[i], NULL, work, q) == 0);
    return q;
}

void queue_close(struct queue *q)
{
    if (q == NULL)
        return;
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->n_threads; i++)
        pthread_join(q->threads[i], NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->work);
    free(q);
}

bool queue_add(struct queue *q, str kind, str subject, int64_t *id, struct err *e)
{
    if (!q->meta->ops->job_add(q->meta, kind, subject, clock_wall_ns(), id, e))
        return false;
    pthread_mutex_lock(&q->lock);
    q->n_added++;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    return true;
}
