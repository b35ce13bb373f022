/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

void *map_alloc(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (p == NULL) {
        fprintf(stderr, "tacho: out of memory (%zu slots of %zu bytes)\n", count, size);
        abort();
    }
    return p;
}

void map_free(void *p)
{
    free(p);
}

void interner_init(struct interner *in, struct arena *a)
{
    *in = (struct interner){.arena = a};
    if (ARENA_PUSH(a, in->strings, in->n, in->capacity))
        in->strings[0] = (str){0};
}

void interner_release(struct interner *in)
{
    map_str_u32_release(&in->ids);
    *in = (struct interner){0};
}

uint32_t interner_find(const struct interner *in, str s)
{
    if (s.n == 0)
        return 0;
    const uint32_t *id = map_str_u32_get(&in->ids, s);
    return id == NULL ? UINT32_MAX : *id;
}

uint32_t interner_id(struct interner *in, str s)
{
    const uint32_t found = interner_find(in, s);
    if (found != UINT32_MAX)
        return found;
    const str kept = arena_str(in->arena, s);
    if (kept.p == NULL || in->n == UINT32_MAX - 1 ||
        !ARENA_PUSH(in->arena, in->strings, in->n, in->capacity))
        return UINT32_MAX;
    const uint32_t id = in->n - 1;
    in->strings[id] = kept;
    *map_str_u32_put(&in->ids, kept) = id;
    return id;
}
