/* SPDX-License-Identifier: Apache-2.0 */
/* tacho goodput: where a run's wall time went, each nanosecond in one category. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/excluded.h"
#include "cli/run_arg.h"
#include "cli/table_out.h"
#include "goodput/ledger_build.h"
#include "goodput/print.h"

struct options {
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    struct ledger_view view;
};

static bool take(struct options *o, const struct flags *f, struct arena *a, struct err *e)
{
    const char *exclude = flags_text(f, FLAG_goodput_exclude);
    struct ledger_part *excluded = NULL;
    if (exclude != NULL && !excluded_read(exclude, a, &excluded, &o->view.n_excluded, e))
        return false;
    o->view.excluded = excluded;
    o->has_from = flags_number(f, FLAG_goodput_from, &o->from_ns);
    o->has_to = flags_number(f, FLAG_goodput_to, &o->to_ns);
    o->view.steps = flags_on(f, FLAG_goodput_steps);
    o->view.ranks = flags_on(f, FLAG_goodput_ranks);
    for (const struct flag_value *v = NULL; (v = flags_next(f, FLAG_goodput_window, v)) != NULL;) {
        if (o->view.n_windows == LEDGER_WINDOWS_MAX)
            return err_set(e, ERR_USAGE, "at most %d windows", LEDGER_WINDOWS_MAX);
        o->view.windows_ns[o->view.n_windows++] = v->number;
    }
    return true;
}

/* The span to print: what was asked for, within the run. */
static bool clip(struct options *o, const struct ledger *l, struct err *e)
{
    o->view.from_ns = o->has_from && o->from_ns > l->from_ns ? o->from_ns : l->from_ns;
    o->view.to_ns = o->has_to && o->to_ns < l->to_ns ? o->to_ns : l->to_ns;
    if (o->view.from_ns < o->view.to_ns || l->from_ns == l->to_ns)
        return true;
    char from[CLOCK_RFC3339_MAX], to[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(l->from_ns, from);
    clock_format_rfc3339(l->to_ns, to);
    return err_set(e, ERR_USAGE,
                   "nothing of the run lies between --from and --to; it ran from %s to %s", from,
                   to);
}

static bool print(const struct cli *cli, const struct ledger *l, const struct record_set *set,
                  const struct ledger_view *view, struct err *e)
{
    struct arena a;
    struct buf text;
    arena_init(&a, "goodput", LIMIT_ARENA_TOOL_BYTES);
    buf_init(&text, LIMIT_PARSER_OUTPUT_BYTES);
    bool ok;
    if (cli->output == CLI_OUTPUT_CSV) {
        const struct table *t = ledger_table(l, view, &a, e);
        ok = t != NULL && table_out(cli, t, e);
    } else if (cli->output == CLI_OUTPUT_JSON) {
        struct json j;
        json_init_buf(&j, &text);
        ok = ledger_print_json(l, set, view, &a, &j, e) && json_done(&j, e) &&
             buf_add_char(&text, '\n');
    } else {
        ok = ledger_print_text(l, set, view, &a, &text, e);
    }
    if (ok && text.n > 0 && (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0))
        ok = err_sys(e, "cannot print");
    buf_release(&text);
    arena_release(&a);
    return ok;
}

bool cmd_goodput(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct record_set set;
    struct ledger ledger;
    char dir[RUN_ARG_PATH_MAX];
    struct options o = {.view.colour = cli->colour};
    struct arena a;
    arena_init(&a, "exclusions", LIMIT_ARENA_REQUEST_BYTES);
    if (!take(&o, cli->flags, &a, e)) {
        arena_release(&a);
        return false;
    }
    bool ok = run_arg_load_any(cli, argv[1], &set, dir, e);
    if (ok && o.has_to)
        set.query_ns = o.to_ns; /* a run that has not ended is seen as it was then */
    ok = ok && ledger_build(&set, &ledger, e) && clip(&o, &ledger, e) &&
         print(cli, &ledger, &set, &o.view, e);
    record_set_release(&set);
    arena_release(&a);
    return ok;
}
