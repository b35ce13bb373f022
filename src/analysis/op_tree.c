/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_tree.h"

#include <stdlib.h>

#include "base/limits.h"

struct node_key {
    uint32_t parent;
    enum op_node_kind kind;
    uint64_t number;
    str name;
};
static uint64_t node_key_hash(struct node_key k)
{
    return str_hash(k.name) ^ map_hash_u64((uint64_t)k.parent << 8 | (uint64_t)k.kind) ^
           map_hash_u64(~k.number);
}
static bool node_key_eq(struct node_key a, struct node_key b)
{
    return a.parent == b.parent && a.kind == b.kind && a.number == b.number &&
           str_eq(a.name, b.name);
}
MAP_DEFINE(node_map, struct node_key, struct op_node *, node_key_hash, node_key_eq);

struct builder {
    const struct op_db *db;
    struct op_tree_options options;
    struct arena *arena;
    struct node_map nodes;
    uint32_t n_nodes;
};

static struct op_node *add_child(struct builder *b, struct op_node *parent, enum op_node_kind kind,
                                 str name)
{
    struct op_node *node = ARENA_NEW(b->arena, struct op_node);
    if (node == NULL ||
        !ARENA_PUSH(b->arena, parent->children, parent->n_children, parent->capacity))
        return NULL;
    *node = (struct op_node){.kind = kind, .id = ++b->n_nodes, .name = name};
    parent->children[parent->n_children - 1] = node;
    return node;
}

static struct op_node *child_of(struct builder *b, struct op_node *parent, enum op_node_kind kind,
                                uint64_t number, str name)
{
    const struct node_key key = {parent->id, kind, number, name};
    struct op_node **known = node_map_get(&b->nodes, key);
    if (known != NULL)
        return *known;
    struct op_node *node = add_child(b, parent, kind, name);
    if (node != NULL)
        *node_map_put(&b->nodes, key) = node;
    return node;
}

static void amount_add(struct op_amount *to, const struct op_amount *x)
{
    to->time_ps = op_add(to->time_ps, x->time_ps);
    to->normalized_ps += x->normalized_ps;
    to->flops = op_add(to->flops, x->flops);
    to->model_flops = op_add(to->model_flops, x->model_flops);
    to->hbm_bytes = op_add(to->hbm_bytes, x->hbm_bytes);
    to->sram_read_bytes = op_add(to->sram_read_bytes, x->sram_read_bytes);
    to->sram_write_bytes = op_add(to->sram_write_bytes, x->sram_write_bytes);
    to->has_cost = to->has_cost || x->has_cost;
    to->has_bytes = to->has_bytes || x->has_bytes;
}

/* Adds to a node; only from the categories down do occurrences have a meaning. */
static void node_add(struct op_node *node, const struct op_amount *x, uint64_t occurrences)
{
    amount_add(&node->sum, x);
    node->sum.occurrences = op_add(node->sum.occurrences, occurrences);
}

static struct op_amount amount_of(const struct op_metrics *m, bool as_xprof)
{
    struct op_amount x = {.time_ps = m->self_ps, .normalized_ps = m->normalized_ps};
    if (op_runs_others(m)) {
        x.normalized_ps *= (double)m->self_ps / (double)m->time_ps;
        return x;
    }
    x.has_cost = m->has_cost;
    x.flops = m->flops;
    x.model_flops = m->model_flops;
    if (!m->has_breakdown) {
        x.has_bytes = !as_xprof && m->bytes > 0;
        x.hbm_bytes = x.has_bytes ? m->bytes : 0;
        return x;
    }
    x.has_bytes = true;
    x.hbm_bytes = op_add(m->read_bytes[OP_SPACE_HBM], m->write_bytes[OP_SPACE_HBM]);
    for (unsigned space = OP_SPACE_HBM + 1; space < OP_SPACES; space++) {
        x.sram_read_bytes = op_add(x.sram_read_bytes, m->read_bytes[space]);
        x.sram_write_bytes = op_add(x.sram_write_bytes, m->write_bytes[space]);
    }
    return x;
}

