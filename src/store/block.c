/* SPDX-License-Identifier: Apache-2.0 */
#include "store/block.h"

#include <math.h>
#include <zstd.h>

#define RAW_BYTES_MAX (BLOCK_POINTS_MAX * 24 + 4096)
#define ZSTD_LEVEL 3

void block_bucket_begin(struct block_bucket *b)
{
    *b = (struct block_bucket){.min = NAN, .max = NAN, .step = -1};
}

void block_bucket_merge(struct block_bucket *b, const struct block_bucket *more)
{
    if (more->count == 0)
        return;
    if (b->count == 0 || more->from_ns < b->from_ns)
        b->from_ns = more->from_ns;
    if (b->count == 0 || more->to_ns >= b->to_ns) {
        b->to_ns = more->to_ns;
        b->step = more->step;
    }
    b->min = fmin(b->min, more->min); /* fmin answers the other one when one is NaN */
    b->max = fmax(b->max, more->max);
    b->sum += more->sum;
    b->count += more->count;
    b->n_finite += more->n_finite;
}

void block_bucket_add(struct block_bucket *b, const struct block_point *p)
{
    const bool finite = isfinite(p->value);
    const double v = finite ? p->value : NAN;
    const struct block_bucket one = {p->t_ns, p->t_ns, v, v, finite ? v : 0.0, p->step, 1, finite};
    block_bucket_merge(b, &one);
}

static bool compress(const void *p, size_t n, struct arena *a, str *out, struct err *e)
{
    const size_t bound = ZSTD_compressBound(n);
    char *to = ARENA_ARRAY(a, char, bound);
    if (to == NULL)
        return arena_full(a, e);
    const size_t size = ZSTD_compress(to, bound, p, n, ZSTD_LEVEL);
    if (ZSTD_isError(size))
        return err_set(e, ERR_INTERNAL, "cannot compress a block: %s", ZSTD_getErrorName(size));
    *out = (str){to, size};
    return true;
}

static bool expand(str in, size_t max_bytes, struct arena *a, str *out, struct err *e)
{
    const unsigned long long n = ZSTD_getFrameContentSize(in.p, in.n);
    if (n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR || n > max_bytes)
        return err_set(e, ERR_PARSE, "not a block of ours");
    char *to = arena_alloc(a, (size_t)n + 1, 16);
    if (to == NULL)
        return arena_full(a, e);
    const size_t size = ZSTD_decompress(to, (size_t)n, in.p, in.n);
    if (ZSTD_isError(size) || size != n)
        return err_set(e, ERR_PARSE, "a block that does not decompress");
    *out = (str){to, size};
    return true;
}

static bool encode_points(const struct block_point *p, uint32_t n, struct arena *a, str *out,
                          struct err *e)
{
    const size_t n_words = 1 + (size_t)n * 3;
    uint64_t *words = ARENA_ARRAY(a, uint64_t, n_words);
    if (words == NULL)
        return arena_full(a, e);
    words[0] = n;
    uint64_t last_t = 0, last_step = 0;
    for (uint32_t i = 0; i < n; i++) {
        words[1 + i] = (uint64_t)p[i].t_ns - last_t;
        memcpy(&words[1 + n + i], &p[i].value, sizeof p[i].value);
        words[1 + 2 * (size_t)n + i] = (uint64_t)p[i].step - last_step;
        last_t = (uint64_t)p[i].t_ns;
        last_step = (uint64_t)p[i].step;
    }
    return compress(words, n_words * sizeof *words, a, out, e);
}

static bool encode_levels(const struct block_point *p, uint32_t n, struct arena *a, str *out,
                          struct err *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < BLOCK_LEVELS; i++)
        bytes += 8 + (n + block_factors[i] - 1) / block_factors[i] * sizeof(struct block_bucket);
    char *raw = arena_alloc(a, bytes, 8);
    if (raw == NULL)
        return arena_full(a, e);
    size_t at = 0;
    for (size_t i = 0; i < BLOCK_LEVELS; i++) {
        const uint32_t factor = block_factors[i];
        const uint32_t head[2] = {factor, (n + factor - 1) / factor};
        memcpy(raw + at, head, sizeof head);
        at += sizeof head;
        for (uint32_t from = 0; from < n; from += factor) {
            struct block_bucket b;
            block_bucket_begin(&b);
            for (uint32_t k = from; k < n && k < from + factor; k++)
                block_bucket_add(&b, &p[k]);
            memcpy(raw + at, &b, sizeof b);
            at += sizeof b;
        }
    }
    return compress(raw, at, a, out, e);
}

bool block_encode(const struct block_point *p, uint32_t n, struct arena *a, str *points,
                  str *levels, struct err *e)
{
    must(n > 0 && n <= BLOCK_POINTS_MAX);
    return encode_points(p, n, a, points, e) && encode_levels(p, n, a, levels, e);
}

bool block_decode_points(str points, struct arena *a, struct block_point **out, uint32_t *n,
                         struct err *e)
{
    str raw;
    if (!expand(points, RAW_BYTES_MAX, a, &raw, e))
        return false;
    uint64_t count = 0;
    if (raw.n >= sizeof count)
        memcpy(&count, raw.p, sizeof count);
    if (count == 0 || count > BLOCK_POINTS_MAX || raw.n != (1 + count * 3) * sizeof count)
        return err_set(e, ERR_PARSE, "a block of points with a wrong length");
    *out = ARENA_ARRAY(a, struct block_point, count);
    if (*out == NULL)
        return arena_full(a, e);
    const uint64_t *words = (const uint64_t *)(const void *)raw.p;
    uint64_t t = 0, step = 0;
    for (uint64_t i = 0; i < count; i++) {
        t += words[1 + i];
        step += words[1 + 2 * count + i];
        (*out)[i].t_ns = (int64_t)t;
        (*out)[i].step = (int64_t)step;
        memcpy(&(*out)[i].value, &words[1 + count + i], sizeof(double));
    }
    *n = (uint32_t)count;
    return true;
}

bool block_decode_level(str levels, uint32_t factor, struct arena *a, struct block_bucket **out,
                        uint32_t *n, struct err *e)
{
    str raw;
    if (!expand(levels, RAW_BYTES_MAX, a, &raw, e))
        return false;
    while (raw.n >= 8) {
        uint32_t head[2];
        memcpy(head, raw.p, sizeof head);
        const uint64_t bytes = (uint64_t)head[1] * sizeof(struct block_bucket);
        if (bytes > raw.n - 8)
            return err_set(e, ERR_PARSE, "a block with a level that ends early");
        if (head[0] == factor) {
            *out = ARENA_ARRAY(a, struct block_bucket, (size_t)head[1] + 1);
            if (*out == NULL)
                return arena_full(a, e);
            memcpy(*out, raw.p + 8, (size_t)bytes);
            *n = head[1];
            return true;
        }
        raw = str_sub(raw, 8 + (size_t)bytes, raw.n);
    }
    return err_set(e, ERR_PARSE, "a block without a level of %u points", factor);
}
