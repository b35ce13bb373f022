/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "jobs/parser_sandbox.h"

#define SPILL_BYTES (UINT64_C(1) << 36) /* temporary file of row groups */

struct child {
    pid_t pid;
    int out_fd, status_fd;
    struct err status; /* what it said */
    size_t n_status;
    bool too_much;
    const struct parser_sink *sink; /* takes its output at once; NULL: it is gathered */
    uint64_t n_to;                  /* bytes that it took */
    struct err unsent;              /* why it took no more */
};

static void child_run(const struct parser_limits *l, const struct parser_task *task, int out_fd,
                      int status_fd)
{
    struct err e = {0};
    const uint32_t n = task->n_keep_fds + 3;
    int *fds = calloc(n, sizeof *fds);
    bool ok = fds != NULL || err_set(&e, ERR_LIMIT, "no memory for a parser");
    if (ok) {
        for (uint32_t i = 0; i < task->n_keep_fds; i++)
            fds[i] = task->keep_fds[i];
        fds[n - 3] = STDERR_FILENO;
        fds[n - 2] = out_fd;
        fds[n - 1] = status_fd;
        sandbox_close_others(fds, n);
    }
    const struct sandbox_limits limits = {
        .memory_bytes = l->memory_bytes != 0 ? l->memory_bytes : LIMIT_PARSER_MEMORY_BYTES,
        .cpu_s = l->cpu_s != 0 ? l->cpu_s : LIMIT_PARSER_CPU_S,
        .file_bytes = SPILL_BYTES};
    const char *crash = getenv("TACHO_TEST_PARSER_CRASH");
    ok = ok && sandbox_enter(&limits, &e);
    if (ok && crash != NULL && strcmp(crash, "1") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    ok = ok && task->fn(task->ctx, out_fd, &e);
    if (ok)
        e = (struct err){0};
    struct err ignored;
    const bool said = file_write_all(status_fd, &e, sizeof e, &ignored);
    _exit(said ? 0 : 1);
}

static bool child_start(struct child *c, const struct parser_limits *l,
                        const struct parser_task *task, struct err *e)
{
    int out[2], status[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_sys(e, "cannot make a pipe for the parser");
    if (pipe2(status, O_CLOEXEC) != 0) {
        err_sys(e, "cannot make a pipe for the parser");
        close(out[0]);
        close(out[1]);
        return false;
    }
    fflush(NULL); /* else the child would hold a copy of what is buffered */
    c->pid = fork();
    if (c->pid == 0)
        child_run(l, task, out[1], status[1]);
    const bool ok = c->pid > 0 || err_sys(e, "cannot fork a parser");
    close(out[1]);
    close(status[1]);
    c->out_fd = out[0];
    c->status_fd = status[0];
    if (!ok) {
        close(c->out_fd);
        close(c->status_fd);
    }
    return ok;
}

#define READ_BYTES 65536

/* Hands on what was gathered. */
static bool send_output(struct child *c, struct buf *out)
{
    const bool ok = c->sink->take(c->sink->ctx, buf_str(out), &c->unsent);
    c->n_to += out->n;
    buf_clear(out);
    if (!ok)
        kill(c->pid, SIGKILL);
    return ok;
}

/* Reads what has come on one pipe. False at its end. */
static bool read_output(struct child *c, struct buf *out, uint64_t cap_bytes)
{
    char *room = buf_reserve(out, READ_BYTES);
    if (room == NULL || out->n + c->n_to >= cap_bytes) {
        c->too_much = true;
        kill(c->pid, SIGKILL);
        return false;
    }
    const ssize_t n = read(c->out_fd, room, READ_BYTES);
    if (n < 0)
        return errno == EINTR;
    out->n += (size_t)n;
    out->p[out->n] = '\0';
    return n > 0 && (c->sink == NULL || send_output(c, out));
}

static bool read_status(struct child *c)
{
    char rest[64];
    const size_t room = sizeof c->status - c->n_status;
    const ssize_t n = room > 0 ? read(c->status_fd, (char *)&c->status + c->n_status, room)
                               : read(c->status_fd, rest, sizeof rest);
    if (n < 0)
        return errno == EINTR;
    c->n_status += room > 0 ? (size_t)n : 0;
    return n > 0;
}

static void child_read(struct child *c, struct buf *out, uint64_t cap_bytes)
{
    struct pollfd p[2] = {{.fd = c->out_fd, .events = POLLIN},
                          {.fd = c->status_fd, .events = POLLIN}};
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        if (p[0].revents != 0 && !read_output(c, out, cap_bytes))
            p[0].fd = -1;
        if (p[1].revents != 0 && !read_status(c))
            p[1].fd = -1;
    }
    close(c->out_fd);
    close(c->status_fd);
}

/* The child's own words are input too: it may have been taken over. */
static bool status_take(const struct child *c, struct err *e)
{
    *e = c->status;
    e->msg[sizeof e->msg - 1] = e->hint[sizeof e->hint - 1] = '\0';
    if (e->code <= ERR_NONE || e->code >= ERR_COUNT)
        e->code = ERR_CRASH;
    return false;
}

static bool child_verdict(const struct child *c, const char *what, int wait_status, struct err *e)
{
    if (c->too_much)
        return err_set(e, ERR_LIMIT, "the result of '%s' is too large", what);
    if (c->unsent.code != ERR_NONE) {
        *e = c->unsent;
        return false;
    }
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 && c->n_status == sizeof c->status)
        return c->status.code == ERR_NONE || status_take(c, e);
    if (WIFSIGNALED(wait_status)) {
        const int signal = WTERMSIG(wait_status);
        if (signal == SIGXCPU)
            return err_set(e, ERR_LIMIT, "the parser used too much CPU time on '%s'", what);
        return err_set(e, ERR_CRASH, "the parser died on '%s' (signal %d)", what, signal);
    }
    return err_set(e, ERR_CRASH, "the parser died on '%s' (status %d)", what,
                   WEXITSTATUS(wait_status));
}

