/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: hostile input is decoded in a forked child that has descriptors and nothing else.
 *
 * The child keeps the descriptors it is given, its output pipe, a status pipe and stderr; it can
 * open no file (Landlock, seccomp), reach no network, start no program, and has limits of memory,
 * CPU time and file size. Its struct err comes back over the status pipe. A child that dies is
 * ERR_CRASH and names the input; nothing else is affected.
 *
 * TACHO_TEST_PARSER_CRASH=1 makes the child die on purpose (test hook). Under a sanitizer the
 * address-space limit and the system-call filter are left out: it needs both.
 *
 * Thread: any. In a process with several threads the child must not take locks of this program
 * other than malloc's. */
#ifndef TACHO_JOBS_PARSER_H
#define TACHO_JOBS_PARSER_H

#include "base/buf.h"
#include "model/trace.h"

struct parser_limits { /* 0 = the limit of limits.def */
    uint64_t memory_bytes;
    uint64_t cpu_s;
    uint64_t output_bytes;
    /* Where the indexes of profiles lie (jobs/index_place.h), for jobs/profile_task.h; NULL: none is read or made. */
    const struct index_places *indexes;
};

struct parser_task {
    const char *what;    /* the input, for messages */
    const int *keep_fds; /* descriptors that fn needs */
    uint32_t n_keep_fds;
    /* Runs in the child; writes its result to out_fd. */
    bool (*fn)(void *ctx, int out_fd, struct err *e);
    void *ctx;
};

/* Runs the task in a child and appends its output to out. */
MUST_CHECK bool parser_run(const struct parser_limits *limits, const struct parser_task *task,
                           struct buf *out, struct err *e);
/* The same for output of any length: it is handed to `sink` as it comes, also what comes before a
 * failure. A sink that fails ends the child. limits->output_bytes 0: as much as it is. */
struct parser_sink {
    bool (*take)(void *ctx, str bytes, struct err *e);
    void *ctx;
};
MUST_CHECK bool parser_run_to(const struct parser_limits *limits, const struct parser_task *task,
                              const struct parser_sink *sink, struct err *e);
/* A sink's take that writes to the descriptor at ctx (an int). */
bool parser_sink_fd(void *fd, str bytes, struct err *e);

/* A parser that goes on answering: what it writes is read from parser_out() as it comes. Owned; NULL and e on failure. */
struct parser_child;
struct parser_child *parser_open(const struct parser_limits *limits, const struct parser_task *task,
                                 struct err *e);
int parser_out(const struct parser_child *c);
/* Kills it if it still runs. False and e when it had failed by itself. NULL is allowed. */
bool parser_close(struct parser_child *c, struct err *e);

#endif
