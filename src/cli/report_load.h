/* SPDX-License-Identifier: Apache-2.0 */
/* From a RUN on the command line to its report: for `tacho report` and `tacho why`. */
#ifndef TACHO_CLI_REPORT_LOAD_H
#define TACHO_CLI_REPORT_LOAD_H

#include "cli/cli.h"
#include "model/ledger.h"
#include "model/report.h"

struct report_loaded {
    struct record_set set;
    struct ledger ledger;
    struct report report;
};

/* run NULL means `last`. The caller releases also on failure. */
MUST_CHECK bool report_load(struct cli *cli, const char *run, struct report_loaded *out, struct err *e);
void report_unload(struct report_loaded *l);

#endif
