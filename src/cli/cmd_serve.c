/* SPDX-License-Identifier: Apache-2.0 */
/* tacho serve: the server and its web UI, until SIGTERM or SIGINT. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/browser.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "server/server.h"

/* Over SSH the browser is on the other side: say how to get there. */
static void print_tunnel(const char *url)
{
    const char *ssh = getenv("SSH_CONNECTION");
    str rest = str_from(ssh), client = {0}, client_port = {0}, here = {0};
    if (ssh == NULL || !str_cut(rest, ' ', &client, &rest) ||
        !str_cut(rest, ' ', &client_port, &rest) || !str_cut(rest, ' ', &here, &rest))
        return;
    const char *port = strrchr(url, ':');
    const char *user = getenv("USER");
    printf("from your own machine: ssh -L %s:127.0.0.1:%s %s%s%.*s\n", port + 1, port + 1,
           user == NULL ? "" : user, user == NULL ? "" : "@", STR_ARG(here));
}

static void wait_for_signal(sigset_t *signals)
{
    int got = 0;
    while (sigwait(signals, &got) != 0 || got == SIGCHLD)
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
}

static bool serve(const struct server_options *o, bool open, struct err *e)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread is there: all inherit it */
    struct server *s = server_open(o, e);
    if (s == NULL)
        return false;
    char address[512];
    snprintf(address, sizeof address, "%s/#token=%s", server_url(s), server_token(s));
    printf("%s\n", address);
    print_tunnel(server_url(s));
    fflush(stdout);
    if (open)
        browser_open(address);
    wait_for_signal(&signals);
    server_close(s);
    return true;
}

bool cmd_serve(struct cli *cli, int argc, char **argv, struct err *e)
{
    char data[RUN_ARG_PATH_MAX];
    if (!run_arg_data_dir(cli, data, e))
        return false;
    const struct server_options o = {
        .data_dir = data,
        .cache_dir = config_text(cli->config, CONFIG_FIELD_cache),
        .listen = config_text(cli->config, CONFIG_FIELD_listen),
        .allowed_hosts = config_text(cli->config, CONFIG_FIELD_allowed_hosts),
        .worker_threads = (unsigned)config_number(cli->config, CONFIG_FIELD_worker_threads),
        .parser_memory_bytes = (uint64_t)config_number(cli->config, CONFIG_FIELD_parser_memory),
        .parser_cpu_s = (uint64_t)(config_number(cli->config, CONFIG_FIELD_parser_cpu) / NS_PER_S),
    };
    return serve(&o, flags_on(cli->flags, FLAG_serve_open), e);
}
