/* SPDX-License-Identifier: Apache-2.0 */
/* An s3:// address where a command takes a path: what it names is brought into the cache folder (jobs/s3_place.h), and
 * the command goes on with the path there. An address is looked up once in a process. */
#ifndef TACHO_CLI_S3_ARG_H
#define TACHO_CLI_S3_ARG_H

#include "cli/cli.h"

/* *path is word itself when it is no s3:// address; else it lives until s3_arg_release. */
MUST_CHECK bool s3_arg_path(struct cli *cli, const char *word, const char **path, struct err *e);
/* What e says of a path in the cache, it then says of the address. */
void s3_arg_explain(const struct cli *cli, struct err *e);
void s3_arg_release(struct cli *cli);

#endif
