/* SPDX-License-Identifier: Apache-2.0 */
/* Metric blocks of a damaged store: points (first byte 'p') or the buckets
 * of its first level ('l') or second. */
#include "base/limits.h"
#include "store/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct err e = {0};
    struct block_point *points;
    struct block_bucket *buckets;
    uint32_t n_out = 0;
    if (n == 0)
        return 0;
    const str bytes = {(const char *)data + 1, n - 1};
    arena_init(&a, "fuzz", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = data[0] == 'p' ? block_decode_points(bytes, &a, &points, &n_out, &e)
                                   : block_decode_level(bytes, block_factors[data[0] != 'l'], &a,
                                                        &buckets, &n_out, &e);
    must(ok || (e.code != ERR_NONE && e.msg[0] != '\0'));
    arena_release(&a);
    return 0;
}
