/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon and the life of a call: head, body, worker, answer. */
#define LOG_DOMAIN "http"
#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/process.h"
#include "server/http_inside.h"

#define HEAD_BYTES_MAX 65536 /* of a request's head and its connection's buffers */
#define INACTIVITY_S 30
#define BACKLOG 256

static struct call *call_new(struct http_server *s, struct MHD_Connection *mhd)
{
    struct call *c = map_alloc(1, sizeof *c);
    arena_init(&c->req.arena, "request", LIMIT_ARENA_REQUEST_BYTES);
    buf_init(&c->resp.body, LIMIT_ARENA_REQUEST_BYTES);
    c->resp.fd = -1;
    c->resp.status = 200;
    c->server = s;
    c->req.server = s;
    c->mhd = mhd;
    c->n_references = 1;
    c->req.number = atomic_fetch_add(&s->next_number, 1) + 1;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    c->connection = info == NULL ? NULL : info->socket_context;
    return c;
}

void call_unref(struct call *c)
{
    if (atomic_fetch_sub(&c->n_references, 1) > 1)
        return;
    atomic_fetch_sub(&c->server->bodies_bytes, c->body_counted);
    if (c->resp.fd >= 0)
        close(c->resp.fd);
    if (c->resp.stream != NULL)
        http_stream_drop(c->resp.stream);
    buf_release(&c->body);
    buf_release(&c->resp.body);
    arena_release(&c->req.arena);
    free(c);
}

struct gather {
    struct arena *a;
    struct http_pair *items;
    uint32_t n, capacity;
};

/* With lengths: a value may hold a NUL, which must not cut it. */
static enum MHD_Result gather_one(void *ctx, enum MHD_ValueKind kind, const char *name,
                                  size_t name_bytes, const char *value, size_t value_bytes)
{
    (void)kind;
    struct gather *g = ctx;
    if (!ARENA_PUSH(g->a, g->items, g->n, g->capacity))
        return MHD_NO;
    g->items[g->n - 1].name = arena_str(g->a, (str){name, name_bytes});
    g->items[g->n - 1].value = arena_str(g->a, (str){value, value == NULL ? 0 : value_bytes});
    return MHD_YES;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Percent-decodes up to the '?'. What would change the meaning of the whole stays as it came: an
 * encoded slash or NUL, and what is no escape. */
static str decode_path(struct arena *a, str raw)
{
    size_t n = 0;
    const ptrdiff_t end = str_find_char(raw, '?');
    if (end >= 0)
        raw.n = (size_t)end;
    char *out = ARENA_ARRAY(a, char, raw.n + 1);
    for (size_t i = 0; out != NULL && i < raw.n; i++) {
        const bool escape = raw.p[i] == '%' && i + 2 < raw.n;
        const int high = escape ? hex_digit(raw.p[i + 1]) : -1,
                  low = escape ? hex_digit(raw.p[i + 2]) : -1, byte = high * 16 + low;
        if (high >= 0 && low >= 0 && byte != 0 && byte != '/') {
            out[n++] = (char)byte;
            i += 2;
        } else {
            out[n++] = raw.p[i];
        }
    }
    return (str){out, out == NULL ? 0 : n};
}

/* libmicrohttpd decodes the path before on_access sees it; here it still is as it came. */
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *mhd)
{
    struct call *c = call_new(ctx, mhd);
    c->req.path = decode_path(&c->req.arena, str_from(uri));
    return c;
}

static void take_head(struct call *c, const char *method)
{
    struct http_request *r = &c->req;
    struct gather query = {.a = &r->arena}, headers = {.a = &r->arena};
    MHD_get_connection_values_n(c->mhd, MHD_GET_ARGUMENT_KIND, gather_one, &query);
    MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, gather_one, &headers);
    c->is_head = strcmp(method, "HEAD") == 0;
    r->method = arena_str(&r->arena, c->is_head ? S("GET") : str_from(method));
    r->query = query.items;
    r->n_query = query.n;
    r->headers = headers.items;
    r->n_headers = headers.n;
    r->body_max = LIMIT_HTTP_BODY_BYTES;
}

