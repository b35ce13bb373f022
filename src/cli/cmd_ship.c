/* SPDX-License-Identifier: Apache-2.0 */
/* tacho ship: sends the journals and sessions of the data folder to a server, and goes on as they
 * grow. SIGTERM: sends what is left, for at most SHIP_END_S, and ends. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/ship.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "journal/run_identity.h"
#include "server/local_socket.h"

#define PASS_EVERY_MS 500
#define NAP_MS 50 /* so soon a signal is seen */
#define BACKOFF_MOST_MS 30000
#define WAIT_ONCE_MS 2000 /* between tries of --once */
#define SETTLE_S 10       /* --until-done waits that long for a first process to record */
#define AWAY_MOST_S 3600  /* and that long, once all have ended, for a server that is away */
#define AWAY_ONCE_S 20    /* --once waits that long for it */

static volatile sig_atomic_t ending;

static void on_signal(int number)
{
    ending = number;
}

static void listen_for_end(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_UNBLOCK, &ends, NULL); /* agent/ship_child.h starts us with them blocked */
}

/* Less when a signal comes. */
static void wait_ms(int64_t ms)
{
    for (int64_t i = 0; i < ms && !ending; i += NAP_MS)
        usleep(NAP_MS * 1000);
}

/* A shipper that outlives who started it holds no pipe or terminal of theirs open. */
static void let_go_of_output(void)
{
    struct err ignored = {0};
    const int null_fd = file_open("/dev/null", O_RDWR, 0, &ignored);
    for (int fd = 0; null_fd != -1 && fd <= 2; fd++)
        (void)dup2(null_fd, fd);
    if (null_fd > 2)
        close(null_fd);
}

struct follow {
    struct ship ship;
    bool once, until_done, away;
    int *lock; /* of the one in the background, -1 = let go; NULL = none */
    pid_t parent;
    uint64_t begin_ns, told_ns, ended_ns, through_ns; /* told_ns: by a signal; 0 = not (yet) */
    uint64_t n_answers, answered_ns;                  /* when the server last took something */
    uint64_t end_by_ns;                               /* 0 = no end in sight */
};

