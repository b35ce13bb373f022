/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a request's fields, and sending answers with their headers. */
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "server/http_inside.h"

#define COMPRESS_FROM_BYTES 1024
#define COMPRESS_LEVEL 4
#define GZIP_WINDOW (15 + 16)

str http_header(const struct http_request *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_headers; i++)
        if (str_eq_nocase(r->headers[i].name, str_from(name)))
            return r->headers[i].value;
    return (str){0};
}

str http_query(const struct http_request *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_query; i++)
        if (str_eq(r->query[i].name, str_from(name)))
            return r->query[i].value;
    return (str){0};
}

str http_cookie(const struct http_request *r, const char *name)
{
    str rest = http_header(r, "Cookie"), part, key, value;
    while (str_cut(rest, ';', &part, &rest))
        if (str_cut(str_trim(part), '=', &key, &value) && str_eq(key, str_from(name)))
            return value;
    return (str){0};
}

void http_add_header(struct http_response *resp, const char *name, str value)
{
    must(resp->n_headers < HTTP_HEADERS_MAX);
    resp->headers[resp->n_headers++] = (struct http_pair){str_from(name), value};
}

void http_set_error(struct http_response *resp, int status, const char *title)
{
    struct json j;
    struct err e = {0};
    resp->status = status;
    resp->content_type = "application/problem+json";
    buf_clear(&resp->body);
    json_init_buf(&j, &resp->body);
    json_object(&j);
    json_kcstr(&j, "type", "about:blank");
    json_kcstr(&j, "title", title);
    json_ki64(&j, "status", status);
    json_kcstr(&j, "code", status == 413 ? "limit" : "unavailable");
    json_end(&j);
    (void)!json_done(&j, &e);
}

static bool is_compressible(const char *type)
{
    return type != NULL && (strstr(type, "json") != NULL || strncmp(type, "text/", 5) == 0 ||
                            strstr(type, "javascript") != NULL || strstr(type, "svg") != NULL);
}

void http_compress(const struct http_request *req, struct http_response *resp)
{
    if (resp->is_gzip || resp->fd >= 0 || resp->stream != NULL ||
        resp->body.n < COMPRESS_FROM_BYTES || !is_compressible(resp->content_type) ||
        str_find(http_header(req, "Accept-Encoding"), S("gzip")) < 0)
        return;
    z_stream z = {0};
    if (deflateInit2(&z, COMPRESS_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    struct buf packed;
    const size_t bound = deflateBound(&z, resp->body.n);
    buf_init(&packed, bound + 1);
    z.next_in = (Bytef *)(void *)resp->body.p;
    z.avail_in = (uInt)resp->body.n;
    z.next_out = (Bytef *)(void *)buf_reserve(&packed, bound);
    z.avail_out = (uInt)bound;
    if (z.next_out != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END) {
        packed.n = z.total_out;
        buf_release(&resp->body);
        resp->body = packed;
        resp->is_gzip = true;
    } else {
        buf_release(&packed);
    }
    deflateEnd(&z);
}

static struct MHD_Response *make_response(struct http_response *resp)
{
    if (resp->stream != NULL)
        return http_stream_response(resp->stream);
    if (resp->fd >= 0) {
        const int fd = resp->fd;
        resp->fd = -1; /* libmicrohttpd closes it */
        return MHD_create_response_from_fd64(resp->fd_bytes, fd);
    }
    if (resp->body.n == 0)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    void *body = resp->body.p;
    const size_t n = resp->body.n;
    resp->body.p = NULL; /* libmicrohttpd frees it */
    resp->body.n = resp->body.alloc = 0;
    return MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE);
}

static const struct {
    const char *name, *value;
} security_headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; connect-src 'self'; frame-ancestors 'none'; object-src 'none'; base-uri "
     "'self'; form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Tachograph-Protocol", "1"},
};

static bool has_header(const struct http_response *resp, const char *name)
{
    for (uint32_t i = 0; i < resp->n_headers; i++)
        if (str_eq_nocase(resp->headers[i].name, str_from(name)))
            return true;
    return false;
}

static void add_headers(const struct call *c, struct MHD_Response *m,
                        const struct http_response *resp)
{
    char text[512];
    for (size_t i = 0; i < sizeof security_headers / sizeof security_headers[0]; i++)
        if (!has_header(resp, security_headers[i].name))
            MHD_add_response_header(m, security_headers[i].name, security_headers[i].value);
    for (uint32_t i = 0; i < resp->n_headers; i++) {
        const struct http_pair *h = &resp->headers[i];
        snprintf(text, sizeof text, "%.*s", STR_ARG(h->value));
        MHD_add_response_header(m, h->name.p, text); /* refuses line breaks itself */
    }
    if (resp->content_type != NULL)
        MHD_add_response_header(m, "Content-Type", resp->content_type);
    if (resp->is_gzip)
        MHD_add_response_header(m, "Content-Encoding", "gzip");
    MHD_add_response_header(m, "Vary", "Accept-Encoding, Cookie, Authorization");
    MHD_add_response_header(m, "Cache-Control", resp->cache == NULL ? "no-store" : resp->cache);
    snprintf(text, sizeof text, "%llu", (unsigned long long)c->req.number);
    MHD_add_response_header(m, "Tachograph-Request", text);
}

enum MHD_Result call_send(struct call *c, struct http_response *resp)
{
    if (resp->stream != NULL)
        resp->stream->mhd = c->mhd;
    struct MHD_Response *m = make_response(resp);
    if (m == NULL)
        return MHD_NO;
    add_headers(c, m, resp);
    const uint64_t bytes = resp->fd_bytes + LIMIT_HTTP_BODY_BYTES;
    if (c->connection != NULL) {
        pthread_mutex_lock(&c->server->lock);
        c->connection->deadline_ns =
            resp->stream != NULL
                ? 0
                : clock_monotonic_ns() +
                      (HTTP_IDLE_S + bytes / HTTP_SLOWEST_BYTES_PER_S) * (uint64_t)NS_PER_S;
        pthread_mutex_unlock(&c->server->lock);
    }
    const enum MHD_Result queued = MHD_queue_response(c->mhd, (unsigned)resp->status, m);
    MHD_destroy_response(m);
    return queued;
}
