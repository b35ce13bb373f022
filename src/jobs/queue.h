/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads that take jobs from the store and end them. A job that fails says why and is not
 * tried again; one that was running when the server died is (three times at most). Thread: any. */
#ifndef TACHO_JOBS_QUEUE_H
#define TACHO_JOBS_QUEUE_H

#include "store/store.h"

struct queue;
/* False and e when the job failed. Runs on a worker thread. */
typedef bool (*queue_fn)(void *ctx, const struct store_job *job, struct err *e);

/* Owned. Jobs that a dead server left running are queued again first. */
struct queue *queue_open(struct store_meta *meta, unsigned n_threads, queue_fn fn, void *ctx,
                         struct err *e);
/* Waits for running jobs. NULL allowed. */
void queue_close(struct queue *q);
/* Adds a job unless the same one waits already. */
MUST_CHECK bool queue_add(struct queue *q, str kind, str subject, int64_t *id, struct err *e);

#endif
