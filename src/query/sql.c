/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sql.h"

#include <inttypes.h>

#include "base/limits.h"
#include "query/sql_inside.h"

#define STEPS_AT_ONCE 10000 /* between two looks at the count */
#define TEXT_BYTES_MAX (64 << 20)
#define EXPRESSION_DEPTH_MAX 200
#define PATTERN_BYTES_MAX 1000

/* ---- what may be done ---- */

static int authorize(void *ctx, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)a, (void)c, (void)d;
    if (((const struct sql_db *)ctx)->declaring)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return b != NULL && sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

int sql_declare(struct sql_db *d, const char *schema)
{
    d->declaring = true;
    const int rc = sqlite3_declare_vtab(d->db, schema);
    d->declaring = false;
    return rc;
}

static int count_steps(void *ctx)
{
    struct sql_db *d = ctx;
    if (d->n_steps_left <= STEPS_AT_ONCE) {
        d->n_steps_left = 0;
        return 1;
    }
    d->n_steps_left -= STEPS_AT_ONCE;
    return 0;
}

static void bound_everything(sqlite3 *db)
{
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, EXPRESSION_DEPTH_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, (int)LIMIT_SQL_TEXT_BYTES);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
}

static bool db_open(struct sql_db *d, struct err *e)
{
    sqlite3_hard_heap_limit64((sqlite3_int64)LIMIT_SQL_MEMORY_BYTES);
    if (sqlite3_open_v2(":memory:", &d->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK ||
        sqlite3_exec(d->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL) != SQLITE_OK)
        return err_set(e, ERR_INTERNAL, "cannot open SQLite: %s", sqlite3_errmsg(d->db));
    bound_everything(d->db);
    return true;
}

/* ---- which tables ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether the text holds the name as a word, or as the begin of one that goes on with '_'. */
static bool mentions(str text, str name)
{
    for (size_t from = 0; from + name.n <= text.n;) {
        const ptrdiff_t at = str_find_nocase(str_sub(text, from, text.n), name);
        if (at < 0)
            return false;
        const size_t begin = from + (size_t)at, end = begin + name.n;
        if ((begin == 0 || !is_word(text.p[begin - 1])) &&
            (end == text.n || text.p[end] == '_' || !is_word(text.p[end])))
            return true;
        from = begin + 1;
    }
    return false;
}

static bool register_tables(struct sql_db *d, str text, struct err *e)
{
    if (!sql_trace_register(d, e) || !sql_sources(d, e))
        return false;
    for (uint32_t i = 0; i < d->n_sources; i++)
        if (mentions(text, str_from(d->sources[i].name)) &&
            !sql_source_register(d, &d->sources[i], e))
            return false;
    return true;
}

/* ---- errors ---- */

static bool failed(struct sql_db *d, int rc, struct err *e)
{
    if (d->failure.code != ERR_NONE) {
        *e = d->failure;
        return false;
    }
    if (rc == SQLITE_INTERRUPT) {
        err_set(e, ERR_LIMIT, "the query took more than its steps of SQLite's machine");
        return err_hint(e, "narrow it by host, plane, line or start_ps, or group before joining");
    }
    if (rc == SQLITE_NOMEM)
        return err_set(e, ERR_LIMIT, "the query needs more than %" PRIu64 " bytes of memory",
                       LIMIT_SQL_MEMORY_BYTES);
    if (rc == SQLITE_AUTH)
        return err_set(e, ERR_USAGE, "sql: %s: only SELECT is taken", sqlite3_errmsg(d->db));
    const int at = sqlite3_error_offset(d->db);
    if (rc == SQLITE_TOOBIG)
        return err_set(e, ERR_LIMIT, "sql: %s", sqlite3_errmsg(d->db));
    return at < 0 ? err_set(e, ERR_USAGE, "sql: %s", sqlite3_errmsg(d->db))
                  : err_at(e, ERR_USAGE, (uint64_t)at, "sql: %s", sqlite3_errmsg(d->db));
}

static bool prepare(struct sql_db *d, str text, sqlite3_stmt **out, struct err *e)
{
    const char *tail = NULL;
    if (text.n > LIMIT_SQL_TEXT_BYTES)
        return err_set(e, ERR_LIMIT, "the query is longer than %" PRIu64 " bytes",
                       LIMIT_SQL_TEXT_BYTES);
    const int rc = sqlite3_prepare_v2(d->db, text.p, (int)text.n, out, &tail);
    if (rc != SQLITE_OK)
        return failed(d, rc, e);
    if (*out == NULL)
        return err_set(e, ERR_USAGE, "sql: there is no statement");
    const str rest = str_trim(str_sub(text, (size_t)(tail - text.p), text.n));
    if (rest.n > 0)
        return err_at(e, ERR_USAGE, (uint64_t)(tail - text.p),
                      "sql: one SELECT is taken, and more follows");
    return (sqlite3_stmt_readonly(*out) != 0 && sqlite3_column_count(*out) > 0) ||
           err_set(e, ERR_USAGE, "sql: only SELECT is taken");
}

/* ---- the result ---- */

/* The unit that a name ends with: what the printer scales for people. */
static str unit_of(str name)
{
    static const struct {
        str ending, unit;
    } units[] = {{STR_INIT("flops_per_s"), STR_INIT("FLOP/s")},
                 {STR_INIT("bytes_per_s"), STR_INIT("bytes/s")},
                 {STR_INIT("_per_s"), STR_INIT("/s")},
                 {STR_INIT("_ps"), STR_INIT("ps")},
                 {STR_INIT("_ns"), STR_INIT("ns")},
                 {STR_INIT("_s"), STR_INIT("s")},
                 {STR_INIT("_bytes"), STR_INIT("bytes")},
                 {STR_INIT("_percent"), STR_INIT("%")}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (str_ends(name, units[i].ending))
            return units[i].unit;
    return (str){0};
}

static struct cell cell_of(sqlite3_stmt *stmt, int i, struct arena *a)
{
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        return cell_i64(sqlite3_column_int64(stmt, i));
    case SQLITE_FLOAT:
        return cell_f64(sqlite3_column_double(stmt, i));
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(stmt, i);
        return cell_text(arena_str(a, (str){text, (size_t)sqlite3_column_bytes(stmt, i)}));
    }
    case SQLITE_BLOB:
        return cell_text(arena_printf(a, "<%d bytes>", sqlite3_column_bytes(stmt, i)));
    default:
        return cell_unknown();
    }
}

