/* SPDX-License-Identifier: Apache-2.0 */
/* Which step every event of a trace belongs to.
 *
 * A step begins with a root event on the host (stat `_r`, as jax.profiler.StepTraceAnnotation
 * writes it). Its group goes on to everything that the root caused: events nested inside it (but
 * for asynchronous ones, stat `_a`), consumers (`_ct`, `_c`) of what a member produced (`_pt`,
 * `_p`), and device work that a member launched (the same correlation_id). The first root to reach
 * an event keeps it. Where no host root reaches a TPU core, the events of its Steps line (else its
 * XLA Modules) are the groups.
 *
 * Groups are numbered 0, 1, … by root level, then time; a TPU core's own groups go on behind the
 * host's. Source: tsl/profiler/utils/group_events. Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_GROUPING_H
#define TACHO_ANALYSIS_GROUPING_H

#include "model/trace.h"

#define GROUP_NONE (-1)

struct group_root {
    uint32_t line_index;
    uint64_t event_index; /* on its line */
    int32_t group;        /* GROUP_NONE: it belongs to another root's group */
    int64_t level;
    uint64_t start_ps, dur_ps;
    str name;
    bool has_number; /* step_num or iter_num was given */
    int64_t number;
};

struct grouping {
    uint32_t n_groups;
    struct group_root *roots; /* by level, then start */
    uint32_t n_roots, roots_capacity;
    uint32_t n_host_groups;  /* that a root made: the first ones */
    uint32_t *root_of_group; /* of each of them */
    int32_t **of_line;       /* of_line[line][event]; NULL for lines without groups */
};

MUST_CHECK bool grouping_of(const struct trace *t, struct arena *a, struct grouping *out,
                            struct err *e);

static inline int32_t group_at(const struct grouping *g, uint32_t line, uint64_t event)
{
    return g->of_line[line] == NULL ? GROUP_NONE : g->of_line[line][event];
}
/* The root that made the group, or NULL (groups of a TPU core's own). */
const struct group_root *grouping_root(const struct grouping *g, int32_t group);
/* Whether the root marks a step: it has a group of its own, and a number or a step marker's name. */
bool grouping_is_step(const struct group_root *r);
/* The line of a TPU plane whose events are its steps: Steps, else XLA Modules; or UINT32_MAX. */
uint32_t grouping_step_line(const struct trace *t, const struct trace_plane *plane);

#endif
