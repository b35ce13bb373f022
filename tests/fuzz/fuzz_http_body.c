/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /api/v1/journal, plain and (first byte 'z') compressed. */
#include "base/limits.h"
#include "server/ingest_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct ingest_body body;
    struct err e = {0};
    struct arena a;
    const bool is_zstd = n > 0 && data[0] == 'z';
    const str bytes = {(const char *)data, n};
    arena_init(&a, "fuzz", LIMIT_ARENA_REQUEST_BYTES);
    if (ingest_body_parse(&body, is_zstd ? str_sub(bytes, 1, n) : bytes, is_zstd, &a, &e)) {
        must(body.header.n <= body.records.n && body.n_records > 0);
        must(body.info.run[0] != '\0');
    } else {
        must(e.code != ERR_NONE && e.msg[0] != '\0');
    }
    arena_release(&a);
    return 0;
}
