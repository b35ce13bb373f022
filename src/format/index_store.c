/* SPDX-License-Identifier: Apache-2.0 */
#include "format/index_store.h"

#include <unistd.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/index_internal.h"

/* The first open waits for it: level 1 takes a fifth of its time and makes the index a tenth smaller. */
#define ZSTD_LEVEL (-5)
#define PLAIN_RUN 15     /* groups stored as they are after one that did not shrink */
#define WORTH_PERCENT 75 /* compressed to less than that: worth the time to read it back */

struct index_store {
    int fd; /* owned */
    uint64_t end;
};

struct index_store *index_store_new(int fd)
{
    struct index_store *s = map_alloc(1, sizeof *s);
    s->fd = fd;
    s->end = INDEX_HEADER_BYTES;
    return s;
}

void index_store_free(void *store)
{
    struct index_store *s = store;
    close(s->fd);
    map_free(s);
}

int index_store_fd(const struct index_store *s)
{
    return s->fd;
}

uint64_t index_store_end(const struct index_store *s)
{
    return s->end;
}

static bool store_fetch(void *ctx, const struct trace_group *g, uint8_t *out, struct err *e)
{
    const struct index_store *s = ctx;
    return index_fetch(s->fd, s->end, g, out, e) || err_wrap(e, "cannot read row groups back");
}

struct trace_store index_store_of(struct index_store *s)
{
    return (struct trace_store){.fetch = store_fetch, .free = index_store_free, .ctx = s};
}

void index_pack(struct index_packer *p, struct trace_group *g, struct index_packed *out)
{
    *out = (struct index_packed){0};
    g->stored_bytes = g->n_bytes;
    if (p->n_plain > 0) {
        p->n_plain--;
    } else {
        const size_t room = ZSTD_compressBound(g->n_bytes);
        uint8_t *bytes = malloc(room);
        must(bytes != NULL);
        if (p->zstd == NULL)
            p->zstd = ZSTD_createCCtx();
        must(p->zstd != NULL);
        const size_t n = ZSTD_compressCCtx(p->zstd, bytes, room, g->bytes, g->n_bytes, ZSTD_LEVEL);
        if (!ZSTD_isError(n) && n < (uint64_t)g->n_bytes * WORTH_PERCENT / 100) {
            out->bytes = bytes;
            g->stored_bytes = (uint32_t)n;
        } else {
            p->n_plain = PLAIN_RUN;
            free(bytes);
        }
    }
    g->crc = crc32c(0, out->bytes != NULL ? out->bytes : g->bytes, g->stored_bytes);
}

void index_packer_release(struct index_packer *p)
{
    ZSTD_freeCCtx(p->zstd);
    *p = (struct index_packer){0};
}

bool index_put(struct index_store *s, struct trace_group *g, const struct index_packed *packed,
               struct err *e)
{
    const uint8_t *bytes = packed->bytes != NULL ? packed->bytes : g->bytes;
    if (!file_pwrite_all(s->fd, bytes, g->stored_bytes, s->end, e))
        return err_wrap(e, "cannot keep row groups");
    g->offset = s->end;
    s->end += g->stored_bytes;
    return true;
}

bool index_fetch(int fd, uint64_t size_bytes, const struct trace_group *g, uint8_t *out,
                 struct err *e)
{
    if (g->offset > size_bytes || g->stored_bytes > size_bytes - g->offset ||
        g->stored_bytes > g->n_bytes)
        return err_at(e, ERR_PARSE, g->offset, "a row group lies beyond the end of the index");
    const bool plain = g->stored_bytes == g->n_bytes;
    uint8_t *stored = plain ? out : map_alloc((size_t)g->stored_bytes + 1, 1);
    bool ok = file_pread_all(fd, stored, g->stored_bytes, g->offset, e);
    if (ok && crc32c(0, stored, g->stored_bytes) != g->crc)
        ok = err_at(e, ERR_PARSE, g->offset, "checksum of a row group does not hold");
    if (ok && !plain && ZSTD_decompress(out, g->n_bytes, stored, g->stored_bytes) != g->n_bytes)
        ok = err_at(e, ERR_PARSE, g->offset, "a row group cannot be decompressed");
    if (!plain)
        map_free(stored);
    return ok;
}
