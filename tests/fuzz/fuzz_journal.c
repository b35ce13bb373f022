/* SPDX-License-Identifier: Apache-2.0 */
/* Journal records in memory: parsed one after the other with resynchronisation, and decoded. */
#include "journal/reader.h"
#include "model/record.h"

#define FUZZ_ARENA_BYTES (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct record_set s;
    struct err e = {0};
    record_set_init(&s, FUZZ_ARENA_BYTES);
    if (record_set_add_process(&s) == NULL)
        return 0;
    for (size_t at = 0; at < n;) {
        struct journal_record rec = {0};
        struct journal_info info;
        const int64_t used = journal_parse(data + at, n - at, &rec);
        if (used > 0) {
            struct err ignored = {0};
            const bool headed = journal_parse_header(&rec, &info, &ignored);
            (void)headed;
            if (!journal_decode_record(&s, 0, &rec, &e))
                break;
        } else { /* the checksum hides the payloads from the fuzzer: decode what stands here too */
            const uint8_t *p = data + at;
            struct journal_record bare = {
                .type = (enum journal_type)(p[0] % 20), .payload = p + 1, .n = n - at - 1};
            struct err ignored = {0};
            const bool headed = journal_parse_header(&bare, &info, &ignored);
            (void)headed;
            if (!journal_decode_record(&s, 0, &bare, &e))
                break;
        }
        at += used > 0 ? (size_t)used : n / 64 + 1;
    }
    record_set_sort(&s);
    record_set_release(&s);
    return 0;
}
