/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_meta.h"

static bool run_put_change(struct db *db, void *arg, struct err *e)
{
    const struct store_run *r = arg;
    struct db_query q;
    if (!db_begin(
            &q, db,
            "INSERT INTO runs(run, name, run_group, phase, reason, health, started_ns, ended_ns,"
            " last_ns, summary, summary_batch, details)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
            " ON CONFLICT(run) DO UPDATE SET name = ?2, run_group = ?3, phase = ?4, reason = ?5,"
            " health = ?6, started_ns = ?7, ended_ns = ?8, last_ns = ?9, summary = ?10,"
            " summary_batch = ?11, details = ?12",
            e))
        return false;
    const str words[] = {r->run, r->name, r->group, r->phase, r->reason, r->health};
    for (int i = 0; i < 6; i++)
        db_text(&q, i + 1, words[i]);
    db_i64(&q, 7, r->started_ns);
    db_i64(&q, 8, r->ended_ns);
    db_i64(&q, 9, r->last_ns);
    db_text(&q, 10, r->summary);
    db_i64(&q, 11, r->batch);
    db_text(&q, 12, r->details);
    return db_run(&q, e);
}

bool sqlite_run_put(struct store_meta *m, const struct store_run *r, struct err *e)
{
    struct store_run copy = *r;
    return sqlite_commit(m, run_put_change, &copy, e);
}

#define RUN_COLUMNS                                                                                \
    "SELECT run, name, run_group, phase, reason, health, started_ns, ended_ns, last_ns, summary,"  \
    " summary_batch, details FROM runs "

static void take_run(struct db_query *q, struct arena *a, struct store_run *out)
{
    *out = (struct store_run){
        .run = db_get_str(q, 0, a),
        .name = db_get_str(q, 1, a),
        .group = db_get_str(q, 2, a),
        .phase = db_get_str(q, 3, a),
        .reason = db_get_str(q, 4, a),
        .health = db_get_str(q, 5, a),
        .started_ns = db_get_i64(q, 6),
        .ended_ns = db_get_i64(q, 7),
        .last_ns = db_get_i64(q, 8),
        .summary = db_get_str(q, 9, a),
        .batch = db_get_i64(q, 10),
        .details = db_get_str(q, 11, a),
    };
}

bool sqlite_run_get(struct store_meta *m, str run, struct arena *a, struct store_run *out,
                    struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    bool found = false;
    bool ok = db_begin(&q, db, RUN_COLUMNS "WHERE run = ?1", e);
    if (ok) {
        db_text(&q, 1, run);
        found = db_step(&q);
        if (found)
            take_run(&q, a, out);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    if (ok && !found)
        return err_set(e, ERR_NOT_FOUND, "no run '%.*s'", STR_ARG(run));
    return ok && (!a->overflow || arena_full(a, e));
}

/* A pattern for LIKE that finds text anywhere; % and _ in it mean themselves. */
static str like_pattern(struct arena *a, str text)
{
    char *p = ARENA_ARRAY(a, char, text.n * 2 + 3);
    size_t n = 0;
    if (p == NULL)
        return S("%");
    p[n++] = '%';
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '%' || text.p[i] == '_' || text.p[i] == '\\')
            p[n++] = '\\';
        p[n++] = text.p[i];
    }
    p[n++] = '%';
    return (str){p, n};
}

bool sqlite_runs(struct store_meta *m, const struct store_run_query *query, struct arena *a,
                 struct store_run **out, uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    const str pattern = like_pattern(a, query->text);
    *out = NULL;
    *n = 0;
    bool ok = db_begin(&q, db,
                       RUN_COLUMNS
                       "WHERE (run LIKE ?1 ESCAPE '\\' OR name LIKE ?1 ESCAPE '\\' OR run_group "
                       "LIKE ?1 ESCAPE '\\')"
                       " AND (?2 = '' OR phase = ?2 COLLATE NOCASE OR reason = ?2 COLLATE NOCASE"
                       "      OR health = ?2 COLLATE NOCASE)"
                       " AND (?4 = '' OR (started_ns, run) < (?3, ?4))"
                       " ORDER BY started_ns DESC, run DESC LIMIT ?5",
                       e);
    if (ok) {
        db_text(&q, 1, pattern);
        db_text(&q, 2, query->state);
        db_i64(&q, 3, query->before_started_ns);
        db_text(&q, 4, query->before_run);
        db_i64(&q, 5, query->limit);
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            take_run(&q, a, &(*out)[*n - 1]);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}

bool sqlite_runs_stale(struct store_meta *m, struct arena *a, str **out, uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    *out = NULL;
    *n = 0;
    bool ok = db_begin(
        &q, db, "SELECT run FROM runs WHERE summary_batch < last_batch OR phase = 'ACTIVE'", e);
    if (ok) {
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            (*out)[*n - 1] = db_get_str(&q, 0, a);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}
