/* SPDX-License-Identifier: Apache-2.0 */
/* Row groups in a file: an index that is being made, or a temporary file made alike.
 *
 * Packing compresses and checksums, and may be done by many threads, each with a packer of its own; putting writes
 * in the order of the calls. Layout of the file: docs/formats/index.md. */
#ifndef TACHO_FORMAT_INDEX_STORE_H
#define TACHO_FORMAT_INDEX_STORE_H

#include "model/trace_groups.h"

struct index_store;

/* Takes fd, which can be read and written. The first group comes behind the file's header. */
struct index_store *index_store_new(int fd);
void index_store_free(void *store);
/* The store of groups: fetches what was put. Freed with the groups. */
struct trace_store index_store_of(struct index_store *s);

/* Compresses where it pays; stored_bytes and crc of the group are set. */
struct index_packer {
    void *zstd;       /* owned */
    uint32_t n_plain; /* groups that are not tried: the last one tried did not shrink */
};
struct index_packed {
    uint8_t *bytes; /* owned, or NULL: the group's own bytes are stored as they are */
};
void index_pack(struct index_packer *p, struct trace_group *g, struct index_packed *out);
void index_packer_release(struct index_packer *p);
/* Writes a packed group; its offset is set. */
MUST_CHECK bool index_put(struct index_store *s, struct trace_group *g,
                          const struct index_packed *packed, struct err *e);
/* Reads a group back from any file: n_bytes bytes at out. size_bytes: of the file. */
MUST_CHECK bool index_fetch(int fd, uint64_t size_bytes, const struct trace_group *g, uint8_t *out,
                            struct err *e);
/* The file, and where what follows may be written. */
int index_store_fd(const struct index_store *s);
uint64_t index_store_end(const struct index_store *s);

#endif
