/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP server share. */
#ifndef TACHO_SERVER_HTTP_INSIDE_H
#define TACHO_SERVER_HTTP_INSIDE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "server/http.h"

enum call_state {
    CALL_BODY = 0,  /* the body is being read */
    CALL_WORKING,   /* with a worker, the connection is suspended */
    CALL_DONE,      /* answered by the worker, not sent yet */
    CALL_TIMED_OUT, /* the worker goes on, the client has been told to come back */
    CALL_SENDING,
};

struct connection { /* of the client: kept by libmicrohttpd as its socket context */
    int fd;
    uint64_t deadline_ns; /* monotonic; 0 = none: a call or a stream watches itself */
    struct connection *next, **self;
};

struct call { /* one request and its answer; the loop and a worker have a reference each */
    struct http_request req;
    struct http_response resp;
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    struct buf body;
    uint64_t body_counted; /* in server->bodies_bytes */
    uint64_t discarded;    /* bytes of a body that is too big */
    enum call_state state; /* guarded by server->lock */
    uint64_t suspended_ns;
    bool has_head, answer_now, too_big, is_head;
    atomic_int n_references;
    struct call *next, **self; /* list of suspended calls, guarded by server->lock */
};

struct http_stream {
    struct http_server *server;
    struct MHD_Connection *mhd;
    pthread_mutex_t lock;
    struct buf out;      /* not sent yet */
    pthread_cond_t room; /* signalled when the client took something, and at the end */
    bool is_long;        /* a long answer: no keep-alive, its writer waits for room */
    bool suspended, ended, cut;
    atomic_ullong fed_ns; /* monotonic: of the newest bytes, for the keep-alive */
    atomic_int n_references;
    struct http_stream *next, **self; /* guarded by server->lock */
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_options options;
    struct pool *workers, *slow_workers;
    pthread_t timer;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool closing;
    struct call *suspended;
    struct http_stream *streams;
    struct connection *connections;
    uint16_t port;
    atomic_ullong bodies_bytes, n_requests, n_connections, n_refused_bodies, n_timed_out,
        n_closed_idle, next_number;
    atomic_int n_open, n_streams, n_suspended;
};

void call_unref(struct call *c);
/* Queues c's answer on its connection. */
enum MHD_Result call_send(struct call *c, struct http_response *resp);
void http_set_error(struct http_response *resp, int status, const char *title);
void http_compress(const struct http_request *req, struct http_response *resp);
void *http_timer(void *server);
struct MHD_Response *http_stream_response(struct http_stream *st);
void http_stream_end(struct http_stream *st);

#endif
