/* SPDX-License-Identifier: Apache-2.0 */
#include "format/profile_open.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "format/import.h"
#include "format/index.h"
#include "format/xspace.h"
#include "model/trace_mask.h"

#define SEARCH_DEPTH 8
#define SEARCH_FOLDERS 20000
/* Smaller files have fewer row groups than LIMIT_TRACE_IN_FLIGHT_BYTES in any case. */
#define SPILL_LEAST_BYTES (UINT64_C(128) << 20)

/* An unlinked temporary file. Without one the row groups stay in memory. */
static int spill_open(void)
{
    const char *const named = getenv("TMPDIR");
    const char *const dirs[] = {named, "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        const int fd = dirs[i] == NULL ? -1 : open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

enum file_kind { FILE_OTHER = 0, FILE_XSPACE, FILE_FOREIGN };

/* By the first bytes. A damaged file that is named as an XSpace is one. Of gzip the content is not
 * looked at here: that is the parser's business. */
static enum file_kind file_kind(int fd, str name)
{
    char bytes[4096];
    const ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    const str head = {bytes, n > 0 ? (size_t)n : 0};
    if (import_looks_like(head) && !str_ends(name, S(TRACE_FILE_ENDING)))
        return FILE_FOREIGN;
    return str_ends(name, S(TRACE_FILE_ENDING)) || (n > 0 && xspace_looks_like(head)) ? FILE_XSPACE
                                                                                      : FILE_OTHER;
}

static str name_stem(str name)
{
    static const str endings[] = {
        STR_INIT(".gz"),    STR_INIT(".json"), STR_INIT(".pftrace"), STR_INIT(".perfetto-trace"),
        STR_INIT(".pprof"), STR_INIT(".prof"), STR_INIT(".trace"),   STR_INIT(".pt")};
    const size_t n = name.n;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (str_ends(name, endings[i]) && name.n > endings[i].n)
            name.n -= endings[i].n;
    if (name.n < n)
        return name;
    if (str_ends(name, S(TRACE_FILE_ENDING)))
        return str_sub(name, 0, name.n - TRACE_FILE_ENDING_BYTES);
    return str_ends(name, S(".pb")) ? str_sub(name, 0, name.n - 3) : name;
}

bool profile_is_named_foreign(str name)
{
    return name_stem(name).n < name.n && !str_ends(name, S(TRACE_FILE_ENDING)) &&
           !str_ends(name, S(".pb"));
}

/* "host-0.3" is rank 3 of host-0; a host name may hold dots of its own. */
static str stem_host(str stem)
{
    size_t n = stem.n;
    while (n > 0 && stem.p[n - 1] >= '0' && stem.p[n - 1] <= '9')
        n--;
    const bool rank = n > 1 && n < stem.n && stem.n - n <= 7 && stem.p[n - 1] == '.' &&
                      memchr(stem.p, '.', n - 1) == NULL;
    return rank ? str_sub(stem, 0, n - 1) : stem;
}

static bool source_add(struct profile_source *s, const char *path, struct err *e)
{
    struct stat st;
    const int fd = file_open(path, O_RDONLY, 0, e);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(e, ERR_PARSE, "cannot open '%s': not a regular file (byte 0)", path);
    }
    if (!ARENA_PUSH(&s->arena, s->files, s->n_files, s->capacity)) {
        close(fd);
        return arena_full(&s->arena, e);
    }
    struct profile_file *f = &s->files[s->n_files - 1];
    f->path = arena_cstr(&s->arena, str_from(path));
    f->target = name_stem(path_base(str_from(f->path)));
    f->host = stem_host(f->target);
    f->fd = fd;
    f->size_bytes = (uint64_t)st.st_size;
    f->import_fd = f->spill_fd = f->index_fd = f->index_out_fd = -1;
    if (file_kind(fd, path_base(str_from(path))) == FILE_FOREIGN &&
        (f->import_fd = spill_open()) < 0)
        return err_sys(e, "cannot import '%s': no room for a temporary file", path);
    f->spill_fd = f->size_bytes >= SPILL_LEAST_BYTES ? spill_open() : -1;
    return true;
}

/* Of the files in a folder JSON counts only when it says early that it is a trace (or is gzip): a
 * session's report lies there too. */
static enum file_kind file_kind_at(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return FILE_OTHER;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* let opening it say why */
        return str_ends(str_from(path), S(TRACE_FILE_ENDING)) ? FILE_XSPACE : FILE_OTHER;
    enum file_kind kind = file_kind(fd, path_base(str_from(path)));
    char bytes[4096];
    const ssize_t n = kind == FILE_FOREIGN ? pread(fd, bytes, sizeof bytes, 0) : 0;
    const str head = {bytes, n > 0 ? (size_t)n : 0};
    const str solid = str_trim(head);
    if (solid.n > 0 && (solid.p[0] == '{' || solid.p[0] == '[') &&
        str_find(head, S("\"ph\"")) < 0 && str_find(head, S("\"traceEvents\"")) < 0)
        kind = FILE_OTHER;
    close(fd);
    return kind;
}

bool profile_is_file(const char *path)
{
    return file_kind_at(path) != FILE_OTHER;
}

struct search {
    struct profile_source *s;
    char *best; /* folder of the newest session so far */
    int64_t best_mtime_ns;
    uint32_t n_folders;
};

static bool is_stamp(str name) /* XProf's session names: 2026_01_31_23_59_59 */
{
    if (name.n < 19)
        return false;
    for (size_t i = 0; i < 19; i++)
        if (i == 4 || (i > 4 && (i - 4) % 3 == 0) ? name.p[i] != '_'
                                                  : name.p[i] < '0' || name.p[i] > '9')
            return false;
    return true;
}

bool profile_session_is_newer(str name, int64_t mtime_ns, str than, int64_t than_mtime_ns)
{
    return is_stamp(name) && is_stamp(than) ? str_cmp(name, than) > 0 : mtime_ns > than_mtime_ns;
}

static void search_offer(struct search *q, const char *dir, int64_t mtime_ns)
{
    if (q->best != NULL &&
        !profile_session_is_newer(path_base(str_from(dir)), mtime_ns, path_base(str_from(q->best)),
                                  q->best_mtime_ns))
        return;
    q->best = arena_cstr(&q->s->arena, str_from(dir));
    q->best_mtime_ns = mtime_ns;
}

/* Offers every folder at or below dir that holds a profile. Folders that cannot be read are passed over. */
static void search_folder(struct search *q, const char *dir, unsigned depth)
{
    str *names;
    size_t n;
    struct err ignored = {0};
    if (++q->n_folders > SEARCH_FOLDERS || !dir_list(&q->s->arena, dir, &names, &n, &ignored))
        return;
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(&q->s->arena, dir, names[i]);
        struct stat st;
        if (path == NULL || lstat(path, &st) != 0)
            continue;
        const int64_t mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        if (S_ISDIR(st.st_mode) && depth < SEARCH_DEPTH)
            search_folder(q, path, depth + 1);
        else if (!S_ISDIR(st.st_mode) && file_kind_at(path) != FILE_OTHER && mtime > newest)
            newest = mtime;
    }
    if (newest != INT64_MIN)
        search_offer(q, dir, newest);
}

