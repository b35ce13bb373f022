/* SPDX-License-Identifier: Apache-2.0 */
/* What an s3:// address names, brought into the cache folder, so that a parser without a network can read it: one
 * object, or the profile session that lies below a prefix (the newest, as profile_find has it).
 *
 *     struct s3_place p;
 *     if (!s3_place_bring(&p, "s3://bucket/runs/", &wish, e)) ...
 *     ... profile_find(&source, p.path, e) ...
 *     s3_place_release(&p);
 *
 * In the cache folder:
 *     s3/<hash of endpoint, bucket, key, ETag and size>/<file>            an object, whole
 *     s3/<hash of all of them>/<session>/<file> -> ../../<hash>/<file>    the files of a session
 * An object of the same ETag is not fetched twice: one HEAD (a listing of a prefix) says that it is there. A replaced
 * object has another ETag, so another place, and another index. What was not opened for longest is deleted
 * when all of it would be more than most_bytes. Each entry has a lock, held until release: nobody
 * deletes what another process is reading, and those who want the same object wait for the first.
 * Thread: one at a time, and many processes. */
#ifndef TACHO_JOBS_S3_PLACE_H
#define TACHO_JOBS_S3_PLACE_H

#include "jobs/index_place.h"
#include "net/s3_client.h"

struct s3_wish {
    const struct s3_access *access;
    const struct index_places *places;
    uint64_t most_bytes;                                          /* of all that is kept */
    void (*show)(void *ctx, uint64_t n_bytes, uint64_t of_bytes); /* as s3_fetch_options has it */
    void *ctx;
};

struct s3_place {
    struct arena arena;
    const char *path; /* a file, or the folder of a session */
    int *locks;       /* owned */
    uint32_t n_locks, capacity;
};

/* Errors: of net/s3_client.h; NOT_FOUND (nothing there, no profile below it); LIMIT (more than most_bytes, too many
 * objects); CONFLICT (replaced again and again while it was read). p is empty on failure. */
MUST_CHECK bool s3_place_bring(struct s3_place *p, const char *address, const struct s3_wish *w,
                               struct err *e);
void s3_place_release(struct s3_place *p);

#endif
