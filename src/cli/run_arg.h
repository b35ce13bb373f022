/* SPDX-License-Identifier: Apache-2.0 */
/* What RUN on a command line means: `last`, a run id or unique prefix, a run folder, a journal, or
 * another file (flat entries: format/entries.h decodes those). Source: SURFACE "RUN is". */
#ifndef TACHO_CLI_RUN_ARG_H
#define TACHO_CLI_RUN_ARG_H

#include "cli/cli.h"
#include "model/record.h"

#define RUN_ARG_PATH_MAX 4096

enum run_arg_kind {
    RUN_ARG_RUN = 0, /* a folder with journals/ in it */
    RUN_ARG_JOURNAL, /* one journal */
    RUN_ARG_FILE,    /* another file */
    RUN_ARG_FOLDER,  /* a folder without journals/ (flat files) */
};

/* The data folder: --data, TACHO_DATA, else the usual place. */
MUST_CHECK bool run_arg_data_dir(struct cli *cli, char out[static RUN_ARG_PATH_MAX], struct err *e);
/* Which of the four `run` names; path is the folder or file. NULL means `last`. ERR_NOT_FOUND when
 * nothing is called so. */
MUST_CHECK bool run_arg_find(struct cli *cli, const char *run, enum run_arg_kind *kind,
                             char path[static RUN_ARG_PATH_MAX], struct err *e);
/* Decodes a run's journals (or one journal) into out, which the caller has not initialised and
 * releases also on failure; sorted. `dir` gets the folder or file. FILE and FOLDER fail with ERR_PARSE:
 * ask run_arg_find first when those are welcome. */
MUST_CHECK bool run_arg_load(struct cli *cli, const char *run, struct record_set *out,
                             char dir[static RUN_ARG_PATH_MAX], struct err *e);

/* The same, and flat entries (a file or a folder of them) too: whatever RUN may be. */
MUST_CHECK bool run_arg_load_any(struct cli *cli, const char *run, struct record_set *out,
                                 char dir[static RUN_ARG_PATH_MAX], struct err *e);

#endif
