/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_client.h"

#include <pthread.h>

#include <jansson.h>

#include "base/limits.h"
#include "net/curl_inside.h"

#define TIMEOUT_MS_DEFAULT 30000
#define CONNECT_TIMEOUT_MS 5000L

static void init_once(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void net_curl_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_once);
}

struct exchange {
    CURL *c;
    const struct http_request *q;
    struct http_answer *r;
    bool broken_off; /* by q->take */
};

static size_t take_body(char *p, size_t size, size_t n, void *ctx)
{
    struct exchange *x = ctx;
    long status = 0;
    curl_easy_getinfo(x->c, CURLINFO_RESPONSE_CODE, &status);
    x->r->status = (int)status;
    if (x->q->take == NULL || status >= 300)
        return buf_add(&x->r->body, p, size * n) ? size * n : 0;
    x->broken_off = !x->q->take(x->q->take_ctx, x->r, p, size * n);
    return x->broken_off ? 0 : size * n;
}

void net_curl_keep(str line, str name, char *to, size_t to_size)
{
    if (line.n <= name.n || line.p[name.n] != ':' || !str_eq_nocase(str_sub(line, 0, name.n), name))
        return;
    const str value = str_trim(str_sub(line, name.n + 1, line.n));
    snprintf(to, to_size, "%.*s", STR_ARG(value));
}

static size_t take_header(char *p, size_t size, size_t n, void *ctx)
{
    struct http_answer *r = ctx;
    const str line = {p, size * n};
    net_curl_keep(line, S("content-type"), r->content_type, sizeof r->content_type);
    net_curl_keep(line, S("etag"), r->etag, sizeof r->etag);
    net_curl_keep(line, S("content-range"), r->content_range, sizeof r->content_range);
    net_curl_keep(line, S("last-modified"), r->last_modified, sizeof r->last_modified);
    net_curl_keep(line, S("date"), r->date, sizeof r->date);
    net_curl_keep(line, S("x-amz-bucket-region"), r->bucket_region, sizeof r->bucket_region);
    return size * n;
}

bool net_curl_header(struct curl_slist **list, const char *name, const char *value, struct err *e)
{
    struct buf line;
    buf_init(&line, 8192);
    buf_addf(&line, "%s%s", name, value);
    const bool clean = !line.overflow && strpbrk(line.p, "\r\n") == NULL;
    struct curl_slist *longer = clean ? curl_slist_append(*list, line.p) : NULL;
    buf_release(&line);
    if (longer == NULL)
        return err_set(e, ERR_USAGE, "a header is too long or holds a line break");
    *list = longer;
    return true;
}

static bool add_headers(const struct http_request *q, struct curl_slist **list, struct err *e)
{
    if (!q->is_foreign && (!net_curl_header(list, "Tachograph-Protocol: ", "1", e) ||
                           !net_curl_header(list, "Expect:", "", e)))
        return false;
    if (q->aws != NULL && q->aws->session_token[0] != '\0' &&
        !net_curl_header(list, "x-amz-security-token: ", q->aws->session_token, e))
        return false;
    if (q->token != NULL && !net_curl_header(list, "Authorization: Bearer ", q->token, e))
        return false;
    if (q->content_type != NULL && !net_curl_header(list, "Content-Type: ", q->content_type, e))
        return false;
    for (size_t i = 0; q->headers != NULL && q->headers[i] != NULL; i++)
        if (!net_curl_header(list, q->headers[i], "", e))
            return false;
    return true;
}

static int look_whether_to_go_on(void *ctx, curl_off_t to_get, curl_off_t got, curl_off_t to_put,
                                 curl_off_t put)
{
    const struct http_request *q = ctx;
    (void)to_get, (void)got, (void)to_put, (void)put;
    return q->may_go_on(q->may_go_on_ctx) ? 0 : 1;
}

static void set_patience(CURL *c, const struct http_request *q)
{
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS,
                     (long)(q->timeout_ms == 0 ? TIMEOUT_MS_DEFAULT : q->timeout_ms));
    if (q->idle_ms > 0) {
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)(q->idle_ms / 1000));
    }
    if (q->may_go_on != NULL) {
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_whether_to_go_on);
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, q);
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    }
}

/* libcurl signs what it sends: host, date, the lines of our own, path and query as they are in the URL. */
static void set_signature(CURL *c, const struct http_aws *aws)
{
    char how[128];
    snprintf(how, sizeof how, "aws:amz:%s:s3", aws->region);
    curl_easy_setopt(c, CURLOPT_AWS_SIGV4, how);
    curl_easy_setopt(c, CURLOPT_USERNAME, aws->key);
    curl_easy_setopt(c, CURLOPT_PASSWORD, aws->secret);
}

