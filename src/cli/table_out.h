/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a table on stdout as the command line asked: text, JSON or CSV. */
#ifndef TACHO_CLI_TABLE_OUT_H
#define TACHO_CLI_TABLE_OUT_H

#include "cli/cli.h"
#include "model/table.h"

MUST_CHECK bool table_out(const struct cli *cli, const struct table *t, struct err *e);

#endif
