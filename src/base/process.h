/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the process that wrote something down is still there, and is not another one that got its number.
 * Needs /proc; works across users (nothing is opened that is another's). Thread: any. */
#ifndef TACHO_BASE_PROCESS_H
#define TACHO_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_mark { /* what a writer says of itself */
    pid_t pid;
    uint8_t boot_id[16];  /* clock_boot_id() then */
    uint64_t boottime_ns; /* when it said so: it had started by then */
};

enum process_state {
    PROCESS_GONE,
    PROCESS_LIVES,
    PROCESS_UNKNOWN /* another boot or host: who knows */
};

/* A zombie is gone, unless threads beside its first one go on. `pid` counts in this process's pid
 * namespace: ask only about the own host's. */
enum process_state process_look(const struct process_mark *m);
/* Lets this process have as many descriptors as it may, at most 65536. */
void process_raise_descriptors(void);

#endif