static void set_options(struct exchange *x, const struct curl_slist *headers)
{
    CURL *c = x->c;
    const struct http_request *q = x->q;
    struct http_answer *r = x->r;
    curl_easy_setopt(c, CURLOPT_URL, q->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "tacho/" TACHO_VERSION);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
    set_patience(c, q);
    if (q->is_foreign)
        curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    if (q->ca_file != NULL)
        curl_easy_setopt(c, CURLOPT_CAINFO, q->ca_file);
    if (q->aws != NULL)
        set_signature(c, q->aws);
    if (q->unix_socket != NULL)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, q->unix_socket);
    if (q->body.n > 0 || (q->method != NULL && strcmp(q->method, "POST") == 0)) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, q->body.n > 0 ? q->body.p : "");
    }
    if (q->method != NULL && strcmp(q->method, "HEAD") == 0)
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    else if (q->method != NULL)
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method);
}

static enum err_code code_of_status(int status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHORIZED;
    case 403:
        return ERR_DENIED;
    case 404:
    case 410:
        return ERR_NOT_FOUND;
    case 409:
    case 412:
        return ERR_CONFLICT;
    case 413:
        return ERR_LIMIT;
    case 422:
        return ERR_PARSE;
    case 429:
    case 503:
        return ERR_UNAVAILABLE;
    default:
        return status >= 500 ? ERR_IO : ERR_USAGE;
    }
}

/* Says what the server said: "detail", else "title" of its problem document, else the status. */
static bool refuse(const struct http_request *q, const struct http_answer *r, struct err *e)
{
    json_t *problem = r->body.n == 0 ? NULL : json_loadb(r->body.p, r->body.n, 0, NULL);
    const char *words = json_string_value(json_object_get(problem, "detail"));
    if (words == NULL)
        words = json_string_value(json_object_get(problem, "title"));
    if (words != NULL)
        err_set(e, code_of_status(r->status), "%s", words);
    else
        err_set(e, code_of_status(r->status), "'%s' answered with status %d", q->url, r->status);
    json_decref(problem);
    return false;
}

static bool fail(const struct exchange *x, CURLcode code, const char *reason, struct err *e)
{
    const struct http_request *q = x->q;
    const struct http_answer *r = x->r;
    if (x->broken_off)
        return false; /* who broke it off said why */
    if (code == CURLE_WRITE_ERROR && r->body.overflow)
        return err_set(e, ERR_LIMIT, "the answer of '%s' is longer than %zu bytes", q->url,
                       r->body.cap);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return err_set(e, ERR_UNREACHABLE, "'%s' did not answer in the time there was", q->url);
    const bool wrong_url = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
    return err_set(e, wrong_url ? ERR_USAGE : ERR_UNREACHABLE, "cannot reach '%s': %s", q->url,
                   reason[0] != '\0' ? reason : curl_easy_strerror(code));
}

bool http_do(const struct http_request *q, struct http_answer *r, struct err *e)
{
    char reason[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = NULL;
    net_curl_start();
    *r = (struct http_answer){.length_bytes = -1};
    buf_init(&r->body,
             q->max_answer_bytes == 0 ? (size_t)LIMIT_HTTP_BODY_BYTES : q->max_answer_bytes);
    CURL *c = curl_easy_init();
    if (c == NULL)
        return err_set(e, ERR_INTERNAL, "the HTTP client does not start");
    bool done = add_headers(q, &headers, e);
    if (done) {
        long status = 0;
        struct exchange x = {.c = c, .q = q, .r = r};
        set_options(&x, headers);
        curl_easy_setopt(c, CURLOPT_ERRORBUFFER, reason);
        long n_connections = 0;
        CURLcode code = curl_easy_perform(c);
        curl_easy_getinfo(c, CURLINFO_NUM_CONNECTS, &n_connections);
        if (code == CURLE_UNSUPPORTED_PROTOCOL && n_connections > 0)
            code = CURLE_WEIRD_SERVER_REPLY; /* the URL is right, who answers speaks no HTTP */
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
        r->status = (int)status;
        curl_off_t length = -1;
        curl_easy_getinfo(c, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        r->length_bytes = length;
        if (code != CURLE_OK)
            done = fail(&x, code, reason, e);
        else if (status >= 400)
            done = refuse(q, r, e);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    return done;
}

void http_answer_release(struct http_answer *r)
{
    buf_release(&r->body);
    *r = (struct http_answer){0};
}
