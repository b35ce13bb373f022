/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs_show.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/run_arg.h"
#include "cli/table_out.h"
#include "server/doc.h"
#include "server/run_summary.h"

static struct cell text_or_unknown(str s)
{
    return s.n > 0 ? cell_text(s) : cell_unknown();
}

static struct table *run_table(const struct cli *cli, struct arena *a, const struct run_view *v,
                               const struct run_summary *s)
{
    struct table *t = table_new(a, S("run"), S("Run"));
    if (t == NULL)
        return NULL;
    table_value(t, S("run"), S("Run"), cell_text(str_from(v->run)), S(""));
    table_value(t, S("name"), S("Name"), text_or_unknown(s->name), S(""));
    table_value(t, S("group"), S("Group"), text_or_unknown(s->group), S(""));
    table_value(t, S("phase"), S("Phase"), cell_text(str_from(s->phase)), S(""));
    table_value(t, S("reason"), S("Reason"), text_or_unknown(str_from(s->reason)), S(""));
    table_value(t, S("health"), S("Health"), cell_text(str_from(s->health)), S(""));
    table_value(t, S("started"), S("Started"), table_out_time(cli, a, s->started_ns), S(""));
    table_value(t, S("ended"), S("Ended"), table_out_time(cli, a, s->ended_ns), S(""));
    table_value(t, S("last"), S("Last record"), table_out_time(cli, a, s->last_ns), S(""));
    table_value(t, S("attempts"), S("Attempts"),
                s->n_attempts > 0 ? cell_u64(s->n_attempts) : cell_unknown(), S(""));
    table_value(t, S("hosts"), S("Hosts"), cell_u64(s->n_hosts), S(""));
    table_value(t, S("step"), S("Last step begun"),
                s->step >= 0 ? cell_i64(s->step) : cell_unknown(), S(""));
    table_value(t, S("framework"), S("Framework"), text_or_unknown(s->framework), S(""));
    table_value(t, S("command"), S("Command"), text_or_unknown(s->argv), S(""));
    table_value(t, S("configs"), S("Configs"), text_or_unknown(s->configs), S(""));
    table_value(t, S("labels"), S("Labels"), text_or_unknown(s->labels), S(""));
    table_value(t, S("host_facts"), S("Host"), text_or_unknown(s->facts), S(""));
    if (!v->has_ledger)
        table_note(t, S("no_ledger"), 1, "%s", v->why_no_ledger.msg);
    return t;
}

/* The record that ended a process, or NULL. */
static const struct record *end_of(const struct record_set *set, uint32_t process)
{
    const struct record *end = NULL;
    for (uint32_t i = 0; i < set->n_records; i++)
        if (set->records[i].process == process && (set->records[i].kind == RECORD_RUNNER_END ||
                                                   set->records[i].kind == RECORD_PROCESS_END))
            end = &set->records[i];
    return end;
}

static struct table *process_table(const struct cli *cli, struct arena *a,
                                   const struct record_set *set)
{
    struct table *t = table_new(a, S("processes"), S("Processes"));
    static const struct {
        str name, title;
        enum cell_type type;
    } columns[] = {
        {STR_INIT("attempt"), STR_INIT("Attempt"), CELL_U64},
        {STR_INIT("host"), STR_INIT("Host"), CELL_TEXT},
        {STR_INIT("rank"), STR_INIT("Rank"), CELL_I64},
        {STR_INIT("pid"), STR_INIT("Pid"), CELL_TEXT},
        {STR_INIT("recorder"), STR_INIT("Recorder"), CELL_TEXT},
        {STR_INIT("started"), STR_INIT("Started"), CELL_TEXT},
        {STR_INIT("last"), STR_INIT("Last record"), CELL_TEXT},
        {STR_INIT("exit_code"), STR_INIT("Exit code"), CELL_I64},
        {STR_INIT("signal"), STR_INIT("Signal"), CELL_I64},
        {STR_INIT("records"), STR_INIT("Records"), CELL_U64},
        {STR_INIT("lost"), STR_INIT("Lost"), CELL_U64},
        {STR_INIT("journal"), STR_INIT("Journal"), CELL_TEXT},
    };
    for (size_t i = 0; t != NULL && i < sizeof columns / sizeof *columns; i++)
        table_column(t, columns[i].name, columns[i].title, columns[i].type, S(""));
    for (uint32_t i = 0; t != NULL && i < set->n_processes; i++) {
        const struct record_process *p = &set->processes[i];
        const struct record *end = end_of(set, i);
        struct cell *row = table_row(t);
        if (row == NULL)
            return t;
        row[0] = p->attempt > 0 ? cell_u64(p->attempt) : cell_unknown();
        row[1] = text_or_unknown(p->host);
        row[2] = p->rank >= 0 ? cell_i64(p->rank) : cell_unknown();
        row[3] = cell_text(arena_printf(a, "%u", p->pid));
        row[4] = cell_text(p->runner ? S("tacho run") : S("workload"));
        row[5] = table_out_time(cli, a, p->start_ns);
        row[6] = table_out_time(cli, a, p->last_ns);
        row[7] = end != NULL && end->signal == 0 ? cell_i64(end->code) : cell_unknown();
        row[8] = end != NULL && end->signal != 0 ? cell_i64(end->signal) : cell_unknown();
        row[9] = cell_u64(p->n_records);
        row[10] = cell_u64(p->n_lost);
        row[11] = cell_text(p->journal_id);
    }
    return t;
}

