/* SPDX-License-Identifier: Apache-2.0 */
/* Open-ended answers, and the timer that looks after everything that waits. */
#define LOG_DOMAIN "http"
#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "server/http_inside.h"

#define STREAM_BACKLOG_BYTES (1 << 20)
#define STREAM_BLOCK_BYTES 16384
#define LONG_BLOCK_BYTES (256 << 10) /* of a long answer: what waits is handed on whole */
#define KEEP_ALIVE_S 15
#define TIMER_MS 500

struct http_stream *http_stream_new(struct http_server *s)
{
    struct http_stream *st = map_alloc(1, sizeof *st);
    st->server = s;
    st->n_references = 1;
    st->fed_ns = clock_monotonic_ns();
    buf_init(&st->out, STREAM_BACKLOG_BYTES);
    pthread_mutex_init(&st->lock, NULL);
    pthread_cond_init(&st->room, NULL);
    return st;
}

struct http_stream *http_stream_new_long(struct http_server *s)
{
    struct http_stream *st = http_stream_new(s);
    st->is_long = true;
    st->out.cap = LONG_BLOCK_BYTES;
    return st;
}

struct http_stream *http_stream_hold(struct http_stream *st)
{
    atomic_fetch_add(&st->n_references, 1);
    return st;
}

void http_stream_drop(struct http_stream *st)
{
    if (st == NULL || atomic_fetch_sub(&st->n_references, 1) > 1)
        return;
    buf_release(&st->out);
    pthread_mutex_destroy(&st->lock);
    pthread_cond_destroy(&st->room);
    free(st);
}

/* With st->lock held. */
static void wake_stream(struct http_stream *st)
{
    if (!st->suspended)
        return;
    st->suspended = false;
    MHD_resume_connection(st->mhd);
}

/* The server ends, with st->lock held: a long answer that is not whole yet is cut. */
static void end_stream(struct http_stream *st)
{
    st->cut = st->cut || (st->is_long && !st->ended);
    st->ended = true;
    wake_stream(st);
    pthread_cond_broadcast(&st->room);
}

void http_stream_end(struct http_stream *st)
{
    pthread_mutex_lock(&st->lock);
    end_stream(st);
    pthread_mutex_unlock(&st->lock);
}

/* ---- long answers ---- */

bool http_stream_start(struct http_request *req, struct http_response *resp)
{
    struct call *c = (struct call *)(void *)((char *)req - offsetof(struct call, req));
    struct http_server *s = c->server;
    must(resp == &c->resp && resp->stream != NULL);
    pthread_mutex_lock(&s->lock);
    const bool waits = c->state == CALL_WORKING;
    if (waits) {
        *c->self = c->next;
        if (c->next != NULL)
            c->next->self = c->self;
        atomic_fetch_sub(&s->n_suspended, 1);
        c->state = CALL_DONE;
        MHD_resume_connection(c->mhd);
    }
    pthread_mutex_unlock(&s->lock);
    return waits && !c->is_head;
}

/* With st->lock held. False when none came for HTTP_IDLE_S. */
static bool wait_for_room(struct http_stream *st)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HTTP_IDLE_S;
    while (!st->ended && st->out.n >= LONG_BLOCK_BYTES)
        if (pthread_cond_timedwait(&st->room, &st->lock, &until) != 0)
            return false;
    return !st->ended;
}

bool http_stream_write(struct http_stream *st, str bytes)
{
    bool ok = true;
    pthread_mutex_lock(&st->lock);
    while (ok && bytes.n > 0) {
        ok = wait_for_room(st);
        const size_t room = ok ? LONG_BLOCK_BYTES - st->out.n : 0;
        const str part = str_sub(bytes, 0, room);
        ok = ok && buf_add_str(&st->out, part);
        bytes = str_sub(bytes, part.n, bytes.n);
        wake_stream(st);
    }
    pthread_mutex_unlock(&st->lock);
    return ok;
}

void http_stream_finish(struct http_stream *st, bool whole)
{
    pthread_mutex_lock(&st->lock);
    st->cut = st->cut || !whole;
    st->ended = true;
    wake_stream(st);
    pthread_mutex_unlock(&st->lock);
}

