/* SPDX-License-Identifier: Apache-2.0 */
/* One SQLite connection with its prepared statements, and rows read into an arena.
 *
 *     struct db_query q;
 *     if (!db_begin(&q, db, "SELECT run FROM runs WHERE name = ?1", e)) return false;
 *     db_text(&q, 1, name);
 *     while (db_step(&q)) use(db_str(&q, 0, a));
 *     return db_end(&q, e);
 *
 * Statements are cached by the address of their text, which is static. Thread: one at a time. */
#ifndef TACHO_STORE_DB_H
#define TACHO_STORE_DB_H

#include <sqlite3.h>

#include "base/arena.h"

#define DB_STATEMENTS_MAX 96

struct db {
    sqlite3 *handle;
    struct {
        const char *sql;
        sqlite3_stmt *statement;
    } cache[DB_STATEMENTS_MAX];
    unsigned n_cached;
};

struct db_query {
    struct db *db;
    sqlite3_stmt *statement;
    int rc; /* of the newest step */
};

MUST_CHECK bool db_open(struct db *db, const char *path, struct err *e);
/* False when another file, or none, is where the database was: what is committed now would be lost. */
MUST_CHECK bool db_is_in_place(struct db *db, struct err *e);
void db_close(struct db *db);
/* Statements without parameters and results. */
MUST_CHECK bool db_exec(struct db *db, const char *sql, struct err *e);
/* The error of the connection as a struct err; returns false. */
bool db_fail(struct db *db, struct err *e, const char *doing);

MUST_CHECK bool db_begin(struct db_query *q, struct db *db, const char *sql, struct err *e);
void db_text(struct db_query *q, int at, str v);
void db_blob(struct db_query *q, int at, str v);
void db_i64(struct db_query *q, int at, int64_t v);
bool db_step(struct db_query *q); /* true: there is a row */
int64_t db_get_i64(struct db_query *q, int column);
str db_get_str(struct db_query *q, int column, struct arena *a); /* copied */
MUST_CHECK bool db_end(struct db_query *q, struct err *e);       /* false when a step failed */
/* Steps a statement without rows to its end, then db_end. */
MUST_CHECK bool db_run(struct db_query *q, struct err *e);

#endif
