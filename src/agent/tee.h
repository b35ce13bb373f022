/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a command's output through and keeps its tail.
 *
 *   CMD ─ pipe or pty ─▶ tee process ─▶ our stdout / stderr
 *                            └─ shared memory: last 64 KiB of each ─▶ tacho run
 *
 * The tee is a small process of its own: when `tacho run` is killed, CMD's output still has a reader
 * and CMD never meets SIGPIPE because of us. When the real reader goes away the tee goes away too, so
 * CMD meets what it would have met without us. A terminal stays one: stdout on a terminal gives CMD a
 * pty without line processing. stdout and stderr that are one file share one channel, in order.
 * Thread: one at a time. */
#ifndef TACHO_AGENT_TEE_H
#define TACHO_AGENT_TEE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/limits.h"

struct tee_shared;

struct tee {
    int to_command[3]; /* [1], [2]: what CMD gets as its stdout and stderr; -1 = ours as it is */
    int master;        /* of the pty, -1 without one */
    pid_t pid;
    struct tee_shared *shared;
    uint64_t taken[2]; /* bytes of each stream that tee_take has given */
};

/* Starts the tee process. Call before any thread is started. */
MUST_CHECK bool tee_start(struct tee *t, struct err *e);
/* In the command's process: puts the channels at 1 and 2. */
void tee_enter(const struct tee *t);
/* In tacho run, after the command was forked. */
void tee_leave_to_command(struct tee *t);
/* The terminal changed its size. */
void tee_resize(const struct tee *t);
/* What stream (1 or 2) printed since the last call, its last LIMIT_OUTPUT_TAIL_BYTES at most. */
void tee_take(struct tee *t, int stream, struct buf *out);
/* Waits until all that CMD printed has been passed on. A descendant of CMD that keeps the channel open does
 * not hold us: the tee then lives on for it. */
void tee_drain(struct tee *t);

#endif
