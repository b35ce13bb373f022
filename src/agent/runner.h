/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command as (an attempt of) a run: starts it, records its start, host, config, system metrics,
 * output tail and end in a journal of role `runner`, forwards signals and gives back how it ended.
 * The workload always wins: a journal that cannot be written is said once and the command runs on.
 * When the runner itself is killed the command lives on unaffected (agent/tee.h). Thread: main. */
#ifndef TACHO_AGENT_RUNNER_H
#define TACHO_AGENT_RUNNER_H

#include <jansson.h>

#include "agent/ship_child.h"
#include "base/arena.h"
#include "journal/run_identity.h"

struct runner_plan {
    struct run_identity id;
    const char *data_dir;
    char **argv;              /* NULL-terminated */
    const char *name, *group; /* NULL = none */
    json_t *labels, *config;  /* borrowed objects, config may be NULL; already masked */
    bool resume, record_output, record_environment;
    uint32_t attempt;                      /* 1, 2 … */
    const struct ship_child_options *ship; /* send the run to a server meanwhile; NULL = do not */
    int64_t sample_interval_ns;
};

struct runner_end {
    int exit_status; /* as a shell gives it: code, or 128 + signal; 126, 127 when it did not start */
    int code, signal;   /* code -1 when a signal ended it */
    const char *reason; /* exit, signal, oom */
};

/* The RUNNER_START payload: what is recorded about the command, secrets masked. */
json_t *runner_start_json(const struct runner_plan *p);
/* Fails only when the command cannot be started (end.exit_status tells 125, 126 or 127). */
MUST_CHECK bool runner_run(const struct runner_plan *p, struct runner_end *end, struct err *e);

#endif