static bool child_finish(struct child *c, const char *what, struct err *e)
{
    int wait_status;
    while (waitpid(c->pid, &wait_status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "cannot wait for the parser");
    return child_verdict(c, what, wait_status, e);
}

bool parser_run(const struct parser_limits *limits, const struct parser_task *task, struct buf *out,
                struct err *e)
{
    struct child c = {0};
    const size_t before = out->n;
    const uint64_t cap =
        limits->output_bytes != 0 ? limits->output_bytes : LIMIT_PARSER_OUTPUT_BYTES;
    if (!child_start(&c, limits, task, e))
        return false;
    child_read(&c, out, before + cap);
    if (child_finish(&c, task->what, e))
        return true;
    out->n = before;
    return false;
}

bool parser_sink_fd(void *fd, str bytes, struct err *e)
{
    return file_write_all(*(const int *)fd, bytes.p, bytes.n, e);
}

bool parser_run_to(const struct parser_limits *limits, const struct parser_task *task,
                   const struct parser_sink *sink, struct err *e)
{
    struct child c = {.sink = sink};
    struct buf block;
    if (!child_start(&c, limits, task, e))
        return false;
    buf_init(&block, 2 * READ_BYTES);
    child_read(&c, &block, limits->output_bytes != 0 ? limits->output_bytes : UINT64_MAX);
    buf_release(&block);
    return child_finish(&c, task->what, e);
}

struct parser_child {
    struct child child;
    char what[256];
};

struct parser_child *parser_open(const struct parser_limits *limits, const struct parser_task *task,
                                 struct err *e)
{
    struct parser_child *c = map_alloc(1, sizeof *c);
    snprintf(c->what, sizeof c->what, "%s", task->what);
    if (child_start(&c->child, limits, task, e))
        return c;
    map_free(c);
    return NULL;
}

int parser_out(const struct parser_child *c)
{
    return c->child.out_fd;
}

bool parser_close(struct parser_child *c, struct err *e)
{
    if (c == NULL)
        return true;
    const bool ended = poll(&(struct pollfd){.fd = c->child.status_fd, .events = POLLIN}, 1, 0) > 0;
    if (!ended)
        kill(c->child.pid, SIGKILL);
    struct buf rest;
    buf_init(&rest, 2 * READ_BYTES);
    child_read(&c->child, &rest, READ_BYTES);
    buf_release(&rest);
    const bool ok = child_finish(&c->child, c->what, e) || !ended;
    map_free(c);
    return ok;
}
