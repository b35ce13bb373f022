/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_arg.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/s3_arg.h"
#include "format/profile_open.h"
#include "net/s3_client.h"

struct search {
    struct arena *a;
    struct session_found *items;
    uint32_t n, capacity;
};

static bool look_at_session(struct search *q, const char *dir, str run, str name, struct err *e)
{
    struct session_found f = {.run = run, .name = name, .path = path_join(q->a, dir, name)};
    struct err ignored = {0};
    str *names;
    size_t n;
    if (f.path == NULL || !dir_list(q->a, f.path, &names, &n, &ignored))
        return true; /* a file, or not ours to read */
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(q->a, f.path, names[i]);
        struct stat st;
        if (path == NULL || lstat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
            !str_ends(names[i], S(TRACE_FILE_ENDING)))
            continue;
        const int64_t at = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
        f.newest_ns = f.n_files == 0 || at > f.newest_ns ? at : f.newest_ns;
        f.n_files++;
        f.size_bytes += (uint64_t)st.st_size;
    }
    if (f.n_files == 0)
        return true;
    if (!ARENA_PUSH(q->a, q->items, q->n, q->capacity))
        return arena_full(q->a, e);
    q->items[q->n - 1] = f;
    return true;
}

static bool look_at_run(struct search *q, const char *runs, str run, struct err *e)
{
    const char *dir =
        path_join(q->a, runs, arena_printf(q->a, "%.*s/plugins/profile", STR_ARG(run)));
    struct err ignored = {0};
    str *names;
    size_t n;
    if (dir == NULL || !file_is_dir(dir) || !dir_list(q->a, dir, &names, &n, &ignored))
        return true;
    for (size_t i = 0; i < n; i++)
        if (path_is_safe_name(names[i]) && !look_at_session(q, dir, run, names[i], e))
            return false;
    return true;
}

static int newest_first(const void *a, const void *b)
{
    const struct session_found *x = a, *y = b;
    const int by_run = str_cmp(x->run, y->run);
    return x->newest_ns != y->newest_ns ? (x->newest_ns < y->newest_ns ? 1 : -1)
           : by_run != 0                ? by_run
                                        : str_cmp(x->name, y->name);
}

bool session_arg_all(struct cli *cli, struct arena *a, struct session_found **out, uint32_t *n,
                     struct err *e)
{
    char data[RUN_ARG_PATH_MAX];
    struct search q = {.a = a};
    str *names = NULL;
    size_t n_names = 0;
    if (!run_arg_data_dir(cli, data, e))
        return false;
    const char *runs = path_join(a, data, S("runs"));
    if (runs == NULL)
        return arena_full(a, e);
    if (file_is_dir(runs) && !dir_list(a, runs, &names, &n_names, e))
        return false;
    for (size_t i = 0; i < n_names; i++)
        if (path_is_safe_name(names[i]) && !look_at_run(&q, runs, names[i], e))
            return false;
    if (q.n > 1)
        qsort(q.items, q.n, sizeof *q.items, newest_first);
    *out = q.items;
    *n = q.n;
    return true;
}

static bool is_called(const struct session_found *s, str word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] == '~' || word.p[i] == '/')
            return str_eq(str_sub(word, 0, i), s->run) &&
                   str_eq(str_sub(word, i + 1, word.n), s->name);
    return str_eq(word, s->name);
}

bool session_arg_find(struct cli *cli, struct arena *a, const char *word, struct session_found *out,
                      struct err *e)
{
    struct session_found *all = NULL;
    uint32_t n = 0, hits = 0;
    if (!session_arg_all(cli, a, &all, &n, e))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if ((i == 0 && strcmp(word, "last") == 0) || is_called(&all[i], str_from(word))) {
            *out = all[i];
            hits++;
        }
    if (hits == 1)
        return true;
    if (hits > 1) {
        err_set(e, ERR_USAGE, "%u sessions are called '%s'", hits, word);
        return err_hint(e, "write run~session, such as %.*s~%s", STR_ARG(out->run), word);
    }
    err_set(e, ERR_NOT_FOUND, "no session '%s' in the data folder", word);
    return err_hint(e, "tacho sessions list");
}

bool session_arg_profile(struct cli *cli, struct arena *a, const char *word, const char **path,
                         struct err *e)
{
    struct session_found found;
    struct err ignored = {0};
    if (s3_is_address(word))
        return s3_arg_path(cli, word, path, e);
    *path = word;
    if (file_exists(word) || !session_arg_find(cli, a, word, &found, &ignored)) {
        if (ignored.code == ERR_USAGE)
            *e = ignored;
        return ignored.code != ERR_USAGE; /* else opening it says that it is not there */
    }
    *path = found.path;
    return true;
}
