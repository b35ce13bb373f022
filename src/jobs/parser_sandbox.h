/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up what a parser does not need: descriptors, memory beyond a limit, files, network, system
 * calls. Called in the child only; there is no way back. What a kernel does not have (Landlock
 * before 5.13) is passed over. Source: landlock(7), seccomp(2). */
#ifndef TACHO_JOBS_PARSER_SANDBOX_H
#define TACHO_JOBS_PARSER_SANDBOX_H

#include "base/err.h"

struct sandbox_limits {
    uint64_t memory_bytes; /* beyond the address space in use now */
    uint64_t cpu_s;
    uint64_t file_bytes;
};

/* Closes every descriptor but these. Sorts fds. */
void sandbox_close_others(int *fds, uint32_t n);
MUST_CHECK bool sandbox_enter(const struct sandbox_limits *limits, struct err *e);

#endif
