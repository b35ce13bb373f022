/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, migration, the commit thread, the readers. */
#include "base/file.h"
#include "base/map.h"
#include "store/sqlite_meta.h"

#define APPLICATION_ID 0x7461636f /* "taco" in the database's header: one of ours */

static const struct {
    int version;
    const char *sql;
} migrations[] = {
#define X(version, sql) {version, sql},
#include "store/migrations.def"
#undef X
};
#define N_MIGRATIONS (sizeof migrations / sizeof migrations[0])

static bool pragma_get(struct db *db, const char *sql, int64_t *out, struct err *e)
{
    struct db_query q;
    if (!db_begin(&q, db, sql, e))
        return false;
    *out = db_step(&q) ? db_get_i64(&q, 0) : 0;
    return db_end(&q, e);
}

static bool migrate_one(struct db *db, int version, const char *sql, struct err *e)
{
    char set[96];
    snprintf(set, sizeof set, "PRAGMA user_version=%d; PRAGMA application_id=%d", version,
             APPLICATION_ID);
    struct err ignored = {0};
    if (!db_exec(db, "BEGIN IMMEDIATE", e))
        return false;
    if (db_exec(db, sql, e) && db_exec(db, set, e) && db_exec(db, "COMMIT", e))
        return true;
    (void)!db_exec(db, "ROLLBACK", &ignored);
    return err_wrap(e, "cannot bring the database to version %d", version);
}

bool sqlite_migrate(struct db *db, const char *path, struct err *e)
{
    int64_t version, application, n_tables;
    const int newest = migrations[N_MIGRATIONS - 1].version;
    if (!pragma_get(db, "PRAGMA user_version", &version, e) ||
        !pragma_get(db, "PRAGMA application_id", &application, e) ||
        !pragma_get(db, "SELECT count(*) FROM sqlite_schema", &n_tables, e))
        return err_wrap(e, "'%s'", path);
    if (application != APPLICATION_ID && n_tables > 0)
        return err_set(e, ERR_PARSE, "'%s' is a database, but not one of tacho", path);
    if (version > newest) {
        err_set(e, ERR_TOO_NEW, "'%s' has version %d, this tacho knows versions up to %d", path,
                (int)version, newest);
        return err_hint(e, "use the tacho that made it, or a newer one");
    }
    for (size_t i = 0; i < N_MIGRATIONS; i++)
        if (migrations[i].version > version &&
            !migrate_one(db, migrations[i].version, migrations[i].sql, e))
            return err_wrap(e, "'%s'", path);
    return true;
}

static bool change_one(struct db *db, struct sqlite_waiting *w)
{
    struct err ignored = {0};
    if (!db_exec(db, "SAVEPOINT one", w->e))
        return false;
    if (w->change(db, w->arg, w->e) && db_exec(db, "RELEASE one", w->e))
        return true;
    (void)!db_exec(db, "ROLLBACK TO one; RELEASE one", &ignored);
    return false;
}

/* Everything that waits, in one transaction. Whoever failed alone keeps its own error. */
static void commit_all(struct db *db, struct sqlite_waiting *list)
{
    struct err e = {0}, ignored = {0};
    bool ok = db_is_in_place(db, &e) && db_exec(db, "BEGIN IMMEDIATE", &e);
    for (struct sqlite_waiting *w = list; ok && w != NULL; w = w->next)
        w->ok = change_one(db, w);
    ok = ok && db_exec(db, "COMMIT", &e);
    if (ok)
        return;
    (void)!db_exec(db, "ROLLBACK", &ignored);
    for (struct sqlite_waiting *w = list; w != NULL; w = w->next) {
        if (w->ok || w->e->code == ERR_NONE)
            *w->e = e;
        w->ok = false;
    }
}

static void *commit_loop(void *arg)
{
    struct sqlite_meta *m = arg;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        while (m->first == NULL && !m->closing)
            pthread_cond_wait(&m->work, &m->lock);
        struct sqlite_waiting *list = m->first;
        if (list == NULL)
            break;
        m->first = NULL;
        m->last = &m->first;
        pthread_mutex_unlock(&m->lock);
        commit_all(&m->writer, list);
        pthread_mutex_lock(&m->lock);
        for (struct sqlite_waiting *w = list, *next; w != NULL; w = next) {
            next = w->next; /* w may be gone as soon as it is done */
            w->done = true;
        }
        pthread_cond_broadcast(&m->committed);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

bool sqlite_commit(struct store_meta *meta, sqlite_change change, void *arg, struct err *e)
{
    struct sqlite_meta *m = (struct sqlite_meta *)meta;
    struct sqlite_waiting w = {.change = change, .arg = arg, .e = e};
    err_clear(e);
    pthread_mutex_lock(&m->lock);
    if (m->closing) {
        pthread_mutex_unlock(&m->lock);
        return err_set(e, ERR_UNAVAILABLE, "the database is being closed");
    }
    *m->last = &w;
    m->last = &w.next;
    pthread_cond_signal(&m->work);
    while (!w.done)
        pthread_cond_wait(&m->committed, &m->lock);
    pthread_mutex_unlock(&m->lock);
    return w.ok;
}

struct db *sqlite_reader_take(struct store_meta *meta)
{
    struct sqlite_meta *m = (struct sqlite_meta *)meta;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        for (unsigned i = 0; i < SQLITE_READERS; i++) {
            if (m->reader_busy[i])
                continue;
            m->reader_busy[i] = true;
            pthread_mutex_unlock(&m->lock);
            return &m->readers[i];
        }
        pthread_cond_wait(&m->reader_free, &m->lock);
    }
}

