/* SPDX-License-Identifier: Apache-2.0 */
/* tacho sessions: the profile sessions of a data folder: list, show, import, export, delete. */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/export_out.h"
#include "cli/session_arg.h"
#include "cli/session_import.h"
#include "cli/table_out.h"
#include "format/profile_open.h"

static str id_of(struct arena *a, const struct session_found *s)
{
    return arena_printf(a, "%.*s~%.*s", STR_ARG(s->run), STR_ARG(s->name));
}

static bool list(struct cli *cli, struct arena *a, struct err *e)
{
    struct session_found *all = NULL;
    uint32_t n = 0;
    struct table *t = table_new(a, S("sessions"), S("Sessions"));
    if (t == NULL)
        return arena_full(a, e);
    if (!session_arg_all(cli, a, &all, &n, e))
        return false;
    table_column(t, S("session"), S("Session"), CELL_TEXT, S(""));
    table_column(t, S("targets"), S("Targets"), CELL_U64, S(""));
    table_column(t, S("size_bytes"), S("Size"), CELL_U64, S("bytes"));
    table_column(t, S("written"), S("Written"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < n; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            break; /* table_ok says it */
        row[0] = cell_text(id_of(a, &all[i]));
        row[1] = cell_u64(all[i].n_files);
        row[2] = cell_u64(all[i].size_bytes);
        row[3] = table_out_time(cli, a, all[i].newest_ns);
    }
    return table_ok(t, e) && table_out(cli, t, e);
}

static bool put_targets(struct table *t, const struct profile_source *s, struct arena *a)
{
    table_column(t, S("target"), S("Target"), CELL_TEXT, S(""));
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("size_bytes"), S("Size"), CELL_U64, S("bytes"));
    table_column(t, S("file"), S("File"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < s->n_files; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return false;
        row[0] = cell_text(arena_str(a, s->files[i].target));
        if (s->files[i].host.n > 0)
            row[1] = cell_text(arena_str(a, s->files[i].host));
        row[2] = cell_u64(s->files[i].size_bytes);
        row[3] = cell_text(arena_str(a, str_from(s->files[i].path)));
    }
    return true;
}

static bool show(struct cli *cli, const char *word, struct arena *a, struct err *e)
{
    struct session_found found;
    struct profile_source s;
    if (!session_arg_find(cli, a, word, &found, e) || !profile_find(&s, found.path, e))
        return false;
    struct table *t = table_new(a, S("targets"), S("Targets"));
    bool ok = t != NULL;
    if (ok) {
        table_value(t, S("session"), S("Session"), cell_text(id_of(a, &found)), S(""));
        table_value(t, S("run"), S("Run"), cell_text(found.run), S(""));
        table_value(t, S("folder"), S("Folder"), cell_text(str_from(found.path)), S(""));
        table_value(t, S("size_bytes"), S("Size"), cell_u64(found.size_bytes), S("bytes"));
        table_value(t, S("written"), S("Written"), table_out_time(cli, a, found.newest_ns), S(""));
        ok = put_targets(t, &s, a);
    }
    profile_source_release(&s);
    return ok ? table_ok(t, e) && table_out(cli, t, e) : arena_full(a, e);
}

/* One word about what was done: the session's id. */
static bool say(struct cli *cli, const char *key, str id, struct err *e)
{
    struct json j;
    if (cli->output != CLI_OUTPUT_JSON) {
        printf("%.*s\n", STR_ARG(id));
        return true;
    }
    json_init_fd(&j, STDOUT_FILENO);
    json_object(&j);
    json_kstr(&j, key, id);
    json_end(&j);
    return json_done(&j, e) && file_write_all(STDOUT_FILENO, "\n", 1, e);
}

static bool import(struct cli *cli, const char *from, struct arena *a, struct err *e)
{
    str id;
    return session_import(cli, from, flags_text(cli->flags, FLAG_sessions_run),
                          flags_text(cli->flags, FLAG_sessions_name), a, &id, e) &&
           say(cli, "session", id, e);
}

static bool export(struct cli *cli, const char *word, struct arena *a, struct err *e)
{
    struct session_found found;
    struct export_wish wish = {.out = flags_text(cli->flags, FLAG_sessions_out),
                               .to = flags_text(cli->flags, FLAG_sessions_to),
                               .host = flags_text(cli->flags, FLAG_sessions_host)};
    flags_number(cli->flags, FLAG_sessions_from, &wish.from_ns);
    flags_number(cli->flags, FLAG_sessions_until, &wish.until_ns);
    if (wish.to == NULL && wish.out == NULL) {
        err_set(e, ERR_USAGE, "tacho sessions export needs --to FORMAT");
        return err_hint(e, "tacho sessions --help");
    }
    if (!session_arg_find(cli, a, word, &found, e))
        return false;
    wish.profile = found.path;
    return export_out(cli, &wish, e);
}

static bool delete (struct cli *cli, const char *word, struct arena *a, struct err *e)
{
    struct session_found found;
    if (!session_arg_find(cli, a, word, &found, e))
        return false;
    if (!flags_on(cli->flags, FLAG_sessions_yes)) {
        err_set(e, ERR_USAGE, "the session's %u profiles would be gone for good", found.n_files);
        return err_hint(e, "say --yes to delete %.*s~%.*s", STR_ARG(found.run),
                        STR_ARG(found.name));
    }
    return dir_remove(found.path, e) && say(cli, "deleted", id_of(a, &found), e);
}

bool cmd_sessions(struct cli *cli, int argc, char **argv, struct err *e)
{
    static const struct {
        const char *word;
        bool (*fn)(struct cli *cli, const char *word, struct arena *a, struct err *e);
    } verbs[] = {{"show", show}, {"import", import}, {"export", export}, {"delete", delete}};
    struct arena a;
    bool ok = false, known = false;
    arena_init(&a, "sessions", LIMIT_ARENA_REQUEST_BYTES);
    if (argc == 1 || (argc == 2 && strcmp(argv[1], "list") == 0)) {
        known = true;
        ok = list(cli, &a, e);
    }
    for (size_t i = 0; !known && argc == 3 && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[1], verbs[i].word) == 0) {
            known = true;
            ok = verbs[i].fn(cli, argv[2], &a, e);
        }
    arena_release(&a);
    if (known)
        return ok;
    err_set(e, ERR_USAGE,
            "tacho sessions takes list, show SESSION, import PATH, export SESSION or "
            "delete SESSION");
    return err_hint(e, "tacho sessions --help");
}
