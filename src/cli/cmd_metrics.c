/* SPDX-License-Identifier: Apache-2.0 */
/* tacho metrics: what a run measured, one row a metric and process. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "cli/table_out.h"

struct series {
    str name;
    uint32_t process;
    uint64_t count;
    double least, most, sum, last;
    struct series *next;
};

static bool wanted(const struct record *r, int n_names, char **names)
{
    if (r->kind != RECORD_METRIC && r->kind != RECORD_SYSTEM)
        return false;
    for (int i = 0; i < n_names; i++) {
        const str name = str_from(names[i]);
        if (str_starts(r->text, name) && (r->text.n == name.n || r->text.p[name.n] == '{'))
            return true;
    }
    return n_names == 0;
}

static struct series *series_of(struct arena *a, struct series **all, const struct record *r)
{
    struct series **at = all;
    while (*at != NULL && !((*at)->process == r->process && str_eq((*at)->name, r->text)))
        at = &(*at)->next;
    if (*at == NULL && (*at = ARENA_NEW(a, struct series)) != NULL)
        **at = (struct series){
            .name = r->text, .process = r->process, .least = r->value, .most = r->value};
    return *at;
}

static void add_value(struct series *s, double v)
{
    s->least = v < s->least ? v : s->least;
    s->most = v > s->most ? v : s->most;
    s->sum += v;
    s->last = v;
    s->count++;
}

static struct table *metrics_table(struct arena *a, const struct record_set *set,
                                   const struct series *all)
{
    struct table *t = table_new(a, S("metrics"), S("Metrics"));
    if (t == NULL)
        return NULL;
    table_column(t, S("name"), S("Metric"), CELL_TEXT, S(""));
    table_column(t, S("rank"), S("Rank"), CELL_I64, S(""));
    table_column(t, S("count"), S("Values"), CELL_U64, S(""));
    table_column(t, S("last"), S("Last"), CELL_F64, S(""));
    table_column(t, S("min"), S("Min"), CELL_F64, S(""));
    table_column(t, S("mean"), S("Mean"), CELL_F64, S(""));
    table_column(t, S("max"), S("Max"), CELL_F64, S(""));
    for (const struct series *s = all; s != NULL; s = s->next) {
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        const int32_t rank = set->processes[s->process].rank;
        row[0] = cell_text(s->name);
        row[1] = rank >= 0 ? cell_i64(rank) : cell_unknown();
        row[2] = cell_u64(s->count);
        row[3] = cell_f64(s->last);
        row[4] = cell_f64(s->least);
        row[5] = cell_f64(s->sum / (double)s->count);
        row[6] = cell_f64(s->most);
    }
    return t;
}

static bool print_metrics(struct cli *cli, const struct record_set *set, int n_names, char **names,
                          struct err *e)
{
    struct arena a;
    struct series *all = NULL;
    arena_init(&a, "metrics", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = true;
    for (uint32_t i = 0; ok && i < set->n_records; i++) {
        if (!wanted(&set->records[i], n_names, names))
            continue;
        struct series *s = series_of(&a, &all, &set->records[i]);
        ok = s != NULL || arena_full(&a, e);
        if (ok)
            add_value(s, set->records[i].value);
    }
    if (ok) {
        const struct table *t = metrics_table(&a, set, all);
        ok = t == NULL ? arena_full(&a, e) : table_ok(t, e) && table_out(cli, t, e);
    }
    arena_release(&a);
    return ok;
}

bool cmd_metrics(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct record_set set;
    char dir[RUN_ARG_PATH_MAX];
    const bool ok =
        run_arg_load(cli, argv[1], &set, dir, e) && print_metrics(cli, &set, argc - 2, argv + 2, e);
    record_set_release(&set);
    return ok;
}
