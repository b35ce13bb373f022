/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_load.h"

#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "cli/profile_limits.h"
#include "cli/run_arg.h"
#include "format/profile_open.h"
#include "goodput/ledger_build.h"
#include "jobs/profile_task.h"
#include "report/build.h"

static void copy_notes(struct report_loaded *l)
{
    struct report *r = &l->report;
    for (uint32_t i = 0; i < l->set.n_notes; i++)
        if (ARENA_PUSH(&r->arena, r->notes, r->n_notes, r->notes_capacity))
            r->notes[r->n_notes - 1] = l->set.notes[i];
}

static bool load_facts(struct cli *cli, const char *path, struct report_loaded *l, struct err *e)
{
    struct profile_limits limits;
    struct profile_source s;
    if (!profile_find(&s, path, e))
        return false;
    l->profile = arena_str(&l->facts_arena, s.name);
    profile_source_release(&s);
    profile_limits_of(cli, &limits);
    l->has_facts = profile_task_facts(path, &limits.parser, &l->facts_arena, &l->facts, e);
    return l->has_facts;
}

/* The newest profile of the run. One that cannot be read costs its own part of the report only. */
static void load_run_profile(struct cli *cli, const char *dir, struct report_loaded *l,
                             struct err *why)
{
    const char *sessions = path_join(&l->facts_arena, dir, S("plugins/profile"));
    if (sessions != NULL && file_is_dir(sessions) && !load_facts(cli, sessions, l, why) &&
        why->code == ERR_NOT_FOUND)
        *why = (struct err){0}; /* the folder holds none yet */
}

static void note_failure(struct report *r, const struct err *why)
{
    if (why->code != ERR_NONE && ARENA_PUSH(&r->arena, r->notes, r->n_notes, r->notes_capacity))
        r->notes[r->n_notes - 1] =
            (struct note){S("profile_unreadable"),
                          arena_printf(&r->arena, "the run's newest profile: %s", why->msg), 1};
}

static bool is_profile(enum run_arg_kind kind, const char *path)
{
    struct profile_source s;
    struct err ignored = {0};
    if (kind == RUN_ARG_FILE)
        return profile_is_file(path);
    if (kind != RUN_ARG_FOLDER || !profile_find(&s, path, &ignored))
        return false;
    profile_source_release(&s);
    return true;
}

static bool load_profile(struct cli *cli, const char *path, struct report_loaded *l, struct err *e)
{
    if (!load_facts(cli, path, l, e))
        return false;
    const struct report_input in = {
        .subject = arena_printf(&l->facts_arena, "Profile %.*s", STR_ARG(l->profile)),
        .facts = &l->facts,
        .profile = l->profile};
    return report_build(&l->report, &in, e);
}

bool report_load(struct cli *cli, const char *name, struct report_loaded *out, struct err *e)
{
    char dir[RUN_ARG_PATH_MAX];
    enum run_arg_kind kind;
    struct err unread = {0};
    memset(out, 0, sizeof *out);
    arena_init(&out->facts_arena, "profile facts", LIMIT_ARENA_TOOL_BYTES);
    if (!run_arg_find(cli, name, &kind, dir, e))
        return false;
    if (is_profile(kind, dir))
        return load_profile(cli, dir, out, e);
    if (!run_arg_load_any(cli, name, &out->set, dir, e) ||
        !ledger_build(&out->set, &out->ledger, e))
        return false;
    out->has_ledger = true;
    if (kind == RUN_ARG_RUN)
        load_run_profile(cli, dir, out, &unread);
    const str subject = arena_printf(&out->set.arena, "Run %.*s", STR_ARG(out->set.run));
    const struct report_input in = {.subject = subject,
                                    .ledger = &out->ledger,
                                    .set = &out->set,
                                    .facts = out->has_facts ? &out->facts : NULL,
                                    .profile = out->profile};
    if (!report_build(&out->report, &in, e))
        return false;
    copy_notes(out);
    note_failure(&out->report, &unread);
    return true;
}

void report_unload(struct report_loaded *l)
{
    report_release(&l->report);
    record_set_release(&l->set);
    arena_release(&l->facts_arena);
}
