/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, decoded: the record set and the ledger of each run that was asked for lately.
 *
 *     struct run_view *v = run_view_open(s->runs, run, e);     waits for its turn, brings it up to
 * date
 *     ... v->decoder.set, v->ledger ...
 *     run_view_close(v);
 *
 * A view is made from the run's batches and grows with them; between open and close it belongs to
 * one thread. When all views together are larger than RUN_CACHE_BYTES, those that nobody uses go.
 */
#ifndef TACHO_SERVER_RUN_CACHE_H
#define TACHO_SERVER_RUN_CACHE_H

#include <pthread.h>

#include "model/ledger.h"
#include "server/server_inside.h"
#include "store/run_decode.h"

#define RUN_CACHE_BYTES (1ull << 30)

struct run_view {
    char run[256];
    struct run_decoder decoder; /* decoder.set: the records; decoder.batch: the newest in it */
    struct ledger ledger;
    bool has_ledger; /* else why_no_ledger says why */
    struct err why_no_ledger;
    /* private: */
    struct run_cache *cache;
    pthread_mutex_t lock;
    uint32_t n_users;
    uint64_t used_at;
    bool is_marked;
    struct arena_mark mark; /* what comes after it belongs to the ledger */
    struct note *notes;     /* as they were before the ledger was built */
    uint32_t n_notes;
    struct run_view *next;
};

struct run_cache *run_cache_open(struct server *s);
void run_cache_close(struct run_cache *c);
/* NULL and ERR_NOT_FOUND when there is no such run. */
struct run_view *run_view_open(struct run_cache *c, str run, struct err *e);
void run_view_close(struct run_view *v);

/* A view of a run folder <data>/runs/<run>, without a server or a cache: its journals are read.
 * Released by run_view_unload, which is not called when this failed. */
MUST_CHECK bool run_view_load(struct run_view *v, const char *dir, str run, struct err *e);
void run_view_unload(struct run_view *v);

/* A run has new batches: wakes those who wait (streams, summaries). Defined by the keeper. */
void run_cache_changed(struct run_cache *c, str run);
/* Sets *changes to the number of changes so far; waits until it is another than before, or for ms.
 */
void run_cache_wait(struct run_cache *c, uint64_t *changes, unsigned ms);

#endif
