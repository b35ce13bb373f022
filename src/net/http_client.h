/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP client over libcurl: one request, one whole answer within a cap.
 *
 *     struct http_request q = {.method = "POST", .url = url, .token = token, .body = body,
 *                              .content_type = "application/json"};
 *     struct http_answer r = {0};
 *     if (!http_do(&q, &r, e)) return false;      not reached, or a status of 400 and more
 *     ... r.status, r.body ...
 *     http_answer_release(&r);
 *
 * Errors: UNREACHABLE (no connection, time over, TLS), UNAUTHORIZED (401), DENIED (403), NOT_FOUND
 * (404), CONFLICT (409, 412), LIMIT (413, or an answer beyond its cap), USAGE (400), PARSE (422),
 * UNAVAILABLE (429, 503), IO (any other 5xx). Redirects are not followed: a token goes only where it was
 * sent. Only http and https. Thread: any. */
#ifndef TACHO_NET_HTTP_CLIENT_H
#define TACHO_NET_HTTP_CLIENT_H

#include "base/buf.h"

struct http_answer;

struct http_aws { /* signs a request (AWS signature 4, service s3) */
    const char *region, *key, *secret;
    const char *session_token; /* of temporary keys; "" = none */
};

struct http_request {
    const char *method; /* NULL = GET */
    const char *url;
    const char *unix_socket;    /* path that is dialled instead of the URL's host; NULL = none */
    const char *token;          /* sent as "Authorization: Bearer"; NULL = none */
    const char *content_type;   /* of the body; NULL = none */
    const char *const *headers; /* more lines "Name: value", NULL at the end; NULL = none */
    str body;                   /* borrowed */
    uint64_t timeout_ms;        /* whole request; 0 = 30 s */
    uint64_t idle_ms;           /* without a byte either way, of 1 s and more; 0 = none */
    bool (*may_go_on)(void *);  /* asked about once a second, false gives up; NULL = always */
    void *may_go_on_ctx;        /* borrowed */
    size_t max_answer_bytes;    /* 0 = LIMIT_HTTP_BODY_BYTES */
    const char *ca_file;        /* certificates that https is believed by; NULL = the system's */
    bool is_foreign;            /* not a server of ours: nothing of our protocol is sent */
    const struct http_aws
        *aws; /* NULL = not signed; the URL's path and query are as they are signed */
    /* Takes the body of an answer below 300 as it comes, in place of r->body; false breaks it off, and
     * http_do answers false with e as it was. status, etag and content_range are there by then. */
    bool (*take)(void *, const struct http_answer *r, const char *p, size_t n);
    void *take_ctx; /* borrowed */
};

struct http_answer {
    int status; /* 0 when nothing was reached */
    char content_type[128];
    char etag[128];
    char content_range[96], last_modified[64], date[64];
    char bucket_region[64]; /* x-amz-bucket-region */
    int64_t length_bytes;   /* Content-Length; -1 = not said */
    struct buf body;        /* also kept on a status of 400 and more */
};

/* False with e set also for a status of 400 and more; the answer is filled then, and the server's own
 * sentence ("detail" of a problem document) is what e says. The caller releases r in any case. */
MUST_CHECK bool http_do(const struct http_request *q, struct http_answer *r, struct err *e);
void http_answer_release(struct http_answer *r);

#endif
