/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 server: what is written on top of libmicrohttpd so that nobody else needs to know it.
 *
 * One thread waits for all connections and never blocks: `begin` is asked there as soon as a
 * request's head is in (its time is the loop's time), and `handle` answers on a worker thread once
 * the body is in. Limits (limits.def): connections, bytes of a body, bytes of all bodies together.
 * Time limits: a connection without a request for HTTP_IDLE_S is closed, a body or an answer that
 * crawls too, and a request that is still being worked on after LIMIT_HTTP_SUSPEND_S is answered
 * 503 with Retry-After, while its work goes on (dead clients are found so; libmicrohttpd itself
 * never would).
 *
 * Responses get security headers here. Thread: any for streams; else as said. */
#ifndef TACHO_SERVER_HTTP_H
#define TACHO_SERVER_HTTP_H

#include "base/arena.h"
#include "base/buf.h"

#define HTTP_IDLE_S 60
#define HTTP_SLOWEST_BYTES_PER_S 65536
#define HTTP_HEADERS_MAX 8
#define HTTP_PARAMS_MAX 4

struct http_pair {
    str name, value; /* in the request's arena; header names as they came */
};

struct http_server;

struct http_request {
    struct http_server *server; /* that took it */
    struct arena arena;         /* lives as long as the request */
    str method;                 /* "GET" also for HEAD */
    str path; /* percent-decoded but for an encoded slash or NUL; begins with '/' */
    const struct http_pair *query, *headers;
    uint32_t n_query, n_headers;
    str body;
    uint64_t body_max; /* set by begin */
    uint64_t number;   /* of the request, for logs and problem documents */
    bool slow;         /* set by begin: goes to the threads for long work */
    const void *route; /* the rest is the router's: set by begin */
    str params[HTTP_PARAMS_MAX];
    int role;
    int64_t token_id;
    str run_group;
};

struct http_stream;

struct http_response {
    int status;
    const char *content_type; /* static text */
    struct buf body;
    int fd; /* >= 0: sent instead of the body, then closed */
    uint64_t fd_bytes;
    struct http_stream *stream;                 /* not NULL: kept open, fed by http_stream_send */
    struct http_pair headers[HTTP_HEADERS_MAX]; /* more headers; text in the request's arena */
    uint32_t n_headers;
    const char *cache; /* Cache-Control; NULL: no-store */
    bool is_gzip;      /* the body is gzip'ed already */
};

struct http_handler {
    /* On the loop: true = read the body, then handle; false = answer what is in resp at once. */
    bool (*begin)(void *ctx, struct http_request *req, struct http_response *resp);
    void (*handle)(void *ctx, struct http_request *req, struct http_response *resp); /* worker */
    void *ctx;
};

struct http_options {
    str listen; /* "127.0.0.1:7480", "[::1]:0" */
    struct http_handler handler;
    unsigned n_workers, n_slow_workers;
    uint64_t bodies_max_bytes; /* of all requests together */
};

/* Owned. ERR_CONFLICT, with the port, when something else listens there. */
struct http_server *http_open(const struct http_options *o, struct err *e);
/* Stops accepting, waits for handlers, ends streams. NULL allowed. */
void http_close(struct http_server *s);
/* True when something else listens at that address, as "host:port", now. */
bool http_address_in_use(str listen);
uint16_t http_port(const struct http_server *s);

struct http_stats {
    uint64_t connections, connections_open, requests, refused_bodies, timed_out, closed_idle;
    uint64_t streams_open, suspended;
};
void http_stats(struct http_server *s, struct http_stats *out);

/* The first of that name; headers in any letter case. Empty when absent. */
str http_header(const struct http_request *r, const char *name);
str http_query(const struct http_request *r, const char *name);
/* The cookie of that name, or empty. */
str http_cookie(const struct http_request *r, const char *name);
void http_add_header(struct http_response *resp, const char *name, str value);

/* An open-ended answer (server-sent events). http_stream_new is called by a handler, which puts it
 * into resp->stream and may keep it: each holder has one reference. */
struct http_stream *http_stream_new(struct http_server *s);
struct http_stream *http_stream_hold(struct http_stream *st);
void http_stream_drop(struct http_stream *st);
/* False when the client is gone or reads too slowly (then it is cut off). */
bool http_stream_send(struct http_stream *st, str bytes);
bool http_stream_is_open(struct http_stream *st);

/* A long answer, written by its handler while the client reads: nothing of it is kept beyond what the
 * client is slow to take. The handler puts the rest of the head into resp, a stream of
 * http_stream_new_long into resp->stream, and from http_stream_start on touches resp no more:
 *
 *     if (http_stream_start(req, resp))
 *         while (more) if (!http_stream_write(st, bytes)) break;
 *     http_stream_finish(st, whole);         not whole: the connection is cut, so that the client knows
 *     return true;                           the handler's reference is resp's */
struct http_stream *http_stream_new_long(struct http_server *s);
/* False when the request was answered already (it took too long), or asks for the head only. */
bool http_stream_start(struct http_request *req, struct http_response *resp);
/* Waits for room. False when the client is gone, or took nothing for HTTP_IDLE_S. */
bool http_stream_write(struct http_stream *st, str bytes);
void http_stream_finish(struct http_stream *st, bool whole);

#endif
