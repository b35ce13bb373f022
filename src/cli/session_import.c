/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_import.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "cli/profile_limits.h"
#include "cli/s3_arg.h"
#include "format/profile_open.h"
#include "jobs/export_task.h"
#include "jobs/profile_task.h"

#define BLOCK_BYTES ((size_t)1 << 16)
#define DEFAULT_RUN "imported"

static bool copy_file(int from, const char *to, struct err *e)
{
    char block[BLOCK_BYTES];
    const int fd = file_open(to, O_WRONLY | O_CREAT | O_EXCL, 0644, e);
    bool ok = fd >= 0;
    for (off_t at = 0; ok;) {
        const ssize_t n = pread(from, block, sizeof block, at);
        if (n == 0)
            break;
        ok = n > 0 ? file_write_all(fd, block, (size_t)n, e) : err_sys(e, "cannot read '%s'", to);
        at += n;
    }
    if (fd >= 0 && fsync(fd) != 0 && ok)
        ok = err_sys(e, "cannot write '%s'", to);
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool make_xspace(const struct profile_file *f, const struct parser_limits *limits,
                        const char *to, struct err *e)
{
    struct export_counts counts;
    const struct export_options all = {0};
    const struct exporter *x = export_find(S("xspace"));
    int fd = file_open(to, O_WRONLY | O_CREAT | O_EXCL, 0644, e);
    const struct parser_sink sink = {parser_sink_fd, &fd};
    if (fd < 0)
        return false;
    bool ok = export_task_run(f->path, limits, x, &all, &sink, &counts, e);
    if (fsync(fd) != 0 && ok)
        ok = err_sys(e, "cannot write '%s'", to);
    close(fd);
    return ok;
}

static bool import_file(const struct profile_file *f, const struct parser_limits *limits,
                        struct arena *a, const char *dir, struct err *e)
{
    const str target = path_safe_name(a, f->target, S("session"));
    const char *to = path_join(a, dir, arena_printf(a, "%.*s" TRACE_FILE_ENDING, STR_ARG(target)));
    if (to == NULL)
        return arena_full(a, e);
    if (f->import_fd < 0)
        return copy_file(f->fd, to, e);
    const char *original =
        path_join(a, dir, path_safe_name(a, path_base(str_from(f->path)), S("session")));
    if (original == NULL)
        return arena_full(a, e);
    return copy_file(f->fd, original, e) && make_xspace(f, limits, to, e);
}

/* Whatever cannot be decoded is no session. */
static bool check_profile(const char *from, const struct parser_limits *limits, struct err *e)
{
    struct buf out;
    buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
    const bool ok =
        profile_task_tool(from, limits, tool_find(S("summary")), NULL, 0, TOOL_JSON, &out, e);
    buf_release(&out);
    return ok;
}

static bool fill_and_name(struct cli *cli, const struct profile_source *s, struct arena *a,
                          const char *parent, const char *to, struct err *e)
{
    struct profile_limits limits;
    struct err ignored = {0};
    const str name = arena_printf(a, ".import-%d", (int)getpid());
    const char *dir = path_join(a, parent, name);
    profile_limits_of(cli, &limits);
    limits.parser.indexes = NULL;
    if (dir == NULL)
        return arena_full(a, e);
    bool ok = check_profile(arena_cstr(a, s->path), &limits.parser, e) && dir_make(dir, 0755, e);
    for (uint32_t i = 0; ok && i < s->n_files; i++)
        ok = import_file(&s->files[i], &limits.parser, a, dir, e);
    if (ok && rename(dir, to) != 0)
        ok = err_sys(e, "cannot make '%s'", to);
    if (!ok && file_is_dir(dir) && !dir_remove(dir, &ignored))
        fprintf(stderr, "tacho: %s\n", ignored.msg);
    return ok;
}

static bool import_source(struct cli *cli, const struct profile_source *s, str run, str name,
                          struct arena *a, struct err *e)
{
    char data[RUN_ARG_PATH_MAX];
    if (!run_arg_data_dir(cli, data, e))
        return false;
    const char *parent =
        path_join(a, data, arena_printf(a, "runs/%.*s/plugins/profile", STR_ARG(run)));
    const char *to = parent == NULL ? NULL : path_join(a, parent, name);
    if (to == NULL)
        return arena_full(a, e);
    if (file_exists(to)) {
        err_set(e, ERR_CONFLICT, "run '%.*s' has a session '%.*s' already", STR_ARG(run),
                STR_ARG(name));
        return err_hint(e, "give it another name with --name");
    }
    return dir_make(parent, 0755, e) && fill_and_name(cli, s, a, parent, to, e);
}

bool session_import(struct cli *cli, const char *from, const char *run, const char *name,
                    struct arena *a, str *id, struct err *e)
{
    struct profile_source s;
    const str in_run = run == NULL ? S(DEFAULT_RUN) : str_from(run);
    if (!path_is_safe_name(in_run) || (name != NULL && !path_is_safe_name(str_from(name))))
        return err_set(e, ERR_USAGE,
                       "--run and --name are names of letters, digits and ._+=@-, not '%s'",
                       path_is_safe_name(in_run) ? name : run);
    if (!s3_arg_path(cli, from, &from, e) || !profile_find(&s, from, e))
        return false;
    const str called = name != NULL ? str_from(name) : path_safe_name(a, s.name, S("session"));
    *id = arena_printf(a, "%.*s~%.*s", STR_ARG(in_run), STR_ARG(called));
    const bool ok = import_source(cli, &s, in_run, called, a, e);
    profile_source_release(&s);
    return ok;
}
