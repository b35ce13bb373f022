/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_arg.h"

#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include "agent/run_find.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/s3_arg.h"
#include "format/entries.h"
#include "format/profile_open.h"
#include "journal/reader.h"
#include "journal/run_identity.h"

bool run_arg_data_dir(struct cli *cli, char out[static RUN_ARG_PATH_MAX], struct err *e)
{
    const str set = config_text(cli->config, CONFIG_FIELD_data);
    if (set.n >= RUN_ARG_PATH_MAX)
        return err_set(e, ERR_USAGE, "the data folder's path is longer than %d bytes",
                       RUN_ARG_PATH_MAX - 1);
    if (set.n > 0) {
        memcpy(out, set.p, set.n);
        out[set.n] = '\0';
        return true;
    }
    if (run_data_dir(out, RUN_ARG_PATH_MAX))
        return true;
    err_set(e, ERR_USAGE, "no data folder: neither TACHO_DATA, XDG_DATA_HOME nor HOME is set");
    return err_hint(e, "give one with --data");
}

static bool is_journal(const char *path)
{
    struct err ignored = {0};
    const int fd = file_open(path, O_RDONLY, 0, &ignored);
    uint32_t sync = 0;
    if (fd == -1)
        return false;
    const bool yes = read(fd, &sync, sizeof sync) == (ssize_t)sizeof sync && sync == JOURNAL_SYNC;
    close(fd);
    return yes;
}

static bool copy_path(char path[static RUN_ARG_PATH_MAX], const char *from, struct err *e)
{
    const size_t n = strlen(from);
    if (n >= RUN_ARG_PATH_MAX)
        return err_set(e, ERR_USAGE, "path longer than %d bytes", RUN_ARG_PATH_MAX - 1);
    memcpy(path, from, n + 1);
    return true;
}

bool run_arg_find(struct cli *cli, const char *run, enum run_arg_kind *kind,
                  char path[static RUN_ARG_PATH_MAX], struct err *e)
{
    struct arena a;
    arena_init(&a, "run argument", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = false;
    if (run == NULL)
        run = "last";
    if (!s3_arg_path(cli, run, &run, e)) {
        arena_release(&a);
        return false;
    }
    if (file_is_dir(run)) {
        *kind = file_is_dir(path_join(&a, run, S("journals"))) ? RUN_ARG_RUN : RUN_ARG_FOLDER;
        ok = copy_path(path, run, e);
    } else if (file_exists(run)) {
        *kind = is_journal(run) ? RUN_ARG_JOURNAL : RUN_ARG_FILE;
        ok = copy_path(path, run, e);
    } else {
        char data[RUN_ARG_PATH_MAX];
        struct run_found found;
        *kind = RUN_ARG_RUN;
        if (run_arg_data_dir(cli, data, e) && run_find_id(&a, data, str_from(run), &found, e)) {
            const str below = arena_printf(&a, "runs/%.*s", STR_ARG(found.run));
            ok = copy_path(path, path_join(&a, data, below), e);
        }
    }
    arena_release(&a);
    return ok;
}

/* A folder or file with profiles, given for a run: e says which command takes it. */
static bool is_profile(enum run_arg_kind kind, const char *path, struct err *e)
{
    struct profile_source s;
    struct err ignored = {0};
    if (kind == RUN_ARG_FILE ? !profile_is_file(path) : !profile_find(&s, path, &ignored))
        return false;
    if (kind != RUN_ARG_FILE)
        profile_source_release(&s);
    if (kind == RUN_ARG_FILE)
        err_at(e, ERR_PARSE, 0,
               "'%s' is a profile, not a run (tacho report and tacho tool take it), as seen", path);
    else
        err_set(e, ERR_PARSE,
                "'%s' holds profiles, not a run (tacho report and tacho tool take it)", path);
    return true;
}

bool run_arg_load(struct cli *cli, const char *run, struct record_set *out,
                  char dir[static RUN_ARG_PATH_MAX], struct err *e)
{
    enum run_arg_kind kind;
    record_set_init(out, LIMIT_ARENA_RUN_BYTES);
    if (!run_arg_find(cli, run, &kind, dir, e))
        return false;
    bool ok = false;
    if (kind == RUN_ARG_RUN)
        ok = journal_decode_run(out, dir, e);
    else if (kind == RUN_ARG_JOURNAL)
        ok = journal_decode_file(out, dir, e);
    else if (is_profile(kind, dir, e))
        return false;
    else
        return err_at(e, ERR_PARSE, 0, "'%s' is neither a journal nor a run folder of ours", dir);
    if (!ok)
        return err_wrap(e, "cannot read run '%s'", dir);
    record_set_sort(out);
    return true;
}

bool run_arg_load_any(struct cli *cli, const char *run, struct record_set *out,
                      char dir[static RUN_ARG_PATH_MAX], struct err *e)
{
    enum run_arg_kind kind;
    record_set_init(out, LIMIT_ARENA_RUN_BYTES);
    if (!run_arg_find(cli, run, &kind, dir, e))
        return false;
    if (kind == RUN_ARG_RUN || kind == RUN_ARG_JOURNAL) {
        record_set_release(out);
        return run_arg_load(cli, run, out, dir, e);
    }
    if (entries_load(out, dir, e))
        return true;
    if (kind == RUN_ARG_FOLDER && e->code == ERR_NOT_FOUND && is_profile(kind, dir, e))
        return false;
    return strstr(e->msg, dir) == NULL ? err_wrap(e, "cannot read '%s' as a run", dir) : false;
}