static struct table *session_table(const struct cli *cli, struct arena *a,
                                   const struct record_set *set)
{
    struct table *t = table_new(a, S("sessions"), S("Profile sessions"));
    if (t == NULL)
        return NULL;
    table_column(t, S("session"), S("Session"), CELL_TEXT, S(""));
    table_column(t, S("kind"), S("Kind"), CELL_TEXT, S(""));
    table_column(t, S("recorded"), S("Recorded"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < set->n_records; i++) {
        const struct record *r = &set->records[i];
        struct err ignored = {0};
        struct doc *d = r->kind == RECORD_SESSION ? doc_parse(r->text, &ignored) : NULL;
        struct cell *row = d == NULL ? NULL : table_row(t);
        if (row != NULL) {
            row[0] = text_or_unknown(doc_text(d, "session", a));
            row[1] = text_or_unknown(doc_text(d, "kind", a));
            row[2] = table_out_time(cli, a, r->wall_ns);
        }
        doc_free(d);
    }
    return t;
}

/* One row a line for a person, one a stream for a program. */
static void add_output(const struct cli *cli, struct arena *a, struct table *t, uint32_t pid,
                       int32_t stream, str text)
{
    const bool by_line = cli->output == CLI_OUTPUT_TEXT;
    str line = text, rest = text;
    for (bool more = true; more; more = by_line && rest.n > 0) {
        if (by_line)
            (void)str_cut(rest, '\n', &line, &rest);
        struct cell *row = table_row(t);
        if (row == NULL)
            return;
        row[0] = cell_text(arena_printf(a, "%u", pid));
        row[1] = cell_text(stream == 1 ? S("stdout") : S("stderr"));
        row[2] = cell_text(line);
    }
}

/* The newest tail of each stream of each attempt's `tacho run`. */
static struct table *output_table(const struct cli *cli, struct arena *a,
                                  const struct record_set *set)
{
    struct table *t = table_new(a, S("output"), S("Tail of the output"));
    if (t == NULL)
        return NULL;
    table_column(t, S("pid"), S("Pid of tacho run"), CELL_TEXT, S(""));
    table_column(t, S("stream"), S("Stream"), CELL_TEXT, S(""));
    table_column(t, S("text"), S("Text"), CELL_TEXT, S(""));
    for (uint32_t p = 0; p < set->n_processes; p++)
        for (int32_t stream = 1; stream <= 2; stream++) {
            const struct record *newest = NULL;
            for (uint32_t i = 0; i < set->n_records; i++)
                if (set->records[i].process == p && set->records[i].kind == RECORD_OUTPUT &&
                    set->records[i].code == stream)
                    newest = &set->records[i];
            if (newest != NULL)
                add_output(cli, a, t, set->processes[p].pid, stream, newest->text);
        }
    return t;
}

static bool show(struct cli *cli, struct arena *a, const struct run_view *v, struct err *e)
{
    struct run_summary s;
    run_summary_make(v, clock_wall_ns(), a, &s);
    const struct record_set *set = &v->decoder.set;
    struct table *tables[] = {run_table(cli, a, v, &s), process_table(cli, a, set),
                              session_table(cli, a, set), output_table(cli, a, set)};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (tables[i] == NULL)
            return arena_full(a, e);
        if (!table_ok(tables[i], e))
            return false;
        if (i > 0)
            tables[i - 1]->next = tables[i];
    }
    return table_out(cli, tables[0], e);
}

bool runs_show(struct cli *cli, const char *run, struct err *e)
{
    char path[RUN_ARG_PATH_MAX];
    enum run_arg_kind kind;
    struct run_view v;
    if (!run_arg_find(cli, run, &kind, path, e))
        return false;
    if (kind != RUN_ARG_RUN)
        return err_set(e, ERR_USAGE, "'%s' is not a run of a data folder", run);
    if (!run_view_load(&v, path, path_base(str_from(path)), e))
        return false;
    struct arena a;
    arena_init(&a, "run", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = show(cli, &a, &v, e);
    arena_release(&a);
    run_view_unload(&v);
    return ok;
}