void sqlite_reader_give(struct store_meta *meta, struct db *db)
{
    struct sqlite_meta *m = (struct sqlite_meta *)meta;
    pthread_mutex_lock(&m->lock);
    m->reader_busy[db - m->readers] = false;
    pthread_cond_signal(&m->reader_free);
    pthread_mutex_unlock(&m->lock);
}

/* The version, written once more as it is: a commit of a page, as any other. */
static bool write_version(struct db *db, void *arg, struct err *e)
{
    char set[64];
    int64_t version;
    (void)arg;
    if (!pragma_get(db, "PRAGMA user_version", &version, e))
        return false;
    snprintf(set, sizeof set, "PRAGMA user_version=%d", (int)version);
    return db_exec(db, set, e);
}

static bool sqlite_ping(struct store_meta *m, struct err *e)
{
    return sqlite_commit(m, write_version, NULL, e);
}

static void sqlite_close(struct store_meta *meta)
{
    struct sqlite_meta *m = (struct sqlite_meta *)meta;
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->closing = true;
    pthread_cond_signal(&m->work);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    for (unsigned i = 0; i < SQLITE_READERS; i++)
        db_close(&m->readers[i]);
    db_close(&m->writer);
    free(m);
}

static const struct store_meta_ops sqlite_ops = {
    .close = sqlite_close,
    .ping = sqlite_ping,
    .ingest = sqlite_ingest,
    .journal_get = sqlite_journal_get,
    .journals = sqlite_journals,
    .batches = sqlite_batches,
    .last_batch = sqlite_last_batch,
    .file_followed = sqlite_file_followed,
    .run_put = sqlite_run_put,
    .run_get = sqlite_run_get,
    .runs = sqlite_runs,
    .runs_stale = sqlite_runs_stale,
    .session_put = sqlite_session_put,
    .session_get = sqlite_session_get,
    .sessions = sqlite_sessions,
    .targets = sqlite_targets,
    .job_add = sqlite_job_add,
    .job_claim = sqlite_job_claim,
    .job_end = sqlite_job_end,
    .job_get = sqlite_job_get,
    .jobs_recover = sqlite_jobs_recover,
    .token_put = sqlite_token_put,
    .token_put_once = sqlite_token_put_once,
    .token_find = sqlite_token_find,
    .tokens = sqlite_tokens,
    .token_delete = sqlite_token_delete,
    .blocks_put = sqlite_blocks_put,
    .blocks = sqlite_blocks,
    .compacted = sqlite_compacted,
};

static bool open_all(struct sqlite_meta *m, const char *path, struct err *e)
{
    if (!db_open(&m->writer, path, e) || !sqlite_migrate(&m->writer, path, e))
        return false;
    for (unsigned i = 0; i < SQLITE_READERS; i++)
        if (!db_open(&m->readers[i], path, e))
            return false;
    return true;
}

static bool is_local(const char *path, struct err *e)
{
    struct arena a;
    arena_init(&a, "database path", 0);
    const bool remote = dir_is_remote(arena_cstr(&a, path_dir(str_from(path))));
    arena_release(&a);
    if (!remote)
        return true;
    err_set(e, ERR_USAGE, "'%s' is on a network file system, where SQLite cannot keep its promises",
            path);
    return err_hint(e, "use a data folder on a local disk for the server");
}

struct store_meta *sqlite_open(const char *path, struct err *e)
{
    if (!is_local(path, e))
        return NULL;
    struct sqlite_meta *m = map_alloc(1, sizeof *m);
    m->meta.ops = &sqlite_ops;
    m->last = &m->first;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->work, NULL);
    pthread_cond_init(&m->committed, NULL);
    pthread_cond_init(&m->reader_free, NULL);
    if (open_all(m, path, e)) {
        must(pthread_create(&m->thread, NULL, commit_loop, m) == 0);
        return &m->meta;
    }
    for (unsigned i = 0; i < SQLITE_READERS; i++)
        db_close(&m->readers[i]);
    db_close(&m->writer);
    free(m);
    return NULL;
}
