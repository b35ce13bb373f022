/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ship.h"

#include <stdlib.h>

#include "agent/ship_inside.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "net/http_client.h"

#define IDLE_MS 30000      /* a request that stands still for so long is given up */
#define REQUEST_MS 1800000 /* and any after so long */
#define BODY_BYTES_LEAST 65536
#define RETRY_FIRST_NS (500 * (uint64_t)NS_PER_MS)
#define RETRY_MOST_NS (30 * (uint64_t)NS_PER_S)
#define RETRY_MOST_AT_END_NS (2 * (uint64_t)NS_PER_S)
#define TROUBLES_MAX 8 /* of one pass */
#define QUIET_EVERY 20 /* passes between looks at a run in which nothing happens: 10 s */
#define FIRST_LOOKS 20 /* at a run without journals: they may be still to come */

struct ship_run {
    char *name; /* owned */
    uint32_t n_looks;
    bool busy;
};

void ship_init(struct ship *s, const struct ship_options *o)
{
    *s = (struct ship){.options = *o, .body_bytes_max = LIMIT_HTTP_BODY_BYTES};
}

void ship_release(struct ship *s)
{
    ship_journals_free(s);
    ship_sessions_free(s);
    for (size_t i = 0; ship_run_map_next(&s->runs, &i);) {
        free(s->runs.values[i - 1]->name);
        free(s->runs.values[i - 1]);
    }
    ship_run_map_release(&s->runs);
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

bool ship_has_to_wait(struct ship *s, const struct ship_retry *r)
{
    const bool has_to = clock_boottime_ns() < r->at_ns;
    s->n_waiting += has_to;
    s->busy = s->busy || has_to;
    return has_to;
}

bool ship_try_later(struct ship *s, struct ship_retry *r, struct err *e)
{
    const uint64_t most_ns = s->look_everywhere ? RETRY_MOST_AT_END_NS : RETRY_MOST_NS;
    const uint64_t wait_ns = r->wait_ns == 0 ? RETRY_FIRST_NS : 2 * r->wait_ns;
    r->wait_ns = wait_ns < most_ns ? wait_ns : most_ns;
    r->at_ns = clock_boottime_ns() + r->wait_ns;
    s->busy = true;
    s->trouble = *e;
    if (e->code != ERR_IO || ++s->n_troubles > TROUBLES_MAX)
        return false;
    err_clear(e);
    return true;
}

bool ship_may_go_on(const struct ship *s, struct err *e)
{
    if (s->options.may_go_on == NULL || s->options.may_go_on(s->options.ctx))
        return true;
    const bool knows_why = s->trouble.msg[0] != '\0';
    return err_set(e, ERR_UNREACHABLE, "not all was sent to %s in the time there was%s%s",
                   s->options.server, knows_why ? ": " : "", s->trouble.msg);
}

/* Anything but what a server of ours says: a page of a proxy, a redirection. */
static bool take_answer(struct ship *s, const struct http_answer *r, json_t **said, struct err *e)
{
    json_t *o =
        said == NULL ? NULL : json_loadb(r->body.p == NULL ? "" : r->body.p, r->body.n, 0, NULL);
    if (said == NULL ? r->status != 204 : r->status >= 300 || !json_is_object(o)) {
        json_decref(o);
        return err_set(e, ERR_UNREACHABLE,
                       "'%s' does not answer as a tachograph server (status %d)", s->options.server,
                       r->status);
    }
    if (said != NULL)
        *said = o;
    s->n_answers++;
    return true;
}

/* A refusal without our problem document is of a proxy on the way: what it finds too large goes in smaller
 * pieces from now on, and one that finds no server behind it (404) says nothing of the journal. */
static void take_refusal(struct ship *s, const struct ship_request *q, const struct http_answer *r,
                         struct err *e)
{
    const bool is_ours = str_starts(str_from(r->content_type), S("application/problem+json"));
    if (!is_ours && (e->code == ERR_NOT_FOUND || e->code == ERR_DENIED || e->code == ERR_CONFLICT ||
                     e->code == ERR_PARSE || (e->code == ERR_USAGE && r->status >= 400) ||
                     (e->code == ERR_LIMIT && r->status < 400)))
        e->code = ERR_UNREACHABLE;
    if (e->code != ERR_LIMIT || r->status != 413 || q->is_whole || q->body.n <= BODY_BYTES_LEAST)
        return;
    s->body_bytes_max = q->body.n / 4 > BODY_BYTES_LEAST ? q->body.n / 4 : BODY_BYTES_LEAST;
    e->code = ERR_IO;
}

bool ship_ask(struct ship *s, const struct ship_request *q, json_t **said, struct err *e)
{
    struct buf url;
    if (!ship_may_go_on(s, e))
        return false;
    buf_init(&url, 4096);
    buf_addf(&url, "%s/api/v1/%s", s->options.server, q->path);
    const char *const headers[] = {"Tachograph-Protocol: 1", q->header, NULL};
    const struct http_request request = {.method = q->method,
                                         .url = url.p,
                                         .token = s->options.token,
                                         .content_type = q->type,
                                         .headers = headers,
                                         .timeout_ms = REQUEST_MS,
                                         .idle_ms = IDLE_MS,
                                         .may_go_on = s->options.may_go_on,
                                         .may_go_on_ctx = s->options.ctx,
                                         .body = q->body};
    struct http_answer answer = {0};
    bool ok = buf_ok(&url, "the server's address", e);
    if (ok && !http_do(&request, &answer, e)) {
        take_refusal(s, q, &answer, e);
        ok = false;
    }
    ok = ok && take_answer(s, &answer, said, e);
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

static struct ship_run *run_at(struct ship *s, str name)
{
    struct ship_run **found = ship_run_map_get(&s->runs, name);
    if (found != NULL)
        return *found;
    struct ship_run *r = map_alloc(1, sizeof *r);
    r->name = strndup(name.p, name.n);
    must(r->name != NULL);
    *ship_run_map_put(&s->runs, str_from(r->name)) = r;
    return r;
}

/* A data folder may hold thousands of runs, all but a few of the past. */
static bool ship_run_in_turn(struct ship *s, struct arena *a, const char *dir, str name,
                             struct err *e)
{
    struct ship_run *r = run_at(s, name);
    if (!s->look_everywhere && !r->busy && r->n_looks >= FIRST_LOOKS &&
        (s->n_passes + str_hash(name)) % QUIET_EVERY != 0)
        return true;
    s->busy = false;
    const uint64_t n_met = s->n_met;
    const bool ok = ship_run(s, a, dir, name, e);
    r->n_looks = s->n_met > n_met ? FIRST_LOOKS : r->n_looks + (r->n_looks < FIRST_LOOKS);
    r->busy = s->busy;
    return ok;
}

bool ship_pass(struct ship *s, struct err *e)
{
    struct arena a;
    str *runs;
    size_t n = 0;
    s->unsettled = false;
    s->n_troubles = s->n_waiting = 0;
    s->n_passes++;
    arena_init(&a, "ship", LIMIT_ARENA_REQUEST_BYTES);
    const char *dir = path_join(&a, s->options.data_dir, S("runs"));
    bool ok = true;
    if (s->options.run != NULL)
        ok = ship_run(s, &a, dir, str_from(s->options.run), e);
    else if (file_is_dir(dir))
        ok = dir_list(&a, dir, &runs, &n, e);
    for (size_t i = 0; ok && i < n; i++)
        ok = ship_run_in_turn(s, &a, dir, runs[i], e);
    arena_release(&a);
    s->n_writers = ship_count_writers(s);
    if (ok && s->n_troubles + s->n_waiting > 0) {
        *e = s->trouble;
        return false;
    }
    if (ok)
        err_clear(&s->trouble);
    return ok;
}