static void put_columns(struct table *t, sqlite3_stmt *stmt, bool has_row, struct arena *a)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const str name = arena_str(a, str_from(sqlite3_column_name(stmt, i)));
        const int type = has_row ? sqlite3_column_type(stmt, i) : SQLITE_NULL;
        table_column(t, name, name,
                     type == SQLITE_INTEGER ? CELL_I64
                     : type == SQLITE_FLOAT ? CELL_F64
                                            : CELL_TEXT,
                     unit_of(name));
    }
}

static bool read_rows(struct sql_db *d, sqlite3_stmt *stmt, struct table *t, struct err *e)
{
    int rc = sqlite3_step(stmt);
    put_columns(t, stmt, rc == SQLITE_ROW, d->arena);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(stmt)) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(d->arena, e);
        for (uint32_t i = 0; i < t->n_columns; i++)
            row[i] = cell_of(stmt, (int)i, d->arena);
        if (d->arena->overflow)
            return arena_full(d->arena, e);
    }
    return rc == SQLITE_DONE ? table_ok(t, e) : failed(d, rc, e);
}

static bool run(struct sql_db *d, const struct sql_query *q, struct table *t, struct err *e)
{
    sqlite3_stmt *stmt = NULL;
    if (!db_open(d, e) || !register_tables(d, q->text, e))
        return false;
    sqlite3_set_authorizer(d->db, authorize, d);
    sqlite3_progress_handler(d->db, STEPS_AT_ONCE, count_steps, d);
    const bool ok = prepare(d, q->text, &stmt, e) && read_rows(d, stmt, t, e);
    sqlite3_finalize(stmt);
    return ok;
}

bool sql_run(const struct sql_query *q, struct arena *a, struct table **out, struct err *e)
{
    struct sql_db d = {.profile = q->profile,
                       .arena = a,
                       .n_steps_left = q->max_steps != 0 ? q->max_steps : LIMIT_SQL_STEPS};
    *out = table_new(a, S("sql"), S("Result"));
    if (*out == NULL)
        return arena_full(a, e);
    const bool ok = run(&d, q, *out, e);
    sqlite3_close(d.db);
    return ok;
}
