/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a table on stdout as the command line asked: text, JSON or CSV. */
#ifndef TACHO_CLI_TABLE_OUT_H
#define TACHO_CLI_TABLE_OUT_H

#include "cli/cli.h"
#include "model/table.h"

/* A wall time as RFC 3339, unknown when 0; without fractions of a second where a person reads it. */
struct cell table_out_time(const struct cli *cli, struct arena *a, int64_t wall_ns);
MUST_CHECK bool table_out(const struct cli *cli, const struct table *t, struct err *e);

#endif
