/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of replicas, in the four forms that XLA has written them (HloInstructionProto):
 *
 *   49 replica_groups, repeated                 {replica_ids 1}, a group a message; until 2024
 *   87 collective_device_list                   {groups as above 1; the form of 92 as field 2, 2024 to 2025}
 *   92 iota_collective_device_list              {groups 1, devices a group 2, dims 3, perm 4}
 *   93 mesh_axes_replica_group_list             {mesh 1, axes 2}
 *
 * The short forms stay short; model/hlo_groups.c finds a device's group in them. What contradicts itself
 * is an unknown group, not a broken module. */
#include "format/hlo_inside.h"

static struct wire inside(const struct wire *w)
{
    return wire_from(w->bytes, wire_bytes_pos(w));
}

bool hlo_take_numbers(struct arena *a, const struct wire *w, struct hlo_numbers *out, struct err *e)
{
    uint32_t more = 1;
    uint64_t v;
    if (w->type == WIRE_LEN) {
        more = 0;
        for (str rest = w->bytes; wire_packed_next(&rest, &v);)
            more++;
    }
    int64_t *items =
        arena_grow(a, out->items, out->n, (size_t)out->n + more, sizeof *items, _Alignof(int64_t));
    if (items == NULL)
        return more == 0 || arena_full(a, e);
    if (w->type == WIRE_LEN)
        for (str rest = w->bytes; wire_packed_next(&rest, &v);)
            items[out->n++] = (int64_t)v;
    else
        items[out->n++] = (int64_t)w->number;
    out->items = items;
    return true;
}

static bool parse_list(struct arena *a, struct wire w, struct hlo_groups *g, struct err *e)
{
    if (!ARENA_PUSH(a, g->lists, g->n_lists, g->lists_capacity))
        return arena_full(a, e);
    while (wire_next(&w))
        if (w.field == 1 && !hlo_take_numbers(a, &w, &g->lists[g->n_lists - 1], e))
            return false;
    return wire_ok(&w, e);
}

static bool parse_iota(struct arena *a, struct wire w, struct hlo_groups *g, struct err *e)
{
    int64_t n = 0, size = 0, all, ordered;
    g->n = g->size = 0;
    g->iota = (struct hlo_iota){0};
    while (wire_next(&w)) {
        bool ok = true;
        if (w.field == 1)
            n = (int64_t)w.number;
        else if (w.field == 2)
            size = (int64_t)w.number;
        else if (w.field == 3)
            ok = hlo_take_numbers(a, &w, &g->iota.dims, e);
        else if (w.field == 4)
            ok = hlo_take_numbers(a, &w, &g->iota.perm, e);
        if (!ok)
            return false;
    }
    if (n > 0 && size > 0 && !__builtin_mul_overflow(n, size, &all) &&
        hlo_iota_numbers(&g->iota, &ordered) && ordered == all) {
        g->n = n;
        g->size = size;
    }
    return wire_ok(&w, e);
}

static bool parse_devices(struct arena *a, struct wire w, struct hlo_groups *g, struct err *e)
{
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 1 && !parse_list(a, inside(&w), g, e))
            return false;
        if (w.field == 2 && !parse_iota(a, inside(&w), g, e))
            return false;
    }
    return wire_ok(&w, e);
}

/* ---- a mesh and the axes that a collective goes over ---- */

static bool parse_axis(struct wire w, struct hlo_mesh_axis *axis, struct err *e)
{
    while (wire_next(&w)) {
        if (w.field == 1)
            axis->name = w.bytes;
        else if (w.field == 2)
            axis->size = (int64_t)w.number;
    }
    return wire_ok(&w, e);
}

static bool parse_order(struct arena *a, struct wire w, struct hlo_iota *x, struct err *e)
{
    while (wire_next(&w))
        if ((w.field == 1 || w.field == 2) &&
            !hlo_take_numbers(a, &w, w.field == 1 ? &x->dims : &x->perm, e))
            return false;
    return wire_ok(&w, e);
}

static bool parse_axes(struct arena *a, struct wire w, struct hlo_mesh *m, struct err *e)
{
    uint32_t capacity = 0;
    while (wire_next(&w)) {
        bool ok = true;
        if (w.field == 2)
            ok = hlo_take_numbers(a, &w, &m->device_ids, e);
        else if (w.type != WIRE_LEN)
            continue;
        else if (w.field == 1)
            ok = ARENA_PUSH(a, m->axes, m->n_axes, capacity)
                     ? parse_axis(inside(&w), &m->axes[m->n_axes - 1], e)
                     : arena_full(a, e);
        else if (w.field == 3)
            ok = parse_order(a, inside(&w), &m->order, e);
        if (!ok)
            return false;
    }
    return wire_ok(&w, e);
}

static bool parse_ref(struct wire w, struct hlo_axis_ref *r, struct err *e)
{
    while (wire_next(&w)) {
        if (w.field == 1)
            r->axis = (int64_t)w.number;
        if (w.field != 2 || w.type != WIRE_LEN)
            continue;
        struct wire part = inside(&w);
        r->size = -1; /* until it is said */
        while (wire_next(&part)) {
            if (part.field == 1)
                r->pre_size = (int64_t)part.number;
            else if (part.field == 2)
                r->size = (int64_t)part.number;
        }
        if (!wire_ok(&part, e))
            return false;
    }
    return wire_ok(&w, e);
}

