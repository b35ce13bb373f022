/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hlo.h"

bool hlo_iota_numbers(const struct hlo_iota *x, int64_t *out)
{
    const uint32_t n = x->dims.n;
    uint64_t seen = 0;
    *out = 1;
    if (n == 0 || n > HLO_AXES_MAX || (x->perm.n != 0 && x->perm.n != n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (x->dims.items[i] <= 0 || __builtin_mul_overflow(*out, x->dims.items[i], out))
            return false;
        if (x->perm.n == 0)
            continue;
        const int64_t axis = x->perm.items[i];
        if (axis < 0 || axis >= n || (seen >> axis & 1) != 0)
            return false;
        seen |= (uint64_t)1 << axis;
    }
    return true;
}

/* Where a number stands when all are read off the array in its new order. */
static bool place_of(const struct hlo_iota *x, int64_t number, int64_t *out)
{
    int64_t all, at[HLO_AXES_MAX], place = 0;
    if (!hlo_iota_numbers(x, &all) || number < 0 || number >= all)
        return false;
    for (uint32_t i = x->dims.n; i-- > 0; number /= x->dims.items[i])
        at[i] = number % x->dims.items[i];
    for (uint32_t i = 0; i < x->dims.n; i++) {
        const int64_t axis = x->perm.n == 0 ? i : x->perm.items[i];
        place = place * x->dims.items[axis] + at[axis];
    }
    *out = place;
    return true;
}

static bool place_in_mesh(const struct hlo_mesh *m, int64_t device, int64_t *out)
{
    if (m->device_ids.n == 0 && m->order.dims.n > 0)
        return place_of(&m->order, device, out);
    *out = device;
    if (m->device_ids.n == 0)
        return true;
    for (uint32_t i = 0; i < m->device_ids.n; i++)
        if (m->device_ids.items[i] == device) {
            *out = i;
            return true;
        }
    return false;
}

int64_t hlo_groups_count(const struct hlo_groups *g)
{
    return g == NULL ? 0 : g->n_lists > 0 ? g->n_lists : g->n;
}

int64_t hlo_group_size(const struct hlo_groups *g, int64_t i)
{
    if (i < 0 || i >= hlo_groups_count(g))
        return 0;
    return g->n_lists > 0 ? g->lists[i].n : g->size;
}

int64_t hlo_groups_largest(const struct hlo_groups *g)
{
    int64_t n = hlo_group_size(g, 0);
    for (uint32_t i = 1; n > 0 && i < g->n_lists; i++)
        n = g->lists[i].n > n ? g->lists[i].n : n;
    return n;
}

int64_t hlo_groups_devices(const struct hlo_groups *g)
{
    int64_t n = 0;
    if (g == NULL || g->n_lists == 0)
        return g == NULL ? 0 : g->n * g->size; /* checked when it was read */
    for (uint32_t i = 0; i < g->n_lists; i++)
        n += g->lists[i].n;
    return n;
}

bool hlo_group_of(const struct hlo_groups *g, int64_t device, int64_t *group)
{
    if (g == NULL)
        return false;
    for (uint32_t i = 0; i < g->n_lists; i++)
        for (uint32_t k = 0; k < g->lists[i].n; k++)
            if (g->lists[i].items[k] == device) {
                *group = i;
                return true;
            }
    int64_t place = device;
    if (g->n_lists > 0 || g->n == 0 ||
        (g->mesh != NULL && !place_in_mesh(g->mesh, device, &place)) ||
        !place_of(&g->iota, place, &place))
        return false;
    *group = place / g->size;
    return true;
}
