/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/s3_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "jobs/s3_session.h"
#include "jobs/s3_trim.h"
#include "store/s3_fetch.h"

#define N_TRIES 3 /* of an object that is replaced while it is read */
#define N_LOCK_TRIES 100
#define NAME_BYTES 150 /* of a file: what path_safe_name takes */
#define HASH_CHARS 32
/* Goes up when what lies in an entry changes. */
#define ENTRY_VERSION 1

struct want {
    struct s3_name name;
    struct s3_object object;
    str entry, file; /* the names of its folder in the cache, and in that */
    const char *path;
    bool is_there;
};

struct bring {
    struct s3_place *p;
    const struct s3_wish *w;
    const char *root;
    str session; /* its name; p NULL: one object */
    struct want *wants;
    uint32_t n_wants;
};

/* ---- what is wanted ---- */

static void hash_start(struct sha256 *sum, const char *kind, const struct s3_wish *w)
{
    const char version = ENTRY_VERSION;
    sha256_init(sum);
    sha256_add(sum, &version, 1);
    sha256_add(sum, kind, strlen(kind) + 1);
    sha256_add(sum, w->access->endpoint, strlen(w->access->endpoint) + 1);
}

static void hash_str(struct sha256 *sum, str s)
{
    const uint64_t n = s.n;
    sha256_add(sum, &n, sizeof n);
    sha256_add(sum, s.p, s.n);
}

static str hash_end(struct sha256 *sum, struct arena *a)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    sha256_end(sum, digest);
    sha256_hex(digest, hex);
    return arena_str(a, (str){hex, HASH_CHARS});
}

/* With its end, which says what it is. */
static str file_name(struct arena *a, str key)
{
    const str base = path_base(key);
    return path_safe_name(a, str_sub(base, base.n > NAME_BYTES ? base.n - NAME_BYTES : 0, base.n),
                          S("object"));
}

static bool want_place(struct bring *b, struct want *it, struct err *e)
{
    struct arena *a = &b->p->arena;
    struct sha256 sum;
    hash_start(&sum, "object", b->w);
    hash_str(&sum, it->name.bucket);
    hash_str(&sum, it->name.key);
    hash_str(&sum, str_from(it->object.etag));
    sha256_add(&sum, &it->object.size_bytes, sizeof it->object.size_bytes);
    it->entry = hash_end(&sum, a);
    it->file = file_name(a, it->name.key);
    it->path = arena_printf(a, "%s/%.*s/%.*s", b->root, STR_ARG(it->entry), STR_ARG(it->file)).p;
    return it->path != NULL || arena_full(a, e);
}

static bool want_one(struct bring *b, const struct s3_name *name, const struct s3_object *object,
                     struct err *e)
{
    b->wants = ARENA_NEW(&b->p->arena, struct want);
    if (b->wants == NULL)
        return arena_full(&b->p->arena, e);
    b->n_wants = 1;
    *b->wants = (struct want){.name = *name, .object = *object};
    return want_place(b, b->wants, e);
}

static bool want_session(struct bring *b, str bucket, const struct s3_session *s, struct err *e)
{
    struct arena *a = &b->p->arena;
    const str folder = str_sub(s->folder, 0, s->folder.n > 0 ? s->folder.n - 1 : 0);
    if (s->n_files > LIMIT_S3_ENTRIES)
        return err_set(e, ERR_LIMIT, "'s3://%.*s/%.*s' holds more than %llu profiles",
                       STR_ARG(bucket), STR_ARG(s->folder), (unsigned long long)LIMIT_S3_ENTRIES);
    b->session = file_name(a, folder.n > 0 ? folder : bucket);
    b->wants = ARENA_ARRAY(a, struct want, s->n_files);
    if (b->session.p == NULL || b->wants == NULL)
        return arena_full(a, e);
    b->n_wants = s->n_files;
    for (uint32_t i = 0; i < s->n_files; i++) {
        const struct s3_listed *it = &s->files[i];
        struct want *to = &b->wants[i];
        *to = (struct want){.name = {bucket, it->key},
                            .object = {it->size_bytes, it->modified_ns, ""}};
        snprintf(to->object.etag, sizeof to->object.etag, "%.*s", STR_ARG(it->etag));
        if (!want_place(b, to, e))
            return false;
        for (uint32_t k = 0; k < i; k++) /* two keys, one name of ours */
            if (str_eq(b->wants[k].file, to->file))
                return err_set(e, ERR_LIMIT,
                               "the keys of two profiles in 's3://%.*s/%.*s' differ only in "
                               "letters that no file name here has",
                               STR_ARG(bucket), STR_ARG(s->folder));
    }
    return true;
}

