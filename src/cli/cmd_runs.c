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

static str time_text(struct arena *a, int64_t wall_ns)
{
    char text[CLOCK_RFC3339_MAX];
    const size_t n = clock_format_rfc3339(wall_ns, text);
    return arena_str(a, (str){text, n});
}

/* Leaves the runs that fit --filter; the others' journals are read once each. */
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
        if (!run_filter_fits_folder(f, path_join(a, data, below), runs[i].run, &fits, e))
            return false;
        if (fits)
            runs[kept++] = runs[i];
    }
    *n = kept;
    return true;
}

static struct table *runs_table(struct arena *a, const struct run_found *runs, uint32_t n)
{
    struct table *t = table_new(a, S("runs"), S("Runs"));
    if (t == NULL)
        return NULL;
    table_column(t, S("run"), S("Run"), CELL_TEXT, S(""));
    table_column(t, S("name"), S("Name"), CELL_TEXT, S(""));
    table_column(t, S("group"), S("Group"), CELL_TEXT, S(""));
    table_column(t, S("started"), S("Started"), CELL_TEXT, S(""));
    table_column(t, S("attempts"), S("Attempts"), CELL_U64, S(""));
    table_column(t, S("journals"), S("Journals"), CELL_U64, S(""));
    for (uint32_t i = 0; i < n; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        row[0] = cell_text(runs[i].run);
        row[1] = runs[i].name.n > 0 ? cell_text(runs[i].name) : cell_unknown();
        row[2] = runs[i].group.n > 0 ? cell_text(runs[i].group) : cell_unknown();
        row[3] = cell_text(time_text(a, runs[i].started_ns));
        row[4] = runs[i].n_attempts > 0 ? cell_u64(runs[i].n_attempts) : cell_unknown();
        row[5] = cell_u64(runs[i].n_journals);
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
        const struct table *t = runs_table(&a, runs, n);
        ok = t == NULL ? arena_full(&a, e) : table_ok(t, e) && table_out(cli, t, e);
    }
    arena_release(&a);
    return ok;
}
