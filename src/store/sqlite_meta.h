/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store's inside, shared by its files: one connection that writes, on a thread of its
 * own that puts all waiting changes into one commit, and a few connections that read. */
#ifndef TACHO_STORE_SQLITE_META_H
#define TACHO_STORE_SQLITE_META_H

#include <pthread.h>

#include "store/db.h"
#include "store/store.h"

#define SQLITE_READERS 4

/* A change: runs on the commit thread inside a transaction; false undoes it alone. */
typedef bool (*sqlite_change)(struct db *db, void *arg, struct err *e);

struct sqlite_waiting { /* on the stack of the thread that waits */
    sqlite_change change;
    void *arg;
    struct err *e;
    bool ok, done;
    struct sqlite_waiting *next;
};

struct sqlite_meta {
    struct store_meta meta; /* first */
    struct db writer;       /* of the commit thread alone, once it runs */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work, committed, reader_free;
    struct sqlite_waiting *first, **last;
    bool closing;
    struct db readers[SQLITE_READERS];
    bool reader_busy[SQLITE_READERS];
};

/* Waits until the change is committed; false when it, or the commit, failed. */
MUST_CHECK bool sqlite_commit(struct store_meta *m, sqlite_change change, void *arg, struct err *e);
/* A reading connection, to be given back. Waits for one. */
struct db *sqlite_reader_take(struct store_meta *m);
void sqlite_reader_give(struct store_meta *m, struct db *db);
MUST_CHECK bool sqlite_migrate(struct db *db, const char *path, struct err *e);

bool sqlite_ingest(struct store_meta *m, const struct store_ingest *in, struct store_ingested *out,
                   struct err *e);
bool sqlite_journal_get(struct store_meta *m, str id, struct arena *a, struct store_journal *out,
                        struct err *e);
bool sqlite_journals(struct store_meta *m, str run, struct arena *a, struct store_journal **out,
                     uint32_t *n, struct err *e);
bool sqlite_batches(struct store_meta *m, str run, int64_t after, uint64_t max_bytes,
                    struct arena *a, struct store_batch **out, uint32_t *n, struct err *e);
bool sqlite_last_batch(struct store_meta *m, str run, int64_t *out, struct err *e);
bool sqlite_file_followed(struct store_meta *m, str file, uint64_t *size_bytes, struct err *e);
bool sqlite_run_put(struct store_meta *m, const struct store_run *r, struct err *e);
bool sqlite_run_get(struct store_meta *m, str run, struct arena *a, struct store_run *out,
                    struct err *e);
bool sqlite_runs(struct store_meta *m, const struct store_run_query *q, struct arena *a,
                 struct store_run **out, uint32_t *n, struct err *e);
bool sqlite_runs_stale(struct store_meta *m, struct arena *a, str **out, uint32_t *n,
                       struct err *e);
bool sqlite_session_put(struct store_meta *m, const struct store_session *s,
                        const struct store_target *targets, uint32_t n, struct err *e);
bool sqlite_session_get(struct store_meta *m, str session, struct arena *a,
                        struct store_session *out, struct err *e);
bool sqlite_sessions(struct store_meta *m, str run, int64_t before_ns, str before, uint32_t limit,
                     struct arena *a, struct store_session **out, uint32_t *n, struct err *e);
bool sqlite_targets(struct store_meta *m, str session, struct arena *a, struct store_target **out,
                    uint32_t *n, struct err *e);
bool sqlite_job_add(struct store_meta *m, str kind, str subject, int64_t now_ns, int64_t *id,
                    struct err *e);
bool sqlite_job_claim(struct store_meta *m, int64_t now_ns, struct arena *a, struct store_job *out,
                      struct err *e);
bool sqlite_job_end(struct store_meta *m, int64_t id, str state, str error, int64_t now_ns,
                    struct err *e);
bool sqlite_job_get(struct store_meta *m, int64_t id, struct arena *a, struct store_job *out,
                    struct err *e);
bool sqlite_jobs_recover(struct store_meta *m, struct err *e);
bool sqlite_token_put(struct store_meta *m, const struct store_token *t, struct err *e);
bool sqlite_token_put_once(struct store_meta *m, const struct store_token *t,
                           struct store_token_request *r, struct err *e);
bool sqlite_token_find(struct store_meta *m, str hash, struct arena *a, struct store_token *out,
                       struct err *e);
bool sqlite_tokens(struct store_meta *m, struct arena *a, struct store_token **out, uint32_t *n,
                   struct err *e);
bool sqlite_token_delete(struct store_meta *m, int64_t id, struct err *e);
bool sqlite_blocks_put(struct store_meta *m, str run, int64_t batch,
                       const struct store_block *blocks, uint32_t n, struct err *e);
bool sqlite_blocks(struct store_meta *m, str run, str name, struct arena *a,
                   struct store_block **out, uint32_t *n, struct err *e);
bool sqlite_compacted(struct store_meta *m, str run, int64_t *batch, uint64_t *n_after,
                      struct err *e);

#endif
