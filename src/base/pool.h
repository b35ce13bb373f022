/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed pool of threads with a bounded queue. Work that the queue cannot hold is refused, so
 * that an event loop never blocks. Thread: any may submit. */
#ifndef TACHO_BASE_POOL_H
#define TACHO_BASE_POOL_H

#include "base/err.h"

struct pool;
typedef void (*pool_fn)(void *arg);

/* n_threads >= 1; queue_max tasks may wait. Returns owned; thread creation failure is fatal. */
struct pool *pool_new(const char *name, unsigned n_threads, unsigned queue_max);
/* False when the queue is full or the pool is closing: the caller keeps arg. */
MUST_CHECK bool pool_submit(struct pool *p, pool_fn fn, void *arg);
/* Waits until the queue is empty and no task runs. */
void pool_drain(struct pool *p);
/* Drains, joins, frees. NULL is allowed. */
void pool_free(struct pool *p);
/* Calls fn(arg, i) for i in [0, n) on up to n_threads threads and waits. */
void pool_for(unsigned n_threads, size_t n, void (*fn)(void *arg, size_t i), void *arg);
unsigned pool_cpu_count(void); /* processors this process may use, >= 1 */

#endif
