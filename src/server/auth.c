/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/sha256.h"

#define NAMES_MAX 32

struct auth {
    struct store_meta *meta;
    char token[AUTH_TOKEN_HEX];
    struct arena arena; /* names */
    str names[NAMES_MAX];
    uint32_t n_names;
    pthread_rwlock_t lock;
    struct arena tokens_arena;
    struct store_token *tokens;
    uint32_t n_tokens;
};

static void hash_of(str token, char out[static SHA256_HEX])
{
    struct sha256 s;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&s);
    sha256_add(&s, token.p, token.n);
    sha256_end(&s, digest);
    sha256_hex(digest, out);
}

static bool random_token(char out[static AUTH_TOKEN_HEX], struct err *e)
{
    uint8_t bytes[SHA256_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_sys(e, "cannot make a token");
    sha256_hex(bytes, out);
    return true;
}

static bool is_expired(const struct store_token *t)
{
    return t->expires_ns != 0 && t->expires_ns < clock_wall_ns();
}

static bool load_tokens(struct auth *a, struct err *e)
{
    struct arena fresh;
    struct store_token *tokens;
    uint32_t n;
    arena_init(&fresh, "tokens", 0);
    if (!a->meta->ops->tokens(a->meta, &fresh, &tokens, &n, e)) {
        arena_release(&fresh);
        return false;
    }
    pthread_rwlock_wrlock(&a->lock);
    struct arena old = a->tokens_arena;
    a->tokens_arena = fresh;
    a->tokens = tokens;
    a->n_tokens = n;
    pthread_rwlock_unlock(&a->lock);
    arena_release(&old);
    return true;
}

static void add_name(struct auth *a, str name)
{
    name = str_trim(name);
    if (name.n > 0 && a->n_names < NAMES_MAX)
        a->names[a->n_names++] = arena_str(&a->arena, name);
}

/* "name:port", "[v6]:port", "name" -> name, without brackets. */
static str host_name(str host)
{
    if (str_starts(host, S("["))) {
        const ptrdiff_t end = str_find_char(host, ']');
        return end < 0 ? (str){0} : str_sub(host, 1, (size_t)end);
    }
    const ptrdiff_t colon = str_find_char(host, ':');
    return colon < 0 ? host : str_sub(host, 0, (size_t)colon);
}

static bool is_wildcard(str name)
{
    return name.n == 0 || str_eq(name, S("0.0.0.0")) || str_eq(name, S("::"));
}

static void collect_names(struct auth *a, str listen, str allowed_hosts)
{
    str rest = allowed_hosts, one;
    if (!is_wildcard(host_name(listen)))
        add_name(a, host_name(listen));
    add_name(a, S("localhost"));
    add_name(a, S("127.0.0.1"));
    add_name(a, S("::1"));
    while (str_cut(rest, ',', &one, &rest))
        add_name(a, one);
}

/* The token file: read when there is one, else made. */
static bool first_token(struct auth *a, const char *server_dir, struct err *e)
{
    struct arena scratch;
    arena_init(&scratch, "token", 0);
    const char *path = path_join(&scratch, server_dir, S("token"));
    str text = {0};
    bool ok = true;
    struct stat st;
    if (lstat(path, &st) == 0) {
        ok = file_read(&scratch, path, 256, &text, e);
        text = str_trim(text);
        if (ok && (!S_ISREG(st.st_mode) || text.n != AUTH_TOKEN_HEX - 1))
            ok = err_set(e, ERR_PARSE, "'%s' holds no token of ours: remove it", path);
        if (ok && (st.st_mode & 077) != 0 && chmod(path, 0600) == -1)
            ok = err_sys(e, "others can read '%s', and it cannot be changed", path);
        if (ok)
            memcpy(a->token, text.p, text.n);
    } else {
        ok = random_token(a->token, e) && file_replace(path, str_from(a->token), 0600, e);
    }
    char hash[SHA256_HEX];
    hash_of(str_from(a->token), hash);
    const struct store_token t = {.hash = str_from(hash),
                                  .name = S("first"),
                                  .role = ROLE_ADMIN,
                                  .created_ns = clock_wall_ns()};
    ok = ok && a->meta->ops->token_put(a->meta, &t, e);
    arena_release(&scratch);
    return ok;
}

struct auth *auth_open(struct store_meta *meta, const char *server_dir, str listen,
                       str allowed_hosts, struct err *e)
{
    struct auth *a = map_alloc(1, sizeof *a);
    a->meta = meta;
    arena_init(&a->arena, "host names", 0);
    pthread_rwlock_init(&a->lock, NULL);
    collect_names(a, listen, allowed_hosts);
    if (first_token(a, server_dir, e) && load_tokens(a, e))
        return a;
    auth_close(a);
    return NULL;
}

void auth_close(struct auth *a)
{
    if (a == NULL)
        return;
    arena_release(&a->arena);
    arena_release(&a->tokens_arena);
    pthread_rwlock_destroy(&a->lock);
    free(a);
}

const char *auth_token(const struct auth *a)
{
    return a->token;
}

bool auth_check_host(struct auth *a, const struct http_request *req, struct err *e)
{
    const str host = http_header(req, "Host"), name = host_name(host);
    bool known = false;
    for (uint32_t i = 0; i < a->n_names && !known; i++)
        known = str_eq_nocase(a->names[i], name);
    if (!known) {
        err_set(e, ERR_DENIED, "host '%.*s' is not one of this server's names", STR_ARG(host));
        return err_hint(e, "add it to allowed_hosts (TACHO_ALLOWED_HOSTS)");
    }
    str origin = http_header(req, "Origin");
    if (origin.n == 0)
        return true;
    if (str_starts(origin, S("http://")))
        origin = str_sub(origin, 7, origin.n);
    else if (str_starts(origin, S("https://")))
        origin = str_sub(origin, 8, origin.n);
    return str_eq_nocase(origin, host) ||
           err_set(e, ERR_DENIED, "requests from origin '%.*s' are not taken", STR_ARG(origin));
}

/* Hashes are compared, so the time that it takes tells nothing about a token. */
static bool find_hash(struct auth *a, const char *hash, struct store_token *out)
{
    bool found = false;
    for (uint32_t i = 0; i < a->n_tokens && !found; i++) {
        found = str_eq(a->tokens[i].hash, str_from(hash)) && !is_expired(&a->tokens[i]);
        if (found)
            *out = a->tokens[i];
    }
    return found;
}

bool auth_find(struct auth *a, str token, struct store_token *out, struct err *e)
{
    char hash[SHA256_HEX];
    hash_of(token, hash);
    pthread_rwlock_rdlock(&a->lock);
    const bool found = token.n > 0 && find_hash(a, hash, out);
    pthread_rwlock_unlock(&a->lock);
    out->hash = out->name = out->run_group = (str){0}; /* they live in the table */
    return found || err_set(e, ERR_UNAUTHORIZED, "this token is not known here");
}

static bool no_token(struct err *e)
{
    err_set(e, ERR_UNAUTHORIZED, "a token is needed");
    return err_hint(e,
                    "send 'Authorization: Bearer TOKEN', or open the URL that tacho serve printed");
}

/* A page elsewhere can send a form with the cookie in old browsers: changes by cookie need an
 * Origin. */
static bool cookie_may(const struct http_request *req, struct err *e)
{
    return str_eq(req->method, S("GET")) || http_header(req, "Origin").n > 0 ||
           err_set(e, ERR_DENIED, "a change by cookie needs an Origin header");
}

bool auth_check_token(struct auth *a, struct http_request *req, struct err *e)
{
    str token = http_header(req, "Authorization");
    const bool bearer = token.n > 7 && str_eq_nocase(str_sub(token, 0, 7), S("Bearer "));
    token = bearer ? str_trim(str_sub(token, 7, token.n)) : http_cookie(req, AUTH_COOKIE);
    if (token.n == 0)
        return no_token(e);
    if (!bearer && !cookie_may(req, e))
        return false;
    char hash[SHA256_HEX];
    struct store_token t;
    hash_of(token, hash);
    pthread_rwlock_rdlock(&a->lock);
    const bool found = find_hash(a, hash, &t);
    if (found) {
        req->role = t.role;
        req->token_id = t.id;
        req->run_group = arena_str(&req->arena, t.run_group);
    }
    pthread_rwlock_unlock(&a->lock);
    return found || err_set(e, ERR_UNAUTHORIZED, "this token is not known here");
}

bool auth_check_role(enum store_role have, enum store_role want, struct err *e)
{
    const bool may = want == ROLE_INGEST ? have == ROLE_INGEST || have >= ROLE_OPERATOR
                                         : have >= ROLE_VIEWER && have >= want;
    return may || err_set(e, ERR_DENIED, "role '%s' may not do this: it needs '%s'",
                          store_role_word(have), store_role_word(want));
}

bool auth_make(struct auth *a, enum store_role role, str name, str run_group, int64_t lifetime_ns,
               char token[static AUTH_TOKEN_HEX], struct err *e)
{
    char hash[SHA256_HEX];
    if (!random_token(token, e))
        return false;
    hash_of(str_from(token), hash);
    const int64_t now = clock_wall_ns();
    const struct store_token t = {.hash = str_from(hash),
                                  .name = name,
                                  .role = role,
                                  .run_group = run_group,
                                  .created_ns = now,
                                  .expires_ns = lifetime_ns == 0 ? 0 : now + lifetime_ns};
    return a->meta->ops->token_put(a->meta, &t, e) && load_tokens(a, e);
}

static void hash_all(const str *parts, size_t n, char out[static SHA256_HEX])
{
    struct sha256 s;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&s);
    for (size_t i = 0; i < n; i++) {
        sha256_add(&s, parts[i].p, parts[i].n);
        sha256_add(&s, "", 1); /* a NUL after each: none can run into the next */
    }
    sha256_end(&s, digest);
    sha256_hex(digest, out);
}

