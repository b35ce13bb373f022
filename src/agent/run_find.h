/* SPDX-License-Identifier: Apache-2.0 */
/* Finds runs in a data folder by looking at <data>/runs/<run>/journals/: newest, by name, by prefix.
 * Reads each journal's header and at most its first few records. What cannot be read is in
 * `unreadable`; a run of which nothing can be read is found too, as the oldest. Thread: any. */
#ifndef TACHO_AGENT_RUN_FIND_H
#define TACHO_AGENT_RUN_FIND_H

#include "base/arena.h"

struct run_found {
    str run;         /* id: the folder's name */
    str name, group; /* as `tacho run` was told, else as a workload says; empty when none does */
    bool runner_named;
    int64_t started_ns;              /* wall, oldest journal's header */
    int64_t newest_ns;               /* wall, newest journal's header: the last attempt's start */
    uint32_t n_journals, n_attempts; /* readable; attempts: journals of `tacho run` */
    str unreadable; /* why a journal, or their folder, cannot be read: the first; else empty */
};

/* All runs of the folder, the newest attempt first, in the arena. No folder is no runs. */
MUST_CHECK bool run_find_all(struct arena *a, const char *data_dir, struct run_found **out,
                             uint32_t *n, struct err *e);
/* `last`, a whole id or a unique prefix; ERR_NOT_FOUND, or ERR_USAGE when several begin so. */
MUST_CHECK bool run_find_id(struct arena *a, const char *data_dir, str wanted,
                            struct run_found *out, struct err *e);
/* The newest run of that name; ERR_NOT_FOUND when there is none. */
MUST_CHECK bool run_find_named(struct arena *a, const char *data_dir, str name,
                               struct run_found *out, struct err *e);

#endif
