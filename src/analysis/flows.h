/* SPDX-License-Identifier: Apache-2.0 */
/* What an event has to do with other events: what launched it, what it launched, what it waited for.
 *
 *     struct flows f;
 *     if (!flows_of(t, &grouping, a, &f, e)) return false;
 *     struct flow ends[8];
 *     const uint32_t n = flows_at(&f, line, c.index, ends, 8);     n may be above 8: then there are more
 *     for (uint32_t i = 0; i < n && i < 8; i++)
 *         draw(ends[i].is_source ? "s" : "f", ends[i].id, ends[i].other);
 *
 *   launch  a call of the host to the work of a GPU (correlation_id; a CUDA graph: one call, many
 *           kernels) or to the modules of TPU cores (run_id)
 *   cause   a producer to a consumer (`_pt`, `_p` to `_ct`, `_c`)
 *   async   on a TPU core: an operation's start to its done, the next done that names it
 *
 * Both ends of a flow say the same id; a source with several targets says one id. Times of different
 * hosts do not matter: flows stay within a trace. Which step an event is in: step_lanes.h. What is kept lives in
 * the arena: 12 bytes for each event of a GPU. Thread: read by many. */
#ifndef TACHO_ANALYSIS_FLOWS_H
#define TACHO_ANALYSIS_FLOWS_H

#include "analysis/grouping.h"

enum flow_kind { FLOW_LAUNCH = 0, FLOW_CAUSE, FLOW_ASYNC };

struct event_ref {
    uint32_t line_index;
    uint64_t event_index; /* on its line, as a cursor counts */
};

struct flow {
    enum flow_kind kind;
    bool is_source; /* the event asked about begins it */
    uint64_t id;
    struct event_ref other; /* for a cause of many to many: the first of the other ends */
};

struct flow_link { /* that the grouping does not know */
    struct event_ref from, to;
    uint64_t from_start_ps, from_end_ps, to_start_ps, to_end_ps;
    uint32_t from_metadata_index;
    enum flow_kind kind;
    uint64_t id;
};

struct flows {
    const struct trace *trace;
    const struct grouping *grouping; /* borrowed */
    uint32_t *first_launched;        /* by launch: into launched; one more at the end */
    struct event_ref *launched;
    struct flow_link *by_source, *by_target;
    uint32_t n_links, links_capacity;
};

MUST_CHECK bool flows_of(const struct trace *t, const struct grouping *g, struct arena *a,
                         struct flows *out, struct err *e);
/* All flows of the event: fills at most `room`, answers how many there are. */
uint32_t flows_at(const struct flows *f, uint32_t line_index, uint64_t event_index,
                  struct flow *out, uint32_t room);
/* The call that launched the event of a device; false: none is known. */
bool flows_launch(const struct flows *f, uint32_t line_index, uint64_t event_index,
                  struct event_ref *out);
/* The event of a node of the grouping. */
struct event_ref flows_event(const struct grouping *g, uint32_t node);

#endif
