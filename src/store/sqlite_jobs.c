/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_meta.h"

#define JOB_TRIES_MAX 3

struct job_change {
    int64_t id, now_ns;
    str kind, subject, state, error;
    struct arena *a;
    struct store_job *out;
};

#define JOB_COLUMNS                                                                                \
    "SELECT id, kind, subject, state, error, created_ns, started_ns, ended_ns, tries FROM jobs "

static void take_job(struct db_query *q, struct arena *a, struct store_job *out)
{
    *out = (struct store_job){
        .id = db_get_i64(q, 0),
        .kind = db_get_str(q, 1, a),
        .subject = db_get_str(q, 2, a),
        .state = db_get_str(q, 3, a),
        .error = db_get_str(q, 4, a),
        .created_ns = db_get_i64(q, 5),
        .started_ns = db_get_i64(q, 6),
        .ended_ns = db_get_i64(q, 7),
        .tries = (uint32_t)db_get_i64(q, 8),
    };
}

static bool job_add_change(struct db *db, void *arg, struct err *e)
{
    struct job_change *c = arg;
    struct db_query q;
    if (!db_begin(&q, db,
                  "SELECT id FROM jobs WHERE state = 'queued' AND kind = ?1 AND subject = ?2", e))
        return false;
    db_text(&q, 1, c->kind);
    db_text(&q, 2, c->subject);
    const bool there = db_step(&q);
    if (there)
        c->id = db_get_i64(&q, 0);
    if (!db_end(&q, e))
        return false;
    if (there)
        return true;
    if (!db_begin(&q, db,
                  "INSERT INTO jobs(kind, subject, state, created_ns) VALUES(?1, ?2, 'queued', ?3)",
                  e))
        return false;
    db_text(&q, 1, c->kind);
    db_text(&q, 2, c->subject);
    db_i64(&q, 3, c->now_ns);
    if (!db_run(&q, e))
        return false;
    c->id = sqlite3_last_insert_rowid(db->handle);
    return true;
}

bool sqlite_job_add(struct store_meta *m, str kind, str subject, int64_t now_ns, int64_t *id,
                    struct err *e)
{
    struct job_change c = {.kind = kind, .subject = subject, .now_ns = now_ns};
    const bool ok = sqlite_commit(m, job_add_change, &c, e);
    *id = c.id;
    return ok;
}

static bool job_claim_change(struct db *db, void *arg, struct err *e)
{
    struct job_change *c = arg;
    struct db_query q;
    if (!db_begin(&q, db, JOB_COLUMNS "WHERE state = 'queued' ORDER BY id LIMIT 1", e))
        return false;
    const bool there = db_step(&q);
    if (there)
        take_job(&q, c->a, c->out);
    if (!db_end(&q, e))
        return false;
    if (!there)
        return err_set(e, ERR_NOT_FOUND, "no job is queued");
    if (!db_begin(
            &q, db,
            "UPDATE jobs SET state = 'running', started_ns = ?2, tries = tries + 1 WHERE id = ?1",
            e))
        return false;
    db_i64(&q, 1, c->out->id);
    db_i64(&q, 2, c->now_ns);
    c->out->tries++;
    return db_run(&q, e);
}

bool sqlite_job_claim(struct store_meta *m, int64_t now_ns, struct arena *a, struct store_job *out,
                      struct err *e)
{
    struct job_change c = {.now_ns = now_ns, .a = a, .out = out};
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    bool any = false;
    bool ok = db_begin(&q, db, "SELECT 1 FROM jobs WHERE state = 'queued' LIMIT 1", e);
    if (ok) {
        any = db_step(&q);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    if (ok && !any) /* most polls end here, without a commit */
        return err_set(e, ERR_NOT_FOUND, "no job is queued");
    return ok && sqlite_commit(m, job_claim_change, &c, e);
}

static bool job_end_change(struct db *db, void *arg, struct err *e)
{
    const struct job_change *c = arg;
    struct db_query q;
    if (!db_begin(&q, db, "UPDATE jobs SET state = ?2, error = ?3, ended_ns = ?4 WHERE id = ?1", e))
        return false;
    db_i64(&q, 1, c->id);
    db_text(&q, 2, c->state);
    db_text(&q, 3, c->error);
    db_i64(&q, 4, c->now_ns);
    return db_run(&q, e);
}

bool sqlite_job_end(struct store_meta *m, int64_t id, str state, str error, int64_t now_ns,
                    struct err *e)
{
    struct job_change c = {.id = id, .state = state, .error = error, .now_ns = now_ns};
    return sqlite_commit(m, job_end_change, &c, e);
}

bool sqlite_job_get(struct store_meta *m, int64_t id, struct arena *a, struct store_job *out,
                    struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    bool found = false;
    bool ok = db_begin(&q, db, JOB_COLUMNS "WHERE id = ?1", e);
    if (ok) {
        db_i64(&q, 1, id);
        found = db_step(&q);
        if (found)
            take_job(&q, a, out);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    if (ok && !found)
        return err_set(e, ERR_NOT_FOUND, "no job %lld", (long long)id);
    return ok && (!a->overflow || arena_full(a, e));
}

static bool jobs_recover_change(struct db *db, void *arg, struct err *e)
{
    const struct job_change *c = arg;
    struct db_query q;
    if (!db_begin(
            &q, db,
            "UPDATE jobs SET state = CASE WHEN tries < ?1 THEN 'queued' ELSE 'failed' END,"
            " error = CASE WHEN tries < ?1 THEN '' ELSE 'the server died while it ran, each time'"
            " END WHERE state = 'running'",
            e))
        return false;
    db_i64(&q, 1, c->id);
    return db_run(&q, e);
}

bool sqlite_jobs_recover(struct store_meta *m, struct err *e)
{
    struct job_change c = {.id = JOB_TRIES_MAX};
    return sqlite_commit(m, jobs_recover_change, &c, e);
}
