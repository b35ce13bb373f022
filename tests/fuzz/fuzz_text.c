/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, durations, sizes and times as people and programs write them, and the masking of what
 * looks like a secret. */
#include "base/clock.h"
#include "base/limits.h"
#include "model/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const str s = {(const char *)data, n};
    uint64_t u;
    int64_t i;
    double d;
    if (str_to_u64(s, &u) && u <= INT64_MAX)
        must(str_to_i64(s, &i) && (uint64_t)i == u);
    (void)str_to_f64(s, &d);
    (void)str_to_duration_ns(s, NS_PER_S, &i);
    (void)str_to_bytes(s, &u);
    (void)clock_parse_rfc3339(s, &i);
    struct arena a;
    arena_init(&a, "fuzz", LIMIT_ARENA_REQUEST_BYTES);
    const str masked = secret_mask(&a, S("name"), s);
    must(masked.n == 0 || masked.p != NULL);
    (void)secret_key(s);
    arena_release(&a);
    return 0;
}
