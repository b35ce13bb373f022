/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects below a prefix are the profile session that it names. As profile_find has it for folders:
 * what lies in the prefix itself, else the newest session below it; XSpaces, and only without any the traces in
 * other formats. By their names: no object is opened for this. Thread: one at a time. */
#ifndef TACHO_JOBS_S3_SESSION_H
#define TACHO_JOBS_S3_SESSION_H

#include "net/s3_client.h"

struct s3_session {
    str folder;              /* its key, with the slash at its end; empty: the bucket itself */
    struct s3_listed *files; /* in the order of their keys */
    uint32_t n_files;
};

/* Of a listing; items is reordered and lives on in out. NOT_FOUND when there is none. Borrows all. */
MUST_CHECK bool s3_session_choose(struct s3_listed *items, uint32_t n, str prefix,
                                  struct s3_session *out, struct err *e);
/* Lists all below name->key, which is empty or ends with a slash, and chooses; in a. */
MUST_CHECK bool s3_session_find(const struct s3_access *s, const struct s3_name *name,
                                struct arena *a, struct s3_session *out, struct err *e);

#endif