/* A key without an object may be a folder, written without the slash at its end. */
static bool look(struct bring *b, const struct s3_name *name, struct err *e)
{
    struct arena *a = &b->p->arena;
    struct s3_name below = *name;
    struct s3_session session;
    struct s3_object object;
    if (name->key.n > 0 && !str_ends(name->key, S("/"))) {
        if (s3_head(b->w->access, name, &object, e))
            return want_one(b, name, &object, e);
        if (e->code != ERR_NOT_FOUND)
            return false;
        below.key = arena_printf(a, "%.*s/", STR_ARG(name->key));
        if (below.key.p == NULL)
            return arena_full(a, e);
    }
    err_clear(e);
    return s3_session_find(b->w->access, &below, a, &session, e) &&
           want_session(b, name->bucket, &session, e);
}

/* ---- entries of the cache ---- */

static bool is_same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

/* Somebody may be deleting the folder: then it is made anew. -1 and e. */
static int entry_lock(const char *dir, const char *lock, int how, struct err *e)
{
    for (int i = 0; i < N_LOCK_TRIES; i++) {
        if (!dir_make(dir, 0700, e))
            return -1;
        const int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0) {
            err_sys(e, "cannot open '%s'", lock);
            return -1;
        }
        while (flock(fd, how) != 0)
            if (errno != EINTR) {
                err_sys(e, "cannot lock '%s'", lock);
                close(fd);
                return -1;
            }
        if (is_same_file(fd, lock))
            return fd;
        close(fd);
    }
    err_set(e, ERR_CONFLICT, "cannot lock '%s': it is deleted again and again", lock);
    return -1;
}

/* Takes the lock of an entry, to be held until release, and notes that it is used now. */
static bool entry_take(struct bring *b, str entry, int how, int *out, struct err *e)
{
    struct arena *a = &b->p->arena;
    const char *dir = path_join(a, b->root, entry);
    const char *lock = dir == NULL ? NULL : path_join(a, dir, S(S3_LOCK_NAME));
    if (lock == NULL || !ARENA_PUSH(a, b->p->locks, b->p->n_locks, b->p->capacity))
        return arena_full(a, e);
    const int fd = entry_lock(dir, lock, how, e);
    *out = b->p->locks[b->p->n_locks - 1] = fd;
    return fd >= 0 &&
           (utimensat(AT_FDCWD, dir, NULL, 0) == 0 || err_sys(e, "cannot use '%s'", dir));
}

