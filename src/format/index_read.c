/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/index_internal.h"
#include "format/index_store.h"
#include "format/xspace_internal.h"

#define ENDS_BYTES 65536

/* What the loaded trace needs to fetch a row group. */
struct reader {
    int fd; /* owned */
    uint64_t size_bytes;
};

bool index_identify(int xspace_fd, struct index_identity *out, struct err *e)
{
    struct stat st;
    if (fstat(xspace_fd, &st) != 0)
        return err_sys(e, "cannot look at the XSpace");
    *out = (struct index_identity){.size_bytes = (uint64_t)st.st_size,
                                   .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
                                               st.st_mtim.tv_nsec};
    const size_t n = out->size_bytes < ENDS_BYTES ? (size_t)out->size_bytes : ENDS_BYTES;
    uint8_t *ends = map_alloc(ENDS_BYTES, 2);
    const bool ok = file_pread_all(xspace_fd, ends, n, 0, e) &&
                    file_pread_all(xspace_fd, ends + n, n, out->size_bytes - n, e);
    out->ends_crc = ok ? crc32c(0, ends, 2 * n) : 0;
    map_free(ends);
    return ok;
}

static bool footer_read(int fd, struct index_footer *f, uint64_t *size_bytes, struct err *e)
{
    char bytes[INDEX_FOOTER_BYTES], head[INDEX_HEADER_BYTES];
    if (!file_size(fd, size_bytes, e))
        return false;
    if (*size_bytes < INDEX_HEADER_BYTES + INDEX_FOOTER_BYTES)
        return err_at(e, ERR_PARSE, 0, "not an index: too short");
    const uint64_t at = *size_bytes - INDEX_FOOTER_BYTES;
    if (!file_pread_all(fd, head, sizeof head, 0, e) ||
        !file_pread_all(fd, bytes, sizeof bytes, at, e))
        return false;
    struct index_walk w = {.in = {bytes, sizeof bytes}};
    uint32_t crc;
    index_walk_footer(&w, f);
    const size_t covered = w.at;
    index_walk_u32(&w, &crc);
    if (memcmp(head, INDEX_MAGIC, 8) != 0 || memcmp(bytes + w.at, INDEX_END_MAGIC, 8) != 0 ||
        crc != crc32c(0, bytes, covered))
        return err_at(e, ERR_PARSE, at, "not a whole index");
    return (f->version == INDEX_VERSION && (f->features & ~INDEX_FEATURES) == 0) ||
           err_set(e, ERR_TOO_NEW, "the index has version %u and features %#x", f->version,
                   f->features);
}

static bool footer_is_of(const struct index_footer *f, int xspace_fd, struct err *e)
{
    struct index_identity id;
    return index_identify(xspace_fd, &id, e) &&
           ((id.size_bytes == f->of.size_bytes && id.mtime_ns == f->of.mtime_ns &&
             id.ends_crc == f->of.ends_crc) ||
            err_set(e, ERR_CONFLICT, "the index is of another XSpace"));
}

bool index_is_of(int fd, int xspace_fd)
{
    struct index_footer f;
    uint64_t size_bytes;
    struct err ignored = {0};
    return footer_read(fd, &f, &size_bytes, &ignored) && footer_is_of(&f, xspace_fd, &ignored);
}

/* The content of a block into out[raw_bytes]. */
static bool block_read(int fd, uint64_t size_bytes, const struct index_block *b, void *out,
                       struct err *e)
{
    if (b->offset > size_bytes || b->packed_bytes > size_bytes - b->offset)
        return err_at(e, ERR_PARSE, b->offset, "a block of the index lies beyond its end");
    uint8_t *packed = map_alloc((size_t)b->packed_bytes + 1, 1);
    bool ok = file_pread_all(fd, packed, b->packed_bytes, b->offset, e);
    if (ok && crc32c(0, packed, b->packed_bytes) != b->crc)
        ok = err_at(e, ERR_PARSE, b->offset, "checksum of a block of the index does not hold");
    if (ok && ZSTD_decompress(out, b->raw_bytes, packed, b->packed_bytes) != b->raw_bytes)
        ok = err_at(e, ERR_PARSE, b->offset, "a block of the index cannot be decompressed");
    map_free(packed);
    return ok;
}

static bool block_take(const struct reader *r, const struct index_block *b, struct arena *a,
                       str *out, struct err *e)
{
    if (b->raw_bytes > LIMIT_INDEX_BLOCK_BYTES)
        return err_at(e, ERR_LIMIT, b->offset, "a block of the index is too large");
    char *raw = arena_alloc(a, (size_t)b->raw_bytes + 1, 1);
    *out = (str){raw, b->raw_bytes};
    return raw == NULL ? arena_full(a, e) : block_read(r->fd, r->size_bytes, b, raw, e);
}