static bool pass(struct follow *f, struct err *e)
{
    err_clear(e);
    const bool ok = ship_pass(&f->ship, e);
    if (!ok && ship_may_pass(e) && !f->away)
        fprintf(stderr, "tacho: %s; the journals wait here and are sent when it answers\n", e->msg);
    f->away = !ok;
    if (ok && f->through_ns == 0)
        f->through_ns = clock_boottime_ns();
    return ok;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Sets by when to end: told to, or because those that record have ended. What was asked for once takes as
 * long as it takes, as long as the server takes it. */
static void look_for_end(struct follow *f)
{
    const uint64_t now = clock_boottime_ns(), s = (uint64_t)NS_PER_S;
    const bool all_ended =
        f->until_done && f->ship.n_writers == 0 && now > f->begin_ns + SETTLE_S * s;
    if (f->ship.n_answers > f->n_answers)
        f->answered_ns = now;
    f->n_answers = f->ship.n_answers;
    if (ending && f->told_ns == 0)
        f->told_ns = now;
    f->ended_ns = !all_ended ? 0 : f->ended_ns == 0 ? now : f->ended_ns;
    f->end_by_ns = f->told_ns != 0    ? f->told_ns + SHIP_END_S * s
                   : f->once          ? later_of(f->begin_ns, f->answered_ns) + AWAY_ONCE_S * s
                   : f->ended_ns != 0 ? later_of(f->ended_ns, f->answered_ns) + AWAY_MOST_S * s
                                      : 0;
    f->ship.look_everywhere = f->end_by_ns != 0;
}

/* Asked by the passes: a server that hangs does not hold up the end. */
static bool may_go_on(void *ctx)
{
    struct follow *f = ctx;
    look_for_end(f);
    return f->end_by_ns == 0 || clock_boottime_ns() <= f->end_by_ns;
}

/* After a pass that came through and found a session still being written. */
static bool is_settled(struct follow *f)
{
    if (!f->ship.unsettled)
        return true;
    if (clock_boottime_ns() < f->through_ns + SETTLE_S * (uint64_t)NS_PER_S && may_go_on(f))
        return false;
    fputs("tacho: a profile session was still being written and was not sent\n", stderr);
    return true;
}

/* One shipper in the background a host, data folder and server: *lock is -1 when another one holds it. */
static bool take_lock(const char *data_dir, str server, int *lock, struct err *e)
{
    char path[RUN_ARG_PATH_MAX + 320];
    struct run_identity me;
    run_identity_find(&me);
    snprintf(path, sizeof path, "%s/ship", data_dir);
    if (!dir_make(path, 0750, e))
        return false;
    snprintf(path, sizeof path, "%s/ship/%s-%016llx.lock", data_dir, me.host,
             (unsigned long long)str_hash(server));
    *lock = file_open(path, O_RDWR | O_CREAT, 0640, e);
    if (*lock == -1)
        return false;
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    close(*lock);
    *lock = -1;
    return true;
}

/* Whoever began to record while the lock was held counts on us: so the last look comes after it is let go. */
static bool is_relieved(struct follow *f, struct err *e)
{
    if (f->lock == NULL || ending)
        return true;
    close(*f->lock);
    *f->lock = -1;
    if (!pass(f, e) || f->ship.n_writers == 0)
        return true;
    return !take_lock(f->ship.options.data_dir, str_from(f->ship.options.server), f->lock, e) ||
           *f->lock == -1;
}

static bool follow(struct follow *f, struct err *e)
{
    int64_t wait = PASS_EVERY_MS;
    f->begin_ns = clock_boottime_ns();
    for (;;) {
        look_for_end(f); /* before the pass: what came before the signal is in it */
        const bool is_last = f->end_by_ns != 0;
        const bool ok = pass(f, e);
        if (!ok && !ship_may_pass(e))
            return false;
        look_for_end(f); /* a process may have begun to record */
        if (is_last && f->end_by_ns != 0 && ((ok && is_settled(f)) || !may_go_on(f)) &&
            (!ok || is_relieved(f, e)))
            return ok;
        if (f->until_done && getppid() != f->parent) {
            let_go_of_output();
            f->parent = getppid();
        }
        wait = ok || ending || e->code == ERR_IO ? PASS_EVERY_MS
               : wait * 2 < BACKOFF_MOST_MS      ? wait * 2
                                                 : BACKOFF_MOST_MS;
        if (f->once && wait > WAIT_ONCE_MS)
            wait = WAIT_ONCE_MS;
        if (ending)
            usleep(PASS_EVERY_MS * 1000);
        else
            wait_ms(wait);
    }
}

/* True in the process that is to ship; the one that was called ends. */
static bool detach(const char *data_dir, struct err *e)
{
    const pid_t pid = fork();
    if (pid == -1)
        return err_sys(e, "cannot go on in the background");
    if (pid > 0)
        _exit(0);
    (void)setsid();
    if (data_dir[0] == '/')
        (void)!chdir("/"); /* keeps no file system in use but that one */
    let_go_of_output();
    return true;
}

static bool ship_with(const struct cli *cli, const struct ship_options *o, bool until_done,
                      int *lock, struct err *e)
{
    struct follow f = {.once = flags_on(cli->flags, FLAG_ship_once),
                       .until_done = until_done,
                       .lock = lock,
                       .parent = getppid()};
    struct ship_options options = *o;
    options.may_go_on = may_go_on;
    options.ctx = &f;
    listen_for_end();
    process_raise_descriptors();
    ship_init(&f.ship, &options);
    bool ok = follow(&f, e);
    fprintf(stderr, "tacho: %llu records and %llu profiles sent to %s\n",
            (unsigned long long)f.ship.n_records, (unsigned long long)f.ship.n_files, o->server);
    if (ok && f.ship.n_refused > 0) {
        *e = f.ship.first_refusal;
        ok = false;
        if (f.ship.n_refused > 1)
            err_wrap(e, "%llu journals or sessions were not sent",
                     (unsigned long long)f.ship.n_refused);
    }
    ship_release(&f.ship);
    return ok;
}

/* True without --run, or when its folder is there: it has to be the whole id, so a slip would send nothing. */
static bool has_run(const struct cli *cli, const char *data_dir, struct err *e)
{
    const char *run = flags_text(cli->flags, FLAG_ship_run);
    char path[RUN_ARG_PATH_MAX + 320];
    if (run == NULL)
        return true;
    const int n = snprintf(path, sizeof path, "%s/runs/%s", data_dir, run);
    if (path_is_safe_name(str_from(run)) && n < (int)sizeof path && file_is_dir(path))
        return true;
    err_set(e, ERR_NOT_FOUND, "no run '%s' in '%s'", run, data_dir);
    return err_hint(e, "tacho runs list");
}

bool cmd_ship(struct cli *cli, int argc, char **argv, struct err *e)
{
    char data[RUN_ARG_PATH_MAX];
    struct local_server own;
    struct err absent = {0};
    struct arena a;
    int lock = -1;
    const str server = ship_server_url(config_text(cli->config, CONFIG_FIELD_server));
    const str token = config_text(cli->config, CONFIG_FIELD_token);
    const bool background = flags_on(cli->flags, FLAG_ship_background);
    const bool until_done = background || flags_on(cli->flags, FLAG_ship_until_done);
    if (!run_arg_data_dir(cli, data, e))
        return false;
    if (server.n == 0)
        return err_set(e, ERR_USAGE, "no server to send journals to") ||
               err_hint(e,
                        "name one with --server or TACHO_SERVER, and its token with TACHO_TOKEN");
    if (local_server_find(data, &own, &absent) &&
        str_eq(server, ship_server_url(str_from(own.url)))) {
        fprintf(stderr, "tacho: %s is the server of this data folder and follows it by itself\n",
                own.url);
        return true;
    }
    if (!has_run(cli, data, e))
        return false;
    if (background && (!take_lock(data, server, &lock, e) || (lock != -1 && !detach(data, e))))
        return false;
    if (background && lock == -1)
        return true;
    arena_init(&a, "ship", LIMIT_ARENA_REQUEST_BYTES);
    const struct ship_options o = {.data_dir = data,
                                   .server = arena_cstr(&a, server),
                                   .token = token.n == 0 ? NULL : arena_cstr(&a, token),
                                   .run = flags_text(cli->flags, FLAG_ship_run),
                                   .here_only = until_done};
    const bool ok = ship_with(cli, &o, until_done, background ? &lock : NULL, e);
    arena_release(&a);
    if (lock != -1)
        close(lock);
    return ok;
}
