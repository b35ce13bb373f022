/* SPDX-License-Identifier: Apache-2.0 */
/* tacho convert and tacho sessions export: a profile to a file or stdout in another format. */
#ifndef TACHO_CLI_EXPORT_OUT_H
#define TACHO_CLI_EXPORT_OUT_H

#include "cli/cli.h"

struct export_wish {
    const char *profile; /* path */
    const char *out;  /* path; "-" is stdout; NULL: a name made of the profile's and the format's */
    const char *to;   /* the format's name; NULL: by the ending of out */
    const char *host; /* NULL: all */
    int64_t from_ns, until_ns; /* since the session's begin; until 0: to its end */
};

/* A file appears whole or not at all. --json says what was written where. */
MUST_CHECK bool export_out(struct cli *cli, const struct export_wish *wish, struct err *e);

#endif
