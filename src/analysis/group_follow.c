/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/group_follow.h"

void group_follow_init(struct group_follow *f, const struct trace *t, const struct grouping *g,
                       uint32_t line_index)
{
    const struct trace_plane *p = &t->planes[t->lines[line_index].plane_index];
    *f = (struct group_follow){
        .grouping = g, .line_index = line_index, .step_line = UINT32_MAX, .group = GROUP_NONE};
    if (p->kind != TRACE_PLANE_TPU || g->of_line[line_index] != NULL)
        return;
    f->step_line = grouping_step_line(t, p);
    if (f->step_line == UINT32_MAX)
        return;
    trace_cursor_init(&f->steps, t, f->step_line);
    f->open = true;
    f->has_next = trace_cursor_next(&f->steps);
}

int32_t group_follow_at(struct group_follow *f, uint64_t event_index, uint64_t start_ps)
{
    if (f->step_line == UINT32_MAX)
        return group_at(f->grouping, f->line_index, event_index);
    while (f->has_next && f->steps.event.start_ps <= start_ps) {
        f->end_ps = f->steps.event.start_ps + f->steps.event.dur_ps;
        f->group = group_at(f->grouping, f->step_line, f->steps.index);
        f->has_next = trace_cursor_next(&f->steps);
    }
    return start_ps < f->end_ps ? f->group : GROUP_NONE;
}

bool group_follow_ok(const struct group_follow *f, struct err *e)
{
    return !f->open || trace_cursor_ok(&f->steps, e);
}

void group_follow_release(struct group_follow *f)
{
    if (f->open)
        trace_cursor_release(&f->steps);
    f->open = false;
}