bool http_stream_send(struct http_stream *st, str bytes)
{
    pthread_mutex_lock(&st->lock);
    if (!st->ended && !buf_add_str(&st->out, bytes))
        st->ended = true; /* reads too slowly */
    st->fed_ns = clock_monotonic_ns();
    wake_stream(st);
    const bool ok = !st->ended;
    pthread_mutex_unlock(&st->lock);
    return ok;
}

bool http_stream_is_open(struct http_stream *st)
{
    pthread_mutex_lock(&st->lock);
    const bool open = !st->ended;
    pthread_mutex_unlock(&st->lock);
    return open;
}

static ssize_t read_stream(void *ctx, uint64_t pos, char *out, size_t max)
{
    (void)pos;
    struct http_stream *st = ctx;
    ssize_t n = 0;
    pthread_mutex_lock(&st->lock);
    if (st->out.n > 0) {
        n = (ssize_t)(st->out.n < max ? st->out.n : max);
        memcpy(out, st->out.p, (size_t)n);
        buf_consume(&st->out, (size_t)n);
        pthread_cond_broadcast(&st->room);
    } else if (st->ended) {
        n = st->cut ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        st->suspended = true;
        MHD_suspend_connection(st->mhd);
    }
    pthread_mutex_unlock(&st->lock);
    return n;
}

static void forget_stream(void *ctx)
{
    struct http_stream *st = ctx;
    struct http_server *s = st->server;
    pthread_mutex_lock(&s->lock);
    *st->self = st->next;
    if (st->next != NULL)
        st->next->self = st->self;
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_sub(&s->n_streams, 1);
    pthread_mutex_lock(&st->lock);
    st->ended = true;
    st->suspended = false;
    pthread_cond_broadcast(&st->room);
    pthread_mutex_unlock(&st->lock);
    http_stream_drop(st);
}

struct MHD_Response *http_stream_response(struct http_stream *st)
{
    struct http_server *s = st->server;
    struct MHD_Response *m = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, st->is_long ? LONG_BLOCK_BYTES : STREAM_BLOCK_BYTES, read_stream,
        http_stream_hold(st), forget_stream);
    if (m == NULL) {
        http_stream_drop(st);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    st->next = s->streams;
    st->self = &s->streams;
    if (st->next != NULL)
        st->next->self = &st->next;
    s->streams = st;
    pthread_mutex_lock(&st->lock);
    if (s->closing)
        end_stream(st);
    pthread_mutex_unlock(&st->lock);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->n_streams, 1);
    return m;
}

/* Everything below runs with server->lock held, twice a second. */

static void keep_streams_alive(struct http_server *s, uint64_t now)
{
    for (struct http_stream *st = s->streams; st != NULL; st = st->next)
        if (!st->is_long && now - st->fed_ns > KEEP_ALIVE_S * (uint64_t)NS_PER_S)
            (void)http_stream_send(st, S(": still here\n\n"));
}

static void answer_overdue(struct http_server *s, uint64_t now)
{
    for (struct call *c = s->suspended, *next; c != NULL; c = next) {
        next = c->next;
        if (!s->closing && now - c->suspended_ns < (LIMIT_HTTP_SUSPEND_S - 1) * (uint64_t)NS_PER_S)
            continue;
        *c->self = c->next;
        if (c->next != NULL)
            c->next->self = c->self;
        atomic_fetch_sub(&s->n_suspended, 1);
        atomic_fetch_add(&s->n_timed_out, 1);
        c->state = CALL_TIMED_OUT;
        MHD_resume_connection(c->mhd);
    }
}

static void cut_off_idle(struct http_server *s, uint64_t now)
{
    for (struct connection *n = s->connections; n != NULL; n = n->next) {
        if (n->deadline_ns == 0 || now < n->deadline_ns)
            continue;
        n->deadline_ns = 0;
        shutdown(n->fd, SHUT_RDWR);
        atomic_fetch_add(&s->n_closed_idle, 1);
    }
}

void *http_timer(void *server)
{
    struct http_server *s = server;
    pthread_mutex_lock(&s->lock);
    while (!s->closing) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TIMER_MS * NS_PER_MS;
        until.tv_sec += until.tv_nsec / NS_PER_S;
        until.tv_nsec %= NS_PER_S;
        pthread_cond_timedwait(&s->wake, &s->lock, &until);
        const uint64_t now = clock_monotonic_ns();
        keep_streams_alive(s, now);
        answer_overdue(s, now);
        cut_off_idle(s, now);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
