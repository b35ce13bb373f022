/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_column.h"

/* One store of a known size for each value: what it writes too much the next one overwrites. */
#define PACK(bytes)                                                                                \
    case bytes:                                                                                    \
        for (uint32_t i = 0; i < n; i++, p += (bytes)) {                                           \
            const uint64_t x = v[i] - least;                                                       \
            memcpy(p, &x, 8);                                                                      \
        }                                                                                          \
        break

/* Sixteen bytes of numbers at once, or thirty-two where the processor can; found out when the program is loaded, which
 * is too early for code that a sanitizer has been through. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&      \
    !defined(__clang__)
#define FOR_WIDE_PROCESSORS __attribute__((target_clones("avx2", "default")))
#else
#define FOR_WIDE_PROCESSORS
#endif

FOR_WIDE_PROCESSORS
size_t trace_column_pack(const uint64_t *v, uint32_t n, uint8_t *out)
{
    uint64_t least = n == 0 ? 0 : v[0], most = least;
    for (uint32_t i = 1; i < n; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    unsigned width = 0;
    for (uint64_t rest = most - least; rest != 0; rest >>= 8)
        width++;
    out[0] = (uint8_t)width;
    memcpy(out + 1, &least, 8);
    uint8_t *p = out + TRACE_COLUMN_HEAD;
    switch (width) {
        PACK(1);
        PACK(2);
        PACK(3);
        PACK(4);
        PACK(5);
        PACK(6);
        PACK(7);
        PACK(8);
    default:
        break;
    }
    return (size_t)(p - out);
}

size_t trace_column_read(struct trace_column *c, const uint8_t *p, size_t left, uint32_t n)
{
    if (left < TRACE_COLUMN_HEAD || p[0] > 8 || (size_t)p[0] * n > left - TRACE_COLUMN_HEAD)
        return 0;
    c->width = p[0];
    c->mask = p[0] == 0 ? 0 : UINT64_MAX >> (64 - 8 * p[0]);
    memcpy(&c->least, p + 1, 8);
    c->p = p + TRACE_COLUMN_HEAD;
    return TRACE_COLUMN_HEAD + (size_t)c->width * n;
}
