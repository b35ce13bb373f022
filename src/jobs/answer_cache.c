/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/answer_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/index.h"

#define FOLDER "answers"
#define MAGIC "TACHOANS"

struct head {
    char magic[8];
    uint64_t n_bytes;
    uint32_t crc, unused;
};

static void add_str(struct sha256 *sum, str s)
{
    const uint64_t n = s.n;
    sha256_add(sum, &n, sizeof n);
    sha256_add(sum, s.p, s.n);
}

/* This program: its file is another after each build and each installation. */
static bool add_program(struct sha256 *sum)
{
    struct stat st;
    if (stat("/proc/self/exe", &st) != 0)
        return false;
    const uint64_t facts[] = {st.st_dev, st.st_ino, (uint64_t)st.st_size,
                              (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
    sha256_add(sum, facts, sizeof facts);
    return true;
}

static bool add_file(struct sha256 *sum, const struct profile_file *f)
{
    struct index_identity id;
    struct err ignored = {0};
    char *real = realpath(f->path, NULL);
    const bool ok = real != NULL && index_identify(f->fd, &id, &ignored);
    if (ok) {
        add_str(sum, str_from(real));
        add_str(sum, f->target);
        sha256_add(sum, &id.size_bytes, sizeof id.size_bytes);
        sha256_add(sum, &id.mtime_ns, sizeof id.mtime_ns);
        sha256_add(sum, &id.ends_crc, sizeof id.ends_crc);
    }
    free(real);
    return ok;
}

bool answer_key_of(struct answer_key *key, const struct profile_source *s, const struct tool *tool,
                   const struct tool_param *params, uint32_t n_params, enum tool_format format)
{
    struct sha256 sum;
    uint8_t digest[SHA256_BYTES];
    uint64_t bytes = 0;
    sha256_init(&sum);
    if (!add_program(&sum))
        return false;
    add_str(&sum, str_from(tool->name));
    const uint32_t numbers[] = {(uint32_t)format, n_params, s->n_files};
    sha256_add(&sum, numbers, sizeof numbers);
    for (uint32_t i = 0; i < n_params; i++) {
        add_str(&sum, params[i].key);
        add_str(&sum, params[i].value);
    }
    add_str(&sum, s->path);
    for (uint32_t i = 0; i < s->n_files; i++) {
        bytes += s->files[i].size_bytes;
        if (!add_file(&sum, &s->files[i]))
            return false;
    }
    sha256_end(&sum, digest);
    sha256_hex(digest, key->hex);
    return bytes >= LIMIT_INDEX_LEAST_BYTES;
}

bool answer_find(const struct index_places *places, const struct answer_key *key, struct buf *out)
{
    struct arena a;
    struct head h;
    struct err ignored = {0};
    arena_init(&a, "answer", 0);
    const char *dir = index_cache_folder(&a, places, FOLDER);
    const char *path = dir == NULL ? NULL : path_join(&a, dir, str_from(key->hex));
    const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd >= 0 && file_pread_all(fd, &h, sizeof h, 0, &ignored) &&
              memcmp(h.magic, MAGIC, sizeof h.magic) == 0 && h.n_bytes <= LIMIT_ANSWER_KEPT_BYTES;
    char *room = ok ? buf_reserve(out, (size_t)h.n_bytes + 1) : NULL;
    ok = room != NULL && file_pread_all(fd, room, (size_t)h.n_bytes, sizeof h, &ignored) &&
         crc32c(0, room, (size_t)h.n_bytes) == h.crc;
    if (ok) {
        out->n += (size_t)h.n_bytes;
        out->p[out->n] = '\0';
    }
    if (fd >= 0)
        close(fd);
    arena_release(&a);
    return ok;
}

struct kept {
    char name[SHA256_HEX];
    int64_t mtime_ns;
    uint64_t bytes;
};

static int oldest_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return x->mtime_ns < y->mtime_ns ? -1 : x->mtime_ns > y->mtime_ns;
}

/* Deletes the oldest answers beyond what may be kept. */
static void answers_trim(const char *dir)
{
    DIR *d = opendir(dir);
    struct kept *all = NULL;
    size_t n = 0, room = 0;
    uint64_t bytes = 0;
    for (struct dirent *at; d != NULL && (at = readdir(d)) != NULL;) {
        struct stat st;
        if (strlen(at->d_name) != SHA256_HEX - 1 || fstatat(dirfd(d), at->d_name, &st, 0) != 0)
            continue;
        if (n == room) {
            room = room == 0 ? 64 : room * 2;
            all = realloc(all, room * sizeof *all);
            must(all != NULL);
        }
        memcpy(all[n].name, at->d_name, SHA256_HEX);
        all[n].mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        bytes += all[n++].bytes = (uint64_t)st.st_size;
    }
    if (n > 0)
        qsort(all, n, sizeof *all, oldest_first);
    for (size_t i = 0; i < n && (n - i > LIMIT_ANSWERS_KEPT || bytes > LIMIT_ANSWERS_BYTES); i++) {
        unlinkat(dirfd(d), all[i].name, 0);
        bytes -= all[i].bytes;
    }
    free(all);
    if (d != NULL)
        closedir(d);
}

void answer_keep(const struct index_places *places, const struct answer_key *key, str answer)
{
    struct arena a;
    struct err ignored = {0};
    if (answer.n > LIMIT_ANSWER_KEPT_BYTES)
        return;
    arena_init(&a, "answer", 0);
    const char *dir = index_cache_folder(&a, places, FOLDER);
    const char *path = dir == NULL ? NULL : path_join(&a, dir, str_from(key->hex));
    const char *made = path == NULL ? NULL : arena_printf(&a, "%s.%d", path, (int)getpid()).p;
    const int fd = made == NULL ? -1 : open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        const struct head h = {
            .magic = MAGIC, .n_bytes = answer.n, .crc = crc32c(0, answer.p, answer.n)};
        const bool ok = file_write_all(fd, &h, sizeof h, &ignored) &&
                        file_write_all(fd, answer.p, answer.n, &ignored);
        close(fd);
        if (!ok || rename(made, path) != 0)
            unlink(made);
        answers_trim(dir);
    }
    arena_release(&a);
}
