/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_load.h"

#include "cli/run_arg.h"
#include "goodput/ledger_build.h"
#include "report/build.h"

static void copy_notes(struct report_loaded *l)
{
    struct report *r = &l->report;
    for (uint32_t i = 0; i < l->set.n_notes; i++)
        if (ARENA_PUSH(&r->arena, r->notes, r->n_notes, r->notes_capacity))
            r->notes[r->n_notes - 1] =
                l->set.notes[i];
}

bool report_load(struct cli *cli, const char *run, struct report_loaded *out, struct err *e)
{
    char dir[RUN_ARG_PATH_MAX];
    memset(out, 0, sizeof *out);
    if (!run_arg_load_any(cli, run, &out->set, dir, e) || !ledger_build(&out->set, &out->ledger, e))
        return false;
    const str subject = arena_printf(&out->set.arena, "Run %.*s", STR_ARG(out->set.run));
    const struct report_input in = {.subject = subject, .ledger = &out->ledger, .set = &out->set};
    if (!report_build(&out->report, &in, e))
        return false;
    copy_notes(out);
    return true;
}

void report_unload(struct report_loaded *l)
{
    report_release(&l->report);
    record_set_release(&l->set);
}
