/* SPDX-License-Identifier: Apache-2.0 */
/* tacho runs list: the runs of a data folder, the newest first; show and open: runs_show.h, runs_open.h. */
#include "agent/run_find.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "cli/runs_open.h"
#include "cli/runs_show.h"
#include "cli/table_out.h"
#include "server/run_filter.h"
#include "server/run_summary.h"

/* Leaves the runs that fit --filter; the journals of each are read once. One that cannot be read fits
 * nothing, and the list says so. */
static bool keep_fitting(struct cli *cli, struct arena *a, const char *data, struct run_found *runs,
                         uint32_t *n, struct err *e)
{
    const char *text = flags_text(cli->flags, FLAG_runs_filter);
    const struct filter *f =
        text == NULL ? NULL : run_filter_parse(str_from(text), clock_wall_ns(), a, e);
    uint32_t kept = 0;
    if (text == NULL || f == NULL)
        return text == NULL;
    for (uint32_t i = 0; i < *n; i++) {
        const str below = arena_printf(a, "runs/%.*s", STR_ARG(runs[i].run));
        bool fits = false;
        struct err why = {0};
        const bool can =
            runs[i].n_journals > 0 &&
            run_filter_fits_folder(f, path_join(a, data, below), runs[i].run, &fits, &why);
        if (!can && runs[i].unreadable.n == 0)
            runs[i].unreadable = arena_str(a, str_from(why.msg));
        runs[i].n_journals = can && fits ? runs[i].n_journals : 0;
        if (fits || runs[i].unreadable.n > 0)
            runs[kept++] = runs[i];
    }
    *n = kept;
    return true;
}

/* A row of what the run object of the API says, docs/formats/api.md. */
static void put_run(const struct cli *cli, struct arena *a, const struct run_found *found,
                    const struct run_view *v, struct cell *row)
{
    struct run_summary s;
    run_summary_make(v, clock_wall_ns(), a, &s);
    const int64_t wall_ns = v->has_ledger ? v->ledger.total_ns : s.last_ns - s.started_ns;
    row[0] = cell_text(found->run);
    if (found->name.n > 0)
        row[1] = cell_text(found->name);
    if (found->group.n > 0)
        row[2] = cell_text(found->group);
    row[3] = cell_text(arena_str(a, str_from(s.phase)));
    if (s.reason != NULL)
        row[4] = cell_text(arena_str(a, str_from(s.reason)));
    row[5] = table_out_time(cli, a, s.started_ns);
    row[6] = cell_f64((double)wall_ns / 1e9);
    if (s.n_attempts > 0)
        row[7] = cell_u64(s.n_attempts);
}

/* A run that cannot be read is listed with what its first records said; with a filter it is a note and
 * no row. */
static struct table *runs_table(const struct cli *cli, struct arena *a, const char *data,
                                const struct run_found *runs, uint32_t n, bool filtered,
                                bool *partial)
{
    struct table *t = table_new(a, S("runs"), S("Runs"));
    if (t == NULL)
        return NULL;
    table_column(t, S("run"), S("Run"), CELL_TEXT, S(""));
    table_column(t, S("name"), S("Name"), CELL_TEXT, S(""));
    table_column(t, S("group"), S("Group"), CELL_TEXT, S(""));
    table_column(t, S("phase"), S("State"), CELL_TEXT, S(""));
    table_column(t, S("reason"), S("Reason"), CELL_TEXT, S(""));
    table_column(t, S("started"), S("Started"), CELL_TEXT, S(""));
    table_column(t, S("wall_s"), S("Duration"), CELL_F64, S("s"));
    table_column(t, S("attempts"), S("Attempts"), CELL_U64, S(""));
    for (uint32_t i = 0; i < n; i++) {
        const str below = arena_printf(a, "runs/%.*s", STR_ARG(runs[i].run));
        struct err why = {0};
        struct run_view v;
        const bool can = runs[i].n_journals > 0 &&
                         run_view_load(&v, path_join(a, data, below), runs[i].run, &why);
        struct cell *row = filtered && !can ? NULL : table_row(t);
        if (!can || runs[i].unreadable.n > 0) {
            const str said = runs[i].unreadable.n > 0 ? runs[i].unreadable : str_from(why.msg);
            table_note(t, S("run_unreadable"), 1, "run '%.*s': %.*s", STR_ARG(runs[i].run),
                       STR_ARG(said));
            *partial = true;
        }
        if (row != NULL)
            row[0] = cell_text(runs[i].run);
        if (row != NULL && can)
            put_run(cli, a, &runs[i], &v, row);
        if (can)
            run_view_unload(&v);
    }
    return t;
}

bool cmd_runs(struct cli *cli, int argc, char **argv, struct err *e)
{
    char data[RUN_ARG_PATH_MAX];
    struct arena a;
    struct run_found *runs = NULL;
    uint32_t n = 0;
    if (argc >= 2 && strcmp(argv[1], "open") == 0)
        return runs_open(cli, argc > 2 ? argv[2] : NULL, e);
    if (argc >= 2 && strcmp(argv[1], "show") == 0)
        return runs_show(cli, argc > 2 ? argv[2] : NULL, e);
    if (argc >= 2 && (argc > 2 || strcmp(argv[1], "list") != 0))
        return err_set(e, ERR_USAGE,
                       "tacho runs takes 'list', 'show [RUN]' or 'open [RUN]', not '%s'",
                       argv[argc - 1]);
    if (!run_arg_data_dir(cli, data, e))
        return false;
    arena_init(&a, "runs", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = run_find_all(&a, data, &runs, &n, e) && keep_fitting(cli, &a, data, runs, &n, e);
    if (ok) {
        const bool filtered = flags_text(cli->flags, FLAG_runs_filter) != NULL;
        bool partial = false;
        const struct table *t = runs_table(cli, &a, data, runs, n, filtered, &partial);
        ok = t == NULL ? arena_full(&a, e) : table_ok(t, e) && table_out(cli, t, e);
        if (ok && partial)
            cli->exit_status = err_exit_status(ERR_PARTIAL);
    }
    arena_release(&a);
    return ok;
}
