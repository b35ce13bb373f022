/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_brief.h"

#include <stdlib.h>

#include "analysis/cost.h"
#include "analysis/op_tree.h"
#include "analysis/tool.h"

bool op_is_custom_call(const struct op_metrics *m)
{
    return m->instruction != NULL ? str_eq(m->instruction->opcode, S("custom-call"))
                                  : str_eq(m->category, S("custom-call"));
}

enum op_cost_source op_cost_source_of(const struct op_metrics *m, uint64_t *flops, uint64_t *bytes)
{
    *flops = m->model_flops;
    *bytes = m->bytes;
    if (m->has_cost || !op_is_custom_call(m))
        return OP_COST_MODEL;
    const struct op_cost c = m->instruction == NULL
                                 ? (struct op_cost){0}
                                 : cost_of_product_call(m->module, m->instruction);
    *flops = op_mul((uint64_t)c.flops, m->occurrences);
    *bytes = op_mul((uint64_t)c.bytes, m->occurrences);
    return c.known ? OP_COST_SHAPES : OP_COST_UNKNOWN;
}

str op_cost_source_name(enum op_cost_source s)
{
    static const str names[] = {STR_INIT("xla_cost_model"), STR_INIT("derived_from_shapes"),
                                STR_INIT("opaque_custom_call")};
    return names[s];
}

struct path { /* of the node at hand */
    str all, without_duplicates;
};

static bool add_leaf(struct op_briefs *b, const struct op_node *node, const struct path *path,
                     struct arena *a)
{
    if (!ARENA_PUSH(a, b->items, b->n, b->capacity))
        return false;
    struct op_brief *x = &b->items[b->n - 1];
    *x = (struct op_brief){.op = node->op,
                           .path = path->without_duplicates,
                           .group_path = path->all,
                           .name = node->name,
                           .category = node->op == NULL ? S("IDLE") : node->op->category,
                           .self_ps = node->sum.time_ps,
                           .occurrences = node->sum.occurrences};
    b->self_ps = op_add(b->self_ps, x->self_ps);
    if (node->op != NULL)
        x->source = op_cost_source_of(node->op, &x->flops, &x->bytes);
    if (x->source == OP_COST_MODEL)
        x->bytes = op_add(node->sum.hbm_bytes,
                          op_add(node->sum.sram_read_bytes, node->sum.sram_write_bytes));
    return true;
}

static bool walk(struct op_briefs *b, const struct op_node *node, struct path above,
                 struct arena *a)
{
    struct path path = {.all = node->name, .without_duplicates = node->name};
    if (node->kind != OP_NODE_ROOT) {
        path.all = arena_printf(a, "%.*s/%.*s", STR_ARG(above.all), STR_ARG(node->name));
        path.without_duplicates =
            node->kind == OP_NODE_DUPLICATES
                ? above.without_duplicates
                : arena_printf(a, "%.*s/%.*s", STR_ARG(above.without_duplicates),
                               STR_ARG(node->name));
    }
    if (path.all.p == NULL || path.without_duplicates.p == NULL)
        return false;
    if (node->kind == OP_NODE_OPERATION || (node->kind == OP_NODE_IDLE && b->with_idle))
        return add_leaf(b, node, &path, a);
    for (uint32_t i = 0; i < node->n_children; i++)
        if (!walk(b, node->children[i], path, a))
            return false;
    return true;
}

static int compare(const struct op_brief *a, const struct op_brief *b)
{
    if (a->self_ps != b->self_ps)
        return a->self_ps > b->self_ps ? -1 : 1;
    return str_cmp(a->path, b->path);
}

static int by_time(const void *x, const void *y)
{
    return compare(x, y);
}

bool op_briefs_of(struct op_briefs *b, const struct op_db *db, enum op_briefs_form form,
                  struct arena *a, struct err *e)
{
    const struct op_tree_options options = {.group = OP_TREE_PROGRAM,
                                            .as_xprof = form == OP_BRIEFS_XPROF};
    *b = (struct op_briefs){.with_idle = form == OP_BRIEFS_XPROF};
    const struct op_node *root = op_tree_build(db, options, a, e);
    if (root == NULL)
        return false;
    if (!walk(b, root, (struct path){S(""), S("")}, a))
        return arena_full(a, e);
    b->total_ps = root->sum.time_ps;
    if (b->n > 1)
        qsort(b->items, b->n, sizeof *b->items, by_time);
    return true;
}

static int at_time(const void *x, const void *y)
{
    return compare(*(const struct op_brief *const *)x, *(const struct op_brief *const *)y);
}

static int at_flops(const void *x, const void *y)
{
    const struct op_brief *a = *(const struct op_brief *const *)x;
    const struct op_brief *b = *(const struct op_brief *const *)y;
    return a->flops != b->flops ? (a->flops > b->flops ? -1 : 1) : compare(a, b);
}

static int at_bytes(const void *x, const void *y)
{
    const struct op_brief *a = *(const struct op_brief *const *)x;
    const struct op_brief *b = *(const struct op_brief *const *)y;
    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : compare(a, b);
}

static bool has_nocase(str s, str part)
{
    for (size_t i = 0; i + part.n <= s.n; i++)
        if (str_eq_nocase(str_sub(s, i, i + part.n), part))
            return true;
    return false;
}

const struct op_brief **op_briefs_by(const struct op_briefs *b, enum op_brief_order order,
                                     str category, struct arena *a, uint32_t *n)
{
    static int (*const orders[])(const void *, const void *) = {at_time, at_flops, at_bytes};
    const struct op_brief **out = ARENA_ARRAY(a, const struct op_brief *, b->n + 1);
    *n = 0;
    for (uint32_t i = 0; out != NULL && i < b->n; i++)
        if (has_nocase(b->items[i].category, category) &&
            (order == OP_BRIEF_BY_TIME || b->items[i].source != OP_COST_UNKNOWN))
            out[(*n)++] = &b->items[i];
    if (*n > 1)
        qsort(out, *n, sizeof *out, orders[order]);
    return out;
}

bool op_limit(const struct tool_request *r, str key, uint64_t otherwise, uint64_t *out,
              struct err *e)
{
    const str v = tool_param(r, key);
    *out = otherwise;
    if (v.n == 0)
        return true;
    if (str_eq(v, S("-1"))) {
        *out = UINT64_MAX;
        return true;
    }
    return str_to_u64(v, out) ||
           err_set(e, ERR_USAGE, "%.*s is '%.*s'; it is a number, or -1 for all", STR_ARG(key),
                   STR_ARG(v));
}
