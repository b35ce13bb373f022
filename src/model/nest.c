/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nest.h"

#include "base/limits.h"
#include "base/map.h"

/* What would be open once all that ends by start_ps is gone. */
static uint32_t still_open(const struct nest_lane *l, uint64_t start_ps)
{
    uint32_t n = l->n;
    while (n > 0 && l->open[n - 1].end_ps <= start_ps)
        n--;
    return n;
}

uint32_t nest_find(struct nest *n, uint64_t start_ps, uint64_t end_ps)
{
    for (uint32_t i = 0; i < n->n; i++) {
        const uint32_t open = still_open(&n->lanes[i], start_ps);
        if (open == 0 || (n->lanes[i].open[open - 1].end_ps >= end_ps && open < LIMIT_TRACE_DEPTH))
            return i;
    }
    if (n->n == NEST_LANES)
        return NEST_NONE;
    if (n->lanes == NULL)
        n->lanes = map_alloc(NEST_LANES, sizeof *n->lanes);
    return n->n++;
}

bool nest_pop(struct nest *n, uint32_t lane, uint64_t until_ps, struct nest_open *out)
{
    struct nest_lane *l = &n->lanes[lane];
    if (l->n == 0 || l->open[l->n - 1].end_ps > until_ps)
        return false;
    *out = l->open[--l->n];
    return true;
}

void nest_push(struct nest *n, uint32_t lane, struct nest_open open)
{
    struct nest_lane *l = &n->lanes[lane];
    if (l->n == l->capacity) {
        l->capacity = l->capacity == 0 ? 16 : l->capacity * 2;
        l->open = realloc(l->open, l->capacity * sizeof *l->open);
        must(l->open != NULL);
    }
    l->open[l->n++] = open;
}

struct nest_open *nest_top(struct nest *n, uint32_t lane)
{
    struct nest_lane *l = &n->lanes[lane];
    return l->n == 0 ? NULL : &l->open[l->n - 1];
}

void nest_release(struct nest *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        free(n->lanes[i].open);
    map_free(n->lanes);
    *n = (struct nest){0};
}