static bool is_there(const struct want *it)
{
    struct stat st;
    return lstat(it->path, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == it->object.size_bytes;
}

/* Shared when it is there; else alone, which waits for another one's fetch of it. */
static bool want_lock(struct bring *b, struct want *it, struct err *e)
{
    for (int how = LOCK_SH;; how = how == LOCK_SH ? LOCK_EX : LOCK_SH) {
        int fd;
        if (!entry_take(b, it->entry, how, &fd, e))
            return false;
        it->is_there = is_there(it);
        if (it->is_there == (how == LOCK_SH))
            return true;
        close(fd);
        b->p->n_locks--;
    }
}

static bool fits(const struct bring *b, struct err *e)
{
    uint64_t left = b->w->most_bytes;
    uint32_t n = 0;
    while (n < b->n_wants && b->wants[n].object.size_bytes <= left)
        left -= b->wants[n++].object.size_bytes;
    if (n == b->n_wants)
        return true;
    const struct want *it = &b->wants[n];
    err_set(e, ERR_LIMIT,
            "the %llu bytes of 's3://%.*s/%.*s' do not fit into the cache: %llu of %llu are left",
            (unsigned long long)it->object.size_bytes, STR_ARG(it->name.bucket),
            STR_ARG(it->name.key), (unsigned long long)left, (unsigned long long)b->w->most_bytes);
    return err_hint(e, "s3_cache (TACHO_S3_CACHE) is its size");
}

static bool fetch_missing(struct bring *b, struct err *e)
{
    const struct s3_fetch_options o = {.show = b->w->show, .ctx = b->w->ctx};
    struct s3_fetch_file *files = ARENA_ARRAY(&b->p->arena, struct s3_fetch_file, b->n_wants);
    uint32_t n = 0;
    uint64_t n_bytes = 0;
    if (files == NULL)
        return arena_full(&b->p->arena, e);
    for (uint32_t i = 0; i < b->n_wants; i++) {
        const struct want *it = &b->wants[i];
        n_bytes += it->object.size_bytes;
        if (!it->is_there)
            files[n++] = (struct s3_fetch_file){it->name, it->object, it->path};
    }
    if (n == 0)
        return true;
    s3_trim(b->root, b->w->most_bytes - n_bytes);
    if (!s3_fetch(b->w->access, files, n, &o, e))
        return false;
    for (uint32_t i = 0; i < b->p->n_locks; i++) /* now others may read too */
        flock(b->p->locks[i], LOCK_SH);
    for (uint32_t i = 0; i < b->n_wants; i++) /* between the two locks somebody may have trimmed */
        if (!is_there(&b->wants[i]))
            return err_set(e, ERR_CONFLICT, "'%s' was deleted while it was fetched",
                           b->wants[i].path);
    return true;
}

/* ---- the folder of a session ---- */

static bool link_file(const char *dir, const struct want *it, struct arena *a, struct err *e)
{
    const char *at = path_join(a, dir, it->file);
    const char *to = arena_printf(a, "../../%.*s/%.*s", STR_ARG(it->entry), STR_ARG(it->file)).p;
    if (at == NULL || to == NULL)
        return arena_full(a, e);
    return symlink(to, at) == 0 || errno == EEXIST || err_sys(e, "cannot make '%s'", at);
}

static bool session_folder(struct bring *b, struct err *e)
{
    struct arena *a = &b->p->arena;
    struct sha256 sum;
    int lock;
    hash_start(&sum, "session", b->w);
    hash_str(&sum, b->session);
    for (uint32_t i = 0; i < b->n_wants; i++)
        hash_str(&sum, b->wants[i].entry);
    const str entry = hash_end(&sum, a);
    const char *dir =
        arena_printf(a, "%s/%.*s/%.*s", b->root, STR_ARG(entry), STR_ARG(b->session)).p;
    if (dir == NULL)
        return arena_full(a, e);
    if (!entry_take(b, entry, LOCK_SH, &lock, e) || !dir_make(dir, 0700, e))
        return false;
    for (uint32_t i = 0; i < b->n_wants; i++)
        if (!link_file(dir, &b->wants[i], a, e))
            return false;
    b->p->path = dir;
    return true;
}

static bool try(struct bring *b, const struct s3_name *name, struct err *e)
{
    if (!look(b, name, e) || !fits(b, e))
        return false;
    for (uint32_t i = 0; i < b->n_wants;
         i++) /* in the order of their keys: two never wait for each other */
        if (!want_lock(b, &b->wants[i], e))
            return false;
    if (!fetch_missing(b, e))
        return false;
    b->p->path = b->wants[0].path;
    return b->session.p == NULL || session_folder(b, e);
}

bool s3_place_bring(struct s3_place *p, const char *address, const struct s3_wish *w, struct err *e)
{
    struct s3_name name;
    bool ok = false;
    if (!s3_name_parse(address, &name, e) || !s3_access_check(w->access, e))
        return false;
    for (int i = 0; !ok && i < N_TRIES; i++) {
        *p = (struct s3_place){0};
        arena_init(&p->arena, "objects from S3", 0);
        struct bring b = {.p = p, .w = w};
        b.root = index_cache_folder(&p->arena, w->places, "s3");
        err_clear(e);
        if (b.root == NULL)
            err_set(e, ERR_USAGE, "no cache folder for '%s': see cache in tacho doctor", address);
        else
            ok = try(&b, &name, e);
        if (!ok)
            s3_place_release(p);
        if (e->code != ERR_CONFLICT)
            break;
    }
    return ok;
}

void s3_place_release(struct s3_place *p)
{
    for (uint32_t i = 0; i < p->n_locks; i++)
        if (p->locks[i] >= 0)
            close(p->locks[i]);
    arena_release(&p->arena);
    *p = (struct s3_place){0};
}
