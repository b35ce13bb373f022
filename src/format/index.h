/* SPDX-License-Identifier: Apache-2.0 */
/* The index of one XSpace, `<target>.tacho`: what loading it found, so that nobody decodes it twice.
 *
 *   header ─ row groups ─ trace block ─ plane blocks ─ directory ─ footer
 *
 * Row groups are written while the XSpace is decoded (format/index_store.h), the rest when it is whole. Every
 * block is checksummed (crc32c) by itself, compressed (zstd) where that pays, and read with one pread. A loaded
 * index is the same struct trace that xspace_load() makes: row groups are fetched one at a time when a cursor
 * comes to them, arguments of events come from their side columns, else from the XSpace. It belongs to one
 * XSpace (size, modification time, checksum of its ends) and is refused for any other; deleting it
 * costs time only. Source: docs/formats/index.md.
 *
 *     if (index_is_of(index_fd, xspace_fd)) t = index_load(index_fd, xspace_fd, &options, e);
 *
 * An index is hostile input like the XSpace it was made from: ERR_PARSE with the byte. Thread: any;
 * a loaded trace may be read by many threads. */
#ifndef TACHO_FORMAT_INDEX_H
#define TACHO_FORMAT_INDEX_H

#include "model/trace.h"

struct index_options {
    str file, host;  /* as in struct xspace_options; copied */
    bool lines_only; /* without dictionaries and stats of planes that have no line (HLO protos) */
};

/* The XSpace that an index was made from. */
struct index_identity {
    uint64_t size_bytes;
    int64_t mtime_ns;
    uint32_t ends_crc; /* crc32c of its first and last 64 KiB */
};
/* Taken before the XSpace is decoded: then an index of what changed meanwhile is never taken for good. */
MUST_CHECK bool index_identify(int xspace_fd, struct index_identity *out, struct err *e);

/* Makes an index of the file that t was loaded with (struct xspace_options, index_fd): writes what is missing behind
 * its row groups. `of` is the XSpace. Nobody else may use t meanwhile. Until its last write the file is no index. Fails
 * with ERR_IO, and ERR_LIMIT when a dictionary is too large. */
MUST_CHECK bool index_end(struct trace *t, const struct index_identity *of, struct err *e);
/* True when fd ends as an index does, in a version that we read, made from the XSpace as it is now. Reads
 * a few bytes of both. */
bool index_is_of(int fd, int xspace_fd);
/* Takes both descriptors (also on failure). Returns owned, or NULL and e. Refuses what index_is_of()
 * refuses. */
struct trace *index_load(int fd, int xspace_fd, const struct index_options *o, struct err *e);

#endif
