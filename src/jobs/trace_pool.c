/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/trace_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "jobs/index_place.h"

#define KEPT 4 /* parsers */
#define IDLE_NS (UINT64_C(60) * 1000000000)
#define ANSWER_MS 120000
#define QUESTION_BYTES (UINT32_C(1) << 20)

struct question {
    uint32_t view, n_params;
    uint64_t n_bytes; /* of parameters: key and value lengths u32, their bytes */
};

struct answer {
    uint64_t n_bytes;
    uint32_t ok, unused; /* not ok: a struct err follows */
};

struct served {
    struct served *next;
    char *path;
    uint64_t identity;
    bool partial;
    uint32_t refs;
    uint64_t used_ns;
    pthread_mutex_t lock; /* of what follows */
    struct parser_child *child;
    int ask_fd;
    bool broken;
};

struct maker { /* makes the index of one profile */
    struct maker *next;
    struct trace_pool *pool;
    char *path;
    struct parser_limits limits;
    pthread_t thread;
    bool done; /* with the pool's lock */
};

struct trace_pool {
    uint64_t at_once_bytes, part_events;
    pthread_mutex_t lock;
    struct served *served;
    struct maker *makers; /* also those that are done: their profiles are not tried again */
};

/* -- in the parser -- */

static bool read_all(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = read(fd, (char *)p + at, n - at);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool params_read(str bytes, struct tool_param *params, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lengths[2];
        if (bytes.n < sizeof lengths)
            return false;
        memcpy(lengths, bytes.p, sizeof lengths);
        bytes = str_sub(bytes, sizeof lengths, bytes.n);
        if (lengths[0] > bytes.n || lengths[1] > bytes.n - lengths[0])
            return false;
        params[i].key = str_sub(bytes, 0, lengths[0]);
        params[i].value = str_sub(bytes, lengths[0], lengths[0] + (size_t)lengths[1]);
        bytes = str_sub(bytes, lengths[0] + (size_t)lengths[1], bytes.n);
    }
    return bytes.n == 0;
}

static bool answer_one(struct profile *p, const struct question *q, str bytes, int out_fd,
                       struct err *e)
{
    struct tool_param *params = map_alloc((size_t)q->n_params + 1, sizeof *params);
    const struct tool_request r = {.profile = p, .params = params, .n_params = q->n_params};
    struct err why = {0};
    struct buf out;
    buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
    struct answer a = {.ok = params_read(bytes, params, q->n_params) &&
                             profile_task_view((enum tiles_view)q->view, &r, &out, &why)};
    a.n_bytes = a.ok ? out.n : sizeof why;
    const bool sent = file_write_all(out_fd, &a, sizeof a, e) &&
                      file_write_all(out_fd, a.ok ? (void *)out.p : &why, a.n_bytes, e);
    buf_release(&out);
    map_free(params);
    return sent;
}

/* Answers until nobody asks any more. */
static bool answer_all(struct profile *p, void *ctx, int out_fd, struct err *e)
{
    const int ask_fd = *(int *)ctx;
    char *bytes = map_alloc(QUESTION_BYTES, 1);
    struct question q;
    bool ok = true;
    while (ok && read_all(ask_fd, &q, sizeof q)) {
        ok = q.n_bytes <= QUESTION_BYTES && q.n_params <= q.n_bytes &&
             read_all(ask_fd, bytes, q.n_bytes) &&
             answer_one(p, &q, (str){bytes, q.n_bytes}, out_fd, e);
    }
    map_free(bytes);
    return ok;
}

