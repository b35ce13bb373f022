/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_meta.h"

static const str role_words[] = {STR_INIT("none"),   STR_INIT("ingest"),   STR_INIT("agent"),
                                 STR_INIT("viewer"), STR_INIT("operator"), STR_INIT("admin")};
#define N_ROLES (sizeof role_words / sizeof role_words[0])

const char *store_role_word(enum store_role r)
{
    return (size_t)r < N_ROLES ? role_words[r].p : "none";
}

bool store_role_find(str word, enum store_role *out)
{
    for (size_t i = 1; i < N_ROLES; i++) {
        if (str_eq(role_words[i], word)) {
            *out = (enum store_role)i;
            return true;
        }
    }
    return false;
}

static bool token_put_change(struct db *db, void *arg, struct err *e)
{
    const struct store_token *t = arg;
    struct db_query q;
    if (!db_begin(&q, db, "DELETE FROM tokens WHERE expires_ns > 0 AND expires_ns < ?1", e))
        return false;
    db_i64(&q, 1, t->created_ns);
    if (!db_run(&q, e))
        return false;
    if (!db_begin(&q, db,
                  "INSERT INTO tokens(hash, name, role, run_group, created_ns, expires_ns)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(hash) DO NOTHING",
                  e))
        return false;
    db_text(&q, 1, t->hash);
    db_text(&q, 2, t->name);
    db_text(&q, 3, str_from(store_role_word(t->role)));
    db_text(&q, 4, t->run_group);
    db_i64(&q, 5, t->created_ns);
    db_i64(&q, 6, t->expires_ns);
    return db_run(&q, e);
}

bool sqlite_token_put(struct store_meta *m, const struct store_token *t, struct err *e)
{
    struct store_token copy = *t;
    return sqlite_commit(m, token_put_change, &copy, e);
}

struct once {
    struct store_token token;
    struct store_token_request *request;
};

static bool take_repeated(struct db *db, struct store_token_request *r, struct err *e)
{
    struct arena a;
    struct db_query q;
    if (!db_begin(&q, db, "SELECT salt, hash FROM token_requests WHERE key = ?1", e))
        return false;
    arena_init(&a, "token request", 0);
    db_text(&q, 1, r->key);
    r->is_repeated = db_step(&q);
    const str salt = r->is_repeated ? db_get_str(&q, 0, &a) : (str){0};
    const str hash = r->is_repeated ? db_get_str(&q, 1, &a) : (str){0};
    bool ok = db_end(&q, e);
    if (ok && r->is_repeated) {
        ok = (salt.n == SHA256_HEX - 1 && hash.n == SHA256_HEX - 1) ||
             err_set(e, ERR_INTERNAL, "the database's row of an Idempotency-Key is damaged");
        if (ok) {
            memcpy(r->salt, salt.p, salt.n);
            memcpy(r->hash, hash.p, hash.n);
        }
    }
    arena_release(&a);
    return ok;
}

static bool token_put_once_change(struct db *db, void *arg, struct err *e)
{
    struct once *x = arg;
    struct db_query q;
    if (!db_begin(&q, db, "DELETE FROM token_requests WHERE created_ns < ?1", e))
        return false;
    db_i64(&q, 1, x->token.created_ns - STORE_TOKEN_REQUEST_NS);
    if (!db_run(&q, e) || !take_repeated(db, x->request, e))
        return false;
    if (x->request->is_repeated)
        return true;
    if (!db_begin(&q, db,
                  "INSERT INTO token_requests(key, salt, hash, created_ns) VALUES(?1, ?2, ?3, ?4)",
                  e))
        return false;
    db_text(&q, 1, x->request->key);
    db_text(&q, 2, str_from(x->request->salt));
    db_text(&q, 3, x->token.hash);
    db_i64(&q, 4, x->token.created_ns);
    return db_run(&q, e) && token_put_change(db, &x->token, e);
}

bool sqlite_token_put_once(struct store_meta *m, const struct store_token *t,
                           struct store_token_request *r, struct err *e)
{
    struct once x = {*t, r};
    return sqlite_commit(m, token_put_once_change, &x, e);
}

#define TOKEN_COLUMNS "SELECT id, hash, name, role, run_group, created_ns, expires_ns FROM tokens "

static void take_token(struct db_query *q, struct arena *a, struct store_token *out)
{
    *out = (struct store_token){
        .id = db_get_i64(q, 0),
        .hash = db_get_str(q, 1, a),
        .name = db_get_str(q, 2, a),
        .run_group = db_get_str(q, 4, a),
        .created_ns = db_get_i64(q, 5),
        .expires_ns = db_get_i64(q, 6),
    };
    (void)store_role_find(db_get_str(q, 3, a), &out->role);
}

bool sqlite_token_find(struct store_meta *m, str hash, struct arena *a, struct store_token *out,
                       struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    bool found = false;
    bool ok = db_begin(&q, db, TOKEN_COLUMNS "WHERE hash = ?1", e);
    if (ok) {
        db_text(&q, 1, hash);
        found = db_step(&q);
        if (found)
            take_token(&q, a, out);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    if (ok && !found)
        return err_set(e, ERR_NOT_FOUND, "no such token");
    return ok && (!a->overflow || arena_full(a, e));
}

bool sqlite_tokens(struct store_meta *m, struct arena *a, struct store_token **out, uint32_t *n,
                   struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    *out = NULL;
    *n = 0;
    bool ok = db_begin(&q, db, TOKEN_COLUMNS "ORDER BY id DESC LIMIT 10000", e);
    if (ok) {
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            take_token(&q, a, &(*out)[*n - 1]);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}

static bool token_delete_change(struct db *db, void *arg, struct err *e)
{
    const int64_t *id = arg;
    struct db_query q;
    if (!db_begin(&q, db, "DELETE FROM tokens WHERE id = ?1", e))
        return false;
    db_i64(&q, 1, *id);
    if (!db_run(&q, e))
        return false;
    return sqlite3_changes(db->handle) > 0 ||
           err_set(e, ERR_NOT_FOUND, "no token %lld", (long long)*id);
}

bool sqlite_token_delete(struct store_meta *m, int64_t id, struct err *e)
{
    return sqlite_commit(m, token_delete_change, &id, e);
}