static bool group_fetch(void *ctx, const struct trace_group *g, uint8_t *out, struct err *e)
{
    const struct reader *r = ctx;
    return index_fetch(r->fd, r->size_bytes, g, out, e);
}

static void reader_free(void *ctx)
{
    struct reader *r = ctx;
    close(r->fd);
    map_free(r);
}

struct directory {
    struct index_block *items;
    uint32_t n;
};

static bool directory_read(const struct reader *r, const struct index_footer *f, struct arena *a,
                           struct directory *d, struct err *e)
{
    str raw;
    if (f->n_blocks != f->directory.raw_bytes / INDEX_ENTRY_BYTES)
        return err_at(e, ERR_PARSE, f->directory.offset, "the directory of the index is damaged");
    if (!block_take(r, &f->directory, a, &raw, e))
        return false;
    d->n = f->n_blocks;
    d->items = ARENA_ARRAY(a, struct index_block, (size_t)d->n + 1);
    if (d->items == NULL)
        return arena_full(a, e);
    struct index_walk w = {.in = raw, .a = a};
    for (uint32_t i = 0; i < d->n; i++)
        index_walk_block(&w, &d->items[i]);
    return index_walk_ok(&w, "the directory", e);
}

static bool trace_block_read(const struct reader *r, const struct directory *d, struct trace *t,
                             struct err *e)
{
    for (uint32_t i = 0; i < d->n; i++) {
        str raw;
        if (d->items[i].kind != INDEX_BLOCK_TRACE)
            continue;
        if (!block_take(r, &d->items[i], &t->arena, &raw, e))
            return false;
        struct index_walk w = {.in = raw, .a = &t->arena};
        index_walk_trace(&w, t);
        return index_walk_ok(&w, "the trace block", e) && index_trace_check(t, e);
    }
    return err_set(e, ERR_PARSE, "the index has no trace block");
}

/* Every plane's dictionary, each exactly once. */
static bool planes_read(struct reader *r, const struct directory *d, struct trace *t,
                        bool lines_only, struct err *e)
{
    uint64_t n_planes = 0;
    uint8_t *seen = ARENA_ARRAY(&t->arena, uint8_t, (size_t)t->n_planes + 1);
    if (seen == NULL)
        return arena_full(&t->arena, e);
    for (uint32_t i = 0; i < d->n; i++) {
        const struct index_block *b = &d->items[i];
        str raw;
        if (b->kind != INDEX_BLOCK_PLANE || b->id >= t->n_planes || seen[b->id])
            continue;
        seen[b->id] = 1;
        n_planes++;
        if (lines_only && t->planes[b->id].n_lines == 0)
            continue;
        if (!block_take(r, b, &t->arena, &raw, e))
            return false;
        struct index_walk w = {.in = raw, .a = &t->arena};
        index_walk_plane(&w, &t->planes[b->id]);
        if (!index_walk_ok(&w, "a dictionary", e))
            return false;
    }
    return n_planes == t->n_planes || err_set(e, ERR_PARSE, "the index lacks a block");
}

static bool trace_read(struct trace *t, struct reader *r, bool lines_only, struct err *e)
{
    struct index_footer f;
    struct directory d = {0};
    if (!footer_read(r->fd, &f, &r->size_bytes, e) || !footer_is_of(&f, t->fd, e) ||
        !directory_read(r, &f, &t->arena, &d, e) || !trace_block_read(r, &d, t, e) ||
        !planes_read(r, &d, t, lines_only, e))
        return false;
    if (t->host.n == 0 && t->n_hostnames > 0)
        t->host = t->hostnames[0];
    return true;
}

struct trace *index_load(int fd, int xspace_fd, const struct index_options *o, struct err *e)
{
    struct trace *t = map_alloc(1, sizeof *t);
    struct reader *r = map_alloc(1, sizeof *r);
    arena_init(&t->arena, "trace", LIMIT_ARENA_TRACE_BYTES);
    r->fd = fd;
    t->fd = xspace_fd;
    t->source = &xspace_source;
    t->file = arena_str(&t->arena, o->file);
    t->host = arena_str(&t->arena, o->host);
    t->groups = trace_groups_new();
    t->groups->store = (struct trace_store){.fetch = group_fetch, .free = reader_free, .ctx = r};
    if (trace_read(t, r, o->lines_only, e))
        return t;
    err_wrap(e, "cannot read the index of '%.*s'", STR_ARG(o->file));
    trace_free(t);
    return NULL;
}