static void set_deadline(struct call *c, uint64_t bytes)
{
    if (c->connection == NULL)
        return;
    pthread_mutex_lock(&c->server->lock);
    c->connection->deadline_ns =
        clock_monotonic_ns() +
        (HTTP_IDLE_S + bytes / HTTP_SLOWEST_BYTES_PER_S) * (uint64_t)NS_PER_S;
    pthread_mutex_unlock(&c->server->lock);
}

static void clear_deadline(struct call *c)
{
    if (c->connection == NULL)
        return;
    pthread_mutex_lock(&c->server->lock);
    c->connection->deadline_ns = 0;
    pthread_mutex_unlock(&c->server->lock);
}

/* The announced length decides before a byte of the body is read. */
static enum MHD_Result begin_call(struct call *c)
{
    const struct http_handler *h = &c->server->options.handler;
    atomic_fetch_add(&c->server->n_requests, 1);
    uint64_t announced = 0;
    const str length = http_header(&c->req, "Content-Length");
    const bool counted = length.n == 0 || str_to_u64(length, &announced);
    if (!h->begin(h->ctx, &c->req, &c->resp)) {
        c->answer_now = true;
    } else if (!counted || announced > c->req.body_max) {
        atomic_fetch_add(&c->server->n_refused_bodies, 1);
        http_set_error(&c->resp, 413, "the body is larger than this route takes");
        c->answer_now = true;
    }
    buf_init(&c->body, (size_t)c->req.body_max);
    set_deadline(c, announced);
    if (c->answer_now)
        return call_send(c, &c->resp);
    return MHD_YES;
}

static bool add_body(struct call *c, const char *p, size_t n)
{
    struct http_server *s = c->server;
    if (c->too_big) { /* read a little more, so that the client sees the answer */
        c->discarded += n;
        return c->discarded <= c->req.body_max;
    }
    const uint64_t all = atomic_fetch_add(&s->bodies_bytes, n) + n;
    c->body_counted += n;
    if (all <= s->options.bodies_max_bytes && buf_add(&c->body, p, n))
        return true;
    atomic_fetch_add(&s->n_refused_bodies, 1);
    c->too_big = true;
    buf_release(&c->body);
    return true;
}

/* Takes c out of the list of those that wait; with server->lock held. */
static void unlist(struct call *c)
{
    *c->self = c->next;
    if (c->next != NULL)
        c->next->self = c->self;
    atomic_fetch_sub(&c->server->n_suspended, 1);
}

static void work(void *arg)
{
    struct call *c = arg;
    struct http_server *s = c->server;
    c->req.body = buf_str(&c->body);
    s->options.handler.handle(s->options.handler.ctx, &c->req, &c->resp);
    http_compress(&c->req, &c->resp);
    pthread_mutex_lock(&s->lock);
    if (c->state == CALL_WORKING) {
        unlist(c);
        c->state = CALL_DONE;
        MHD_resume_connection(c->mhd);
    }
    pthread_mutex_unlock(&s->lock);
    call_unref(c);
}

/* The pools are asked with the lock held: http_close, which frees them, sets `closing` first. */
static enum MHD_Result start_work(struct call *c)
{
    struct http_server *s = c->server;
    clear_deadline(c);
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&c->n_references, 1);
    c->state = CALL_WORKING;
    c->suspended_ns = clock_monotonic_ns();
    c->next = s->suspended;
    if (c->next != NULL)
        c->next->self = &c->next;
    c->self = &s->suspended;
    s->suspended = c;
    atomic_fetch_add(&s->n_suspended, 1);
    MHD_suspend_connection(c->mhd);
    const bool taken =
        !s->closing && pool_submit(c->req.slow ? s->slow_workers : s->workers, work, c);
    if (!taken) {
        unlist(c);
        c->state = CALL_DONE;
        http_set_error(&c->resp, 503, s->closing ? "the server ends" : "too many requests wait");
        MHD_resume_connection(c->mhd);
    }
    pthread_mutex_unlock(&s->lock);
    if (!taken)
        call_unref(c);
    return MHD_YES;
}

