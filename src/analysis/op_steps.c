/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_steps.h"

#include <stdlib.h>

#include "analysis/op_collect.h"
#include "analysis/op_rates.h"
#include "analysis/steps.h"

#define ANY_PLANE UINT32_MAX

static bool put_step(struct op_steps *s, const struct op_db *db, struct op_step x, uint32_t *at,
                     struct err *e)
{
    const uint32_t *known = map_u64_u32_get(&s->by_number, (uint64_t)x.number);
    if (known == NULL) {
        if (!ARENA_PUSH(db->arena, s->items, s->n, s->capacity))
            return arena_full(db->arena, e);
        s->items[s->n - 1] = x;
        *map_u64_u32_put(&s->by_number, (uint64_t)x.number) = s->n - 1;
    }
    *at = known == NULL ? s->n - 1 : *known;
    struct op_step *step = &s->items[*at];
    step->longest_ps = x.longest_ps > step->longest_ps ? x.longest_ps : step->longest_ps;
    return true;
}

static bool put_window(struct op_steps *s, const struct op_db *db, struct op_window w,
                       struct err *e)
{
    if (!ARENA_PUSH(db->arena, s->windows, s->n_windows, s->windows_capacity))
        return arena_full(db->arena, e);
    s->windows[s->n_windows - 1] = w;
    return true;
}

static bool enter_core(struct op_steps *s, const struct op_db *db, const struct step_core *c,
                       struct err *e)
{
    struct op_window w = {
        .plane_index = c->plane_index, .begin_ps = c->begin_ps, .end_ps = c->end_ps};
    const struct op_step step = {
        .number = c->number, .group = c->group, .longest_ps = c->end_ps - c->begin_ps};
    return put_step(s, db, step, &w.step, e) && put_window(s, db, w, e);
}

static bool enter_marker(struct op_steps *s, const struct op_db *db, const struct step *m,
                         struct err *e)
{
    struct op_window w = {.plane_index = ANY_PLANE,
                          .begin_ps = m->start_ps,
                          .end_ps = op_add(m->start_ps, m->dur_ps)};
    const struct op_step step = {
        .number = m->number, .group = m->group, .name = m->name, .longest_ps = m->dur_ps};
    if (!put_step(s, db, step, &w.step, e) || !put_window(s, db, w, e))
        return false;
    if (m->group >= 0 && (uint32_t)m->group < s->n_groups)
        s->of_group[m->group] = w.step;
    return true;
}

static int by_plane(const void *x, const void *y)
{
    const struct op_window *a = x, *b = y;
    if (a->plane_index != b->plane_index)
        return a->plane_index < b->plane_index ? -1 : 1;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps ? -1 : 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

bool op_steps_enter(struct op_steps *s, const struct trace *t, const struct grouping *g,
                    const struct op_db *db, struct err *e)
{
    struct host_steps steps;
    s->n_windows = s->hint = 0;
    s->n_groups = g == NULL ? 0 : g->n_groups;
    s->of_group = ARENA_ARRAY(db->arena, uint32_t, s->n_groups);
    if (s->of_group == NULL && s->n_groups > 0)
        return arena_full(db->arena, e);
    for (uint32_t i = 0; i < s->n_groups; i++)
        s->of_group[i] = UINT32_MAX;
    if (!steps_of(t, g, db->arena, &steps, e))
        return false;
    for (uint32_t i = 0; i < steps.n_cores; i++)
        if (!enter_core(s, db, &steps.cores[i], e))
            return false;
    for (uint32_t i = 0; i < steps.n && steps.n_cores == 0; i++)
        if (!enter_marker(s, db, &steps.items[i], e))
            return false;
    if (s->n_windows > 1)
        qsort(s->windows, s->n_windows, sizeof *s->windows, by_plane);
    return true;
}

static bool begins_after(const struct op_window *w, uint32_t plane_index, uint64_t start_ps)
{
    return w->plane_index != plane_index ? w->plane_index > plane_index : w->begin_ps > start_ps;
}

struct op_step *op_steps_at(struct op_steps *s, uint32_t plane_index, uint64_t start_ps)
{
    if (s == NULL || s->n_windows == 0)
        return NULL;
    if (s->windows[s->n_windows - 1].plane_index == ANY_PLANE)
        plane_index = ANY_PLANE;
    uint32_t at = s->hint; /* the last window that begins at start_ps or before is it */
    if (begins_after(&s->windows[at], plane_index, start_ps) ||
        (at + 1 < s->n_windows && !begins_after(&s->windows[at + 1], plane_index, start_ps))) {
        uint32_t low = 0, high = s->n_windows;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (begins_after(&s->windows[middle], plane_index, start_ps))
                high = middle;
            else
                low = middle + 1;
        }
        if (low == 0)
            return NULL;
        at = s->hint = low - 1;
    }
    const struct op_window *w = &s->windows[at];
    return w->plane_index == plane_index && start_ps < w->end_ps ? &s->items[w->step] : NULL;
}

struct op_step *op_steps_of_group(const struct op_steps *s, int32_t group)
{
    if (s == NULL || group < 0 || (uint32_t)group >= s->n_groups ||
        s->of_group[group] == UINT32_MAX)
        return NULL;
    return &s->items[s->of_group[group]];
}

void op_step_add(struct op_step *step, const struct op_metrics *once, uint64_t self_ps,
                 uint64_t stall_ps, bool runs_others)
{
    struct op_metrics *sum = op_is_feed(once) ? &step->feeds : &step->work;
    sum->self_ps = op_add(sum->self_ps, self_ps);
    sum->dma_stall_ps = op_add(sum->dma_stall_ps, stall_ps);
    if (!runs_others)
        op_work_add(sum, once, 1);
}

const struct op_metrics *op_metrics_once(struct op_db *db, struct op_metrics *m)
{
    if (m->once != NULL)
        return m->once;
    struct op_metrics *once = ARENA_NEW(db->arena, struct op_metrics);
    if (once == NULL)
        return NULL;
    *once = (struct op_metrics){
        .category = m->category, .module = m->module, .instruction = m->instruction};
    op_metrics_add_cost(once, 1);
    m->once = once;
    return once;
}

void op_steps_release(struct op_steps *s)
{
    if (s != NULL)
        map_u64_u32_release(&s->by_number);
}