/* Only who has the first token and knows the key can make it: the database holds neither. */
static void derive_token(const struct auth *a, const struct store_token_request *r, str key,
                         char out[static AUTH_TOKEN_HEX])
{
    const str parts[] = {S("tacho token"), str_from(a->token), str_from(r->salt), r->key, key};
    hash_all(parts, sizeof parts / sizeof *parts, out);
}

/* What was made by an earlier request must be what this one asks for, and still be valid. */
static bool check_repeated(struct auth *a, const struct store_token *want, const char *hash,
                           const struct store_token_request *r, struct err *e)
{
    struct arena scratch;
    struct store_token made;
    struct err absent = {0};
    arena_init(&scratch, "token", 0);
    bool ok = true;
    if (strcmp(hash, r->hash) != 0 ||
        !a->meta->ops->token_find(a->meta, str_from(r->hash), &scratch, &made, &absent))
        ok = err_set(e, ERR_CONFLICT,
                     "the token of this Idempotency-Key was made and revoked since");
    else if (made.role != want->role || !str_eq(made.name, want->name) ||
             !str_eq(made.run_group, want->run_group))
        ok = err_set(e, ERR_CONFLICT, "this Idempotency-Key made another token");
    arena_release(&scratch);
    return ok;
}

bool auth_make_once(struct auth *a, enum store_role role, str name, str run_group, int64_t asker,
                    str key, char token[static AUTH_TOKEN_HEX], struct err *e)
{
    char hash[SHA256_HEX], request[SHA256_HEX], who[24];
    struct store_token_request r = {.is_repeated = false};
    snprintf(who, sizeof who, "%lld", (long long)asker);
    const str parts[] = {S("tacho token request"), str_from(who), key};
    hash_all(parts, sizeof parts / sizeof *parts, request);
    r.key = str_from(request);
    if (!random_token(r.salt, e))
        return false;
    derive_token(a, &r, key, token);
    hash_of(str_from(token), hash);
    const struct store_token t = {.hash = str_from(hash),
                                  .name = name,
                                  .role = role,
                                  .run_group = run_group,
                                  .created_ns = clock_wall_ns()};
    if (!a->meta->ops->token_put_once(a->meta, &t, &r, e))
        return false;
    if (!r.is_repeated)
        return load_tokens(a, e);
    derive_token(a, &r, key, token);
    hash_of(str_from(token), hash);
    return check_repeated(a, &t, hash, &r, e);
}

bool auth_revoke(struct auth *a, int64_t id, struct err *e)
{
    return a->meta->ops->token_delete(a->meta, id, e) && load_tokens(a, e);
}