static str program_name(struct builder *b, uint64_t program_id)
{
    const struct hlo_program *p = hlo_index_program(&b->db->hlo, program_id);
    if (p == NULL)
        return b->options.as_xprof ? S("main")
               : program_id == 0
                   ? S("no program")
                   : arena_printf(b->arena, "program %llu", (unsigned long long)program_id);
    return arena_printf(b->arena, "%.*s(%llu)", STR_ARG(p->name), (unsigned long long)program_id);
}

static struct op_node *program_of(struct builder *b, struct op_node *root, uint64_t program_id)
{
    struct op_node *node = child_of(b, root, OP_NODE_PROGRAM, program_id, (str){0});
    if (node != NULL && node->name.n == 0)
        node->name = program_name(b, program_id);
    return node;
}

/* "jit(step)/layer_0/add:Add" is the place jit(step) ─ layer_0 ─ add. A deeper one than the limit
 * keeps its rest in its last part. */
static struct op_node *place_of(struct builder *b, struct op_node *node, str provenance,
                                const struct op_amount *x)
{
    str part, next;
    uint32_t depth = 0;
    for (str rest = provenance; node != NULL && str_cut(rest, '/', &part, &next); rest = next) {
        const ptrdiff_t colon = next.n > 0 ? -1 : str_find_char(part, ':');
        if (part.n == 0)
            continue;
        if (++depth == LIMIT_OP_TREE_PLACES && next.n > 0) {
            part = rest;
            next = (str){0};
        }
        node =
            child_of(b, node, OP_NODE_PLACE, 0, colon < 0 ? part : str_sub(part, 0, (size_t)colon));
        if (node != NULL)
            node_add(node, x, 0);
    }
    return node;
}

/* What a fusion computes, without the parameters and the tuple of results that only pass values. */
static bool add_fused(struct builder *b, struct op_node *node, const struct hlo_module *m,
                      const struct hlo_instruction *in, uint32_t depth)
{
    const struct hlo_computation *body = in == NULL ? NULL : hlo_fused(m, in);
    if (body == NULL || depth >= LIMIT_OP_TREE_FUSED)
        return true;
    for (uint32_t i = 0; i < body->n; i++) {
        const struct hlo_instruction *inner = &m->instructions[body->first + i];
        if (str_eq(inner->opcode, S("parameter")) || str_eq(inner->opcode, S("tuple")))
            continue;
        struct op_node *child = add_child(b, node, OP_NODE_FUSED, inner->name);
        if (child == NULL)
            return false;
        child->module = m;
        child->fused = inner;
        if (!add_fused(b, child, m, inner, depth + 1))
            return false;
    }
    return true;
}

static bool add_leaf(struct builder *b, struct op_node *parent, const struct op_metrics *m,
                     const struct op_amount *x)
{
    struct op_node *category = child_of(b, parent, OP_NODE_CATEGORY, 0, m->category);
    if (category == NULL)
        return false;
    const str group = m->deduplicated_name.n > 0 ? m->deduplicated_name : m->name;
    struct op_node *duplicates = child_of(b, category, OP_NODE_DUPLICATES, 0, group);
    if (duplicates == NULL)
        return false;
    struct op_node *leaf = add_child(b, duplicates, OP_NODE_OPERATION, m->name);
    if (leaf == NULL)
        return false;
    leaf->op = m;
    node_add(category, x, m->occurrences);
    node_add(duplicates, x, m->occurrences);
    node_add(leaf, x, m->occurrences);
    return !b->options.with_fused || add_fused(b, leaf, m->module, m->instruction, 0);
}

