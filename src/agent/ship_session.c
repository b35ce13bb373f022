/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ship_inside.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/sha256.h"
#include "model/trace.h"

struct ship_session {
    char *path;          /* owned */
    uint64_t size_bytes; /* of its files at the last look */
    struct timespec newest;
    struct ship_retry retry;
    uint32_t asked_at; /* n_restarts of the server then */
    bool done;         /* these files are there, or were refused */
};

void ship_sessions_free(struct ship *s)
{
    for (size_t i = 0; ship_session_map_next(&s->sessions, &i);) {
        free(s->sessions.values[i - 1]->path);
        free(s->sessions.values[i - 1]);
    }
    ship_session_map_release(&s->sessions);
}

static struct ship_session *session_at(struct ship *s, const char *path)
{
    struct ship_session **found = ship_session_map_get(&s->sessions, str_from(path));
    if (found != NULL)
        return *found;
    struct ship_session *x = map_alloc(1, sizeof *x);
    x->path = strdup(path);
    must(x->path != NULL);
    *ship_session_map_put(&s->sessions, str_from(x->path)) = x;
    return x;
}

/* The targets of a session's folder; true when its files are as they were at the last look. */
static bool look(struct ship_session *x, struct arena *a, str *names, size_t n, size_t *n_profiles)
{
    uint64_t size_bytes = 0;
    struct timespec newest = {0};
    struct stat st;
    *n_profiles = 0;
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(a, x->path, names[i]);
        if (!str_ends(names[i], S(TRACE_FILE_ENDING)) || path == NULL || lstat(path, &st) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        names[(*n_profiles)++] = names[i];
        size_bytes += (uint64_t)st.st_size;
        if (st.st_mtim.tv_sec > newest.tv_sec ||
            (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec > newest.tv_nsec))
            newest = st.st_mtim;
    }
    const bool same = size_bytes == x->size_bytes && newest.tv_sec == x->newest.tv_sec &&
                      newest.tv_nsec == x->newest.tv_nsec;
    x->size_bytes = size_bytes;
    x->newest = newest;
    x->done = x->done && same;
    return same;
}

static void digest_hex(struct sha256 *sha, char hex[static SHA256_HEX])
{
    uint8_t digest[SHA256_BYTES];
    sha256_end(sha, digest);
    sha256_hex(digest, hex);
}

/* One part, with its own checksum; the whole's goes on in `whole`. */
static bool send_part(struct ship *s, const char *where, uint32_t part, str body,
                      struct sha256 *whole, struct err *e)
{
    char path[1024], hex[SHA256_HEX], header[32 + SHA256_HEX];
    struct sha256 sha;
    sha256_init(&sha);
    sha256_add(&sha, body.p, body.n);
    sha256_add(whole, body.p, body.n);
    digest_hex(&sha, hex);
    snprintf(path, sizeof path, "%s?part=%u", where, part);
    snprintf(header, sizeof header, "X-Checksum-SHA256: %s", hex);
    return ship_ask(s,
                    &(struct ship_request){.method = "PUT",
                                           .path = path,
                                           .type = "application/octet-stream",
                                           .header = header,
                                           .body = body},
                    NULL, e);
}

static bool send_parts(struct ship *s, int fd, char *part, const char *where, struct err *e)
{
    const size_t most = s->body_bytes_max < LIMIT_HTTP_UPLOAD_PART_BYTES
                            ? s->body_bytes_max
                            : LIMIT_HTTP_UPLOAD_PART_BYTES;
    uint64_t at = 0, size_bytes;
    uint32_t n = 0;
    json_t *said = NULL;
    struct sha256 whole;
    char path[1024], hex[SHA256_HEX], body[160];
    if (!file_size(fd, &size_bytes, e))
        return false;
    sha256_init(&whole);
    do {
        const size_t bytes = size_bytes - at < most ? (size_t)(size_bytes - at) : most;
        if (!file_pread_all(fd, part, bytes, at, e) ||
            !send_part(s, where, n++, (str){part, bytes}, &whole, e))
            return false;
        at += bytes;
    } while (at < size_bytes);
    digest_hex(&whole, hex);
    snprintf(path, sizeof path, "%s/complete", where);
    const int length = snprintf(body, sizeof body, "{\"parts\":%u,\"sha256\":\"%s\"}", n, hex);
    const struct ship_request q = {
        .method = "POST", .path = path, .type = "application/json", .body = {body, (size_t)length}};
    const bool ok = ship_ask(s, &q, &said, e);
    json_decref(said);
    return ok;
}

