/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs as files below a data folder. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/sha256.h"
#include "store/store.h"

#define PATH_BYTES 4096
#define COPY_BYTES 65536

struct folder {
    struct store_blob blob; /* first */
    char dir[PATH_BYTES];
};

/* Every component must be a safe name: nothing from outside leaves the folder. */
static bool path_of(const struct store_blob *b, str key, char out[static PATH_BYTES], struct err *e)
{
    const struct folder *f = (const struct folder *)b;
    str rest = key, part;
    while (str_cut(rest, '/', &part, &rest))
        if (!path_is_safe_name(part))
            return err_set(e, ERR_USAGE, "'%.*s' is not a name of a blob", STR_ARG(key));
    const int n = snprintf(out, PATH_BYTES, "%s/%.*s", f->dir, STR_ARG(key));
    return (n > 0 && n < PATH_BYTES && key.n > 0) ||
           err_set(e, ERR_USAGE, "'%.*s' is too long a name", STR_ARG(key));
}

static bool make_parent(const char *path, struct err *e)
{
    char dir[PATH_BYTES];
    const str parent = path_dir(str_from(path));
    memcpy(dir, parent.p, parent.n);
    dir[parent.n] = '\0';
    return file_is_dir(dir) || dir_make(dir, 0755, e);
}

static bool folder_put(struct store_blob *b, str key, str content, struct err *e)
{
    char path[PATH_BYTES];
    return path_of(b, key, path, e) && make_parent(path, e) && file_replace(path, content, 0644, e);
}

static int folder_open_blob(struct store_blob *b, str key, uint64_t *size_bytes, struct err *e)
{
    char path[PATH_BYTES];
    struct stat st;
    if (!path_of(b, key, path, e))
        return -1;
    const int fd = file_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, e);
    if (fd == -1)
        return -1;
    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        close(fd);
        err_set(e, ERR_NOT_FOUND, "'%s' is not a file", path);
        return -1;
    }
    *size_bytes = (uint64_t)st.st_size;
    return fd;
}

static bool folder_get(struct store_blob *b, str key, uint64_t max_bytes, struct arena *a, str *out,
                       struct err *e)
{
    char path[PATH_BYTES];
    return path_of(b, key, path, e) && file_read(a, path, max_bytes, out, e);
}

static bool append_part(int to, const char *path, struct sha256 *hash, uint64_t *size_bytes,
                        struct err *e)
{
    char block[COPY_BYTES];
    const int from = file_open(path, O_RDONLY | O_NOFOLLOW, 0, e);
    if (from == -1)
        return false;
    bool ok = true;
    ssize_t n = 0;
    while (ok && (n = read(from, block, sizeof block)) > 0) {
        sha256_add(hash, block, (size_t)n);
        *size_bytes += (uint64_t)n;
        ok = file_write_all(to, block, (size_t)n, e);
    }
    if (n == -1)
        ok = err_sys(e, "cannot read '%s'", path);
    close(from);
    return ok;
}

static bool join_into(struct store_blob *b, int to, str part_key, uint32_t n, str sha256,
                      uint64_t *size_bytes, struct err *e)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX], key[PATH_BYTES], path[PATH_BYTES];
    sha256_init(&hash);
    *size_bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int length = snprintf(key, sizeof key, "%.*s%u", STR_ARG(part_key), i);
        if (!path_of(b, (str){key, (size_t)length}, path, e))
            return false;
        if (!append_part(to, path, &hash, size_bytes, e))
            return err_wrap(e, "part %u", i);
    }
    sha256_end(&hash, digest);
    sha256_hex(digest, hex);
    if (!str_eq_nocase(sha256, str_from(hex)))
        return err_set(e, ERR_PARSE, "the parts have SHA-256 %s, not %.*s", hex, STR_ARG(sha256));
    return fsync(to) == 0 || err_sys(e, "cannot sync the joined parts");
}

static void remove_parts(struct store_blob *b, str part_key, uint32_t n)
{
    char key[PATH_BYTES], path[PATH_BYTES];
    struct err ignored = {0};
    for (uint32_t i = 0; i < n; i++) {
        const int length = snprintf(key, sizeof key, "%.*s%u", STR_ARG(part_key), i);
        if (path_of(b, (str){key, (size_t)length}, path, &ignored))
            unlink(path);
    }
}

static bool folder_join(struct store_blob *b, str key, str part_key, uint32_t n, str sha256,
                        uint64_t *size_bytes, struct err *e)
{
    char path[PATH_BYTES], temporary[PATH_BYTES + 16];
    if (!path_of(b, key, path, e) || !make_parent(path, e))
        return false;
    snprintf(temporary, sizeof temporary, "%s.joining", path);
    const int to = file_open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644, e);
    if (to == -1)
        return false;
    bool ok = join_into(b, to, part_key, n, sha256, size_bytes, e);
    close(to);
    if (ok && rename(temporary, path) == -1)
        ok = err_sys(e, "cannot rename '%s'", temporary);
    if (ok)
        remove_parts(b, part_key, n);
    else
        unlink(temporary);
    return ok;
}

static bool folder_list(struct store_blob *b, str key, struct arena *a, str **names, size_t *n,
                        struct err *e)
{
    char path[PATH_BYTES];
    *names = NULL;
    *n = 0;
    if (!path_of(b, key, path, e))
        return false;
    return !file_is_dir(path) || dir_list(a, path, names, n, e);
}

static bool folder_remove(struct store_blob *b, str key, struct err *e)
{
    char path[PATH_BYTES];
    if (!path_of(b, key, path, e))
        return false;
    return unlink(path) == 0 || errno == ENOENT || err_sys(e, "cannot remove '%s'", path);
}

static void folder_close(struct store_blob *b)
{
    free(b);
}

static const struct store_blob_ops folder_ops = {
    .close = folder_close,
    .put = folder_put,
    .open = folder_open_blob,
    .get = folder_get,
    .join = folder_join,
    .list = folder_list,
    .remove = folder_remove,
};

struct store_blob *folder_open(const char *data_dir, struct err *e)
{
    if (strlen(data_dir) >= PATH_BYTES) {
        err_set(e, ERR_USAGE, "the path of the data folder is too long");
        return NULL;
    }
    if (!file_is_dir(data_dir) && !dir_make(data_dir, 0755, e))
        return NULL;
    struct folder *f = map_alloc(1, sizeof *f);
    f->blob.ops = &folder_ops;
    memcpy(f->dir, data_dir, strlen(data_dir) + 1);
    return &f->blob;
}
