/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of a row are worth drawing when a pixel stands for resolution_ps.
 *
 * An event is kept when it touches the window and lasts a pixel, or when it is the first at its depth, or begins a
 * pixel or more after the last one kept there. Its depth is the first whose last kept event has ended when it
 * begins. Of an arrow (flow) between events, the first end that is met decides: kept also when a pixel lies between
 * its end and that of the last arrow kept on its row; the other ends follow it.
 *
 *     struct trace_visible v;
 *     trace_visible_init(&v, from_ps, to_ps, resolution_ps);
 *     for (each line) {
 *         trace_visible_row(&v);
 *         for (each event, by start, the longer first)
 *             if (trace_visible_event(&v, begin_ps, end_ps, flow)) draw it
 *     }
 *     trace_visible_release(&v);
 *
 * Source: XProf's trace viewer (facts of its unit tests: tests/unit/analysis/test_trace_visible.c). Memory does not
 * depend on the number of events: decisions on flows are kept in a table of fixed size, where a later flow takes the
 * place of an older one and is decided anew. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_TRACE_VISIBLE_H
#define TACHO_ANALYSIS_TRACE_VISIBLE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_VISIBLE_DEPTHS 1024 /* deeper events share the last one */
#define TRACE_VISIBLE_FLOWS (1u << 20)

struct trace_visible {
    int64_t from_ps, to_ps; /* both ends belong to the window */
    uint64_t resolution_ps; /* 0: every event of the window is kept */
    /* private: */
    int64_t ends[TRACE_VISIBLE_DEPTHS]; /* of the last event kept at each depth of the row */
    uint32_t n_depths;
    int64_t flow_end; /* of the last arrow kept on the row */
    bool has_flow;
    struct visible_flow {
        uint64_t id;
        bool kept;
    } * flows; /* owned; made with the first flow */
};

void trace_visible_init(struct trace_visible *v, int64_t from_ps, int64_t to_ps,
                        uint64_t resolution_ps);
/* Begins another row. */
void trace_visible_row(struct trace_visible *v);
/* flow: an id, or 0 for none. */
bool trace_visible_event(struct trace_visible *v, int64_t begin_ps, int64_t end_ps, uint64_t flow);
/* For rows whose depths are known, in any order that is by time within a depth. */
bool trace_visible_at(struct trace_visible *v, int64_t begin_ps, int64_t end_ps, uint32_t depth);
void trace_visible_release(struct trace_visible *v);

#endif
