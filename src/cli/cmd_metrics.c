/* SPDX-License-Identifier: Apache-2.0 */
/* tacho metrics: what a run measured, one row a metric and process. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "cli/table_out.h"
#include "goodput/ledger_build.h"
#include "model/table_print.h"

#define NAMES_SHOWN 24 /* in an error */

struct series {
    str name;
    uint32_t process;
    uint64_t count;
    double least, most, sum, last;
    struct series *next;
};

static bool is_metric(const struct record *r)
{
    return r->kind == RECORD_METRIC || r->kind == RECORD_SYSTEM;
}

static str without_labels(str metric)
{
    const ptrdiff_t brace = str_find_char(metric, '{');
    return brace < 0 ? metric : str_sub(metric, 0, (size_t)brace);
}

static bool is_called(str metric, str name)
{
    return str_eq(metric, name) || str_eq(without_labels(metric), name);
}

static bool wanted(const struct record *r, int n_names, char **names)
{
    bool any = n_names == 0;
    for (int i = 0; i < n_names && is_metric(r) && !any; i++)
        any = is_called(r->text, str_from(names[i]));
    return any && is_metric(r);
}

/* "loss, system.cpu_percent, …": what can be asked for, in the order it was recorded. */
static str known_names(struct arena *a, const struct record_set *set)
{
    str shown[NAMES_SHOWN], text = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n_records; i++) {
        const str name = without_labels(set->records[i].text);
        bool again = !is_metric(&set->records[i]);
        for (uint32_t k = 0; k < n && !again; k++)
            again = str_eq(shown[k], name);
        if (again)
            continue;
        if (n == NAMES_SHOWN)
            return arena_printf(a, "%.*s, …", STR_ARG(text));
        shown[n++] = name;
        const str printable = text_printable(a, name);
        text = arena_printf(a, "%.*s%s%.*s", STR_ARG(text), n > 1 ? ", " : "", STR_ARG(printable));
    }
    return text;
}

/* A name that no metric of the run has is not an empty answer. */
static bool check_names(struct arena *a, const struct record_set *set, int n_names, char **names,
                        struct err *e)
{
    for (int i = 0; i < n_names; i++) {
        bool found = false;
        for (uint32_t k = 0; k < set->n_records && !found; k++)
            found =
                is_metric(&set->records[k]) && is_called(set->records[k].text, str_from(names[i]));
        if (found)
            continue;
        const str known = known_names(a, set);
        return known.n == 0
                   ? err_set(e, ERR_NOT_FOUND, "no metric '%s': the run recorded none", names[i])
                   : err_set(e, ERR_NOT_FOUND, "no metric '%s'; there are %.*s", names[i],
                             STR_ARG(known));
    }
    return true;
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

/* "host/pid"; with the journal's first digits where a process opened several. */
static str process_text(struct arena *a, const struct record_set *set, uint32_t process)
{
    const struct record_process *p = &set->processes[process];
    bool several = false;
    for (uint32_t i = 0; i < set->n_processes && !several; i++)
        several = i != process && set->processes[i].pid == p->pid &&
                  str_eq(set->processes[i].host, p->host);
    const str journal =
        several ? str_sub(p->journal_id, 0, p->journal_id.n < 8 ? p->journal_id.n : 8) : (str){0};
    return arena_printf(a, "%.*s/%u%s%.*s", STR_ARG(p->host), p->pid, several ? "/" : "",
                        STR_ARG(journal));
}

static struct table *metrics_table(struct arena *a, const struct record_set *set,
                                   const struct series *all)
{
    struct table *t = table_new(a, S("metrics"), S("Metrics"));
    if (t == NULL)
        return NULL;
    table_column(t, S("name"), S("Metric"), CELL_TEXT, S(""));
    table_column(t, S("attempt"), S("Attempt"), CELL_U64, S(""));
    table_column(t, S("rank"), S("Rank"), CELL_I64, S(""));
    table_column(t, S("process"), S("Process"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Values"), CELL_U64, S(""));
    table_column(t, S("last"), S("Last"), CELL_F64, S(""));
    table_column(t, S("min"), S("Min"), CELL_F64, S(""));
    table_column(t, S("mean"), S("Mean"), CELL_F64, S(""));
    table_column(t, S("max"), S("Max"), CELL_F64, S(""));
    for (const struct series *s = all; s != NULL; s = s->next) {
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        const struct record_process *p = &set->processes[s->process];
        row[0] = cell_text(s->name);
        row[1] = p->attempt > 0 ? cell_u64(p->attempt) : cell_unknown();
        row[2] = p->rank >= 0 ? cell_i64(p->rank) : cell_unknown();
        row[3] = cell_text(process_text(a, set, s->process));
        row[4] = cell_u64(s->count);
        row[5] = cell_f64(s->last);
        row[6] = cell_f64(s->least);
        row[7] = cell_f64(s->sum / (double)s->count);
        row[8] = cell_f64(s->most);
    }
    return t;
}

static bool print_metrics(struct cli *cli, const struct record_set *set, int n_names, char **names,
                          struct err *e)
{
    struct arena a;
    struct series *all = NULL;
    arena_init(&a, "metrics", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = check_names(&a, set, n_names, names, e);
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

/* The ledger says of which attempt each process was. Without one that is not known: the launcher's count
 * starts anew with each `tacho run`. */
static void number_attempts(struct record_set *set)
{
    struct ledger ledger;
    struct err ignored = {0};
    if (!ledger_build(set, &ledger, &ignored))
        for (uint32_t i = 0; i < set->n_processes; i++)
            set->processes[i].attempt = 0;
}

bool cmd_metrics(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct record_set set;
    char dir[RUN_ARG_PATH_MAX];
    bool ok = run_arg_load(cli, argv[1], &set, dir, e);
    if (ok) {
        number_attempts(&set);
        ok = print_metrics(cli, &set, argc - 2, argv + 2, e);
    }
    record_set_release(&set);
    return ok;
}
