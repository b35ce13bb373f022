/* SPDX-License-Identifier: Apache-2.0 */
/* Which step every event of a trace belongs to, and what caused what.
 *
 * A step begins with a root event on the host (stat `_r`, as jax.profiler.StepTraceAnnotation
 * writes it). Its group goes on to everything that the root caused: events nested inside it (but
 * for asynchronous ones, stat `_a`), consumers (`_ct`, `_c`) of what a member produced (`_pt`,
 * `_p`), and device work that a member launched (the same correlation_id). The first root to reach
 * an event keeps it. Where no host root reaches a TPU core, the events of its Steps line (else its
 * XLA Modules) are the groups.
 *
 * Ids come again: a correlation counter wraps or counts for each process, a pointer is freed and
 * given out once more. So time decides. Work of a device belongs to the last call of its id that
 * began before it did. Producers of an id belong with the consumers that begin before the id's next
 * producer does.
 *
 * Groups are numbered 0, 1, … by root level, then time; a TPU core's own groups go on behind the
 * host's. Source: tsl/profiler/utils/group_events, which joins all that have one id and gives up
 * above 64. What is kept lives in the arena: of an event of the host 4 bytes, of a GPU 8. */
#ifndef TACHO_ANALYSIS_GROUPING_H
#define TACHO_ANALYSIS_GROUPING_H

#include "model/trace.h"

#define GROUP_NONE (-1)
#define GROUP_NO_NODE UINT32_MAX
#define GROUP_NO_LAUNCH UINT32_MAX

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

/* Producer to consumer. Nodes are the events of the host's lines and of TPU step lines, counted
 * line by line; from n_nodes on they are hubs, which stand between many producers and many
 * consumers of one id. */
struct group_edge {
    uint32_t from, to;
};

struct grouping {
    uint32_t n_groups;
    struct group_root *roots; /* by level, then start */
    uint32_t n_roots, roots_capacity;
    uint32_t n_host_groups;  /* that a root made: the first ones */
    uint32_t *root_of_group; /* of each of them */
    int32_t **of_line;       /* of_line[line][event]; NULL for lines without groups */

    uint32_t *first_node; /* of a line, or GROUP_NO_NODE */
    uint32_t *node_lines; /* the lines that have nodes, in order */
    uint32_t n_lines, n_node_lines, n_nodes, n_hubs;
    struct group_edge *down, *up; /* n_edges: by from; by to */
    uint32_t n_edges, down_capacity;

    uint32_t *launches; /* nodes with a correlation_id: the calls that launch work; ascending */
    uint32_t n_launches;
    uint32_t **launch_of_line; /* [line][event] of GPU lines: into launches, or GROUP_NO_LAUNCH */
    uint64_t n_unlaunched;     /* work of a GPU whose id no call of the host has */
    uint64_t n_early;          /* work that begins before all calls of its id: clocks differ */
};

MUST_CHECK bool grouping_of(const struct trace *t, struct arena *a, struct grouping *out,
                            struct err *e);

static inline int32_t group_at(const struct grouping *g, uint32_t line, uint64_t event)
{
    return g->of_line[line] == NULL ? GROUP_NONE : g->of_line[line][event];
}
/* Which call launched the event of a GPU line: an index into launches, or GROUP_NO_LAUNCH. */
static inline uint32_t launch_at(const struct grouping *g, uint32_t line, uint64_t event)
{
    return g->launch_of_line[line] == NULL ? GROUP_NO_LAUNCH : g->launch_of_line[line][event];
}
/* The root that made the group, or NULL (groups of a TPU core's own). */
const struct group_root *grouping_root(const struct grouping *g, int32_t group);
/* Whether the root marks a step: it has a group of its own, and a number or a step marker's name. */
bool grouping_is_step(const struct group_root *r);
/* The line of a TPU plane whose events are its steps: Steps, else XLA Modules; or UINT32_MAX. */
uint32_t grouping_step_line(const struct trace *t, const struct trace_plane *plane);

#endif
