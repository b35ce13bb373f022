/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the index: index_codec.c (what is in a block), index_write.c, index_read.c.
 * Not for others, but for the fuzz target. Layout: docs/formats/index.md. Numbers are little-endian. */
#ifndef TACHO_FORMAT_INDEX_INTERNAL_H
#define TACHO_FORMAT_INDEX_INTERNAL_H

#include "base/buf.h"
#include "format/index.h"
#include "model/trace_groups.h"

#define INDEX_MAGIC "TACHOIDX"
#define INDEX_END_MAGIC "TACHOEND"
#define INDEX_HEADER_BYTES 16
#define INDEX_FOOTER_BYTES 72
/* Raised when the layout changes, or when the same XSpace is to be loaded to something else. */
#define INDEX_VERSION 2
#define INDEX_FEATURES 0u /* required-feature bits that we understand */

enum index_block_kind { INDEX_BLOCK_TRACE = 2, INDEX_BLOCK_PLANE = 3, INDEX_BLOCK_DIRECTORY = 4 };

struct index_block {
    uint32_t kind; /* others than those above are passed over */
    uint32_t id;   /* of the plane */
    uint64_t offset;
    uint32_t packed_bytes, raw_bytes, crc; /* crc32c of the packed bytes */
};
#define INDEX_ENTRY_BYTES 28

struct index_footer {
    uint32_t version, features;
    struct index_identity of;
    uint32_t n_blocks;
    struct index_block directory;
};

/* A walk over the content of a block: the same functions write it to `out` and read it from `in`. What is
 * read borrows from `in`; arrays are in `a`. `bad` is set for good by what does not fit. */
struct index_walk {
    struct buf *out; /* NULL: reading */
    str in;
    size_t at;
    struct arena *a;
    bool bad;
};
void index_walk_u64(struct index_walk *w, uint64_t *v);
void index_walk_u32(struct index_walk *w, uint32_t *v);
void index_walk_footer(struct index_walk *w, struct index_footer *f);
void index_walk_block(struct index_walk *w, struct index_block *b);
/* All of the trace but its planes' dictionaries. Reading fills t->groups->items without their bytes. */
void index_walk_trace(struct index_walk *w, struct trace *t);
void index_walk_plane(struct index_walk *w, struct trace_plane *p);
/* False and e unless the whole block was read and was good. */
MUST_CHECK bool index_walk_ok(const struct index_walk *w, const char *what, struct err *e);

/* True when counts and places inside the trace agree with each other, so that it is safe to read. */
MUST_CHECK bool index_trace_check(const struct trace *t, struct err *e);

#endif
