/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int file_open(const char *path, int flags, mode_t mode, struct err *e)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        err_sys(e, "cannot open '%s'", path);
    return fd;
}

bool file_write_all(int fd, const void *p, size_t n, struct err *e)
{
    for (const char *from = p; n > 0;) {
        const ssize_t done = write(fd, from, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_sys(e, "cannot write");
        from += done;
        n -= (size_t)done;
    }
    return true;
}

bool file_pread_all(int fd, void *p, size_t n, uint64_t offset, struct err *e)
{
    for (char *to = p; n > 0;) {
        const ssize_t done = pread(fd, to, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_sys(e, "cannot read at byte %" PRIu64, offset);
        if (done == 0)
            return err_at(e, ERR_PARSE, offset, "the file ends, %zu more bytes expected", n);
        to += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

bool file_pwrite_all(int fd, const void *p, size_t n, uint64_t offset, struct err *e)
{
    for (const char *from = p; n > 0;) {
        const ssize_t done = pwrite(fd, from, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_sys(e, "cannot write at byte %" PRIu64, offset);
        from += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

bool file_size(int fd, uint64_t *size_bytes, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_sys(e, "cannot read the size");
    *size_bytes = (uint64_t)st.st_size;
    return true;
}

/* Reads to the end, so that files whose size the kernel does not know (/proc) are whole too. */
static bool read_to_end(int fd, struct buf *b, size_t max_bytes, struct err *e)
{
    for (;;) {
        const size_t room = max_bytes + 1 - b->n < 65536 ? max_bytes + 1 - b->n : 65536;
        char *to = buf_reserve(b, room);
        if (to == NULL)
            return err_set(e, ERR_LIMIT, "larger than the limit of %zu bytes", max_bytes);
        const ssize_t done = read(fd, to, room);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_sys(e, "cannot read at byte %zu", b->n);
        if (done == 0)
            return true;
        b->n += (size_t)done;
        if (b->n > max_bytes)
            return err_set(e, ERR_LIMIT, "larger than the limit of %zu bytes", max_bytes);
    }
}

bool file_read(struct arena *a, const char *path, size_t max_bytes, str *out, struct err *e)
{
    const int fd = file_open(path, O_RDONLY, 0, e);
    if (fd < 0)
        return false;
    struct buf b;
    buf_init(&b, max_bytes + 1);
    bool done = read_to_end(fd, &b, max_bytes, e);
    close(fd);
    if (!done) {
        err_wrap(e, "cannot read '%s'", path);
    } else {
        *out = arena_str(a, buf_str(&b));
        if (out->p == NULL)
            done = arena_full(a, e);
    }
    buf_release(&b);
    return done;
}

static bool sync_dir(const char *path, struct err *e)
{
    char dir[PATH_MAX];
    const str parent = path_dir(str_from(path));
    snprintf(dir, sizeof dir, "%.*s", STR_ARG(parent));
    const int fd = file_open(dir, O_RDONLY | O_DIRECTORY, 0, e);
    if (fd < 0)
        return false;
    /* Some file systems cannot sync a folder; the rename is done all the same. */
    const bool done = fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
    if (!done)
        err_sys(e, "cannot sync '%s'", dir);
    close(fd);
    return done;
}

bool file_replace(const char *path, str content, mode_t mode, struct err *e)
{
    char temporary[PATH_MAX];
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        return err_sys(e, "cannot get random bytes");
    if (snprintf(temporary, sizeof temporary, "%s.tmp-%016" PRIx64, path, random) >=
        (int)sizeof temporary)
        return err_set(e, ERR_USAGE, "the path '%.80s…' is too long", path);
    const int fd = file_open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode, e);
    if (fd < 0)
        return false;
    bool done = file_write_all(fd, content.p, content.n, e);
    if (done && fsync(fd) != 0)
        done = err_sys(e, "cannot sync");
    if (close(fd) != 0 && done)
        done = err_sys(e, "cannot close");
    if (done && rename(temporary, path) != 0)
        done = err_sys(e, "cannot rename");
    if (!done) {
        unlink(temporary);
        return err_wrap(e, "cannot write '%s'", path);
    }
    return sync_dir(path, e);
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool dir_make(const char *path, mode_t mode, struct err *e)
{
    char part[PATH_MAX];
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return err_set(e, ERR_USAGE, "cannot make a folder of this name: '%.80s'", path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        const int why = mkdir(part, mode) == 0 ? 0 : errno;
        if (why != 0 && why != EEXIST && !file_is_dir(part)) {
            errno = why; /* not that of the look */
            return err_sys(e, "cannot make the folder '%s'", part);
        }
        if (i < n)
            part[i] = '/';
    }
    if (!file_is_dir(path))
        return err_set(e, ERR_CONFLICT, "cannot make the folder '%s': a file is in its place",
                       path);
    return true;
}

/* Removes what is below the open folder `fd`, which it takes. */
static bool remove_below(int fd, unsigned depth, struct err *e)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        err_sys(e, "cannot read a folder");
        close(fd);
        return false;
    }
    bool done = depth < 128 || err_set(e, ERR_LIMIT, "folders nested deeper than 128");
    for (struct dirent *d; done && (d = readdir(dir)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, d->d_name, 0) == 0 || errno == ENOENT)
            continue;
        const int below = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0) {
            done = err_sys(e, "cannot remove '%s'", d->d_name);
            break;
        }
        done = remove_below(below, depth + 1, e);
        if (done && unlinkat(fd, d->d_name, AT_REMOVEDIR) != 0)
            done = err_sys(e, "cannot remove '%s'", d->d_name);
    }
    closedir(dir);
    return done;
}

bool dir_remove(const char *path, struct err *e)
{
    const int fd = file_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
    if (fd < 0)
        return false;
    if (!remove_below(fd, 0, e))
        return err_wrap(e, "cannot remove '%s'", path);
    if (rmdir(path) != 0)
        return err_sys(e, "cannot remove '%s'", path);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

bool dir_list(struct arena *a, const char *path, str **names, size_t *n, struct err *e)
{
    uint32_t count = 0, capacity = 0;
    *names = NULL;
    *n = 0;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return err_sys(e, "cannot read the folder '%s'", path);
    bool done = true;
    for (struct dirent *d; done && (d = readdir(dir)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        const str name = arena_str(a, str_from(d->d_name));
        if (name.p == NULL || !ARENA_PUSH(a, *names, count, capacity))
            done = arena_full(a, e);
        else
            (*names)[count - 1] = name;
    }
    closedir(dir);
    *n = count;
    if (done && count > 1)
        qsort(*names, count, sizeof **names, compare_names);
    return done;
}

bool dir_is_remote(const char *path)
{
    static const uint32_t magic[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x65735546, /* FUSE */
        0x01021997, /* 9p */
        0x0bd00bd0, /* Lustre */
        0x00c36400, /* Ceph */
        0x47504653, /* GPFS */
        0x5346414f, /* AFS */
        0x013111a8, /* BeeGFS */
    };
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++)
        if ((uint32_t)fs.f_type == magic[i])
            return true;
    return false;
}

char *path_join(struct arena *a, const char *dir, str name)
{
    const str d = str_from(dir);
    const char *between = d.n == 0 || d.p[d.n - 1] == '/' ? "" : "/";
    return arena_cstr(a, arena_printf(a, "%s%s%.*s", dir, between, STR_ARG(name)));
}

str path_base(str path)
{
    size_t from = path.n;
    while (from > 0 && path.p[from - 1] != '/')
        from--;
    return str_sub(path, from, path.n);
}

str path_dir(str path)
{
    size_t n = path.n - path_base(path).n;
    if (n == 0)
        return S(".");
    while (n > 1 && path.p[n - 1] == '/')
        n--;
    return str_sub(path, 0, n);
}

bool path_is_safe_name(str s)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "._+=@-";
    if (s.n < 1 || s.n > 200 || s.p[0] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (memchr(allowed, s.p[i], sizeof allowed - 1) == NULL)
            return false;
    return true;
}

#define SAFE_NAME_BYTES 150

str path_safe_name(struct arena *a, str s, str fallback)
{
    char *out = arena_cstr(a, s.n == 0 ? fallback : str_sub(s, 0, SAFE_NAME_BYTES));
    size_t n = out == NULL ? 0 : strlen(out);
    for (size_t i = 0; i < n; i++)
        if (!path_is_safe_name((str){out + i, 1}) && (i == 0 || out[i] != '.'))
            out[i] = '_';
    return (str){out, n};
}
