/* SPDX-License-Identifier: Apache-2.0 */
/* Ships a run from a process of its own, so that nothing about the network is near the command that is
 * recorded: `tacho ship --run ID --until-done`, in a session of its own (a key of the terminal does not
 * reach it). It goes on when the process that started it is killed. */
#ifndef TACHO_AGENT_SHIP_CHILD_H
#define TACHO_AGENT_SHIP_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"

struct ship_child_options {
    const char *server, *token; /* token NULL = none */
};

/* The child's pid; -1 (with e) when it cannot be started. `mask` is the signal mask it gets. */
pid_t ship_child_start(const struct ship_child_options *o, const char *data_dir, const char *run,
                       const sigset_t *mask, struct err *e);
/* Has it send what is left and waits for that, but not after one of `signals` (blocked in this
 * thread) has come: it then goes on alone. At most SHIP_END_S and a little. */
void ship_child_end(pid_t pid, const sigset_t *signals);

#endif
