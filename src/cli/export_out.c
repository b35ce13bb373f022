/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export_out.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/profile_limits.h"
#include "cli/progress.h"
#include "jobs/export_task.h"

struct target { /* where it goes */
    const char *path;
    char *temporary; /* renamed to path once it is whole; NULL: written in place */
    int fd;
    bool is_stdout;
};

static bool target_open(struct target *t, struct arena *a, const char *path, struct err *e)
{
    struct stat st;
    *t = (struct target){.path = path, .fd = STDOUT_FILENO, .is_stdout = strcmp(path, "-") == 0};
    if (t->is_stdout)
        return true;
    const bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    if (!special) {
        const str name = arena_printf(a, "%s.tmp-%d", path, (int)getpid());
        t->temporary = arena_cstr(a, name);
    }
    t->fd = special ? file_open(path, O_WRONLY, 0, e)
                    : file_open(t->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666, e);
    return t->fd >= 0;
}

static bool target_close(struct target *t, bool ok, struct err *e)
{
    if (t->is_stdout || t->fd < 0)
        return ok;
    if (close(t->fd) != 0 && ok)
        ok = err_sys(e, "cannot write '%s'", t->path);
    if (ok && t->temporary != NULL && rename(t->temporary, t->path) != 0)
        ok = err_sys(e, "cannot write '%s'", t->path);
    if (!ok && t->temporary != NULL)
        unlink(t->temporary);
    return ok;
}

static void show(void *ctx, uint64_t n_done, uint64_t n_total)
{
    progress_show(ctx, n_done, n_total);
}

static bool format_of(const struct export_wish *wish, const struct exporter **out, struct err *e)
{
    char names[160] = "";
    *out = wish->to != NULL    ? export_find(str_from(wish->to))
           : wish->out != NULL ? export_for_path(path_base(str_from(wish->out)))
                               : NULL;
    if (*out != NULL)
        return true;
    for (uint32_t i = 0; i < export_count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i == 0 ? "" : ", ",
                 export_table[i].name);
    if (wish->to != NULL)
        err_set(e, ERR_USAGE, "there is no format '%s'", wish->to);
    else
        err_set(e, ERR_USAGE, "the name '%s' does not say which format", wish->out);
    return err_hint(e, "--to takes %s", names);
}

/* "<profile><ending>" in the working folder. */
static const char *name_of(struct arena *a, const struct export_wish *wish,
                           const struct exporter *x)
{
    str ending = {0}, rest;
    if (wish->out != NULL)
        return wish->out;
    str_cut(str_from(x->endings), ',', &ending, &rest);
    return arena_cstr(a, arena_printf(a, "%.*s%.*s", STR_ARG(path_base(str_from(wish->profile))),
                                      STR_ARG(ending)));
}

static bool say(const struct cli *cli, const struct exporter *x, const struct target *t,
                const struct export_counts *counts, struct err *e)
{
    if (counts->n_left_out > 0)
        fprintf(stderr, "tacho: %" PRIu64 " events cannot be said in %s: left out\n",
                counts->n_left_out, x->name);
    if (t->is_stdout)
        return true;
    if (cli->output != CLI_OUTPUT_JSON) {
        printf("%s\n", t->path);
        return true;
    }
    struct json j;
    struct stat st;
    json_init_fd(&j, STDOUT_FILENO);
    json_object(&j);
    json_kcstr(&j, "format", x->name);
    json_kcstr(&j, "path", t->path);
    json_key(&j, "bytes");
    if (stat(t->path, &st) == 0)
        json_i64(&j, st.st_size);
    else
        json_null(&j);
    json_ku64(&j, "events", counts->n_events);
    json_ku64(&j, "left_out", counts->n_left_out);
    json_end(&j);
    return json_done(&j, e) && file_write_all(STDOUT_FILENO, "\n", 1, e);
}

static bool run(struct cli *cli, const struct export_wish *wish, const struct exporter *x,
                struct arena *a, struct err *e)
{
    struct progress progress;
    struct export_counts counts;
    struct target target;
    const struct parser_sink sink = {parser_sink_fd, &target.fd};
    const char *path = name_of(a, wish, x);
    struct profile_limits limits;
    const struct export_options options = {.host = str_from(wish->host),
                                           .from_ps = (uint64_t)wish->from_ns * PS_PER_NS,
                                           .to_ps = (uint64_t)wish->until_ns * PS_PER_NS,
                                           .is_gzip = str_ends(str_from(path), S(".json.gz")),
                                           .progress = show,
                                           .progress_ctx = &progress};
    if (path == NULL)
        return arena_full(a, e);
    profile_limits_of(cli, &limits);
    progress_init(&progress, "exporting", "events");
    bool ok = target_open(&target, a, path, e) &&
              export_task_run(wish->profile, &limits.parser, x, &options, &sink, &counts, e);
    progress_end(&progress);
    ok = target_close(&target, ok, e);
    return ok && say(cli, x, &target, &counts, e);
}

bool export_out(struct cli *cli, const struct export_wish *wish, struct err *e)
{
    const struct exporter *x;
    struct arena a;
    const int64_t most_ns = INT64_MAX / PS_PER_NS;
    if (!format_of(wish, &x, e))
        return false;
    if (wish->from_ns > most_ns || wish->until_ns > most_ns ||
        (wish->until_ns > 0 && wish->until_ns <= wish->from_ns))
        return err_set(e, ERR_USAGE, "--until must be later than --from");
    arena_init(&a, "export", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = run(cli, wish, x, &a, e);
    arena_release(&a);
    return ok;
}
