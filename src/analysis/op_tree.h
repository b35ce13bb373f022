/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a profile as a tree: programs, places in the source or categories, then the
 * operations, each node with the sum of what is below it.
 *
 *   program     root ─ program ─ category ─ duplicates ─ operation
 *   category    root ─ category ─ duplicates ─ operation
 *   provenance  root ─ program ─ place ─ … ─ place ─ category ─ duplicates ─ operation
 *
 * "duplicates" gathers operations that the compiler made alike; it is left out where there is only
 * one. IDLE, the time in which nothing ran, is a child of the root, and so is what ran and names no
 * operation. Times are self times, so that children add up to their parent. An operation that runs others (`while`) adds its own time
 * and no cost: that is already in those it runs. Siblings are ordered by time, then name.
 *
 *     struct op_node *root = op_tree_build(&db, (struct op_tree_options){OP_TREE_PROGRAM}, a, e);
 *     if (root == NULL) return false;
 *
 * Picoseconds, bytes, FLOP. Everything lives in the arena; text borrows the db's. Source of the
 * grouping: xprof/convert/op_profile_builder.cc. Thread: one at a time per arena. */
#ifndef TACHO_ANALYSIS_OP_TREE_H
#define TACHO_ANALYSIS_OP_TREE_H

#include "analysis/op_metrics.h"

enum op_tree_group { OP_TREE_PROGRAM = 0, OP_TREE_CATEGORY, OP_TREE_PROVENANCE };

struct op_tree_options {
    enum op_tree_group group;
    bool exclude_idle;
    bool with_fused; /* the instructions inside of a fusion as its children, without numbers */
    /* As XProf counts: operations that run others add their time to the program but are no nodes,
     * names that start with "region" are left out, bytes without a memory space are not counted, all that is
     * no operation's own time is idle. */
    bool as_xprof;
};

enum op_node_kind {
    OP_NODE_ROOT = 0,
    OP_NODE_PROGRAM,
    OP_NODE_PLACE, /* one part of an operation's provenance */
    OP_NODE_CATEGORY,
    OP_NODE_DUPLICATES,
    OP_NODE_OPERATION,
    OP_NODE_FUSED,
    OP_NODE_IDLE,
    OP_NODE_UNNAMED, /* busy, of no operation */
};

struct op_amount {
    uint64_t time_ps, occurrences; /* occurrences are 0 above the categories */
    double normalized_ps;
    uint64_t flops, model_flops;
    uint64_t hbm_bytes, sram_read_bytes, sram_write_bytes;
    bool has_cost, has_bytes; /* of at least one operation */
};

struct op_node {
    enum op_node_kind kind;
    uint32_t id; /* order of creation */
    str name;
    struct op_amount sum;
    const struct op_metrics *op;     /* of operations; of duplicates, the one of most time */
    const struct hlo_module *module; /* of a fused instruction */
    const struct hlo_instruction *fused;
    struct op_node **children;
    uint32_t n_children, capacity;
};

/* NULL beyond the arena's cap. */
struct op_node *op_tree_build(const struct op_db *db, struct op_tree_options options,
                              struct arena *a, struct err *e);

/* "program", "place" … */
const char *op_node_kind_name(enum op_node_kind kind);

#endif
