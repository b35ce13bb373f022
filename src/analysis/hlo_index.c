/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hlo_index.h"

static bool index_module(struct hlo_index *x, const struct trace *t, uint64_t id, str bytes,
                         struct arena *a, struct err *e)
{
    if (map_u64_u32_get(&x->by_id, id) != NULL)
        return true;
    if (!ARENA_PUSH(a, x->programs, x->n_programs, x->capacity))
        return arena_full(a, e);
    struct hlo_program *p = &x->programs[x->n_programs - 1];
    struct err ignored = {0};
    p->program_id = id;
    p->readable = t->source->hlo_module(bytes, a, &p->module, &ignored);
    if (a->overflow)
        return arena_full(a, e);
    x->n_damaged += !p->readable;
    p->name = p->module.name;
    *map_u64_u32_put(&x->by_id, id) = x->n_programs - 1;
    return true;
}

/* The stat `program_id`, else N of "module(N)", else the metadata's own id. */
static uint64_t program_id_of(const struct trace_event_metadata *md)
{
    int64_t v;
    if (trace_stat_i64(trace_stat_find(md->stats, S("program_id")), &v))
        return (uint64_t)v;
    size_t open = md->name.n;
    while (open > 0 && md->name.p[open - 1] != '(')
        open--;
    uint64_t id;
    if (open > 0 && str_ends(md->name, S(")")) &&
        str_to_u64(str_sub(md->name, open, md->name.n - 1), &id))
        return id;
    return (uint64_t)md->id;
}

bool hlo_index_add(struct hlo_index *x, const struct trace *t, struct arena *a, struct err *e)
{
    if (t->source == NULL || t->source->hlo_module == NULL)
        return true;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *plane = &t->planes[i];
        if (plane->kind != TRACE_PLANE_METADATA)
            continue;
        for (uint32_t k = 0; k < plane->n_event_metadata; k++) {
            const struct trace_event_metadata *md = &plane->event_metadata[k];
            const struct trace_stat *s = trace_stat_find(md->stats, S("Hlo Proto"));
            if (s == NULL)
                s = trace_stat_find(md->stats, S("hlo_proto"));
            if (s == NULL || s->type != TRACE_STAT_BYTES)
                continue;
            if (!index_module(x, t, program_id_of(md), s->text, a, e))
                return false;
        }
    }
    return true;
}

void hlo_index_release(struct hlo_index *x)
{
    for (uint32_t i = 0; i < x->n_programs; i++)
        hlo_module_release(&x->programs[i].module);
    map_u64_u32_release(&x->by_id);
}

const struct hlo_program *hlo_index_program(const struct hlo_index *x, uint64_t program_id)
{
    const uint32_t *at = map_u64_u32_get(&x->by_id, program_id);
    return at == NULL ? NULL : &x->programs[*at];
}

const struct hlo_program *hlo_index_named(const struct hlo_index *x, str name)
{
    for (uint32_t i = 0; i < x->n_programs; i++)
        if (str_eq(x->programs[i].name, name))
            return &x->programs[i];
    return NULL;
}

static bool is_gradient(const struct hlo_instruction *in)
{
    str scope, rest = in->op_name;
    while (str_cut(rest, '/', &scope, &rest))
        if (str_starts(scope, S("transpose(")) || str_starts(scope, S("gradient_tape")) ||
            str_starts(scope, S("gradients")))
            return true;
    return false;
}

bool hlo_index_is_training(const struct hlo_index *x)
{
    for (uint32_t i = 0; i < x->n_programs; i++)
        for (uint32_t k = 0; k < x->programs[i].module.n_instructions; k++)
            if (is_gradient(&x->programs[i].module.instructions[k]))
                return true;
    return false;
}
