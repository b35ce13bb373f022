/* SPDX-License-Identifier: Apache-2.0 */
/* The group (grouping.h) of one event of a line after the other, also on the lines of a TPU core, whose events belong
 * to the step of the core's own step line that they begin in.
 *
 *     struct group_follow f;
 *     group_follow_init(&f, t, grouping, line);
 *     for (trace_cursor_init(&c, t, line); trace_cursor_next(&c);)
 *         ... group_follow_at(&f, c.index, c.event.start_ps) ...
 *     ok = group_follow_ok(&f, e);
 *     group_follow_release(&f);
 *
 * Events are asked for by start. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_GROUP_FOLLOW_H
#define TACHO_ANALYSIS_GROUP_FOLLOW_H

#include "analysis/grouping.h"

struct group_follow {
    /* private: */
    const struct grouping *grouping;
    uint32_t line_index, step_line; /* step_line: UINT32_MAX where the line has groups of its own */
    struct trace_cursor steps;
    bool has_next, open;
    uint64_t end_ps; /* of the step at hand */
    int32_t group;
};

void group_follow_init(struct group_follow *f, const struct trace *t, const struct grouping *g,
                       uint32_t line_index);
int32_t group_follow_at(struct group_follow *f, uint64_t event_index, uint64_t start_ps);
MUST_CHECK bool group_follow_ok(const struct group_follow *f, struct err *e);
void group_follow_release(struct group_follow *f);

#endif
