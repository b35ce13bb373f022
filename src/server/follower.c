/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "follower"
#include "server/follower.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "server/run_cache.h"
#include "server/sessions.h"

#define POLL_MS 1000
#define CLOSE_AFTER_POLLS 60 /* a file that does not grow is closed; growth opens it again */
#define FILES_OPEN_MAX 256

struct followed {            /* one journal file */
    char *path, *file;       /* whole; below the data folder */
    uint64_t followed_bytes; /* of the file, whose records are in the store */
    bool is_known;           /* followed_bytes was asked from the store */
    bool is_bad;             /* no journal: said once */
    bool is_open;
    unsigned idle_polls;
    struct journal_reader reader;
    str header; /* owned copy */
    struct followed *next;
};

struct session_seen { /* a session folder that is perhaps still being written */
    char *key;
    uint64_t size_bytes;
    int64_t newest_ns;
    bool done;
    struct session_seen *next;
};

struct follower {
    struct server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool closing;
    struct followed *files;
    struct session_seen *sessions;
    unsigned n_open;
};

static struct followed *file_of(struct follower *f, const char *path, const char *file)
{
    for (struct followed *x = f->files; x != NULL; x = x->next)
        if (strcmp(x->path, path) == 0)
            return x;
    struct followed *x = map_alloc(1, sizeof *x);
    x->path = strdup(path);
    x->file = strdup(file);
    must(x->path != NULL && x->file != NULL);
    x->next = f->files;
    f->files = x;
    return x;
}

static void file_close(struct follower *f, struct followed *x)
{
    if (!x->is_open)
        return;
    journal_reader_close(&x->reader);
    free((void *)(uintptr_t)x->header.p);
    x->header = (str){0};
    x->is_open = false;
    f->n_open--;
}

static bool file_start(struct follower *f, struct followed *x, struct err *e)
{
    if (!journal_reader_open(&x->reader, x->path, e))
        return false;
    x->is_open = true;
    f->n_open++;
    return true;
}

static bool flush(struct follower *f, struct followed *x, const char *run, struct buf *records,
                  uint64_t size_bytes, struct err *e)
{
    struct server *s = f->server;
    struct store_ingested out;
    const struct store_ingest in = {.info = &x->reader.info,
                                    .header = x->header,
                                    .run = str_from(run),
                                    .records = buf_str(records),
                                    .received_ns = clock_wall_ns(),
                                    .file = str_from(x->file),
                                    .file_size_bytes = size_bytes};
    if (!s->meta->ops->ingest(s->meta, &in, &out, e))
        return false;
    buf_clear(records);
    if (out.n_new > 0)
        run_cache_changed(s->runs, in.run);
    return true;
}

/* All records that are there now; each flush is one commit. */
static bool take_records(struct follower *f, struct followed *x, const char *run, struct err *e)
{
    struct journal_record rec;
    struct buf records;
    enum journal_got got;
    uint64_t end = x->followed_bytes;
    bool ok = true;
    buf_init(&records, LIMIT_JOURNAL_BATCH_BYTES + 2 * LIMIT_JOURNAL_PAYLOAD_BYTES);
    while (ok && (got = journal_reader_next(&x->reader, &rec, e)) == JOURNAL_GOT_RECORD) {
        if (rec.type == JOURNAL_HEADER && x->header.n == 0) {
            char *copy = map_alloc(rec.n_raw, 1);
            memcpy(copy, rec.raw, rec.n_raw);
            x->header = (str){copy, rec.n_raw};
        }
        buf_add(&records, rec.raw, rec.n_raw);
        end = rec.offset + rec.n_raw;
        if (records.n >= LIMIT_JOURNAL_BATCH_BYTES)
            ok = flush(f, x, run, &records, end, e);
    }
    ok = ok && got != JOURNAL_FAILED;
    if (ok && records.n > 0)
        ok = flush(f, x, run, &records, end, e);
    if (ok && end > x->followed_bytes)
        x->followed_bytes = end;
    buf_release(&records);
    return ok;
}

static void said_bad(struct followed *x, const struct err *e)
{
    if (!x->is_bad)
        log_warn("journal '%s' is left out: %s", x->path, e->msg);
    x->is_bad = true;
}

/* True when the file may hold records that are not in the store. */
static bool has_grown(struct follower *f, struct followed *x, uint64_t size, struct err *e)
{
    struct store_meta *m = f->server->meta;
    if (!x->is_known) {
        if (!m->ops->file_followed(m, str_from(x->file), &x->followed_bytes, e))
            return false;
        x->is_known = true;
    }
    return size > x->followed_bytes;
}

static void follow_file(struct follower *f, struct followed *x, const char *run)
{
    struct stat st;
    struct err e = {0};
    if (lstat(x->path, &st) == -1 || !S_ISREG(st.st_mode))
        return;
    if (!has_grown(f, x, (uint64_t)st.st_size, &e)) {
        if (x->is_open && ++x->idle_polls > CLOSE_AFTER_POLLS)
            file_close(f, x);
        return;
    }
    x->idle_polls = 0;
    if (!x->is_open && f->n_open >= FILES_OPEN_MAX)
        return; /* its turn comes when another one rests */
    if (!x->is_open && !file_start(f, x, &e)) {
        said_bad(x, &e);
        return;
    }
    if (!str_eq(str_from(x->reader.info.run), str_from(run))) {
        err_set(&e, ERR_PARSE, "it is of run '%s', not of the folder's", x->reader.info.run);
        said_bad(x, &e);
        file_close(f, x);
        return;
    }
    if (!take_records(f, x, run, &e)) {
        log_warn("cannot take the records of '%s': %s", x->path, e.msg);
        file_close(f, x); /* the next poll begins at the start: what is there is not taken again */
    }
}

