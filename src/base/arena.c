/* SPDX-License-Identifier: Apache-2.0 */
#define TACHO_ARENA_C
#include "base/arena.h"

#include <stdarg.h>

#include "base/limits.h"

#define CHUNK_LEAST_BYTES ((size_t)16 << 10)
#define CHUNK_MOST_BYTES ((size_t)4 << 20)

struct arena_chunk {
    struct arena_chunk *older;
    size_t size;  /* bytes of data */
    size_t used;  /* bytes given out */
    size_t dirty; /* bytes above this were never given out, so they are zero still */
    _Alignas(64) char data[];
};

void arena_init(struct arena *a, const char *name, size_t cap_bytes)
{
    *a = (struct arena){
        .name = name,
        .cap_bytes = cap_bytes == 0 ? (size_t)LIMIT_ARENA_DEFAULT_BYTES : cap_bytes,
    };
}

static void drop_chunk(struct arena *a)
{
    struct arena_chunk *c = a->chunk;
    a->chunk = c->older;
    a->used_bytes -= c->size;
    free(a->spare);
    c->used = 0;
    a->spare = c;
}

void arena_release(struct arena *a)
{
    while (a->chunk != NULL)
        drop_chunk(a);
    free(a->spare);
    a->spare = NULL;
    a->overflow = false;
}

/* A chunk with room for n bytes, within the cap: a large one for small requests, an exact one
 * where the cap is near. */
static bool add_chunk(struct arena *a, size_t n)
{
    size_t cap = a->cap_bytes == 0 ? (size_t)LIMIT_ARENA_DEFAULT_BYTES : a->cap_bytes;
    size_t size = a->chunk == NULL ? CHUNK_LEAST_BYTES : a->chunk->size * 2;
    if (size > CHUNK_MOST_BYTES)
        size = CHUNK_MOST_BYTES;
    if (size < n)
        size = n;
    const size_t left = cap - (a->used_bytes < cap ? a->used_bytes : cap);
    if (size > left)
        size = left;
    if (size < n)
        return false;
    if (a->spare != NULL && a->spare->size >= n && a->spare->size <= left) {
        struct arena_chunk *c = a->spare;
        a->spare = NULL;
        c->older = a->chunk;
        a->chunk = c;
        a->used_bytes += c->size;
        return true;
    }
    struct arena_chunk *c = calloc(1, sizeof *c + size);
    if (c == NULL) {
        fprintf(stderr, "tacho: out of memory (%zu bytes for '%s')\n", size, a->name);
        abort();
    }
    c->size = size;
    c->older = a->chunk;
    a->chunk = c;
    a->used_bytes += size;
    return true;
}

/* Bytes to skip so that the next allocation of c is aligned. */
static size_t padding(const struct arena_chunk *c, size_t align)
{
    return (size_t)(-(uintptr_t)(c->data + c->used)) & (align - 1);
}

void *arena_alloc(struct arena *a, size_t n, size_t align)
{
    struct arena_chunk *c = a->chunk;
    if (c == NULL || padding(c, align) > c->size - c->used ||
        n > c->size - c->used - padding(c, align)) {
        size_t need;
        if (__builtin_add_overflow(n, align, &need) || !add_chunk(a, need)) {
            a->overflow = true;
            return NULL;
        }
        c = a->chunk;
    }
    const size_t at = c->used + padding(c, align);
    c->used = at + n;
    if (at < c->dirty)
        memset(c->data + at, 0, (c->dirty < c->used ? c->dirty : c->used) - at);
    if (c->dirty < c->used)
        c->dirty = c->used;
    return c->data + at;
}

void *arena_array(struct arena *a, size_t count, size_t size, size_t align)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) {
        a->overflow = true;
        return NULL;
    }
    return arena_alloc(a, n, align);
}

void *arena_grow(struct arena *a, const void *old, size_t old_count, size_t new_count, size_t size,
                 size_t align)
{
    void *p = arena_array(a, new_count, size, align);
    if (p != NULL && old_count > 0)
        memcpy(p, old, (old_count < new_count ? old_count : new_count) * size);
    return p;
}

bool arena_push_grow(struct arena *a, void **array, size_t count, uint32_t *capacity, size_t size)
{
    const uint64_t wanted = *capacity == 0 ? 8 : (uint64_t)*capacity * 2;
    if (wanted > UINT32_MAX) {
        a->overflow = true;
        return false;
    }
    void *grown = arena_grow(a, *array, count, (size_t)wanted, size, _Alignof(max_align_t));
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = (uint32_t)wanted;
    return true;
}

char *arena_cstr(struct arena *a, str s)
{
    char *p = arena_array(a, s.n + 1, 1, 1);
    if (p != NULL && s.n > 0)
        memcpy(p, s.p, s.n);
    return p;
}

str arena_str(struct arena *a, str s)
{
    const char *p = arena_cstr(a, s);
    return (str){p, p == NULL ? 0 : s.n};
}

str arena_printf(struct arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1, 1);
    if (p != NULL)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    return (str){p, p == NULL ? 0 : (size_t)n};
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){a->chunk, a->chunk == NULL ? 0 : a->chunk->used};
}

void arena_reset(struct arena *a, struct arena_mark m)
{
    while (a->chunk != NULL && a->chunk != m.chunk)
        drop_chunk(a);
    if (a->chunk != NULL)
        a->chunk->used = m.used;
}

bool arena_full(const struct arena *a, struct err *e)
{
    const size_t cap = a->cap_bytes == 0 ? (size_t)LIMIT_ARENA_DEFAULT_BYTES : a->cap_bytes;
    return err_set(e, ERR_LIMIT, "'%s' needs more memory than its limit of %zu MiB",
                   a->name == NULL ? "arena" : a->name, cap >> 20);
}
