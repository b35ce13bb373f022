/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the server share. */
#ifndef TACHO_SERVER_SERVER_INSIDE_H
#define TACHO_SERVER_SERVER_INSIDE_H

#include <pthread.h>

#include "base/json.h"
#include "jobs/index_place.h"
#include "server/auth.h"
#include "server/http.h"
#include "server/server.h"
#include "store/store.h"

#define SERVER_PROTOCOL 1 /* Tachograph-Protocol: the newest one, and the oldest still served */
#define SERVER_PROTOCOL_OLDEST 1

struct run_cache;
struct follower;
struct queue;
struct keeper;
struct trace_pool;
struct local_socket;

struct server {
    char data_dir[4096];
    char cache_dir[4096];        /* may be empty: server.h */
    struct index_places indexes; /* of sessions, which all lie in the data folder */
    char url[320];
    uint64_t parser_memory_bytes, parser_cpu_s;
    int lock_fd; /* <data>/server/lock */
    int64_t started_ns;
    _Atomic(uint64_t)
        ready_until_ns; /* monotonic: /readyz commits once a second, however many ask */
    struct store_meta *meta;
    struct store_blob *blob;
    struct auth *auth;
    struct http_server *http;
    struct run_cache *runs;
    struct follower *follower;
    struct queue *queue;
    struct keeper *keeper;
    struct trace_pool *traces;
    struct local_socket *local; /* NULL when it could not be made */
};

typedef bool (*route_fn)(struct server *s, struct http_request *req, struct http_response *resp,
                         struct err *e);

enum route_speed { ROUTE_FAST = 0, ROUTE_SLOW };
struct route {
    const char *method, *path, *summary;
    int role; /* enum store_role; ROLE_NONE = public */
    enum route_speed speed;
    route_fn fn;
};
extern const struct route route_table[];
extern const uint32_t route_count;

#define X(method, path, role, speed, handler, summary)                                             \
    bool handler(struct server *s, struct http_request *req, struct http_response *resp,           \
                 struct err *e);
#include "server/routes.def"
#undef X

/* The http_handler: ctx is the server. */
bool router_begin(void *ctx, struct http_request *req, struct http_response *resp);
void router_handle(void *ctx, struct http_request *req, struct http_response *resp);
/* The route of method and path with its parameters; *other_method when only the path fits. */
const struct route *router_find(str method, str path, str params[static HTTP_PARAMS_MAX],
                                bool *other_method);

/* Takes the data folder's path out of the message: clients see "<data>/…". */
void server_hide_paths(const struct server *s, struct err *e);

/* ERR_DENIED when the request's ingest token is of a group that the run is not in; a new run is free. */
MUST_CHECK bool may_write_run(struct server *s, struct http_request *req, str run, struct err *e);

/* ---- answers ---- */
/* A JSON writer on resp's body; the caller ends with reply_json. */
void reply_begin(struct json *j, struct http_response *resp);
MUST_CHECK bool reply_json(struct json *j, struct http_response *resp, struct err *e);
void reply_problem(struct http_request *req, struct http_response *resp, const struct err *e);
/* "t" as RFC 3339, or null when it is 0. */
void json_ktime(struct json *j, const char *key, int64_t wall_ns);
void json_kstr_or_null(struct json *j, const char *key, str v);

/* page_size, or the fallback; ERR_USAGE beyond LIMIT_HTTP_PAGE_SIZE. */
MUST_CHECK bool page_size(const struct http_request *req, uint32_t fallback, uint32_t *out,
                          struct err *e);
/* Ends a listing: closes its array and object, with the cursor of the last item shown, or null when
 * name is empty (no more). A cursor is "<number>.<name>" in hexadecimal, so that nobody builds one
 * by hand. */
MUST_CHECK bool reply_page(struct json *j, int64_t number, str name, struct http_response *resp,
                           struct err *e);
MUST_CHECK bool page_token_take(struct http_request *req, int64_t *number, str *name,
                                struct err *e);
/* RFC 3339, or wall nanoseconds; absent leaves *out. */
MUST_CHECK bool query_time(const struct http_request *req, const char *name, int64_t *out,
                           struct err *e);

/* ---- web UI ---- */
void ui_reply(struct http_request *req, struct http_response *resp);

#endif
