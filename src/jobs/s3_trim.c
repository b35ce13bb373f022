/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/s3_trim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"

struct entry {
    const char *dir, *lock;
    int64_t used_ns;
    uint64_t n_bytes; /* on the disk: a part has all its room from the beginning */
};

static int longest_unused_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static uint64_t bytes_in(struct arena *a, const char *dir)
{
    struct err ignored = {0};
    str *names = NULL;
    size_t n = 0;
    uint64_t sum = 0;
    if (!dir_list(a, dir, &names, &n, &ignored))
        return 0;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        const char *path = path_join(a, dir, names[i]);
        if (path != NULL && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512;
    }
    return sum;
}

/* -1: somebody uses it. */
static int lock_at_once(const char *lock)
{
    const int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* One that is in use counts nothing here: who uses it has counted it. */
static bool entry_look(struct arena *a, const char *root, str name, struct entry *out)
{
    struct stat st;
    const char *dir = path_join(a, root, name);
    const char *lock = dir == NULL ? NULL : path_join(a, dir, str_from(S3_LOCK_NAME));
    if (lock == NULL || lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    const int fd = lock_at_once(lock);
    if (fd < 0)
        return false;
    close(fd);
    *out = (struct entry){.dir = dir,
                          .lock = lock,
                          .used_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec,
                          .n_bytes = bytes_in(a, dir)};
    return true;
}

static void entry_delete(const struct entry *it)
{
    struct err ignored = {0};
    const int fd = lock_at_once(it->lock);
    if (fd < 0)
        return;
    if (!dir_remove(it->dir, &ignored))
        err_clear(&ignored); /* there again next time */
    close(fd);
}

void s3_trim(const char *root, uint64_t most_bytes)
{
    struct arena a;
    struct err ignored = {0};
    str *names = NULL;
    size_t n_names = 0, n = 0;
    uint64_t n_bytes = 0;
    arena_init(&a, "cache of S3", 0);
    struct entry *all = dir_list(&a, root, &names, &n_names, &ignored)
                            ? ARENA_ARRAY(&a, struct entry, n_names)
                            : NULL;
    for (size_t i = 0; all != NULL && i < n_names; i++)
        if (entry_look(&a, root, names[i], &all[n]))
            n_bytes += all[n++].n_bytes;
    if (n > 1)
        qsort(all, n, sizeof *all, longest_unused_first);
    for (size_t i = 0; i < n; i++) {
        if (n_bytes > most_bytes || n - i > LIMIT_S3_ENTRIES) {
            n_bytes -= all[i].n_bytes;
            entry_delete(&all[i]);
        }
    }
    arena_release(&a);
}