/* A mesh as numbers in an array: each axis cut into factors, those that the collective goes over moved to the end. */
struct cutter {
    struct arena *a;
    int64_t *dims, *perm;
    uint32_t n, capacity; /* of dims */
    uint32_t *over, n_over, over_capacity;
    bool wrong; /* contradicts itself */
};

static bool cut(struct cutter *c, int64_t size, bool over)
{
    if (!ARENA_PUSH(c->a, c->dims, c->n, c->capacity))
        return false;
    c->dims[c->n - 1] = size;
    if (!over)
        return true;
    if (!ARENA_PUSH(c->a, c->over, c->n_over, c->over_capacity))
        return false;
    c->over[c->n_over - 1] = c->n - 1;
    return true;
}

/* The next part of an axis that begins at or after `from`; NULL none. */
static const struct hlo_axis_ref *next_part(const struct hlo_mesh *m, uint32_t axis, int64_t from)
{
    const struct hlo_axis_ref *best = NULL;
    for (uint32_t i = 0; i < m->n_refs; i++)
        if (m->refs[i].axis == axis && m->refs[i].pre_size >= from &&
            (best == NULL || m->refs[i].pre_size < best->pre_size))
            best = &m->refs[i];
    return best;
}

static bool cut_axis(struct cutter *c, const struct hlo_mesh *m, uint32_t axis, uint32_t *used)
{
    const int64_t all = m->axes[axis].size;
    int64_t done = 1, end;
    for (const struct hlo_axis_ref *r; (r = next_part(m, axis, done)) != NULL; ++*used) {
        const int64_t size = r->size == 0 ? all : r->size;
        if (all <= 0 || size < 1 || __builtin_mul_overflow(r->pre_size, size, &end) ||
            r->pre_size % done != 0 || all % end != 0) {
            c->wrong = true;
            return true;
        }
        if (r->pre_size != done && !cut(c, r->pre_size / done, false))
            return false;
        if (!cut(c, size, true))
            return false;
        if (end == done) { /* an axis of one device: the same part would be found again */
            ++*used;
            break;
        }
        done = end;
    }
    if (all <= 0)
        c->wrong = true;
    return c->wrong || all == done || cut(c, all / done, false);
}

static bool group_by_axes(struct arena *a, struct hlo_groups *g, struct err *e)
{
    const struct hlo_mesh *m = g->mesh;
    struct cutter c = {.a = a};
    uint32_t used = 0;
    int64_t size = 1, all, ordered;
    if (m->n_axes > HLO_AXES_MAX || m->n_refs > HLO_AXES_MAX)
        return true;
    for (uint32_t i = 0; !c.wrong && i < m->n_axes; i++)
        if (!cut_axis(&c, m, i, &used))
            return arena_full(a, e);
    if (c.wrong || used != m->n_refs || c.n == 0) /* a part that overlaps another is not used */
        return true;
    c.perm = ARENA_ARRAY(a, int64_t, c.n);
    if (c.perm == NULL)
        return arena_full(a, e);
    uint32_t at = 0, k = 0;
    for (uint32_t i = 0; i < c.n; i++) {
        if (k < c.n_over && c.over[k] == i)
            k++;
        else
            c.perm[at++] = i;
    }
    for (k = 0; k < c.n_over; k++)
        c.perm[at++] = c.over[k];
    g->iota = (struct hlo_iota){{c.dims, c.n}, {c.perm, c.n}};
    if (!hlo_iota_numbers(&g->iota, &all) ||
        (m->device_ids.n > 0 && m->device_ids.n != (uint64_t)all) ||
        (m->order.dims.n > 0 && (!hlo_iota_numbers(&m->order, &ordered) || ordered != all)))
        return true;
    for (k = 0; k < c.n_over; k++)
        size *= c.dims[c.over[k]];
    g->size = size;
    g->n = all / size;
    return true;
}

static bool parse_mesh(struct arena *a, struct wire w, struct hlo_groups *g, struct err *e)
{
    uint32_t capacity = 0;
    g->n = g->size = 0;
    g->mesh = ARENA_NEW(a, struct hlo_mesh);
    if (g->mesh == NULL)
        return arena_full(a, e);
    while (wire_next(&w)) {
        bool ok = true;
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 1)
            ok = parse_axes(a, inside(&w), g->mesh, e);
        else if (w.field == 2)
            ok = ARENA_PUSH(a, g->mesh->refs, g->mesh->n_refs, capacity)
                     ? parse_ref(inside(&w), &g->mesh->refs[g->mesh->n_refs - 1], e)
                     : arena_full(a, e);
        if (!ok)
            return false;
    }
    for (uint32_t i = 0; i < g->mesh->n_refs;
         i++) /* an absent one is all before it, and at least 1 */
        if (g->mesh->refs[i].pre_size == 0)
            g->mesh->refs[i].pre_size = 1;
    return wire_ok(&w, e) && group_by_axes(a, g, e);
}

bool hlo_parse_groups(struct arena *a, const struct wire *w, struct hlo_groups **out, struct err *e)
{
    if (*out == NULL && (*out = ARENA_NEW(a, struct hlo_groups)) == NULL)
        return arena_full(a, e);
    switch (w->field) {
    case 49:
        return parse_list(a, inside(w), *out, e);
    case 87: /* some writers put both; XLA believes the older */
        return (*out)->n_lists > 0 || parse_devices(a, inside(w), *out, e);
    case 92:
        return parse_iota(a, inside(w), *out, e);
    default:
        return parse_mesh(a, inside(w), *out, e);
    }
}
