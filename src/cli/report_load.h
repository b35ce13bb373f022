/* SPDX-License-Identifier: Apache-2.0 */
/* From a RUN or a PROFILE on the command line to its report: for `tacho report` and `tacho why`.
 * A run's report takes its newest profile in; when that cannot be read, a warning of the report
 * says why, and the rules that need it abstain. */
#ifndef TACHO_CLI_REPORT_LOAD_H
#define TACHO_CLI_REPORT_LOAD_H

#include "cli/cli.h"
#include "model/ledger.h"
#include "model/profile_facts.h"
#include "model/report.h"

struct report_loaded {
    struct record_set set;
    struct ledger ledger;
    struct arena facts_arena;
    struct profile_facts facts;
    str profile;     /* name of the profile */
    bool has_ledger; /* false: a report about a profile alone */
    bool has_facts;
    struct report report;
};

/* `name` is a RUN (cli/run_arg.h) or a PROFILE (format/profile_open.h); NULL means `last`. The caller
 * releases also on failure. */
MUST_CHECK bool report_load(struct cli *cli, const char *name, struct report_loaded *out,
                            struct err *e);
void report_unload(struct report_loaded *l);

#endif