/* -- in the server -- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    return map_hash_u64(h * 31 + v);
}

/* Changes with the files of the profile. */
static uint64_t identity_of(const struct profile_source *s)
{
    uint64_t h = s->n_files;
    for (uint32_t i = 0; i < s->n_files; i++) {
        struct stat st;
        if (fstat(s->files[i].fd, &st) != 0)
            continue;
        h = mix(h, st.st_ino);
        h = mix(h, (uint64_t)st.st_size);
        h = mix(h, (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
    }
    return h;
}

static void served_free(struct served *s)
{
    struct err ignored = {0};
    if (s->ask_fd >= 0)
        close(s->ask_fd);
    (void)parser_close(s->child, &ignored);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    map_free(s);
}

/* Takes those out of the list that nobody uses and that are too old, broken, or too many. The caller frees them. */
static struct served *take_stale(struct trace_pool *p, uint64_t now_ns, uint32_t most)
{
    struct served *stale = NULL;
    uint32_t n = 0;
    for (struct served **at = &p->served; *at != NULL;) {
        struct served *s = *at;
        if (s->refs == 0 && (s->broken || now_ns - s->used_ns > IDLE_NS || n >= most)) {
            *at = s->next;
            s->next = stale;
            stale = s;
            continue;
        }
        n++;
        at = &s->next;
    }
    return stale;
}

static void free_all(struct served *s)
{
    while (s != NULL) {
        struct served *next = s->next;
        served_free(s);
        s = next;
    }
}

/* The newest is first. */
static struct served *served_find(struct trace_pool *p, const char *path, uint64_t identity)
{
    for (struct served **at = &p->served; *at != NULL; at = &(*at)->next) {
        struct served *s = *at;
        if (strcmp(s->path, path) != 0 || s->broken)
            continue;
        if (s->identity != identity) {
            s->broken = true; /* of files that are no more */
            continue;
        }
        *at = s->next;
        s->next = p->served;
        p->served = s;
        return s;
    }
    return NULL;
}

static struct served *served_add(struct trace_pool *p, const char *path, uint64_t identity,
                                 bool partial)
{
    struct served *s = map_alloc(1, sizeof *s);
    s->path = strdup(path);
    must(s->path != NULL);
    s->identity = identity;
    s->partial = partial;
    s->ask_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->next = p->served;
    p->served = s;
    return s;
}

/* Starts the parser. The source's indexes have been looked up. */
static bool served_start(const struct trace_pool *p, struct served *s,
                         struct profile_source *source, const struct parser_limits *limits,
                         struct err *e)
{
    int ask[2];
    if (pipe2(ask, O_CLOEXEC) != 0)
        return err_sys(e, "cannot make a pipe for a parser");
    source->lines_only = true;
    source->most_events = s->partial ? p->part_events : 0;
    s->child = profile_task_open(source, limits, answer_all, &ask[0], ask[0], e);
    close(ask[0]);
    s->ask_fd = ask[1];
    return s->child != NULL;
}

static bool question_send(const struct served *s, enum tiles_view view,
                          const struct tool_param *params, uint32_t n_params, struct err *e)
{
    struct buf b;
    buf_init(&b, QUESTION_BYTES + sizeof(struct question));
    struct question q = {.view = view, .n_params = n_params};
    for (uint32_t i = 0; i < n_params; i++)
        q.n_bytes += 2 * sizeof(uint32_t) + params[i].key.n + params[i].value.n;
    buf_add(&b, &q, sizeof q);
    for (uint32_t i = 0; i < n_params; i++) {
        const uint32_t lengths[] = {(uint32_t)params[i].key.n, (uint32_t)params[i].value.n};
        buf_add(&b, lengths, sizeof lengths);
        buf_add_str(&b, params[i].key);
        buf_add_str(&b, params[i].value);
    }
    const bool ok = buf_ok(&b, "the question", e) && file_write_all(s->ask_fd, b.p, b.n, e);
    buf_release(&b);
    return ok;
}

/* n bytes from the parser, which may have died, hang or be another than it was. */
static bool answer_read(const struct served *s, void *p, size_t n, struct err *e)
{
    struct pollfd in = {.fd = parser_out(s->child), .events = POLLIN};
    for (size_t at = 0; at < n;) {
        const int ready = poll(&in, 1, ANSWER_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return err_set(e, ERR_LIMIT, "the answer took longer than %d s", ANSWER_MS / 1000);
        const ssize_t got = ready > 0 ? read(in.fd, (char *)p + at, n - at) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_set(e, ERR_CRASH, "the parser does not answer");
        at += (size_t)got;
    }
    return true;
}

static bool answer_take(const struct served *s, struct buf *out, bool *answered, struct err *e)
{
    struct answer a;
    struct err why;
    if (!answer_read(s, &a, sizeof a, e)) {
        *answered = e->code == ERR_LIMIT; /* it would take as long once more */
        return false;
    }
    if (a.ok == 0) {
        if (a.n_bytes != sizeof why || !answer_read(s, &why, sizeof why, e))
            return err_set(e, ERR_CRASH, "the parser does not answer");
        why.msg[sizeof why.msg - 1] = why.hint[sizeof why.hint - 1] = '\0';
        *answered = why.code == ERR_USAGE || why.code == ERR_NOT_FOUND || why.code == ERR_LIMIT;
        *e = why;
        return false;
    }
    char *room = a.n_bytes <= LIMIT_PARSER_OUTPUT_BYTES ? buf_reserve(out, a.n_bytes + 1) : NULL;
    if (room == NULL)
        return err_set(e, ERR_LIMIT, "the answer is too large");
    if (!answer_read(s, room, a.n_bytes, e))
        return false;
    out->n += a.n_bytes;
    out->p[out->n] = '\0';
    return *answered = true;
}

static void *make_index(void *arg)
{
    struct maker *m = arg;
    struct err ignored = {0}; /* whoever asks is told */
    (void)!profile_task_index(m->path, &m->limits, &ignored);
    pthread_mutex_lock(&m->pool->lock);
    m->done = true;
    pthread_mutex_unlock(&m->pool->lock);
    return NULL;
}

/* Whether an index of the profile was made, or could not be. With the lock held. */
static const struct maker *maker_find(const struct trace_pool *p, const char *path)
{
    const struct maker *m = p->makers;
    while (m != NULL && strcmp(m->path, path) != 0)
        m = m->next;
    return m;
}

static void maker_start(struct trace_pool *p, const char *path, const struct parser_limits *limits)
{
    if (maker_find(p, path) != NULL)
        return;
    struct maker *m = map_alloc(1, sizeof *m);
    m->pool = p;
    m->path = strdup(path);
    must(m->path != NULL);
    m->limits = *limits;
    if (pthread_create(&m->thread, NULL, make_index, m) != 0) {
        free(m->path);
        map_free(m);
        return;
    }
    m->next = p->makers;
    p->makers = m;
}

struct trace_pool *trace_pool_new(uint64_t at_once_bytes, uint64_t part_events)
{
    struct trace_pool *p = map_alloc(1, sizeof *p);
    p->at_once_bytes = at_once_bytes;
    p->part_events = part_events;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void trace_pool_free(struct trace_pool *p)
{
    if (p == NULL)
        return;
    while (p->makers != NULL) {
        struct maker *m = p->makers;
        p->makers = m->next;
        pthread_join(m->thread, NULL);
        free(m->path);
        map_free(m);
    }
    free_all(p->served);
    pthread_mutex_destroy(&p->lock);
    map_free(p);
}

void trace_pool_sweep(struct trace_pool *p)
{
    pthread_mutex_lock(&p->lock);
    struct served *stale = take_stale(p, clock_monotonic_ns(), KEPT);
    pthread_mutex_unlock(&p->lock);
    free_all(stale);
}

static uint64_t source_bytes(const struct profile_source *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n_files; i++)
        n += s->files[i].size_bytes;
    return n;
}

/* The parser of the profile, made when there is none that may answer. With the lock held. */
static struct served *served_choose(struct trace_pool *p, const char *path, uint64_t identity,
                                    bool has_index, bool is_large,
                                    const struct parser_limits *limits)
{
    struct served *s = served_find(p, path, identity);
    if (s != NULL && s->partial && has_index) {
        s->broken = true; /* the next one knows all */
        s = NULL;
    }
    if (s != NULL)
        return s;
    const struct maker *tried = maker_find(p, path);
    const bool partial = !has_index && is_large && (tried == NULL || !tried->done);
    if (partial)
        maker_start(p, path, limits);
    return served_add(p, path, identity, partial);
}

/* Opens the profile, with its indexes; small ones get theirs when they have none. */
static bool source_open(const struct trace_pool *p, struct profile_source *s, const char *path,
                        const struct parser_limits *limits, bool *has_index, bool *is_large,
                        struct err *e)
{
    if (!profile_find(s, path, e))
        return false;
    *has_index = index_place_look(s, limits->indexes);
    *is_large = source_bytes(s) > p->at_once_bytes;
    if (*has_index || *is_large)
        return true;
    profile_source_release(s);
    if (!profile_task_index(path, limits, e) || !profile_find(s, path, e))
        return false;
    *has_index = index_place_look(s, limits->indexes);
    return true;
}

/* The parser that answers, used by the caller until served_release(); NULL and e on failure. */
static struct served *served_get(struct trace_pool *p, const char *path,
                                 const struct parser_limits *limits, struct err *e)
{
    struct profile_source source;
    bool has_index, is_large;
    if (!source_open(p, &source, path, limits, &has_index, &is_large, e))
        return NULL;
    pthread_mutex_lock(&p->lock);
    struct served *s = served_choose(p, path, identity_of(&source), has_index, is_large, limits);
    s->refs++;
    s->used_ns = clock_monotonic_ns();
    struct served *stale = take_stale(p, s->used_ns, KEPT);
    pthread_mutex_unlock(&p->lock);
    free_all(stale);
    pthread_mutex_lock(&s->lock);
    if (s->child == NULL && !s->broken && !served_start(p, s, &source, limits, e))
        s->broken = true;
    profile_source_release(&source);
    return s;
}

static void served_release(struct trace_pool *p, struct served *s)
{
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&p->lock);
    s->refs--;
    pthread_mutex_unlock(&p->lock);
}

bool trace_pool_ask(struct trace_pool *p, const char *path, const struct parser_limits *limits,
                    enum tiles_view view, const struct tool_param *params, uint32_t n_params,
                    struct buf *out, bool *partial, struct err *e)
{
    const size_t before = out->n;
    bool answered = false;
    struct served *s = served_get(p, path, limits, e);
    if (s == NULL)
        return false;
    *partial = s->partial;
    const bool ok = !s->broken && question_send(s, view, params, n_params, e) &&
                    answer_take(s, out, &answered, e);
    s->broken = s->broken || !answered || (!ok && e->code == ERR_LIMIT);
    served_release(p, s);
    if (answered)
        return ok;
    /* a parser that died or an index that is damaged: asked once more, by itself */
    out->n = before;
    *partial = false;
    err_clear(e);
    return profile_task_trace(path, limits, view, params, n_params, out, e);
}
