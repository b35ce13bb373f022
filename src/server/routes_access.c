/* SPDX-License-Identifier: Apache-2.0 */
/* Probes, login, tokens. */

#include "base/clock.h"
#include "server/doc.h"
#include "server/server_inside.h"

#define IDEMPOTENCY_KEY_BYTES 256
#define LOGIN_LIFETIME_NS (30 * 24 * 3600 * NS_PER_S)

static bool reply_text(struct http_response *resp, str text)
{
    resp->content_type = "text/plain; charset=utf-8";
    buf_add_str(&resp->body, text);
    return true;
}

bool route_healthz(struct server *s, struct http_request *req, struct http_response *resp,
                   struct err *e)
{
    (void)s, (void)req, (void)e;
    return reply_text(resp, S("ok\n"));
}

bool route_readyz(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    (void)req;
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns < s->ready_until_ns)
        return reply_text(resp, S("ready\n"));
    if (s->meta->ops->ping(s->meta, e)) {
        s->ready_until_ns = now_ns + (uint64_t)NS_PER_S;
        return reply_text(resp, S("ready\n"));
    }
    e->code = ERR_UNAVAILABLE;
    return err_wrap(e, "the database takes no commits");
}

static struct doc *body_doc(const struct http_request *req, struct err *e)
{
    struct doc *d = doc_parse(req->body, e);
    if (d == NULL)
        err_wrap(e, "the body");
    return d;
}

bool route_login(struct server *s, struct http_request *req, struct http_response *resp,
                 struct err *e)
{
    struct doc *root = body_doc(req, e);
    if (root == NULL)
        return false;
    const str token = doc_text(root, "token", &req->arena);
    doc_free(root);
    struct store_token t;
    char cookie[AUTH_TOKEN_HEX];
    if (!auth_find(s->auth, token, &t, e) ||
        !auth_make(s->auth, t.role, S("login"), (str){0}, LOGIN_LIFETIME_NS, cookie, e))
        return false;
    http_add_header(resp, "Set-Cookie",
                    arena_printf(&req->arena,
                                 AUTH_COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%lld",
                                 cookie, (long long)(LOGIN_LIFETIME_NS / NS_PER_S)));
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_kcstr(&j, "role", store_role_word(t.role));
    json_end(&j);
    return reply_json(&j, resp, e);
}

bool route_logout(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct store_token t;
    const str cookie = http_cookie(req, AUTH_COOKIE);
    if (cookie.n > 0 && auth_find(s->auth, cookie, &t, e) && !auth_revoke(s->auth, t.id, e))
        return false;
    err_clear(e);
    http_add_header(resp, "Set-Cookie",
                    S(AUTH_COOKIE "=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"));
    resp->status = 204;
    return true;
}

static void put_token(struct json *j, const struct store_token *t)
{
    json_object(j);
    json_ki64(j, "token", t->id);
    json_kstr(j, "name", t->name);
    json_kcstr(j, "role", store_role_word(t->role));
    json_kstr_or_null(j, "run_group", t->run_group);
    json_ktime(j, "created", t->created_ns);
    json_ktime(j, "expires", t->expires_ns);
    json_end(j);
}

bool route_tokens(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct store_token *tokens;
    uint32_t n;
    if (!s->meta->ops->tokens(s->meta, &req->arena, &tokens, &n, e))
        return false;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "items");
    json_array(&j);
    for (uint32_t i = 0; i < n; i++)
        put_token(&j, &tokens[i]);
    json_end(&j);
    json_knull(&j, "next_page_token");
    json_end(&j);
    return reply_json(&j, resp, e);
}

bool route_token_add(struct server *s, struct http_request *req, struct http_response *resp,
                     struct err *e)
{
    struct doc *root = body_doc(req, e);
    if (root == NULL)
        return false;
    const str role_word = doc_text(root, "role", &req->arena),
              name = doc_text(root, "name", &req->arena),
              group = doc_text(root, "run_group", &req->arena);
    doc_free(root);
    enum store_role role;
    char token[AUTH_TOKEN_HEX];
    if (!store_role_find(role_word, &role))
        return err_set(e, ERR_USAGE,
                       "role '%.*s' is none of ingest, agent, viewer, operator, admin",
                       STR_ARG(role_word));
    const str key = http_header(req, "Idempotency-Key");
    if (key.n > IDEMPOTENCY_KEY_BYTES)
        return err_set(e, ERR_USAGE, "Idempotency-Key is longer than %d bytes",
                       IDEMPOTENCY_KEY_BYTES);
    if (!(key.n == 0 ? auth_make(s->auth, role, name, group, 0, token, e)
                     : auth_make_once(s->auth, role, name, group, req->token_id, key, token, e)))
        return false;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_kcstr(&j, "secret", token);
    json_kstr(&j, "name", name);
    json_kcstr(&j, "role", store_role_word(role));
    json_kstr_or_null(&j, "run_group", group);
    json_end(&j);
    resp->status = 201;
    return reply_json(&j, resp, e);
}

bool route_token_delete(struct server *s, struct http_request *req, struct http_response *resp,
                        struct err *e)
{
    int64_t id;
    if (!str_to_i64(req->params[0], &id))
        return err_set(e, ERR_NOT_FOUND, "no token '%.*s'", STR_ARG(req->params[0]));
    resp->status = 204;
    return auth_revoke(s->auth, id, e);
}
