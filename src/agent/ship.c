/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ship.h"

#include "agent/ship_inside.h"
#include "base/file.h"
#include "base/limits.h"
#include "net/http_client.h"

void ship_init(struct ship *s, const struct ship_options *o)
{
    *s = (struct ship){.options = *o};
}

void ship_release(struct ship *s)
{
    ship_journals_free(s->journals);
    ship_sessions_free(s->sessions);
    *s = (struct ship){0};
}

str ship_server_url(str url)
{
    while (url.n > 0 && url.p[url.n - 1] == '/')
        url.n--;
    return url;
}

bool ship_may_pass(const struct err *e)
{
    return e->code == ERR_UNREACHABLE || e->code == ERR_UNAVAILABLE || e->code == ERR_IO;
}

void ship_pass_over(struct ship *s, const char *path, const struct err *why)
{
    if (s->n_refused++ == 0) {
        s->first_refusal = *why;
        err_wrap(&s->first_refusal, "'%s' was passed over", path);
    }
}

bool ship_ask(const struct ship *s, const struct ship_request *q, json_t **said, struct err *e)
{
    struct buf url;
    buf_init(&url, 4096);
    buf_addf(&url, "%s/api/v1/%s", s->options.server, q->path);
    const char *const headers[] = {"Tachograph-Protocol: 1", q->header, NULL};
    const struct http_request request = {.method = q->method,
                                         .url = url.p,
                                         .token = s->options.token,
                                         .content_type = q->type,
                                         .headers = headers,
                                         .body = q->body};
    struct http_answer answer = {0};
    const bool ok = buf_ok(&url, "the server's address", e) && http_do(&request, &answer, e);
    if (ok && said != NULL)
        *said = json_loadb(answer.body.p == NULL ? "" : answer.body.p, answer.body.n, 0, NULL);
    http_answer_release(&answer);
    buf_release(&url);
    return ok;
}

static bool ship_journals(struct ship *s, struct arena *a, const char *run_dir, str run,
                          struct err *e)
{
    struct err ignored = {0};
    str *names;
    size_t n = 0;
    const char *dir = path_join(a, run_dir, S("journals"));
    if (dir == NULL || !file_is_dir(dir) || !dir_list(a, dir, &names, &n, &ignored))
        return true; /* a folder that is no run */
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(a, dir, names[i]);
        if (path == NULL)
            return arena_full(a, e);
        if (str_ends(names[i], S(".journal")) && !ship_journal(s, path, run, e))
            return err_wrap(e, "cannot send '%s'", path);
    }
    return true;
}

static bool ship_sessions(struct ship *s, struct arena *a, const char *run_dir, str run,
                          struct err *e)
{
    struct err ignored = {0};
    str *names;
    size_t n = 0;
    const char *dir = path_join(a, run_dir, S("plugins/profile"));
    if (dir == NULL || !file_is_dir(dir) || !dir_list(a, dir, &names, &n, &ignored))
        return true;
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(a, dir, names[i]);
        if (path == NULL)
            return arena_full(a, e);
        if (path_is_safe_name(names[i]) && file_is_dir(path) &&
            !ship_session(s, a, path, run, names[i], e))
            return err_wrap(e, "cannot send the profile session '%s'", path);
    }
    return true;
}

/* A run's journals first: they are small, and the server asks them what its sessions are. */
static bool ship_run(struct ship *s, struct arena *a, const char *runs_dir, str run, struct err *e)
{
    const struct arena_mark m = arena_mark(a);
    const char *dir = path_join(a, runs_dir, run);
    const bool ok = dir == NULL ? arena_full(a, e)
                                : !path_is_safe_name(run) || (ship_journals(s, a, dir, run, e) &&
                                                              ship_sessions(s, a, dir, run, e));
    arena_reset(a, m);
    return ok;
}

bool ship_pass(struct ship *s, struct err *e)
{
    struct arena a;
    str *runs;
    size_t n = 0;
    s->unsettled = false;
    s->n_writers = 0;
    arena_init(&a, "ship", LIMIT_ARENA_REQUEST_BYTES);
    const char *dir = path_join(&a, s->options.data_dir, S("runs"));
    bool ok = true;
    if (s->options.run != NULL)
        ok = ship_run(s, &a, dir, str_from(s->options.run), e);
    else if (file_is_dir(dir))
        ok = dir_list(&a, dir, &runs, &n, e);
    for (size_t i = 0; ok && i < n; i++)
        ok = ship_run(s, &a, dir, runs[i], e);
    arena_release(&a);
    return ok;
}