static bool folder_add_kind(struct profile_source *s, const char *dir, enum file_kind kind,
                            struct err *e)
{
    str *names;
    size_t n;
    if (!dir_list(&s->arena, dir, &names, &n, e))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(&s->arena, dir, names[i]);
        if (path == NULL)
            return arena_full(&s->arena, e);
        if (file_kind_at(path) == kind && !source_add(s, path, e))
            return false;
    }
    return true;
}

/* JAX writes the same events as JSON beside its XSpace: that is not a second target. */
static bool folder_add(struct profile_source *s, const char *dir, struct err *e)
{
    return folder_add_kind(s, dir, FILE_XSPACE, e) &&
           (s->n_files > 0 || folder_add_kind(s, dir, FILE_FOREIGN, e));
}

static char *trim_slashes(struct arena *a, const char *path)
{
    str s = str_from(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return arena_cstr(a, s);
}

static bool source_find(struct profile_source *s, const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return err_sys(e, "cannot open '%s'", path);
    if (!S_ISDIR(st.st_mode)) {
        if (!source_add(s, path, e))
            return false;
        s->name = s->files[0].target;
        return true;
    }
    struct search q = {.s = s};
    if (!folder_add(s, path, e))
        return false;
    const char *folder = path;
    if (s->n_files == 0) {
        search_folder(&q, path, 0);
        folder = q.best;
        if (folder == NULL)
            return err_set(e, ERR_NOT_FOUND, "no profile in '%s'", path);
        if (!folder_add(s, folder, e))
            return false;
    }
    s->name = path_base(str_from(arena_cstr(&s->arena, str_from(folder))));
    return s->n_files > 0 || err_set(e, ERR_NOT_FOUND, "no profile in '%s'", path);
}

bool profile_find(struct profile_source *s, const char *path, struct err *e)
{
    *s = (struct profile_source){0};
    arena_init(&s->arena, "profile source", 0);
    const char *clean = trim_slashes(&s->arena, path);
    s->path = str_from(clean);
    if (source_find(s, clean, e))
        return true;
    profile_source_release(s);
    return false;
}

void profile_source_release(struct profile_source *s)
{
    for (uint32_t i = 0; i < s->n_files; i++) {
        if (s->files[i].fd >= 0)
            close(s->files[i].fd);
        if (s->files[i].import_fd >= 0)
            close(s->files[i].import_fd);
        if (s->files[i].spill_fd >= 0)
            close(s->files[i].spill_fd);
        if (s->files[i].index_fd >= 0)
            close(s->files[i].index_fd);
        if (s->files[i].index_out_fd >= 0)
            close(s->files[i].index_out_fd);
    }
    arena_release(&s->arena);
    *s = (struct profile_source){0};
}

/* The descriptor to load from: the file's own, or that of the XSpace made from it. -1 and e. */
static int file_take(struct profile_file *f, struct err *e)
{
    int fd = f->fd;
    if (f->import_fd >= 0) {
        const bool ok =
            import_run(f->fd, f->import_fd, e) || err_wrap(e, "cannot open '%s'", f->path);
        close(f->fd);
        fd = f->import_fd;
        if (!ok) {
            close(fd);
            fd = -1;
        }
    }
    f->fd = f->import_fd = -1;
    return fd;
}

static struct trace *file_decode(const struct profile_source *s, struct profile_file *f,
                                 struct err *e)
{
    struct xspace_options o = {.file = str_from(f->path),
                               .host = f->host,
                               .spill_fd = f->spill_fd,
                               .index_fd = f->index_out_fd,
                               .n_threads = s->n_threads,
                               .most_events = s->most_events};
    struct err ignored = {0};
    struct index_identity of;
    const int fd = file_take(f, e);
    f->spill_fd = f->index_out_fd = -1;
    if (fd < 0) {
        const int left[] = {o.spill_fd, o.index_fd};
        for (size_t i = 0; i < 2; i++)
            if (left[i] > 0)
                close(left[i]);
        return NULL;
    }
    if (o.index_fd > 0 && !index_identify(fd, &of, &ignored)) {
        close(o.index_fd);
        o.index_fd = -1;
    }
    struct trace *t = xspace_load(fd, &o, e);
    if (t != NULL)
        trace_mask(t); /* first: what its index holds is masked too */
    /* without an index the next one decodes again: whoever keeps it looks */
    if (t != NULL && o.index_fd > 0 && !index_end(t, &of, &ignored))
        trace_note(t, S("no_index"), 1, "the profile's index could not be written");
    return t;
}

static struct trace *file_load(const struct profile_source *s, struct profile_file *f,
                               struct err *e)
{
    if (f->index_fd < 0)
        return file_decode(s, f, e);
    const struct index_options o = {
        .file = str_from(f->path), .host = f->host, .lines_only = s->lines_only};
    const int index_fd = f->index_fd, fd = f->fd;
    f->index_fd = f->fd = -1;
    return index_load(index_fd, fd, &o, e);
}

struct profile *profile_load(struct profile_source *s, struct err *e)
{
    struct profile *p = map_alloc(1, sizeof *p);
    arena_init(&p->arena, "profile", 0);
    p->name = arena_str(&p->arena, s->name);
    p->path = arena_str(&p->arena, s->path);
    p->traces = ARENA_ARRAY(&p->arena, struct trace *, s->n_files);
    for (uint32_t i = 0; i < s->n_files; i++) {
        struct trace *t = file_load(s, &s->files[i], e);
        if (t == NULL) {
            profile_free(p);
            return NULL;
        }
        p->traces[p->n_traces++] = t;
    }
    profile_align(p);
    return p;
}

struct profile *profile_open(const char *path, struct err *e)
{
    struct profile_source s;
    if (!profile_find(&s, path, e))
        return NULL;
    struct profile *p = profile_load(&s, e);
    profile_source_release(&s);
    return p;
}