static bool send_profile(struct ship *s, const char *path, const char *where, struct err *e)
{
    const int fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, e);
    if (fd == -1)
        return false;
    char *part = map_alloc(1, LIMIT_HTTP_UPLOAD_PART_BYTES);
    const bool ok = send_parts(s, fd, part, where, e);
    free(part);
    close(fd);
    s->n_files += ok;
    return ok;
}

/* What the server has of the session is announced or asked for at once. */
static bool announce(struct ship *s, str run, str name, json_t **said, struct err *e)
{
    char body[640];
    const int n =
        snprintf(body, sizeof body, "{\"run\":\"%.*s\",\"session\":\"%.*s\",\"kind\":\"\"}",
                 STR_ARG(run), STR_ARG(name)); /* safe names need no escapes */
    const struct ship_request q = {.method = "POST",
                                   .path = "sessions",
                                   .type = "application/json",
                                   .body = {body, (size_t)n}};
    return n < (int)sizeof body
               ? ship_ask(s, &q, said, e)
               : err_set(e, ERR_LIMIT, "the names of run and session are too long: '%.*s'",
                         STR_ARG(name));
}

static bool server_has_target(const json_t *session, str target, uint64_t size_bytes)
{
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(session, "targets"), i, t)
    {
        const char *name = json_string_value(json_object_get(t, "target"));
        if (name != NULL && str_eq(str_from(name), target) &&
            json_integer_value(json_object_get(t, "size_bytes")) == (json_int_t)size_bytes)
            return true;
    }
    return false;
}

static bool send_profiles(struct ship *s, struct arena *a, const struct ship_session *x, str run,
                          str name, const str *files, size_t n, struct err *e)
{
    json_t *said = NULL;
    bool ok = announce(s, run, name, &said, e);
    for (size_t i = 0; ok && i < n; i++) {
        const str target = str_sub(files[i], 0, files[i].n - TRACE_FILE_ENDING_BYTES);
        const char *path = path_join(a, x->path, files[i]);
        const str where = arena_printf(a, "sessions/%.*s~%.*s/targets/%.*s/upload", STR_ARG(run),
                                       STR_ARG(name), STR_ARG(target));
        struct stat st;
        if (path == NULL || where.p == NULL)
            ok = arena_full(a, e);
        else if (path_is_safe_name(target) && stat(path, &st) == 0 &&
                 !server_has_target(said, target, (uint64_t)st.st_size))
            ok = send_profile(s, path, where.p, e);
    }
    json_decref(said);
    return ok;
}

bool ship_session(struct ship *s, struct arena *a, const char *dir, str run, str name,
                  struct err *e)
{
    struct ship_session *x = session_at(s, dir);
    struct err ignored = {0};
    str *names;
    size_t n = 0, n_profiles = 0;
    if (!dir_list(a, dir, &names, &n, &ignored))
        return true;
    const bool same = look(x, a, names, n, &n_profiles);
    x->done = x->done && x->asked_at == s->n_restarts;
    x->asked_at = s->n_restarts;
    if (!same)
        s->unsettled = s->unsettled || n_profiles > 0;
    s->busy = s->busy || (n_profiles > 0 && !x->done);
    if (!same || x->done || n_profiles == 0 || ship_has_to_wait(s, &x->retry))
        return true;
    const bool ok = send_profiles(s, a, x, run, name, names, n_profiles, e);
    x->done = ok || !ship_may_pass(e);
    if (ok)
        x->retry = (struct ship_retry){0};
    if (ok || e->code == ERR_UNAUTHORIZED)
        return ok;
    if (ship_may_pass(e))
        return ship_try_later(s, &x->retry, e);
    ship_pass_over(s, dir, e);
    err_clear(e);
    return true;
}
