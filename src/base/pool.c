/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/map.h"

struct task {
    pool_fn fn;
    void *arg;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a task came, or the pool closes */
    pthread_cond_t idle; /* the queue is empty and no task runs */
    struct task *queue;  /* ring of queue_max */
    unsigned queue_max, head, n_queued, n_running, n_threads;
    bool closing;
    pthread_t threads[];
};

static void *work(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->n_queued == 0 && !p->closing)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->n_queued == 0)
            break;
        const struct task t = p->queue[p->head];
        p->head = (p->head + 1) % p->queue_max;
        p->n_queued--;
        p->n_running++;
        pthread_mutex_unlock(&p->lock);
        t.fn(t.arg);
        pthread_mutex_lock(&p->lock);
        p->n_running--;
        if (p->n_queued == 0 && p->n_running == 0)
            pthread_cond_broadcast(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void start_thread(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
{
    if (pthread_create(thread, NULL, fn, arg) != 0) {
        fprintf(stderr, "tacho: cannot start a thread for '%s'\n", name);
        abort();
    }
    char short_name[16]; /* what the kernel keeps */
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(*thread, short_name);
}

struct pool *pool_new(const char *name, unsigned n_threads, unsigned queue_max)
{
    must(n_threads >= 1);
    struct pool *p = map_alloc(1, sizeof *p + n_threads * sizeof *p->threads);
    p->queue_max = queue_max < 1 ? 1 : queue_max;
    p->queue = map_alloc(p->queue_max, sizeof *p->queue);
    p->n_threads = n_threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    for (unsigned i = 0; i < n_threads; i++)
        start_thread(&p->threads[i], name, work, p);
    return p;
}

bool pool_submit(struct pool *p, pool_fn fn, void *arg)
{
    pthread_mutex_lock(&p->lock);
    const bool taken = !p->closing && p->n_queued < p->queue_max;
    if (taken) {
        p->queue[(p->head + p->n_queued) % p->queue_max] = (struct task){fn, arg};
        p->n_queued++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return taken;
}

void pool_drain(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->n_queued > 0 || p->n_running > 0)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->idle);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    map_free(p->queue);
    map_free(p);
}

struct loop {
    _Atomic size_t next;
    size_t n;
    void (*fn)(void *arg, size_t i);
    void *arg;
};

static void *run_loop(void *arg)
{
    struct loop *l = arg;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n;)
        l->fn(l->arg, i);
    return NULL;
}

void pool_for(unsigned n_threads, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    struct loop l = {.n = n, .fn = fn, .arg = arg};
    pthread_t threads[64];
    unsigned n_more = n_threads > 64 ? 63 : n_threads > 0 ? n_threads - 1 : 0;
    if (n_more >= n)
        n_more = n == 0 ? 0 : (unsigned)n - 1;
    for (unsigned i = 0; i < n_more; i++)
        start_thread(&threads[i], "loop", run_loop, &l);
    run_loop(&l);
    for (unsigned i = 0; i < n_more; i++)
        pthread_join(threads[i], NULL);
}

unsigned pool_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : (unsigned)n;
}
