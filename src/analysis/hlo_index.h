/* SPDX-License-Identifier: Apache-2.0 */
/* The HLO modules of a trace by program id, read when first asked for.
 *
 * A module that cannot be read counts in n_damaged and is as good as absent: its operations keep
 * the names that their events have. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_HLO_INDEX_H
#define TACHO_ANALYSIS_HLO_INDEX_H

#include "model/hlo.h"
#include "model/trace.h"

struct hlo_program {
    uint64_t program_id;
    str name; /* of the module */
    struct hlo_module module;
    bool readable;
};

struct hlo_index {
    struct hlo_program *programs;
    uint32_t n_programs, capacity, n_damaged;
    struct map_u64_u32 by_id;
};

/* Adds the modules of one trace; the first of an id stays. False only beyond the arena's cap. */
MUST_CHECK bool hlo_index_add(struct hlo_index *x, const struct trace *t, struct arena *a,
                              struct err *e);
void hlo_index_release(struct hlo_index *x);

/* NULL when there is none. */
const struct hlo_program *hlo_index_program(const struct hlo_index *x, uint64_t program_id);
/* The module named so when its id is not known, else NULL. */
const struct hlo_program *hlo_index_named(const struct hlo_index *x, str name);
/* True when an operation of a module is part of a gradient. */
bool hlo_index_is_training(const struct hlo_index *x);

#endif
