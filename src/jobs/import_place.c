/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import_place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"

/* Goes up when the same file makes another XSpace. */
#define IMPORT_VERSION 1

/* NULL when there is none. */
static const char *place_of(struct profile_source *s, const struct profile_file *f,
                            const struct index_places *places)
{
    struct stat st;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    struct sha256 sum;
    char *real = realpath(f->path, NULL);
    const char *dir = real == NULL ? NULL : index_cache_folder(&s->arena, places, "imports");
    if (dir == NULL || fstat(f->fd, &st) != 0) {
        free(real);
        return NULL;
    }
    const int64_t is[] = {IMPORT_VERSION, (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
                          st.st_mtim.tv_nsec};
    sha256_init(&sum);
    sha256_add(&sum, is, sizeof is);
    sha256_add(&sum, real, strlen(real));
    sha256_end(&sum, digest);
    sha256_hex(digest, hex);
    free(real);
    return arena_printf(&s->arena, "%s/%s.xplane.pb", dir, hex).p;
}

/* The XSpace that is there stands for the file. */
static bool take(struct profile_file *f, const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size == 0) {
        close(fd);
        return false;
    }
    close(f->fd);
    close(f->import_fd);
    f->fd = fd;
    f->import_fd = -1;
    f->size_bytes = (uint64_t)st.st_size;
    f->was_imported = true;
    return true;
}

void import_place_find(struct profile_source *s, const struct index_places *places, bool fresh)
{
    for (uint32_t i = 0; i < s->n_files; i++) {
        struct profile_file *f = &s->files[i];
        /* a gzip holds about ten times its size */
        if (f->import_fd < 0 || f->size_bytes < places->least_bytes / 8)
            continue;
        const char *path = place_of(s, f, places);
        if (path == NULL || (!fresh && take(f, path)))
            continue;
        const char *dir = arena_cstr(&s->arena, path_dir(str_from(path)));
        const int fd = dir == NULL ? -1 : open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0)
            continue;
        close(f->import_fd);
        f->import_fd = fd;
        f->import_path = path;
    }
}

void import_place_keep(struct profile_source *s)
{
    struct stat st;
    for (uint32_t i = 0; i < s->n_files; i++) {
        const struct profile_file *f = &s->files[i];
        if (f->import_path != NULL && f->import_fd >= 0 && fstat(f->import_fd, &st) == 0 &&
            st.st_size > 0)
            index_link(&s->arena, f->import_fd, f->import_path);
    }
}
