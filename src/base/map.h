/* SPDX-License-Identifier: Apache-2.0 */
/* A typed hash map with open addressing, made by a macro, and the interner built on it.
 *
 *     MAP_DEFINE(run_map, str, struct run *, str_hash, str_eq)
 *
 *     struct run_map m = {0};                       empty; no init needed
 *     struct run **slot = run_map_put(&m, key);     found or added (value zeroed)
 *     struct run **hit = run_map_get(&m, key);      NULL when absent
 *     for (size_t i = 0; run_map_next(&m, &i);)     visits m.keys[i-1], m.values[i-1]
 *     run_map_release(&m);
 *
 * Keys and values are plain copies: a str key's bytes must outlive the map. Slots move on put.
 * Malloc failure is fatal. Thread: one at a time. */
#ifndef TACHO_BASE_MAP_H
#define TACHO_BASE_MAP_H

#include "base/arena.h"
#include "base/str.h"

/* Allocation for the maps: zeroed, fatal on failure, overflow-checked. */
__attribute__((returns_nonnull)) void *map_alloc(size_t count, size_t size);
void map_free(void *p);

static inline uint64_t map_hash_u64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}
static inline bool map_eq_u64(uint64_t a, uint64_t b)
{
    return a == b;
}

#ifdef __clang_analyzer__
#define MAP_HOLDS(m)                                                                               \
    ((m)->capacity != 0 && ((m)->used == NULL || (m)->keys == NULL || (m)->values == NULL)         \
         ? __builtin_unreachable()                                                                 \
         : (void)0)
#else
#define MAP_HOLDS(m) ((void)0) /* only a map without slots has no arrays */
#endif

#define MAP_DEFINE(NAME, KEY, VALUE, HASH, EQ)                                                     \
    struct NAME {                                                                                  \
        size_t n, capacity; /* entries; slots, a power of two or 0 */                              \
        uint8_t *used;      /* 1 = slot holds an entry */                                          \
        KEY *keys;                                                                                 \
        VALUE *values;                                                                             \
    };                                                                                             \
    __attribute__((unused)) static inline void NAME##_release(struct NAME *m)                      \
    {                                                                                              \
        map_free(m->used);                                                                         \
        map_free(m->keys);                                                                         \
        map_free(m->values);                                                                       \
        *m = (struct NAME){0};                                                                     \
    }                                                                                              \
    static inline size_t NAME##_slot(const struct NAME *m, KEY key)                                \
    {                                                                                              \
        size_t i = (size_t)HASH(key) & (m->capacity - 1);                                          \
        while (m->used[i] && !EQ(m->keys[i], key))                                                 \
            i = (i + 1) & (m->capacity - 1);                                                       \
        return i;                                                                                  \
    }                                                                                              \
    __attribute__((unused)) static inline VALUE *NAME##_get(const struct NAME *m, KEY key)         \
    {                                                                                              \
        if (m->n == 0)                                                                             \
            return NULL;                                                                           \
        const size_t i = NAME##_slot(m, key);                                                      \
        return m->used[i] ? &m->values[i] : NULL;                                                  \
    }                                                                                              \
    static inline void NAME##_grow(struct NAME *m)                                                 \
    {                                                                                              \
        MAP_HOLDS(m);                                                                              \
        const struct NAME old = *m;                                                                \
        m->capacity = old.capacity == 0 ? 16 : old.capacity * 2;                                   \
        m->used = map_alloc(m->capacity, 1);                                                       \
        m->keys = map_alloc(m->capacity, sizeof(KEY));                                             \
        m->values = map_alloc(m->capacity, sizeof(VALUE));                                         \
        for (size_t i = 0; i < old.capacity; i++) {                                                \
            if (!old.used[i])                                                                      \
                continue;                                                                          \
            const size_t to = NAME##_slot(m, old.keys[i]);                                         \
            m->used[to] = 1;                                                                       \
            m->keys[to] = old.keys[i];                                                             \
            m->values[to] = old.values[i];                                                         \
        }                                                                                          \
        map_free(old.used);                                                                        \
        map_free(old.keys);                                                                        \
        map_free(old.values);                                                                      \
    }                                                                                              \
    static inline VALUE *NAME##_put(struct NAME *m, KEY key)                                       \
    {                                                                                              \
        if (m->capacity == 0 || m->n >= m->capacity - m->capacity / 4)                             \
            NAME##_grow(m);                                                                        \
        MAP_HOLDS(m);                                                                              \
        const size_t i = NAME##_slot(m, key);                                                      \
        if (!m->used[i]) {                                                                         \
            m->used[i] = 1;                                                                        \
            m->keys[i] = key;                                                                      \
            m->n++;                                                                                \
        }                                                                                          \
        return &m->values[i];                                                                      \
    }                                                                                              \
    __attribute__((unused)) static inline bool NAME##_next(const struct NAME *m, size_t *i)        \
    {                                                                                              \
        while (*i < m->capacity)                                                                   \
            if (m->used[(*i)++])                                                                   \
                return true;                                                                       \
        return false;                                                                              \
    }                                                                                              \
    struct NAME /* so that a semicolon may follow */

MAP_DEFINE(map_str_u32, str, uint32_t, str_hash, str_eq);
MAP_DEFINE(map_u64_u32, uint64_t, uint32_t, map_hash_u64, map_eq_u64);

/* Strings to dense ids 1, 2, 3 …; id 0 is the empty string. Text lives in the given arena. */
struct interner {
    struct arena *arena; /* borrowed; holds the text and the table */
    str *strings;        /* strings[id]; strings[0] is empty */
    uint32_t n, capacity;
    struct map_str_u32 ids;
};
void interner_init(struct interner *in, struct arena *a);
void interner_release(struct interner *in);
/* The id of s, added when new. UINT32_MAX beyond the arena's cap. */
uint32_t interner_id(struct interner *in, str s);
/* The id of s, or UINT32_MAX when it was never added. */
uint32_t interner_find(const struct interner *in, str s);
static inline str interner_str(const struct interner *in, uint32_t id)
{
    return id < in->n ? in->strings[id] : (str){0};
}

#endif
