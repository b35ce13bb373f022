/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "server"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/pool.h"
#include "jobs/queue.h"
#include "jobs/trace_pool.h"
#include "server/follower.h"
#include "server/keeper.h"
#include "server/local_socket.h"
#include "server/run_cache.h"
#include "server/server_inside.h"
#include "server/session_job.h"

#define BODIES_MAX_BYTES (256ull << 20)
#define WORKERS 8

static bool err_taken(const struct server *s, struct err *e)
{
    struct local_server other;
    if (!local_server_find(s->data_dir, &other, e))
        return err_set(e, ERR_CONFLICT, "another server has the data folder '%s'", s->data_dir);
    err_set(e, ERR_CONFLICT, "another server has the data folder '%s': process %lld at %s",
            s->data_dir, (long long)other.pid, other.url);
    return err_hint(e, "use that one, or give this one another --data");
}

/* <data>/server, 0700, on a local disk, and ours alone. */
static bool take_folder(struct server *s, char dir[static 4096 + 16], struct err *e)
{
    char lock[4096 + 32];
    snprintf(dir, 4096 + 16, "%s/server", s->data_dir);
    if (!file_is_dir(dir) && !dir_make(dir, 0700, e))
        return false;
    if (chmod(dir, 0700) == -1)
        return err_sys(e, "cannot close '%s' to others", dir);
    if (dir_is_remote(dir)) {
        err_set(e, ERR_USAGE,
                "'%s' is on a network file system, where the database cannot keep its promises",
                dir);
        return err_hint(e, "give tacho serve a data folder on a local disk");
    }
    snprintf(lock, sizeof lock, "%s/lock", dir);
    s->lock_fd = file_open(lock, O_RDWR | O_CREAT, 0600, e);
    if (s->lock_fd == -1)
        return false;
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno != EWOULDBLOCK)
        return err_sys(e, "cannot lock '%s'", lock);
    return err_taken(s, e);
}

static void set_url(struct server *s, str listen)
{
    ptrdiff_t colon = -1;
    for (size_t i = 0; i < listen.n; i++)
        if (listen.p[i] == ':')
            colon = (ptrdiff_t)i;
    str host = colon < 0 ? listen : str_sub(listen, 0, (size_t)colon);
    if (host.n == 0 || str_eq(host, S("0.0.0.0")) || str_eq(host, S("[::]")))
        host = S("127.0.0.1");
    snprintf(s->url, sizeof s->url, "http://%.*s:%u", STR_ARG(host), http_port(s->http));
}

static bool open_parts(struct server *s, const struct server_options *o, struct err *e)
{
    char dir[4096 + 16], database[4096 + 32];
    if (!take_folder(s, dir, e))
        return false;
    snprintf(database, sizeof database, "%s/tacho.db", dir);
    s->blob = folder_open(s->data_dir, e);
    s->meta = s->blob == NULL ? NULL : sqlite_open(database, e);
    if (s->meta == NULL)
        return false;
    s->auth = auth_open(s->meta, dir, o->listen, o->allowed_hosts, e);
    if (s->auth == NULL)
        return false;
    s->runs = run_cache_open(s);
    s->traces = trace_pool_new(LIMIT_TRACE_AT_ONCE_BYTES, LIMIT_TRACE_PART_EVENTS);
    s->keeper = keeper_open(s);
    s->queue = queue_open(s->meta, o->worker_threads, session_job_run, s, e);
    if (s->queue == NULL)
        return false;
    const struct http_options http = {
        .listen = o->listen,
        .handler = {.begin = router_begin, .handle = router_handle, .ctx = s},
        .n_workers = WORKERS,
        .n_slow_workers = o->worker_threads == 0 ? 2 : o->worker_threads + 1,
        .bodies_max_bytes = BODIES_MAX_BYTES};
    s->http = http_open(&http, e);
    if (s->http == NULL)
        return false;
    set_url(s, o->listen);
    s->follower = follower_open(s);
    struct err why = {0};
    s->local = local_socket_open(s, &why);
    if (s->local == NULL)
        log_warn("commands here will not find this server: %s", why.msg);
    return true;
}

struct server *server_open(const struct server_options *o, struct err *e)
{
    struct server *s = map_alloc(1, sizeof *s);
    s->lock_fd = -1;
    snprintf(s->cache_dir, sizeof s->cache_dir, "%.*s", STR_ARG(o->cache_dir));
    s->indexes = (struct index_places){.cache = s->cache_dir};
    s->parser_memory_bytes = o->parser_memory_bytes;
    s->parser_cpu_s = o->parser_cpu_s;
    s->started_ns = clock_wall_ns();
    const size_t n = strlen(o->data_dir);
    bool ok = n > 0 && n < sizeof s->data_dir - 512;
    if (!ok)
        err_set(e, ERR_USAGE, "the path of the data folder is empty or too long");
    else
        memcpy(s->data_dir, o->data_dir, n + 1);
    if (ok && open_parts(s, o, e))
        return s;
    server_close(s);
    return NULL;
}

void server_close(struct server *s)
{
    if (s == NULL)
        return;
    local_socket_close(s->local);
    follower_close(s->follower);
    http_close(s->http);
    queue_close(s->queue);
    keeper_close(s->keeper);
    trace_pool_free(s->traces);
    run_cache_close(s->runs);
    auth_close(s->auth);
    if (s->meta != NULL)
        s->meta->ops->close(s->meta);
    if (s->blob != NULL)
        s->blob->ops->close(s->blob);
    if (s->lock_fd != -1)
        close(s->lock_fd);
    free(s);
}

const char *server_url(const struct server *s)
{
    return s->url;
}

const char *server_token(const struct server *s)
{
    return auth_token(s->auth);
}
