/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { RING_BYTES = 65536 }; /* LIMIT_OUTPUT_TAIL_BYTES, which is no constant expression */
#define QUIET_MS 20
#define DRAIN_QUIET_POLLS 3

struct tee_shared {
    _Atomic uint64_t n_bytes[2];    /* ever passed on */
    _Atomic uint64_t n_quiet_polls; /* times that nothing was waiting */
    char ring[2][RING_BYTES];
};

static void keep(struct tee_shared *s, int stream, const char *p, size_t n)
{
    const uint64_t at = atomic_load(&s->n_bytes[stream]);
    for (size_t i = 0; i < n; i++)
        s->ring[stream][(at + i) % RING_BYTES] = p[i];
    atomic_store(&s->n_bytes[stream], at + n);
}

/* The reader may be slow or set non-blocking by somebody else: wait for it. */
static bool pass_on(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t put = write(fd, p, n);
        if (put >= 0) {
            p += put;
            n -= (size_t)put;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static _Noreturn void tee_main(struct tee_shared *s, const int from[2])
{
    static char bytes[65536];
    struct pollfd polls[2] = {{.fd = from[0], .events = POLLIN}, {.fd = from[1], .events = POLLIN}};
    while (polls[0].fd != -1 || polls[1].fd != -1) {
        const int ready = poll(polls, 2, QUIET_MS);
        if (ready == 0)
            atomic_fetch_add(&s->n_quiet_polls, 1);
        for (int i = 0; i < 2 && ready > 0; i++) {
            if (polls[i].fd == -1 || polls[i].revents == 0)
                continue;
            const ssize_t got = read(polls[i].fd, bytes, sizeof bytes);
            if (got == -1 && errno == EINTR)
                continue;
            if (got > 0)
                keep(s, i, bytes, (size_t)got);
            if (got <= 0 || !pass_on(i + 1, bytes, (size_t)got)) {
                close(polls[i].fd); /* a reader that went away is CMD's to meet, as without us */
                polls[i].fd = -1;
            }
        }
    }
    _exit(0);
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A channel for stream `fd`: *ours is read by the tee, *theirs written by CMD. */
static bool channel(struct tee *t, int fd, int *ours, int *theirs, struct err *e)
{
    if (isatty(fd)) {
        struct termios raw;
        struct winsize size = {0};
        (void)ioctl(fd, TIOCGWINSZ, &size);
        if (openpty(ours, theirs, NULL, NULL, &size) == 0) {
            if (tcgetattr(*theirs, &raw) == 0) {
                cfmakeraw(&raw); /* the real terminal does the line processing, once */
                (void)tcsetattr(*theirs, TCSANOW, &raw);
            }
            (void)fcntl(*ours, F_SETFD, FD_CLOEXEC);
            (void)fcntl(*theirs, F_SETFD, FD_CLOEXEC);
            t->master = *ours;
            return true;
        }
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == -1)
        return err_sys(e, "cannot make a pipe for the command's output");
    *ours = ends[0];
    *theirs = ends[1];
    return true;
}

static void become_tee(struct tee *t, const int from[2])
{
    sigset_t all;
    sigfillset(&all); /* it ends with its writers, not by a signal to the group */
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 1; i <= 2; i++)
        if (t->to_command[i] != -1)
            close(t->to_command[i]);
    (void)close(STDIN_FILENO);
    tee_main(t->shared, from);
}

bool tee_start(struct tee *t, struct err *e)
{
    int from[2] = {-1, -1};
    must(RING_BYTES == LIMIT_OUTPUT_TAIL_BYTES);
    *t = (struct tee){.to_command = {-1, -1, -1}, .master = -1};
    t->shared =
        mmap(NULL, sizeof *t->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t->shared == MAP_FAILED) {
        t->shared = NULL;
        return err_sys(e, "cannot keep the output's tail");
    }
    if (!channel(t, 1, &from[0], &t->to_command[1], e))
        return false;
    if (same_file(1, 2))
        t->to_command[2] = fcntl(t->to_command[1], F_DUPFD_CLOEXEC, 3);
    else if (!channel(t, 2, &from[1], &t->to_command[2], e))
        return false;
    t->pid = fork();
    if (t->pid == -1)
        return err_sys(e, "cannot start the process that passes output on");
    if (t->pid == 0)
        become_tee(t, from);
    for (int i = 0; i < 2; i++)
        if (from[i] != -1 && from[i] != t->master)
            close(from[i]);
    return true;
}

void tee_enter(const struct tee *t)
{
    for (int i = 1; i <= 2; i++)
        if (t->to_command[i] != -1)
            (void)dup2(t->to_command[i], i);
}

void tee_leave_to_command(struct tee *t)
{
    for (int i = 1; i <= 2; i++) {
        if (t->to_command[i] != -1)
            close(t->to_command[i]);
        t->to_command[i] = -1;
    }
}

void tee_resize(const struct tee *t)
{
    struct winsize size;
    if (t->master != -1 && ioctl(1, TIOCGWINSZ, &size) == 0)
        (void)ioctl(t->master, TIOCSWINSZ, &size);
}

void tee_take(struct tee *t, int stream, struct buf *out)
{
    const int i = stream - 1;
    buf_clear(out);
    if (t->shared == NULL)
        return;
    const uint64_t end = atomic_load(&t->shared->n_bytes[i]);
    uint64_t at = t->taken[i];
    if (end - at > RING_BYTES - 1)
        at = end - (RING_BYTES - 1); /* a record holds the stream's number too */
    for (; at < end; at++)
        buf_add_char(out, t->shared->ring[i][at % RING_BYTES]);
    t->taken[i] = end;
}

void tee_drain(struct tee *t)
{
    if (t->pid <= 0)
        return;
    const uint64_t before = atomic_load(&t->shared->n_quiet_polls);
    while (waitpid(t->pid, NULL, WNOHANG) == 0 &&
           atomic_load(&t->shared->n_quiet_polls) - before < DRAIN_QUIET_POLLS)
        (void)usleep(2000);
    t->pid = 0;
    if (t->master != -1)
        close(t->master);
    t->master = -1;
}
