/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /api/v1/journal: the header record of a journal, then whole records of the same
 * journal in any order of their numbers; Zstandard when the content encoding says so. Hostile
 * input: every record is checked, and a body with one bad byte is refused as a whole, with its
 * position. Source: docs/formats/api.md "Journal ingest". Thread: any. */
#ifndef TACHO_SERVER_INGEST_BODY_H
#define TACHO_SERVER_INGEST_BODY_H

#include "journal/reader.h"

struct ingest_body {
    struct journal_info info;
    str header;  /* the header record */
    str records; /* all records, the header too */
    uint64_t n_records;
};

/* Borrows body, or allocates in a when it is compressed. */
MUST_CHECK bool ingest_body_parse(struct ingest_body *out, str body, bool is_zstd, struct arena *a,
                                  struct err *e);

#endif
