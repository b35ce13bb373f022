/* SPDX-License-Identifier: Apache-2.0 */
/* Brings objects of an S3 store into files, by ranges of 16 MiB, several at once.
 *
 *     struct s3_fetch_file f = {.name = name, .object = object, .path = ".../host.xplane.pb"};
 *     if (!s3_fetch(&access, &f, 1, &o, e)) ...
 *
 * Until all of it is there the file lies at `<path>.part`, and `<path>.part-map` says which ranges of which
 * object it holds, each with its checksum. After a killed or failed fetch the next one of the same object goes on
 * from there: it takes a range as done only when the bytes in the file have that checksum. Nobody ever sees half
 * a file at `path`. The caller sees to it that only one process fetches to a path (flock). Memory: one buffer of
 * libcurl's a range under way. Readable by its owner only.
 * Errors: those of net/s3_client.h; CONFLICT: an object was replaced meanwhile, and its parts are gone. IO.
 * Thread: one at a time. */
#ifndef TACHO_STORE_S3_FETCH_H
#define TACHO_STORE_S3_FETCH_H

#include "net/s3_client.h"

struct s3_fetch_file {
    struct s3_name name;
    struct s3_object object;
    const char *path;
};

struct s3_fetch_options {
    uint64_t range_bytes; /* 0 = LIMIT_S3_RANGE_BYTES */
    /* What of all files is there; never two at a time, but from other threads. NULL: nobody asks */
    void (*show)(void *ctx, uint64_t n_bytes, uint64_t of_bytes);
    void *ctx;
};

MUST_CHECK bool s3_fetch(const struct s3_access *s, const struct s3_fetch_file *files, uint32_t n,
                         const struct s3_fetch_options *o, struct err *e);

#endif
