/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run_find.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/file.h"
#include "journal/reader.h"

#define RECORDS_LOOKED_AT 16 /* the start record is the second or third */

static void take_names(struct arena *a, const struct journal_record *rec, struct run_found *f)
{
    json_error_t why;
    json_t *root = json_loadb((const char *)rec->payload, rec->n, 0, &why);
    const char *name = json_string_value(json_object_get(root, "name"));
    const char *group = json_string_value(json_object_get(root, "group"));
    /* Journals come in the order of their random ids: the name must not depend on it. */
    const bool runner = rec->type == JOURNAL_RUNNER_START && name != NULL && !f->runner_named;
    if ((f->name.n == 0 || runner) && name != NULL)
        f->name = arena_str(a, str_from(name));
    if ((f->group.n == 0 || runner) && group != NULL)
        f->group = arena_str(a, str_from(group));
    f->runner_named |= runner;
    json_decref(root);
}

static void note_unreadable(struct arena *a, struct run_found *f, const struct err *why)
{
    if (f->unreadable.n == 0)
        f->unreadable = arena_str(a, str_from(why->msg));
}

static void look_at_journal(struct arena *a, const char *path, struct run_found *f)
{
    struct err ignored = {0};
    struct journal_reader r = {.fd = -1};
    if (!journal_reader_open(&r, path, &ignored)) {
        note_unreadable(a, f, &ignored);
        return;
    }
    const int64_t at = r.info.anchor.wall_ns;
    if (f->n_journals == 0 || at < f->started_ns)
        f->started_ns = at;
    if (f->n_journals == 0 || at > f->newest_ns)
        f->newest_ns = at;
    f->n_journals++;
    f->n_attempts += r.info.role == JOURNAL_ROLE_RUNNER;
    struct journal_record rec;
    const bool runner = r.info.role == JOURNAL_ROLE_RUNNER && !f->runner_named;
    for (int i = 0; i < RECORDS_LOOKED_AT && (f->name.n == 0 || (runner && !f->runner_named));
         i++) {
        if (journal_reader_next(&r, &rec, &ignored) != JOURNAL_GOT_RECORD)
            break;
        if (rec.type == JOURNAL_RUNNER_START || rec.type == JOURNAL_PROCESS_START)
            take_names(a, &rec, f);
    }
    journal_reader_close(&r);
}

static bool look_at_run(struct arena *a, const char *runs_dir, str run, struct run_found *f)
{
    struct err ignored = {0};
    const str below = arena_printf(a, "%.*s/journals", STR_ARG(run));
    const char *dir = path_join(a, runs_dir, below);
    str *names = NULL;
    size_t n = 0;
    *f = (struct run_found){.run = run};
    if (!file_is_dir(dir))
        return false;
    if (!dir_list(a, dir, &names, &n, &ignored))
        note_unreadable(a, f, &ignored);
    for (size_t i = 0; i < n; i++)
        if (str_ends(names[i], S(".journal")))
            look_at_journal(a, path_join(a, dir, names[i]), f);
    return f->n_journals > 0 || f->unreadable.n > 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct run_found *x = a, *y = b;
    return (x->newest_ns < y->newest_ns) - (x->newest_ns > y->newest_ns);
}

bool run_find_all(struct arena *a, const char *data_dir, struct run_found **out, uint32_t *n,
                  struct err *e)
{
    *out = NULL;
    *n = 0;
    const char *runs_dir = path_join(a, data_dir, S("runs"));
    str *names = NULL;
    size_t n_names = 0;
    if (!file_is_dir(runs_dir))
        return true;
    if (!dir_list(a, runs_dir, &names, &n_names, e))
        return false;
    struct run_found *all = ARENA_ARRAY(a, struct run_found, n_names + 1);
    if (all == NULL)
        return arena_full(a, e);
    for (size_t i = 0; i < n_names; i++)
        if (path_is_safe_name(names[i]) && look_at_run(a, runs_dir, names[i], &all[*n]))
            (*n)++;
    qsort(all, *n, sizeof *all, newest_first);
    *out = all;
    return true;
}

/* Says what to write instead: a run is asked for by its id, people remember its name. */
static bool not_found(const struct run_found *all, uint32_t n, const char *data_dir, str wanted,
                      struct err *e)
{
    if (n == 0) {
        err_set(e, ERR_NOT_FOUND, "no run is recorded in '%s' yet", data_dir);
        return err_hint(e, "tacho run --name NAME -- CMD");
    }
    err_set(e, ERR_NOT_FOUND, "no run '%.*s' in '%s'", STR_ARG(wanted), data_dir);
    for (uint32_t i = 0; i < n; i++)
        if (wanted.n > 0 && str_eq(all[i].name, wanted))
            return err_hint(e, "the newest run of that name is %.*s", STR_ARG(all[i].run));
    return err_hint(e, "tacho runs list");
}

bool run_find_id(struct arena *a, const char *data_dir, str wanted, struct run_found *out,
                 struct err *e)
{
    struct run_found *all = NULL;
    uint32_t n = 0, hits = 0;
    if (!run_find_all(a, data_dir, &all, &n, e))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(all[i].run, wanted) || str_eq(wanted, S("last"))) {
            *out = all[i];
            return true;
        }
        if (str_starts(all[i].run, wanted) && hits++ == 0)
            *out = all[i];
    }
    if (hits == 1)
        return true;
    if (hits > 1)
        return err_set(e, ERR_USAGE, "'%.*s' begins %" PRIu32 " run ids: write more of it",
                       STR_ARG(wanted), hits);
    return not_found(all, n, data_dir, wanted, e);
}

bool run_find_named(struct arena *a, const char *data_dir, str name, struct run_found *out,
                    struct err *e)
{
    struct run_found *all = NULL;
    uint32_t n = 0;
    if (!run_find_all(a, data_dir, &all, &n, e))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(all[i].name, name)) {
            *out = all[i];
            return true;
        }
    }
    return err_set(e, ERR_NOT_FOUND, "no run named '%.*s' in '%s'", STR_ARG(name), data_dir);
}
