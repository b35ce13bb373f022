/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/index_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "format/index.h"

#define LOCK_TRIES 3000 /* of 20 ms: nobody's lock may hold a request for longer than a minute */

/* NULL when there is no such place. */
static const char *beside_path(struct profile_source *s, const struct profile_file *f)
{
    const str name = arena_printf(&s->arena, "%.*s.tacho", STR_ARG(f->target));
    const char *dir = arena_cstr(&s->arena, path_dir(str_from(f->path)));
    return name.p == NULL || dir == NULL ? NULL : path_join(&s->arena, dir, name);
}

/* The cache folder; NULL when there is none. */
static const char *cache_root(struct arena *a, const struct index_places *places)
{
    const char *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (places->cache[0] != '\0')
        return places->cache;
    if (root != NULL && root[0] == '/')
        return path_join(a, root, S("tachograph"));
    return home == NULL || home[0] != '/' ? NULL : path_join(a, home, S(".cache/tachograph"));
}

const char *index_cache_folder(struct arena *a, const struct index_places *places, const char *name)
{
    struct err ignored = {0};
    const char *root = cache_root(a, places);
    const char *dir = root == NULL ? NULL : path_join(a, root, str_from(name));
    return dir != NULL && dir_make(dir, 0700, &ignored) ? dir : NULL;
}

static const char *cache_path(struct profile_source *s, const char *real,
                              const struct index_places *places)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    struct sha256 sum;
    const char *root = cache_root(&s->arena, places);
    if (root == NULL)
        return NULL;
    sha256_init(&sum);
    sha256_add(&sum, real, strlen(real));
    sha256_end(&sum, digest);
    sha256_hex(digest, hex);
    return arena_printf(&s->arena, "%s/%s.tacho", root, hex).p;
}

/* Beside a file that is not in the data folder nothing is written. */
static bool is_ours(const char *real, const struct index_places *places)
{
    if (places->data == NULL)
        return true;
    char *data = realpath(places->data, NULL);
    const size_t n = data == NULL ? 0 : strlen(data);
    const bool inside = n > 0 && strncmp(real, data, n) == 0 && real[n] == '/';
    free(data);
    return inside;
}

static bool place_read(struct profile_file *f, const char *path)
{
    const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (!index_is_of(fd, f->fd)) {
        close(fd);
        return false;
    }
    f->index_fd = fd;
    return true;
}

/* An unlinked file in the folder of path, readable by those who may read the XSpace. */
static bool place_write(struct profile_source *s, struct profile_file *f, const char *path)
{
    struct stat st;
    const char *dir = path == NULL ? NULL : arena_cstr(&s->arena, path_dir(str_from(path)));
    if (dir == NULL || fstat(f->fd, &st) != 0)
        return false;
    f->index_out_fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, st.st_mode & 0666);
    f->index_path = f->index_out_fd < 0 ? NULL : path;
    return f->index_out_fd >= 0;
}

static void file_lock(int fd)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
         i++)
        nanosleep(&pause, NULL);
}

struct file_places {
    const char *beside, *cache; /* or NULL */
};

static struct file_places file_places(struct profile_source *s, const struct profile_file *f,
                                      const struct index_places *places)
{
    char *real = realpath(f->path, NULL);
    if (real == NULL)
        return (struct file_places){0};
    const bool foreign = f->import_fd >= 0 || f->was_imported;
    const struct file_places p = {!foreign && is_ours(real, places) ? beside_path(s, f) : NULL,
                                  cache_path(s, real, places)};
    free(real);
    return p;
}

static void file_find(struct profile_source *s, struct profile_file *f,
                      const struct index_places *places, bool fresh)
{
    struct err ignored = {0};
    const struct file_places at = file_places(s, f, places);
    const bool reads = !fresh && f->import_fd < 0;
    if (reads && (place_read(f, at.beside) || place_read(f, at.cache)))
        return;
    file_lock(f->fd);
    if (reads && (place_read(f, at.beside) || place_read(f, at.cache))) {
        flock(f->fd, LOCK_UN);
        return;
    }
    if (place_write(s, f, at.beside))
        return;
    const char *dir = at.cache == NULL ? NULL : arena_cstr(&s->arena, path_dir(str_from(at.cache)));
    if (dir == NULL || !dir_make(dir, 0700, &ignored) || !place_write(s, f, at.cache))
        flock(f->fd, LOCK_UN); /* nobody waits for what is not made */
}

/* The XSpace of an imported file that is not kept is gone when it has been read; a small one is decoded at once. */
static bool has_index(const struct profile_file *f, const struct index_places *places)
{
    return f->import_fd >= 0 ? f->import_path != NULL : f->size_bytes >= places->least_bytes;
}

bool index_place_look(struct profile_source *s, const struct index_places *places)
{
    bool all = true;
    for (uint32_t i = 0; i < s->n_files; i++) {
        struct profile_file *f = &s->files[i];
        const struct file_places at = file_places(s, f, places);
        all = f->import_fd < 0 && has_index(f, places) &&
              (place_read(f, at.beside) || place_read(f, at.cache)) && all;
    }
    return all;
}

void index_place_find(struct profile_source *s, const struct index_places *places, bool fresh)
{
    for (uint32_t i = 0; i < s->n_files; i++)
        if (has_index(&s->files[i], places))
            file_find(s, &s->files[i], places, fresh);
}

void index_link(struct arena *a, int fd, const char *path)
{
    static atomic_uint n;
    char open_path[64];
    snprintf(open_path, sizeof open_path, "/proc/self/fd/%d", fd);
    const char *named =
        arena_printf(a, "%s.tmp-%d-%u", path, (int)getpid(), atomic_fetch_add(&n, 1)).p;
    if (named == NULL || linkat(AT_FDCWD, open_path, AT_FDCWD, named, AT_SYMLINK_FOLLOW) != 0)
        return;
    if (rename(named, path) != 0)
        unlink(named);
}

/* What the index is of: the file, or the XSpace that was made of it. */
static int xspace_fd(const struct profile_file *f)
{
    return f->import_fd >= 0 ? f->import_fd : f->fd;
}

static void file_keep(struct profile_source *s, struct profile_file *f)
{
    if (f->index_out_fd >= 0 && index_is_of(f->index_out_fd, xspace_fd(f)))
        index_link(&s->arena, f->index_out_fd, f->index_path);
}

void index_place_keep(struct profile_source *s)
{
    for (uint32_t i = 0; i < s->n_files; i++)
        file_keep(s, &s->files[i]);
}
