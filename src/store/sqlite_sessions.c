/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_meta.h"

struct session_change {
    const struct store_session *s;
    const struct store_target *targets;
    uint32_t n;
};

static bool put_target(struct db *db, const struct store_target *t, str session, struct err *e)
{
    struct db_query q;
    if (!db_begin(&q, db,
                  "INSERT INTO targets(session, target, host, size_bytes, planes, lines, events)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(session, target) DO UPDATE SET"
                  " host = ?3, size_bytes = ?4, planes = ?5, lines = ?6, events = ?7",
                  e))
        return false;
    db_text(&q, 1, session);
    db_text(&q, 2, t->target);
    db_text(&q, 3, t->host);
    db_i64(&q, 4, (int64_t)t->size_bytes);
    db_i64(&q, 5, t->planes);
    db_i64(&q, 6, t->lines);
    db_i64(&q, 7, t->events);
    return db_run(&q, e);
}

static bool session_put_change(struct db *db, void *arg, struct err *e)
{
    const struct session_change *c = arg;
    const struct store_session *s = c->s;
    struct db_query q;
    if (!db_begin(
            &q, db,
            "INSERT INTO sessions(session, run, name, kind, status, report_status, first_finding,"
            " from_ns, to_ns, created_ns, size_bytes, n_targets, n_findings)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
            " ON CONFLICT(session) DO UPDATE SET kind = ?4, status = ?5, report_status = ?6,"
            " first_finding = ?7, from_ns = ?8, to_ns = ?9, size_bytes = ?11, n_targets = ?12,"
            " n_findings = ?13",
            e))
        return false;
    const str words[] = {s->session, s->run,           s->name,         s->kind,
                         s->status,  s->report_status, s->first_finding};
    for (int i = 0; i < 7; i++)
        db_text(&q, i + 1, words[i]);
    db_i64(&q, 8, s->from_ns);
    db_i64(&q, 9, s->to_ns);
    db_i64(&q, 10, s->created_ns);
    db_i64(&q, 11, (int64_t)s->size_bytes);
    db_i64(&q, 12, s->n_targets);
    db_i64(&q, 13, s->n_findings);
    bool ok = db_run(&q, e);
    for (uint32_t i = 0; ok && i < c->n; i++)
        ok = put_target(db, &c->targets[i], s->session, e);
    if (!ok || !db_begin(&q, db, "UPDATE runs SET summary_batch = 0 WHERE run = ?1", e))
        return false;
    db_text(&q, 1, s->run); /* the run's summary counts its sessions */
    return db_run(&q, e);
}

bool sqlite_session_put(struct store_meta *m, const struct store_session *s,
                        const struct store_target *targets, uint32_t n, struct err *e)
{
    struct session_change c = {s, targets, n};
    return sqlite_commit(m, session_put_change, &c, e);
}

#define SESSION_COLUMNS                                                                            \
    "SELECT session, run, name, kind, status, report_status, first_finding, from_ns, to_ns,"       \
    " created_ns, size_bytes, n_targets, n_findings FROM sessions "

static void take_session(struct db_query *q, struct arena *a, struct store_session *out)
{
    *out = (struct store_session){
        .session = db_get_str(q, 0, a),
        .run = db_get_str(q, 1, a),
        .name = db_get_str(q, 2, a),
        .kind = db_get_str(q, 3, a),
        .status = db_get_str(q, 4, a),
        .report_status = db_get_str(q, 5, a),
        .first_finding = db_get_str(q, 6, a),
        .from_ns = db_get_i64(q, 7),
        .to_ns = db_get_i64(q, 8),
        .created_ns = db_get_i64(q, 9),
        .size_bytes = (uint64_t)db_get_i64(q, 10),
        .n_targets = (uint32_t)db_get_i64(q, 11),
        .n_findings = db_get_i64(q, 12),
    };
}

bool sqlite_session_get(struct store_meta *m, str session, struct arena *a,
                        struct store_session *out, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    bool found = false;
    bool ok = db_begin(&q, db, SESSION_COLUMNS "WHERE session = ?1", e);
    if (ok) {
        db_text(&q, 1, session);
        found = db_step(&q);
        if (found)
            take_session(&q, a, out);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    if (ok && !found)
        return err_set(e, ERR_NOT_FOUND, "no session '%.*s'", STR_ARG(session));
    return ok && (!a->overflow || arena_full(a, e));
}

bool sqlite_sessions(struct store_meta *m, str run, int64_t before_ns, str before, uint32_t limit,
                     struct arena *a, struct store_session **out, uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    *out = NULL;
    *n = 0;
    bool ok = db_begin(&q, db,
                       SESSION_COLUMNS "WHERE (?1 = '' OR run = ?1)"
                                       " AND (?2 = 0 OR (created_ns, session) < (?2, ?3))"
                                       " ORDER BY created_ns DESC, session DESC LIMIT ?4",
                       e);
    if (ok) {
        db_text(&q, 1, run);
        db_i64(&q, 2, before_ns);
        db_text(&q, 3, before);
        db_i64(&q, 4, limit);
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            take_session(&q, a, &(*out)[*n - 1]);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}

bool sqlite_targets(struct store_meta *m, str session, struct arena *a, struct store_target **out,
                    uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    *out = NULL;
    *n = 0;
    bool ok =
        db_begin(&q, db,
                 "SELECT session, target, host, size_bytes, planes, lines, events FROM targets"
                 " WHERE session = ?1 ORDER BY target",
                 e);
    if (ok) {
        db_text(&q, 1, session);
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            (*out)[*n - 1] = (struct store_target){
                .session = db_get_str(&q, 0, a),
                .target = db_get_str(&q, 1, a),
                .host = db_get_str(&q, 2, a),
                .size_bytes = (uint64_t)db_get_i64(&q, 3),
                .planes = db_get_i64(&q, 4),
                .lines = db_get_i64(&q, 5),
                .events = db_get_i64(&q, 6),
            };
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}