static bool add_operation(struct builder *b, struct op_node *root, const struct op_metrics *m)
{
    if (b->options.as_xprof && str_starts(m->name, S("region")))
        return true;
    const struct op_amount x = amount_of(m, b->options.as_xprof);
    struct op_node *parent = root;
    node_add(root, &x, 0);
    if (b->options.group != OP_TREE_CATEGORY) {
        parent = program_of(b, root, m->program_id);
        if (parent == NULL)
            return false;
        node_add(parent, &x, 0);
    }
    if (b->options.as_xprof && op_runs_others(m))
        return true;
    if (b->options.group == OP_TREE_PROVENANCE)
        parent = place_of(b, parent, m->provenance, &x);
    return parent != NULL && add_leaf(b, parent, m, &x);
}

static int by_time(const void *x, const void *y)
{
    const struct op_node *a = *(struct op_node *const *)x, *b = *(struct op_node *const *)y;
    if (a->sum.time_ps != b->sum.time_ps)
        return a->sum.time_ps > b->sum.time_ps ? -1 : 1;
    const int names = str_cmp(a->name, b->name);
    return names != 0 ? names : a->id < b->id ? -1 : a->id > b->id;
}

/* Orders the children, puts a single duplicate in its group's place and names the other groups. */
static void finish(struct builder *b, struct op_node *node)
{
    if (node->kind == OP_NODE_OPERATION || node->kind == OP_NODE_FUSED)
        return; /* fused instructions keep the program's order */
    if (node->n_children > 1)
        qsort(node->children, node->n_children, sizeof *node->children, by_time);
    for (uint32_t i = 0; i < node->n_children; i++) {
        struct op_node *child = node->children[i];
        finish(b, child);
        if (child->kind != OP_NODE_DUPLICATES)
            continue;
        if (child->n_children == 1) {
            node->children[i] = child->children[0];
            continue;
        }
        child->op = child->children[0]->op;
        child->name = arena_printf(b->arena, "%.*s and its duplicate(s)", STR_ARG(child->op->name));
    }
}

static bool add_rest(struct builder *b, struct op_node *root, enum op_node_kind kind, str name,
                     uint64_t time_ps)
{
    struct op_node *node = add_child(b, root, kind, name);
    const struct op_amount x = {.time_ps = time_ps};
    if (node == NULL)
        return false;
    node_add(node, &x, 0);
    node_add(root, &x, 0);
    return true;
}

static bool fill(struct builder *b, struct op_node *root)
{
    for (uint32_t i = 0; i < b->db->n_ops; i++)
        if (!add_operation(b, root, &b->db->ops[i]))
            return false;
    const bool x = b->options.as_xprof;
    const uint64_t idle = x ? op_db_xprof_idle_ps(b->db) : op_db_idle_ps(b->db);
    if (!x && op_db_unnamed_ps(b->db) > 0 &&
        !add_rest(b, root, OP_NODE_UNNAMED, S("busy, of no operation"), op_db_unnamed_ps(b->db)))
        return false;
    if (!b->options.exclude_idle && (x ? b->db->n_ops > 0 : b->db->total_ps > 0) &&
        !add_rest(b, root, OP_NODE_IDLE, S("IDLE"), idle))
        return false;
    finish(b, root);
    return true;
}

struct op_node *op_tree_build(const struct op_db *db, struct op_tree_options options,
                              struct arena *a, struct err *e)
{
    static const char *const names[] = {"by_program", "by_category", "by_provenance"};
    struct builder b = {.db = db, .options = options, .arena = a};
    struct op_node *root = ARENA_NEW(a, struct op_node);
    if (root != NULL) {
        root->name = str_from(names[options.group]);
        if (!fill(&b, root))
            root = NULL;
    }
    node_map_release(&b.nodes);
    if (root == NULL || a->overflow)
        return arena_full(a, e), NULL;
    return root;
}

const char *op_node_kind_name(enum op_node_kind kind)
{
    static const char *const names[] = {"total",     "program", "place", "category", "duplicates",
                                        "operation", "fused",   "idle",  "unnamed"};
    return names[kind];
}
