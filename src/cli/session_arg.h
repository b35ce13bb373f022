/* SPDX-License-Identifier: Apache-2.0 */
/* What SESSION on a command line means: a profile session of the data folder, as its id `run~name`, as
 * `run/name`, as its name alone where no other session has it, or `last`. A session is a folder
 * <data>/runs/<run>/plugins/profile/<name> with a profile in it. */
#ifndef TACHO_CLI_SESSION_ARG_H
#define TACHO_CLI_SESSION_ARG_H

#include "cli/cli.h"
#include "cli/run_arg.h"

struct session_found {
    str run, name;
    const char *path;
    uint32_t n_files;
    uint64_t size_bytes; /* of its profiles */
    int64_t newest_ns;   /* wall: when the last of them was written */
};

/* All of the data folder, the newest first, in the arena. */
MUST_CHECK bool session_arg_all(struct cli *cli, struct arena *a, struct session_found **out,
                                uint32_t *n, struct err *e);
/* ERR_NOT_FOUND; ERR_USAGE when several have that name. */
MUST_CHECK bool session_arg_find(struct cli *cli, struct arena *a, const char *word,
                                 struct session_found *out, struct err *e);
/* The path of a PROFILE: word itself; of an s3:// address what was brought into the cache; or where there is no such file the folder of that SESSION. */
MUST_CHECK bool session_arg_profile(struct cli *cli, struct arena *a, const char *word,
                                    const char **path, struct err *e);

#endif
