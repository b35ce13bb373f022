/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ship_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ship.h"
#include "base/clock.h"

static _Noreturn void become_shipper(const struct ship_child_options *o, const char *data_dir,
                                     const char *run, const sigset_t *mask)
{
    const int null_fd = open("/dev/null", O_RDWR);
    if (null_fd != -1) {
        (void)dup2(null_fd, 0);
        (void)dup2(null_fd, 1);
    }
    (void)setsid();
    (void)setenv("TACHO_DATA", data_dir, 1);
    (void)setenv("TACHO_SERVER", o->server, 1);
    if (o->token != NULL)
        (void)setenv("TACHO_TOKEN", o->token, 1);
    sigset_t with_end = *mask; /* an end that comes before it listens has to wait, not to kill */
    sigaddset(&with_end, SIGTERM);
    sigprocmask(SIG_SETMASK, &with_end, NULL);
    execl("/proc/self/exe", "tacho", "ship", "--run", run, "--until-done", (char *)NULL);
    _exit(127);
}

pid_t ship_child_start(const struct ship_child_options *o, const char *data_dir, const char *run,
                       const sigset_t *mask, struct err *e)
{
    const pid_t pid = fork();
    if (pid == -1)
        err_sys(e, "cannot start sending to %s", o->server);
    if (pid == 0)
        become_shipper(o, data_dir, run, mask);
    return pid;
}

void ship_child_end(pid_t pid, const sigset_t *signals)
{
    int status;
    if (pid <= 0 || kill(pid, SIGTERM) != 0)
        return;
    const uint64_t by_ns = clock_boottime_ns() + (SHIP_END_S + 2) * (uint64_t)NS_PER_S;
    while (clock_boottime_ns() < by_ns) { /* it may be stopped, or its disk may hang */
        const pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid || (got == -1 && errno != EINTR))
            return;
        const struct timespec wait = {1, 0};
        siginfo_t info;
        if (sigtimedwait(signals, &info, &wait) > 0 && info.si_signo != SIGCHLD &&
            info.si_signo != SIGWINCH)
            return;
    }
}
