/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/sql_task.h"

#include <pthread.h>
#include <sqlite3.h>

#include "base/limits.h"
#include "jobs/profile_task.h"
#include "model/table_print.h"
#include "query/sql.h"

/* SQLite's own locks, the outer ones first: those that code of it takes while it holds others last. */
static const int locks[] = {
    SQLITE_MUTEX_STATIC_MAIN, SQLITE_MUTEX_STATIC_OPEN, SQLITE_MUTEX_STATIC_VFS1,
    SQLITE_MUTEX_STATIC_VFS2, SQLITE_MUTEX_STATIC_VFS3, SQLITE_MUTEX_STATIC_LRU,
    SQLITE_MUTEX_STATIC_PMEM, SQLITE_MUTEX_STATIC_PRNG, SQLITE_MUTEX_STATIC_MEM};
#define N_LOCKS (sizeof locks / sizeof *locks)

static void take_locks(void)
{
    for (size_t i = 0; i < N_LOCKS; i++)
        sqlite3_mutex_enter(sqlite3_mutex_alloc(locks[i]));
}

static void give_locks(void)
{
    for (size_t i = N_LOCKS; i-- > 0;)
        sqlite3_mutex_leave(sqlite3_mutex_alloc(locks[i]));
}

/* The parser uses SQLite behind a fork, while other threads of a server may be inside of it: none of them
 * may hold one of its locks at that moment, or the parser would wait for ever. */
static void fork_safely(void)
{
    if (sqlite3_initialize() == SQLITE_OK)
        pthread_atfork(take_locks, give_locks, give_locks);
}

struct sql_job {
    str text;
    uint64_t max_steps;
    enum tool_format format;
};

static bool print(const struct table *t, enum tool_format format, struct buf *out, struct err *e)
{
    const struct table_style style = {0};
    struct json j;
    switch (format) {
    case TOOL_JSON:
        json_init_buf(&j, out);
        table_print_json(t, &j);
        return json_done(&j, e) && buf_add_char(out, '\n');
    case TOOL_CSV:
        table_print_csv(t, out);
        return true;
    case TOOL_TEXT:
    case TOOL_XPROF:
        break;
    }
    table_print_text(t, &style, out);
    return true;
}

static bool sql_job_run(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    const struct sql_job *job = ctx;
    const struct sql_query q = {.profile = p, .text = job->text, .max_steps = job->max_steps};
    struct table *t;
    struct arena a;
    arena_init(&a, "query", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = sql_run(&q, &a, &t, e) && print(t, job->format, out, e);
    arena_release(&a);
    return ok;
}

bool sql_task_run(const char *path, const struct parser_limits *limits, str text,
                  uint64_t max_steps, enum tool_format format, struct buf *out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sql_job job = {.text = text, .max_steps = max_steps, .format = format};
    pthread_once(&once, fork_safely);
    if (format == TOOL_XPROF)
        return err_set(e, ERR_USAGE, "a query has no form of XProf's");
    return profile_task_run(path, limits, sql_job_run, &job, out, e);
}
