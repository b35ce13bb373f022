/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TACHO_CLI_RUNS_SHOW_H
#define TACHO_CLI_RUNS_SHOW_H

#include "cli/cli.h"

/* tacho runs show RUN: what is known of a run of the data folder, as tables: the run itself with its state
 * (server/run_summary.h has the rules), its processes with their journals, its profile sessions, the tail
 * of its output. NULL is the last run. */
MUST_CHECK bool runs_show(struct cli *cli, const char *run, struct err *e);

#endif
