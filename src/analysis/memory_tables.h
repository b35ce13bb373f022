/* SPDX-License-Identifier: Apache-2.0 */
/* Our tables of a memory profile: one row an allocator at its peak; one row a kind of piece that was
 * live then; one row a sample of its timeline. Times count from the beginning of the profile.
 * NULL beyond the arena's cap (and, of memory_table_live, with e). */
#ifndef TACHO_ANALYSIS_MEMORY_TABLES_H
#define TACHO_ANALYSIS_MEMORY_TABLES_H

#include "analysis/memory_profile.h"
#include "model/table.h"

struct table *memory_table_peaks(const struct memory_profile *m, struct arena *a);
struct table *memory_table_live(const struct memory_profile *m, struct arena *a, struct err *e);
struct table *memory_table_timeline(const struct memory_profile *m, struct arena *a);

/* A kind of piece that was live at the peak: all that are described alike. */
struct memory_group {
    struct memory_description what;
    const struct memory_piece *first; /* of them */
    uint64_t n;
};
/* By bytes of a piece, largest first, then requested bytes, operation, region, type and shape. */
MUST_CHECK bool memory_groups_of(const struct memory_allocator *m, struct arena *a,
                                 struct memory_group **out, uint32_t *n, struct err *e);
/* "(null)" and nothing mean that nobody knows. */
str memory_known_text(str s);
/* Picoseconds since the profile began, as trace_viewer counts them. */
uint64_t memory_time_ps(const struct trace *t, uint64_t time_ps);

#endif
