/* SPDX-License-Identifier: Apache-2.0 */
/* A packed column of numbers: frame of reference, in whole bytes, so that any value can be read alone.
 *
 *   width u8 · least u64 · n values of `width` bytes, little-endian, minus the least
 *
 * A column whose values are all equal has width 0. Values are read eight bytes at a time: behind a column
 * TRACE_COLUMN_SLACK bytes must be readable. Thread: any. */
#ifndef TACHO_MODEL_TRACE_COLUMN_H
#define TACHO_MODEL_TRACE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TRACE_COLUMN_HEAD 9
#define TRACE_COLUMN_SLACK 8
#define TRACE_COLUMN_BYTES_MAX(n) (TRACE_COLUMN_HEAD + 8 * (size_t)(n))

/* The columns of a row group, in order. */
enum trace_group_column {
    TRACE_COLUMN_START = 0,
    TRACE_COLUMN_DURATION,
    TRACE_COLUMN_SRC,
    TRACE_COLUMN_SRC_BYTES,
    TRACE_COLUMN_METADATA,
    TRACE_COLUMN_DEPTH,
    TRACE_COLUMN_OCCURRENCES,
    TRACE_GROUP_COLUMNS
};

struct trace_column {
    const uint8_t *p; /* borrows */
    uint64_t least, mask;
    uint32_t width;
};

static inline uint64_t trace_column_at(const struct trace_column *c, uint32_t i)
{
    uint64_t x;
    memcpy(&x, c->p + (size_t)i * c->width, 8);
    return (x & c->mask) + c->least;
}

/* Packs n values; answers the bytes written. Up to TRACE_COLUMN_SLACK bytes behind them may be overwritten. */
size_t trace_column_pack(const uint64_t *v, uint32_t n, uint8_t *out);
/* Reads the column at p, which may be damaged; answers its bytes, or 0. */
size_t trace_column_read(struct trace_column *c, const uint8_t *p, size_t left, uint32_t n);

#endif