static void follow_journals(struct follower *f, struct arena *a, const char *run,
                            const char *runs_dir)
{
    struct err ignored = {0};
    str *names;
    size_t n;
    const char *dir = path_join(a, runs_dir, arena_printf(a, "%s/journals", run));
    if (!file_is_dir(dir) || !dir_list(a, dir, &names, &n, &ignored))
        return;
    for (size_t i = 0; i < n; i++) {
        if (!str_ends(names[i], S(".journal")))
            continue;
        const char *path = path_join(a, dir, names[i]);
        const char *file =
            path_join(a, "runs", arena_printf(a, "%s/journals/%.*s", run, STR_ARG(names[i])));
        follow_file(f, file_of(f, path, file), run);
    }
}

/* Size and newest time of the files in a session's folder. */
static void look_at_session(struct arena *a, const char *dir, uint64_t *size_bytes,
                            int64_t *newest_ns)
{
    struct err ignored = {0};
    str *names;
    size_t n = 0;
    *size_bytes = 0;
    *newest_ns = 0;
    if (!dir_list(a, dir, &names, &n, &ignored))
        return;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        if (!str_ends(names[i], S(TRACE_FILE_ENDING)) ||
            lstat(path_join(a, dir, names[i]), &st) == -1)
            continue;
        *size_bytes += (uint64_t)st.st_size;
        const int64_t changed = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
        *newest_ns = changed > *newest_ns ? changed : *newest_ns;
    }
}

static struct session_seen *session_of(struct follower *f, const char *key)
{
    for (struct session_seen *x = f->sessions; x != NULL; x = x->next)
        if (strcmp(x->key, key) == 0)
            return x;
    struct session_seen *x = map_alloc(1, sizeof *x);
    x->key = strdup(key);
    must(x->key != NULL);
    x->next = f->sessions;
    f->sessions = x;
    return x;
}

/* Registered when two looks in a row see the same. */
static void follow_session(struct follower *f, struct arena *a, const char *run, const char *dir,
                           str name)
{
    uint64_t size;
    int64_t newest;
    const char *path = path_join(a, dir, name);
    if (!path_is_safe_name(name) || !file_is_dir(path))
        return;
    struct session_seen *x = session_of(f, path);
    look_at_session(a, path, &size, &newest);
    const bool same = size == x->size_bytes && newest == x->newest_ns;
    x->size_bytes = size;
    x->newest_ns = newest;
    if (!same) {
        x->done = false;
        return;
    }
    if (x->done || size == 0)
        return;
    struct err e = {0};
    bool is_new;
    if (session_register(f->server, str_from(run), name, &is_new, &e)) {
        x->done = true;
        if (is_new)
            run_cache_changed(f->server->runs, str_from(run));
    } else {
        log_warn("cannot register session '%s': %s", path, e.msg);
    }
}

static void follow_sessions(struct follower *f, struct arena *a, const char *run,
                            const char *runs_dir)
{
    struct err ignored = {0};
    str *names;
    size_t n;
    const char *dir = path_join(a, runs_dir, arena_printf(a, "%s/plugins/profile", run));
    if (!file_is_dir(dir) || !dir_list(a, dir, &names, &n, &ignored))
        return;
    for (size_t i = 0; i < n; i++)
        follow_session(f, a, run, dir, names[i]);
}

static void poll_once(struct follower *f)
{
    struct arena a;
    struct err ignored = {0};
    str *runs;
    size_t n = 0;
    arena_init(&a, "follower", 0);
    const char *runs_dir = path_join(&a, f->server->data_dir, S("runs"));
    if (file_is_dir(runs_dir) && dir_list(&a, runs_dir, &runs, &n, &ignored)) {
        for (size_t i = 0; i < n; i++) {
            const struct arena_mark m = arena_mark(&a);
            const char *run = arena_cstr(&a, runs[i]);
            if (run != NULL && path_is_safe_name(runs[i])) {
                follow_journals(f, &a, run, runs_dir);
                follow_sessions(f, &a, run, runs_dir);
            }
            arena_reset(&a, m);
        }
    }
    arena_release(&a);
}

static void *follow(void *arg)
{
    struct follower *f = arg;
    pthread_mutex_lock(&f->lock);
    while (!f->closing) {
        struct timespec until;
        pthread_mutex_unlock(&f->lock);
        poll_once(f);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += POLL_MS / 1000;
        pthread_mutex_lock(&f->lock);
        if (!f->closing)
            pthread_cond_timedwait(&f->stop, &f->lock, &until);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

struct follower *follower_open(struct server *s)
{
    struct follower *f = map_alloc(1, sizeof *f);
    f->server = s;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->stop, NULL);
    must(pthread_create(&f->thread, NULL, follow, f) == 0);
    return f;
}

void follower_close(struct follower *f)
{
    if (f == NULL)
        return;
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_signal(&f->stop);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    for (struct followed *x = f->files, *next; x != NULL; x = next) {
        next = x->next;
        file_close(f, x);
        free(x->path);
        free(x->file);
        free(x);
    }
    for (struct session_seen *x = f->sessions, *next; x != NULL; x = next) {
        next = x->next;
        free(x->key);
        free(x);
    }
    free(f);
}
