/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc_call.h"

#include "net/curl_inside.h"

#define FRAME_HEADER_BYTES 5
#define REQUEST_MAX_BYTES 4096

struct grpc_result {
    struct buf *answer;
    char status[16];   /* empty until the server has said it */
    char message[128]; /* percent-encoded, as it came */
};

static size_t take_message(char *p, size_t size, size_t n, void *ctx)
{
    struct grpc_result *r = ctx;
    return buf_add(r->answer, p, size * n) ? size * n : 0;
}

/* Trailers come here too. */
static size_t take_header(char *p, size_t size, size_t n, void *ctx)
{
    struct grpc_result *r = ctx;
    const str line = {p, size * n};
    net_curl_keep(line, S("grpc-status"), r->status, sizeof r->status);
    net_curl_keep(line, S("grpc-message"), r->message, sizeof r->message);
    return size * n;
}

static bool make_headers(struct curl_slist **list, struct err *e)
{
    return net_curl_header(list, "Content-Type: ", "application/grpc", e) &&
           net_curl_header(list, "TE: ", "trailers", e) &&
           net_curl_header(list, "Expect:", "", e) && net_curl_header(list, "Accept:", "", e);
}

static void set_options(CURL *c, const char *url, const struct curl_slist *headers,
                        uint64_t timeout_ms, struct grpc_result *r)
{
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "tacho/" TACHO_VERSION);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_message);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
}

static uint32_t frame_length(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[1] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 8 | b[4];
}

/* Leaves the message of the answer's only frame. */
static bool unwrap(struct buf *answer, const char *url, struct err *e)
{
    if (answer->n < FRAME_HEADER_BYTES)
        return err_set(e, ERR_PARSE, "'%s' answered without a message", url);
    if (answer->p[0] != 0)
        return err_set(e, ERR_PARSE, "'%s' answered with a compressed message", url);
    if (frame_length(answer->p) != answer->n - FRAME_HEADER_BYTES)
        return err_set(e, ERR_PARSE, "'%s' says a message of %u bytes and sends %zu", url,
                       frame_length(answer->p), answer->n - FRAME_HEADER_BYTES);
    buf_consume(answer, FRAME_HEADER_BYTES);
    return true;
}

static bool judge(CURLcode code, const char *reason, long http_status, const struct grpc_result *r,
                  const char *url, struct err *e)
{
    if (code == CURLE_WRITE_ERROR && r->answer->overflow)
        return err_set(e, ERR_LIMIT, "the answer of '%s' is longer than %zu bytes", url,
                       r->answer->cap);
    if (code != CURLE_OK)
        return err_set(e, ERR_UNREACHABLE, "cannot reach '%s': %s", url,
                       reason[0] != '\0' ? reason : curl_easy_strerror(code));
    if (http_status != 200)
        return err_set(e, ERR_UNAVAILABLE, "'%s' answered with status %ld", url, http_status);
    if (r->status[0] == '\0')
        return err_set(e, ERR_PARSE, "'%s' answered without grpc-status", url);
    if (strcmp(r->status, "0") != 0)
        return err_set(e, ERR_UNAVAILABLE, "'%s' answered with grpc-status %s: %s", url, r->status,
                       r->message);
    return unwrap(r->answer, url, e);
}

static bool perform(CURL *c, const char *url, str frame, const struct curl_slist *headers,
                    uint64_t timeout_ms, struct grpc_result *r, struct err *e)
{
    char reason[CURL_ERROR_SIZE] = "";
    long http_status = 0;
    set_options(c, url, headers, timeout_ms, r);
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)frame.n);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, frame.p);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, reason);
    const CURLcode code = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &http_status);
    return judge(code, reason, http_status, r, url, e);
}

bool grpc_call(const char *url, str request, uint64_t timeout_ms, struct buf *answer, struct err *e)
{
    char frame[FRAME_HEADER_BYTES + REQUEST_MAX_BYTES] = {0};
    struct grpc_result r = {.answer = answer};
    struct curl_slist *headers = NULL;
    buf_clear(answer);
    if (request.n > REQUEST_MAX_BYTES)
        return err_set(e, ERR_USAGE, "a request of %zu bytes is too long", request.n);
    frame[3] = (char)(request.n >> 8);
    frame[4] = (char)request.n;
    if (request.n > 0)
        memcpy(frame + FRAME_HEADER_BYTES, request.p, request.n);
    net_curl_start();
    CURL *c = curl_easy_init();
    if (c == NULL)
        return err_set(e, ERR_INTERNAL, "the HTTP client does not start");
    const bool ok =
        make_headers(&headers, e) &&
        perform(c, url, (str){frame, FRAME_HEADER_BYTES + request.n}, headers, timeout_ms, &r, e);
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    if (!ok)
        buf_clear(answer);
    return ok;
}