static enum MHD_Result send_timed_out(struct call *c)
{
    struct http_response resp = {.fd = -1};
    buf_init(&resp.body, 4096);
    http_set_error(&resp, 503, "still being computed; ask again");
    http_add_header(&resp, "Retry-After", S("5"));
    const enum MHD_Result sent = call_send(c, &resp);
    buf_release(&resp.body);
    return sent;
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_bytes, void **con_cls)
{
    (void)ctx, (void)mhd, (void)url, (void)version;
    struct call *c = *con_cls;
    if (!c->has_head) {
        c->has_head = true;
        take_head(c, method);
        return begin_call(c);
    }
    if (*upload_bytes > 0) {
        const bool go_on = c->answer_now || add_body(c, upload, *upload_bytes);
        *upload_bytes = 0;
        return go_on ? MHD_YES : MHD_NO;
    }
    if (c->answer_now)
        return MHD_YES;
    pthread_mutex_lock(&c->server->lock);
    const enum call_state state = c->state;
    if (state == CALL_DONE)
        c->state = CALL_SENDING;
    pthread_mutex_unlock(&c->server->lock);
    if (state == CALL_DONE)
        return call_send(c, &c->resp);
    if (state == CALL_TIMED_OUT)
        return send_timed_out(c);
    if (c->too_big) {
        http_set_error(&c->resp, 413, "the body is larger than this route takes");
        return call_send(c, &c->resp);
    }
    return start_work(c);
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    (void)ctx, (void)mhd, (void)why;
    struct call *c = *con_cls;
    *con_cls = NULL;
    if (c == NULL)
        return;
    set_deadline(c, 0);
    call_unref(c);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *n = map_alloc(1, sizeof *n);
        n->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        const unsigned silence_ms = HTTP_IDLE_S * 1000u; /* a client that vanished: no FIN comes */
        (void)setsockopt(n->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
        n->deadline_ns = clock_monotonic_ns() + HTTP_IDLE_S * (uint64_t)NS_PER_S;
        *context = n;
        atomic_fetch_add(&s->n_connections, 1);
        atomic_fetch_add(&s->n_open, 1);
        pthread_mutex_lock(&s->lock);
        n->next = s->connections;
        n->self = &s->connections;
        if (n->next != NULL)
            n->next->self = &n->next;
        s->connections = n;
        pthread_mutex_unlock(&s->lock);
        return;
    }
    struct connection *n = *context;
    pthread_mutex_lock(&s->lock);
    *n->self = n->next;
    if (n->next != NULL)
        n->next->self = n->self;
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_sub(&s->n_open, 1);
    *context = NULL;
    free(n);
}

/* "host:port", "[v6]:port": a socket that listens, or -1. */
static int listen_on(str where, uint16_t *port, struct err *e)
{
    char host[256], service[16];
    ptrdiff_t colon = -1;
    for (size_t i = 0; i < where.n; i++)
        if (where.p[i] == ':')
            colon = (ptrdiff_t)i;
    str name = str_sub(where, 0, colon < 0 ? where.n : (size_t)colon);
    const str number = colon < 0 ? S("7480") : str_sub(where, (size_t)colon + 1, where.n);
    if (str_starts(name, S("[")) && str_ends(name, S("]")))
        name = str_sub(name, 1, name.n - 1);
    uint64_t n = 0;
    if (name.n >= sizeof host || !str_to_u64(number, &n) || n > 65535) {
        err_set(e, ERR_USAGE, "'%.*s' is not an address and a port", STR_ARG(where));
        return -1;
    }
    snprintf(host, sizeof host, "%.*s", STR_ARG(name));
    snprintf(service, sizeof service, "%u", (unsigned)n);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    const int rc = getaddrinfo(name.n == 0 ? NULL : host, service, &hints, &found);
    if (rc != 0) {
        err_set(e, ERR_USAGE, "'%s' is not an address: %s", host, gai_strerror(rc));
        return -1;
    }
    const int one = 1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == -1 ||
        bind(fd, found->ai_addr, found->ai_addrlen) == -1 || listen(fd, BACKLOG) == -1) {
        const bool in_use = errno == EADDRINUSE;
        err_sys(e, "cannot listen on '%.*s'", STR_ARG(where));
        if (in_use) {
            err_set(e, ERR_CONFLICT, "port %u on '%s' is in use", (unsigned)n, host);
            err_hint(e, "stop what listens there, or choose another port: --listen %.80s:%u", host,
                     (unsigned)n + 1);
        }
        if (fd != -1)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    struct sockaddr_in6 bound = {0};
    socklen_t length = sizeof bound;
    if (fd != -1 && getsockname(fd, (struct sockaddr *)&bound, &length) == 0)
        *port = ntohs(bound.sin6_port); /* at the same place in both families */
    return fd;
}

