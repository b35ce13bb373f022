/* SPDX-License-Identifier: Apache-2.0 */
/* What a parser may use, and where indexes lie, by the settings: for every command that opens a profile.
 *
 *     struct profile_limits l;
 *     profile_limits_of(cli, &l);
 *     if (!profile_task_tool(path, &l.parser, ...)) return false;
 *
 * Not to be copied: parser points into the rest. */
#ifndef TACHO_CLI_PROFILE_LIMITS_H
#define TACHO_CLI_PROFILE_LIMITS_H

#include "cli/run_arg.h"
#include "jobs/index_place.h"
#include "jobs/parser.h"

struct profile_limits {
    struct parser_limits parser;
    struct index_places places;
    char cache[RUN_ARG_PATH_MAX], data[RUN_ARG_PATH_MAX];
};

void profile_limits_of(struct cli *cli, struct profile_limits *out);

#endif
