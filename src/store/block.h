/* SPDX-License-Identifier: Apache-2.0 */
/* A metric block: up to BLOCK_POINTS_MAX points of one series in order of time, compressed, and
 * beside them levels in which 16 and 256 points are one bucket, so that a chart of months reads
 * little.
 *
 *   points:  zstd of  u64 n, then the columns t_ns[n] (differences), value[n] (f64), step[n]
 * (differences) levels:  zstd of  per level: u32 factor, u32 n, then n buckets (struct block_bucket
 * as it is)
 *
 * Little-endian. Source: docs/formats/block.md. Thread: any. */
#ifndef TACHO_STORE_BLOCK_H
#define TACHO_STORE_BLOCK_H

#include "base/arena.h"

#define BLOCK_POINTS_MAX 8192

struct block_point {
    int64_t t_ns; /* wall */
    double value; /* may be NaN: that is a value, too */
    int64_t step; /* -1 = none */
};

struct block_bucket {
    int64_t from_ns, to_ns;   /* first and last point */
    double min, max, sum;     /* of the finite values; min and max NaN when there are none */
    int64_t step;             /* of the last point */
    uint64_t count, n_finite; /* points; those with a finite value */
};
_Static_assert(sizeof(struct block_bucket) == 64, "a bucket is 64 bytes on disk");

static const uint32_t block_factors[] = {16, 256};
#define BLOCK_LEVELS (sizeof block_factors / sizeof block_factors[0])

MUST_CHECK bool block_encode(const struct block_point *p, uint32_t n, struct arena *a, str *points,
                             str *levels, struct err *e);
MUST_CHECK bool block_decode_points(str points, struct arena *a, struct block_point **out,
                                    uint32_t *n, struct err *e);
/* The buckets of that factor. */
MUST_CHECK bool block_decode_level(str levels, uint32_t factor, struct arena *a,
                                   struct block_bucket **out, uint32_t *n, struct err *e);

void block_bucket_begin(struct block_bucket *b);
void block_bucket_add(struct block_bucket *b, const struct block_point *p);
void block_bucket_merge(struct block_bucket *b, const struct block_bucket *more);

#endif
