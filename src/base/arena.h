/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory for one request, trace or analysis, given back in one call.
 *
 *     struct arena a;
 *     arena_init(&a, "overview", LIMIT_ARENA_TOOL_BYTES);
 *     struct row *rows = ARENA_ARRAY(&a, struct row, n);      zeroed; NULL beyond the cap
 *     const struct arena_mark m = arena_mark(&a); ... arena_reset(&a, m);   scratch
 *     arena_release(&a);
 *
 * An allocation beyond the cap answers NULL and sets `overflow`; the caller reports it with
 * arena_full(a, e), which is ERR_LIMIT and names the arena. A real malloc failure is fatal.
 * Thread: one at a time. */
#ifndef TACHO_BASE_ARENA_H
#define TACHO_BASE_ARENA_H

#include "base/err.h"
#include "base/str.h"

struct arena_chunk;

struct arena {
    const char *name;          /* for messages and statistics; static text */
    size_t cap_bytes;          /* most bytes of chunks; 0 = LIMIT_ARENA_DEFAULT_BYTES */
    size_t used_bytes;         /* bytes of chunks held now */
    struct arena_chunk *chunk; /* newest chunk, owned */
    struct arena_chunk
        *spare;    /* one that a reset gave back, or NULL: scratch work at the end of a chunk
                                  would else fetch and free one each time */
    bool overflow; /* an allocation was refused */
};

struct arena_mark {
    struct arena_chunk *chunk;
    size_t used;
};

void arena_init(struct arena *a, const char *name, size_t cap_bytes);
void arena_release(struct arena *a); /* frees all; a is empty and usable again */

/* n zeroed bytes, aligned to `align` (a power of two). NULL beyond the cap. */
void *arena_alloc(struct arena *a, size_t n, size_t align);
/* count * size, overflow-checked. */
void *arena_array(struct arena *a, size_t count, size_t size, size_t align);
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type), _Alignof(type)))
#define ARENA_ARRAY(a, type, count)                                                                \
    ((type *)arena_array((a), (count), sizeof(type), _Alignof(type)))

/* A larger copy of an array whose old copy stays in the arena: for doubling growth. */
void *arena_grow(struct arena *a, const void *old, size_t old_count, size_t new_count, size_t size,
                 size_t align);
/* Appends room for one element to (array, count, capacity); evaluates to true, or false beyond
 * the cap. Elements are zeroed. */
#define ARENA_PUSH(a, array, count, capacity)                                                      \
    ((count) < (capacity) ? ((count)++, true)                                                      \
     : arena_push_grow((a), (void **)&(array), (size_t)(count), &(capacity), sizeof *(array))      \
         ? ((count)++, true)                                                                       \
         : false)
bool arena_push_grow(struct arena *a, void **array, size_t count, uint32_t *capacity, size_t size);

/* Copies into the arena. The copy is NUL-terminated (the NUL is not counted). p NULL beyond cap. */
str arena_str(struct arena *a, str s);
char *arena_cstr(struct arena *a, str s);
str arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);

struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark m);

/* Sets ERR_LIMIT naming the arena and its cap; returns false. */
bool arena_full(const struct arena *a, struct err *e);
#if defined(__clang_analyzer__) && !defined(TACHO_ARENA_C)
/* As in base/err.h. An array that has an element is not NULL. */
#define arena_full(...) ((void)arena_full(__VA_ARGS__), false)
#undef ARENA_PUSH
#define ARENA_PUSH(a, array, count, capacity)                                                      \
    (arena_push_grow((a), (void **)&(array), (size_t)(count), &(capacity), sizeof *(array)) &&     \
     (array) != NULL && ((count)++, true))
#endif

#endif
