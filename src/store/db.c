/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#define BUSY_TIMEOUT_MS 10000

bool db_fail(struct db *db, struct err *e, const char *doing)
{
    const int rc = sqlite3_errcode(db->handle);
    enum err_code code = ERR_IO;
    if (rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT)
        code = ERR_PARSE;
    else if (rc == SQLITE_CONSTRAINT)
        code = ERR_CONFLICT;
    else if (rc == SQLITE_BUSY)
        code = ERR_UNAVAILABLE;
    err_set(e, code, "cannot %s: %s", doing, sqlite3_errmsg(db->handle));
    if (rc == SQLITE_FULL)
        err_hint(e, "free space on the disk of the data folder");
    return false;
}

bool db_open(struct db *db, const char *path, struct err *e)
{
    *db = (struct db){0};
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
        db_fail(db, e, "open the database");
        db_close(db);
        return err_wrap(e, "'%s'", path);
    }
    sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (db_exec(db,
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                "PRAGMA wal_autocheckpoint=4000;",
                e))
        return true;
    db_close(db);
    return err_wrap(e, "'%s'", path);
}

bool db_is_in_place(struct db *db, struct err *e)
{
    int has_moved = 0;
    if (sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) != SQLITE_OK ||
        has_moved == 0)
        return true;
    err_set(e, ERR_UNAVAILABLE, "the database was removed or replaced under the server");
    return err_hint(e, "put it back or not, and start the server again");
}

void db_close(struct db *db)
{
    for (unsigned i = 0; i < db->n_cached; i++)
        sqlite3_finalize(db->cache[i].statement);
    sqlite3_close(db->handle);
    *db = (struct db){0};
}

bool db_exec(struct db *db, const char *sql, struct err *e)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
           db_fail(db, e, "change the database");
}

bool db_begin(struct db_query *q, struct db *db, const char *sql, struct err *e)
{
    *q = (struct db_query){.db = db, .rc = SQLITE_OK};
    for (unsigned i = 0; i < db->n_cached; i++) {
        if (db->cache[i].sql == sql) {
            q->statement = db->cache[i].statement;
            return true;
        }
    }
    must(db->n_cached < DB_STATEMENTS_MAX);
    if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->statement, NULL) !=
        SQLITE_OK)
        return db_fail(db, e, "prepare a statement");
    db->cache[db->n_cached].sql = sql;
    db->cache[db->n_cached++].statement = q->statement;
    return true;
}

void db_text(struct db_query *q, int at, str v)
{
    sqlite3_bind_text64(q->statement, at, v.n == 0 ? "" : v.p, v.n, SQLITE_STATIC, SQLITE_UTF8);
}

void db_blob(struct db_query *q, int at, str v)
{
    sqlite3_bind_blob64(q->statement, at, v.n == 0 ? "" : v.p, v.n, SQLITE_STATIC);
}

void db_i64(struct db_query *q, int at, int64_t v)
{
    sqlite3_bind_int64(q->statement, at, v);
}

bool db_step(struct db_query *q)
{
    q->rc = sqlite3_step(q->statement);
    return q->rc == SQLITE_ROW;
}

int64_t db_get_i64(struct db_query *q, int column)
{
    return sqlite3_column_int64(q->statement, column);
}

str db_get_str(struct db_query *q, int column, struct arena *a)
{
    const void *p = sqlite3_column_blob(q->statement, column);
    const int n = sqlite3_column_bytes(q->statement, column);
    return n <= 0 ? (str){0} : arena_str(a, (str){p, (size_t)n});
}

bool db_end(struct db_query *q, struct err *e)
{
    const bool ok = q->rc == SQLITE_OK || q->rc == SQLITE_ROW || q->rc == SQLITE_DONE;
    if (!ok)
        db_fail(q->db, e, "use the database");
    sqlite3_reset(q->statement);
    sqlite3_clear_bindings(q->statement);
    return ok;
}

bool db_run(struct db_query *q, struct err *e)
{
    while (db_step(q)) {
    }
    return db_end(q, e);
}