bool http_address_in_use(str listen)
{
    struct err e = {0};
    uint16_t port = 0;
    const int fd = listen_on(listen, &port, &e);
    if (fd != -1)
        close(fd);
    return fd == -1 && e.code == ERR_CONFLICT;
}

/* libmicrohttpd's own words, such as that a client is gone, are for who looks for them. */
static void PRINTF_LIKE(2, 0) log_daemon(void *ctx, const char *format, va_list args)
{
    char text[256];
    (void)ctx;
    const int n = vsnprintf(text, sizeof text, format, args);
    str said = {text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1};
    said = str_trim(said);
    log_debug("%.*s", STR_ARG(said));
}

struct http_server *http_open(const struct http_options *o, struct err *e)
{
    struct http_server *s = map_alloc(1, sizeof *s);
    s->options = *o;
    process_raise_descriptors();
    const int fd = listen_on(o->listen, &s->port, e);
    if (fd == -1) {
        free(s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->workers = pool_new("http", o->n_workers, (unsigned)LIMIT_HTTP_CONNECTIONS);
    s->slow_workers = pool_new("http-slow", o->n_slow_workers, (unsigned)LIMIT_HTTP_CONNECTIONS);
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        on_access, s, MHD_OPTION_EXTERNAL_LOGGER, log_daemon, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_HTTP_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)INACTIVITY_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEAD_BYTES_MAX, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_URI_LOG_CALLBACK, on_uri, s,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (s->daemon == NULL) {
        err_set(e, ERR_INTERNAL, "cannot start the HTTP server");
        close(fd);
        pool_free(s->workers);
        pool_free(s->slow_workers);
        free(s);
        return NULL;
    }
    must(pthread_create(&s->timer, NULL, http_timer, s) == 0);
    return s;
}

void http_close(struct http_server *s)
{
    if (s == NULL)
        return;
    const int listener = MHD_quiesce_daemon(s->daemon);
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->wake);
    for (struct http_stream *st = s->streams; st != NULL; st = st->next)
        if (st->is_long)
            http_stream_end(st); /* a worker waits for its client */
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->timer, NULL);
    pool_free(s->workers);
    pool_free(s->slow_workers);
    pthread_mutex_lock(&s->lock);
    for (struct http_stream *st = s->streams; st != NULL; st = st->next)
        http_stream_end(st);
    pthread_mutex_unlock(&s->lock);
    MHD_stop_daemon(s->daemon);
    if (listener != MHD_INVALID_SOCKET)
        close(listener);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    free(s);
}

uint16_t http_port(const struct http_server *s)
{
    return s->port;
}

void http_stats(struct http_server *s, struct http_stats *out)
{
    *out = (struct http_stats){
        .connections = s->n_connections,
        .connections_open = (uint64_t)s->n_open,
        .requests = s->n_requests,
        .refused_bodies = s->n_refused_bodies,
        .timed_out = s->n_timed_out,
        .closed_idle = s->n_closed_idle,
        .streams_open = (uint64_t)s->n_streams,
        .suspended = (uint64_t)s->n_suspended,
    };
}
