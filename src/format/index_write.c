/* SPDX-License-Identifier: Apache-2.0 */
#include <zstd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/index_internal.h"
#include "format/index_store.h"

/* Packed columns gain little from a higher level, and the writer waits for it. */
#define ZSTD_LEVEL 1

struct writer {
    int fd;
    uint64_t at;       /* bytes written */
    ZSTD_CCtx *zstd;   /* owned */
    struct buf packed; /* scratch */
    struct buf blocks; /* the directory */
    uint32_t n_blocks;
};

/* Compresses one block and writes it; where it lies is answered in b. */
static bool block_write(struct writer *w, uint32_t kind, uint32_t id, str raw,
                        struct index_block *b, struct err *e)
{
    if (raw.n > LIMIT_INDEX_BLOCK_BYTES)
        return err_set(e, ERR_LIMIT, "a block of the index is larger than %llu bytes",
                       (unsigned long long)LIMIT_INDEX_BLOCK_BYTES);
    buf_clear(&w->packed);
    char *room = buf_reserve(&w->packed, ZSTD_compressBound(raw.n));
    if (room == NULL)
        return buf_ok(&w->packed, "a block of the index", e);
    const size_t n =
        ZSTD_compressCCtx(w->zstd, room, ZSTD_compressBound(raw.n), raw.p, raw.n, ZSTD_LEVEL);
    if (ZSTD_isError(n))
        return err_set(e, ERR_INTERNAL, "cannot compress a block of the index: %s",
                       ZSTD_getErrorName(n));
    *b = (struct index_block){.kind = kind,
                              .id = id,
                              .offset = w->at,
                              .packed_bytes = (uint32_t)n,
                              .raw_bytes = (uint32_t)raw.n,
                              .crc = crc32c(0, room, n)};
    if (!file_pwrite_all(w->fd, room, n, w->at, e))
        return err_wrap(e, "cannot write the index");
    w->at += n;
    return true;
}

static bool block_add(struct writer *w, uint32_t kind, uint32_t id, str raw, struct err *e)
{
    struct index_block b;
    struct index_walk entry = {.out = &w->blocks};
    if (!block_write(w, kind, id, raw, &b, e))
        return false;
    index_walk_block(&entry, &b);
    w->n_blocks++;
    return index_walk_ok(&entry, "the directory", e);
}

static bool dictionaries_add(struct writer *w, struct trace *t, struct err *e)
{
    struct buf raw;
    buf_init(&raw, LIMIT_INDEX_BLOCK_BYTES);
    struct index_walk walk = {.out = &raw};
    index_walk_trace(&walk, t);
    bool ok = index_walk_ok(&walk, "the trace block", e) &&
              block_add(w, INDEX_BLOCK_TRACE, 0, buf_str(&raw), e);
    for (uint32_t i = 0; i < t->n_planes && ok; i++) {
        buf_clear(&raw);
        index_walk_plane(&walk, &t->planes[i]);
        ok = index_walk_ok(&walk, "a dictionary", e) &&
             block_add(w, INDEX_BLOCK_PLANE, i, buf_str(&raw), e);
    }
    buf_release(&raw);
    return ok;
}

static bool header_write(struct writer *w, struct err *e)
{
    struct buf b;
    buf_init(&b, INDEX_HEADER_BYTES);
    struct index_walk walk = {.out = &b};
    uint32_t version = INDEX_VERSION, features = INDEX_FEATURES;
    buf_add_str(&b, S(INDEX_MAGIC));
    index_walk_u32(&walk, &version);
    index_walk_u32(&walk, &features);
    const bool ok = index_walk_ok(&walk, "the header", e) && file_pwrite_all(w->fd, b.p, b.n, 0, e);
    buf_release(&b);
    return ok || err_wrap(e, "cannot write the index");
}

static bool footer_write(struct writer *w, const struct index_identity *of, struct err *e)
{
    struct index_footer f = {
        .version = INDEX_VERSION, .features = INDEX_FEATURES, .of = *of, .n_blocks = w->n_blocks};
    struct buf b;
    if (!block_write(w, INDEX_BLOCK_DIRECTORY, 0, buf_str(&w->blocks), &f.directory, e))
        return false;
    buf_init(&b, INDEX_FOOTER_BYTES);
    struct index_walk walk = {.out = &b};
    index_walk_footer(&walk, &f);
    uint32_t crc = crc32c(0, b.p, b.n);
    index_walk_u32(&walk, &crc);
    buf_add_str(&b, S(INDEX_END_MAGIC));
    const bool ok =
        index_walk_ok(&walk, "the footer", e) &&
        (file_pwrite_all(w->fd, b.p, b.n, w->at, e) || err_wrap(e, "cannot write the index"));
    buf_release(&b);
    return ok;
}

bool index_end(struct trace *t, const struct index_identity *of, struct err *e)
{
    const struct index_store *store = t->groups->store.ctx;
    struct writer w = {.fd = index_store_fd(store), .zstd = ZSTD_createCCtx()};
    must(w.zstd != NULL);
    buf_init(&w.packed, ZSTD_compressBound(LIMIT_INDEX_BLOCK_BYTES) + 1);
    buf_init(&w.blocks, LIMIT_INDEX_BLOCK_BYTES);
    bool ok = header_write(&w, e);
    w.at = index_store_end(store);
    ok = ok && dictionaries_add(&w, t, e) && footer_write(&w, of, e);
    buf_release(&w.packed);
    buf_release(&w.blocks);
    ZSTD_freeCCtx(w.zstd);
    return ok;
}
