/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TACHO_CLI_RUNS_OPEN_H
#define TACHO_CLI_RUNS_OPEN_H

#include "cli/cli.h"

/* tacho runs open RUN: prints the address of a run's page in the running server of the data folder,
 * and shows it on a desktop when stdout is a terminal. NULL is the last run. */
MUST_CHECK bool runs_open(struct cli *cli, const char *run, struct err *e);

#endif
