/* SPDX-License-Identifier: Apache-2.0 */
/* From a request's head to its route: names, token, role; then to the handler and its errors. */
#define LOG_DOMAIN "server"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/server_inside.h"

const struct route route_table[] = {
#define X(method, path, role, speed, handler, summary)                                             \
    {#method, path, summary, ROLE_##role, ROUTE_##speed, handler},
#define ROLE_PUBLIC ROLE_NONE
#include "server/routes.def"
#undef X
};
const uint32_t route_count = sizeof route_table / sizeof route_table[0];

/* "/a/{x}/c" against "/a/b/c". */
static bool path_fits(str pattern, str path, str params[static HTTP_PARAMS_MAX])
{
    unsigned n = 0;
    str want, got;
    for (;;) {
        const bool more = str_cut(pattern, '/', &want, &pattern);
        if (more != str_cut(path, '/', &got, &path))
            return false;
        if (!more)
            return true;
        if (str_starts(want, S("{")) && got.n > 0 && n < HTTP_PARAMS_MAX)
            params[n++] = got;
        else if (!str_eq(want, got))
            return false;
    }
}

const struct route *router_find(str method, str path, str params[static HTTP_PARAMS_MAX],
                                bool *other_method)
{
    *other_method = false;
    if (str_ends(path, S("/")) && path.n > 1)
        return NULL;
    for (uint32_t i = 0; i < route_count; i++) {
        if (!path_fits(str_from(route_table[i].path), path, params))
            continue;
        if (str_eq(method, str_from(route_table[i].method)))
            return &route_table[i];
        *other_method = true;
    }
    return NULL;
}

/* "GET, HEAD, PUT": what a path takes. */
static str allowed_methods(struct http_request *req)
{
    str params[HTTP_PARAMS_MAX], out = {0};
    for (uint32_t i = 0; i < route_count; i++) {
        const struct route *r = &route_table[i];
        if (path_fits(str_from(r->path), req->path, params))
            out = arena_printf(&req->arena, "%.*s%s%s%s", STR_ARG(out), out.n > 0 ? ", " : "",
                               r->method, strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
    }
    return out;
}

/* Tachograph-Protocol, when a client sends it. */
static bool check_protocol(const struct http_request *req, struct err *e)
{
    const str text = http_header(req, "Tachograph-Protocol");
    uint64_t n = SERVER_PROTOCOL;
    if (text.n > 0 && (!str_to_u64(text, &n) || n < SERVER_PROTOCOL_OLDEST))
        return err_set(e, ERR_USAGE, "Tachograph-Protocol '%.*s' is not a number from %d to %d",
                       STR_ARG(text), SERVER_PROTOCOL_OLDEST, SERVER_PROTOCOL);
    return n <= SERVER_PROTOCOL ||
           err_set(e, ERR_TOO_NEW, "the client speaks protocol %llu, this server at most %d",
                   (unsigned long long)n, SERVER_PROTOCOL);
}

static bool is_api(str path)
{
    return str_starts(path, S("/api/")) || str_eq(path, S("/api"));
}

/* Where nothing else is, the web UI answers; but not below these. */
static bool is_for_programs(str path)
{
    return is_api(path) || str_starts(path, S("/data/plugin/"));
}

static uint64_t body_limit(const struct route *r)
{
    if (r->fn == route_journal)
        return LIMIT_HTTP_BODY_BYTES;
    if (r->fn == route_upload)
        return LIMIT_HTTP_UPLOAD_PART_BYTES;
    if (r->fn == route_side_put)
        return LIMIT_JOURNAL_SIDE_BYTES;
    return strcmp(r->method, "GET") == 0 ? 0 : LIMIT_JOURNAL_PAYLOAD_BYTES;
}

static bool find_and_allow(struct server *s, struct http_request *req, struct http_response *resp,
                           struct err *e)
{
    bool other_method;
    const struct route *r = router_find(req->method, req->path, req->params, &other_method);
    const bool is_probe = r != NULL && (r->fn == route_healthz || r->fn == route_readyz);
    req->body_max = 0;
    if (!is_probe && !auth_check_host(s->auth, req, e))
        return false;
    if (r == NULL && !other_method && !is_for_programs(req->path)) {
        if (!str_eq(req->method, S("GET")))
            return err_set(e, ERR_NOT_FOUND, "nothing takes %.*s here", STR_ARG(req->method));
        ui_reply(req, resp);
        return false;
    }
    if ((r == NULL || r->role != ROLE_NONE) && !auth_check_token(s->auth, req, e))
        return false;
    if (r == NULL && other_method) {
        http_add_header(resp, "Allow", allowed_methods(req));
        return err_set(e, ERR_METHOD, "'%.*s' does not take %.*s", STR_ARG(req->path),
                       STR_ARG(req->method));
    }
    if (r == NULL)
        return err_set(e, ERR_NOT_FOUND, "no such route: '%.*s'", STR_ARG(req->path));
    if (r->role != ROLE_NONE &&
        !auth_check_role((enum store_role)req->role, (enum store_role)r->role, e))
        return false;
    if (is_api(req->path) && !check_protocol(req, e))
        return false;
    req->route = r;
    req->slow = r->speed == ROUTE_SLOW;
    req->body_max = body_limit(r);
    return true;
}

bool router_begin(void *ctx, struct http_request *req, struct http_response *resp)
{
    struct err e = {0};
    if (req->arena.overflow)
        err_set(&e, ERR_LIMIT, "the head of the request is too large");
    else if (find_and_allow(ctx, req, resp, &e))
        return true;
    if (e.code != ERR_NONE)
        reply_problem(req, resp, &e);
    return false;
}

void server_hide_paths(const struct server *s, struct err *e)
{
    const str folder = str_from(s->data_dir), shown = S("<data>");
    ptrdiff_t at;
    while (folder.n > shown.n && (at = str_find(str_from(e->msg), folder)) >= 0) {
        char *to = e->msg + at;
        memcpy(to, shown.p, shown.n);
        memmove(to + shown.n, to + folder.n, strlen(to + folder.n) + 1);
    }
}

void router_handle(void *ctx, struct http_request *req, struct http_response *resp)
{
    struct err e = {.pos = ERR_NO_POS};
    const struct route *r = req->route;
    if (r->fn(ctx, req, resp, &e))
        return;
    if (e.code == ERR_NONE)
        err_set(&e, ERR_INTERNAL, "no reason was given");
    if (err_http_status(e.code) >= 500)
        log_error("request %llu: %s %.*s: %s", (unsigned long long)req->number, r->method,
                  STR_ARG(req->path), e.msg);
    server_hide_paths(ctx, &e);
    resp->n_headers = 0;
    resp->cache = NULL;
    resp->is_gzip = false;
    reply_problem(req, resp, &e);
}

/* ---- answers ---- */

void reply_begin(struct json *j, struct http_response *resp)
{
    buf_clear(&resp->body);
    json_init_buf(j, &resp->body);
}

bool reply_json(struct json *j, struct http_response *resp, struct err *e)
{
    resp->content_type = "application/json";
    return json_done(j, e) && buf_ok(&resp->body, "the answer", e);
}

void reply_problem(struct http_request *req, struct http_response *resp, const struct err *e)
{
    struct json j;
    struct err ignored = {0};
    resp->status = err_http_status(e->code);
    resp->content_type = "application/problem+json";
    reply_begin(&j, resp);
    json_object(&j);
    json_kcstr(&j, "type", "about:blank");
    json_kcstr(&j, "title", err_meaning(e->code));
    json_ki64(&j, "status", resp->status);
    json_kcstr(&j, "detail", e->msg);
    json_kcstr(&j, "code", err_word(e->code));
    json_kcstr(&j, "hint", e->hint[0] == '\0' ? NULL : e->hint);
    json_ku64(&j, "request", req->number);
    json_end(&j);
    (void)!json_done(&j, &ignored);
    if (e->code == ERR_UNAUTHORIZED)
        http_add_header(resp, "WWW-Authenticate", S("Bearer realm=\"tacho\""));
    if (e->code == ERR_UNAVAILABLE)
        http_add_header(resp, "Retry-After", S("2"));
}

void json_ktime(struct json *j, const char *key, int64_t wall_ns)
{
    char text[CLOCK_RFC3339_MAX];
    if (wall_ns == 0) {
        json_knull(j, key);
        return;
    }
    const size_t n = clock_format_rfc3339(wall_ns, text);
    json_kstr(j, key, (str){text, n});
}

void json_kstr_or_null(struct json *j, const char *key, str v)
{
    if (v.n == 0)
        json_knull(j, key);
    else
        json_kstr(j, key, v);
}

bool page_size(const struct http_request *req, uint32_t fallback, uint32_t *out, struct err *e)
{
    const str text = http_query(req, "page_size");
    uint64_t n = fallback;
    if (text.n > 0 && (!str_to_u64(text, &n) || n == 0))
        return err_set(e, ERR_USAGE, "page_size '%.*s' is not a number of items", STR_ARG(text));
    *out = (uint32_t)(n > LIMIT_HTTP_PAGE_SIZE ? LIMIT_HTTP_PAGE_SIZE : n);
    return true;
}

static void page_token_put(struct json *j, int64_t number, str name)
{
    char text[512], hex[1025];
    const int n = snprintf(text, sizeof text, "%lld.%.*s", (long long)number, STR_ARG(name));
    for (int i = 0; i < n && i < (int)sizeof text - 1; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)text[i]);
    json_kcstr(j, "next_page_token", hex);
}

bool reply_page(struct json *j, int64_t number, str name, struct http_response *resp, struct err *e)
{
    json_end(j);
    if (name.n > 0)
        page_token_put(j, number, name);
    else
        json_knull(j, "next_page_token");
    json_end(j);
    return reply_json(j, resp, e);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool page_token_take(struct http_request *req, int64_t *number, str *name, struct err *e)
{
    const str hex = http_query(req, "page_token");
    *number = 0;
    *name = (str){0};
    if (hex.n == 0)
        return true;
    char *text = ARENA_ARRAY(&req->arena, char, hex.n / 2 + 1);
    bool ok = text != NULL && hex.n % 2 == 0;
    for (size_t i = 0; ok && i < hex.n / 2; i++) {
        const int high = hex_digit(hex.p[2 * i]), low = hex_digit(hex.p[2 * i + 1]);
        ok = high >= 0 && low >= 0;
        text[i] = (char)(high * 16 + low);
    }
    str head;
    ok = ok && str_cut((str){text, hex.n / 2}, '.', &head, name) && name->n > 0 &&
         str_to_i64(head, number);
    return ok ||
           err_set(e, ERR_USAGE, "page_token '%.*s' is none that was given out", STR_ARG(hex));
}

bool query_time(const struct http_request *req, const char *name, int64_t *out, struct err *e)
{
    const str text = http_query(req, name);
    return text.n == 0 || str_to_i64(text, out) || clock_parse_rfc3339(text, out) ||
           err_set(e, ERR_USAGE, "%s '%.*s' is neither RFC 3339 nor wall nanoseconds", name,
                   STR_ARG(text));
}
