/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/s3_session.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"
#include "format/profile_open.h"

#define N_PAGES_MAX 2000

static str folder_of(str key)
{
    return str_sub(key, 0, key.n - path_base(key).n);
}

static bool is_xspace(const struct s3_listed *it)
{
    return str_ends(it->key, S(TRACE_FILE_ENDING));
}

/* A session's report lies beside its profiles and is none. */
static bool is_profile(const struct s3_listed *it)
{
    const str base = path_base(it->key);
    return base.n > 0 &&
           (is_xspace(it) || (profile_is_named_foreign(base) && !str_eq(base, S("report.json"))));
}

static int by_folder(const void *a, const void *b)
{
    const struct s3_listed *x = a, *y = b;
    const int c = str_cmp(folder_of(x->key), folder_of(y->key));
    if (c != 0)
        return c;
    if (is_xspace(x) != is_xspace(y))
        return is_xspace(x) ? -1 : 1;
    return str_cmp(x->key, y->key);
}

/* The name that a session has: of its folder, without the slash. */
static str name_of(str folder)
{
    return path_base(str_sub(folder, 0, folder.n > 0 ? folder.n - 1 : 0));
}

/* The files of one folder that begin at items[i]: XSpaces, else the others. */
static struct s3_session session_at(struct s3_listed *items, uint32_t n, uint32_t i,
                                    int64_t *newest_ns)
{
    struct s3_session s = {.folder = folder_of(items[i].key), .files = &items[i]};
    *newest_ns = INT64_MIN;
    for (; i < n && str_eq(folder_of(items[i].key), s.folder); i++) {
        if (is_xspace(&items[i]) != is_xspace(s.files))
            break;
        *newest_ns = items[i].modified_ns > *newest_ns ? items[i].modified_ns : *newest_ns;
        s.n_files++;
    }
    return s;
}

bool s3_session_choose(struct s3_listed *items, uint32_t n, str prefix, struct s3_session *out,
                       struct err *e)
{
    int64_t best_ns = 0;
    uint32_t n_profiles = 0;
    *out = (struct s3_session){0};
    for (uint32_t i = 0; i < n; i++)
        if (is_profile(&items[i]))
            items[n_profiles++] = items[i];
    if (n_profiles > 1)
        qsort(items, n_profiles, sizeof *items, by_folder);
    for (uint32_t i = 0; i < n_profiles;) {
        int64_t newest_ns;
        const struct s3_session s = session_at(items, n_profiles, i, &newest_ns);
        if (str_eq(s.folder, prefix)) {
            *out = s;
            return true;
        }
        /* any JSON could be meant; an XSpace is one */
        const bool has = out->n_files > 0, ours = is_xspace(s.files);
        const bool better = !has || (ours != is_xspace(out->files)
                                         ? ours
                                         : profile_session_is_newer(name_of(s.folder), newest_ns,
                                                                    name_of(out->folder), best_ns));
        if (better) {
            *out = s;
            best_ns = newest_ns;
        }
        for (; i < n_profiles && str_eq(folder_of(items[i].key), s.folder);)
            i++;
    }
    return out->n_files > 0 || err_set(e, ERR_NOT_FOUND, "no profile among %u objects", n);
}

/* Only what can be a profile is kept: a run's folder has its checkpoints too. */
static bool keep_page(const struct s3_page *page, struct arena *a, struct s3_listed **items,
                      uint32_t *n, uint32_t *capacity, struct err *e)
{
    for (uint32_t i = 0; i < page->n; i++) {
        const struct s3_listed *it = &page->items[i];
        if (!is_profile(it))
            continue;
        if (!ARENA_PUSH(a, *items, *n, *capacity))
            return arena_full(a, e);
        struct s3_listed *kept = &(*items)[*n - 1];
        *kept = *it;
        kept->key = arena_str(a, it->key);
        kept->etag = arena_str(a, it->etag);
        if (kept->key.p == NULL || kept->etag.p == NULL)
            return arena_full(a, e);
    }
    return true;
}

static bool list_all(const struct s3_access *s, const struct s3_name *name, struct arena *a,
                     struct s3_listed **items, uint32_t *n, uint32_t *n_seen, struct err *e)
{
    struct arena pages[2]; /* the page before says how it goes on */
    struct s3_page page = {.is_cut = true};
    uint32_t capacity = 0;
    bool ok = true;
    arena_init(&pages[0], "page of S3", LIMIT_ARENA_REQUEST_BYTES);
    arena_init(&pages[1], "page of S3", LIMIT_ARENA_REQUEST_BYTES);
    for (unsigned i = 0, n_pages = 0; ok && page.is_cut; i = 1 - i) {
        arena_release(&pages[i]);
        ok = s3_list(s, name, page.next, &pages[i], &page, e) &&
             keep_page(&page, a, items, n, &capacity, e);
        *n_seen += ok ? page.n : 0;
        /* empty pages too must come to an end */
        if (ok && page.is_cut && (*n_seen >= LIMIT_S3_LISTED_KEYS || ++n_pages >= N_PAGES_MAX)) {
            err_set(e, ERR_LIMIT, "more than %u objects in %u pages lie below 's3://%.*s/%.*s'",
                    *n_seen, n_pages, STR_ARG(name->bucket), STR_ARG(name->key));
            ok = err_hint(e, "name the folder of the session");
        }
    }
    arena_release(&pages[0]);
    arena_release(&pages[1]);
    return ok;
}

bool s3_session_find(const struct s3_access *s, const struct s3_name *name, struct arena *a,
                     struct s3_session *out, struct err *e)
{
    struct s3_listed *items = NULL;
    uint32_t n = 0, n_seen = 0;
    if (!list_all(s, name, a, &items, &n, &n_seen, e))
        return false;
    if (n_seen == 0)
        err_set(e, ERR_NOT_FOUND, "there is no such object, and nothing below it");
    else if (n == 0)
        err_set(e, ERR_NOT_FOUND, "no profile among its %u objects", n_seen);
    else if (s3_session_choose(items, n, name->key, out, e))
        return true;
    return err_wrap(e, "cannot read 's3://%.*s/%.*s'", STR_ARG(name->bucket), STR_ARG(name->key));
}
