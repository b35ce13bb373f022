/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/host_ops.h"

#include "analysis/framework_op.h"
#include "analysis/op_metrics.h"

/* Events come by start: what reaches beyond all that came before is new. */
static bool add_thread(struct host_ops *h, const struct trace *t, uint32_t line_index,
                       struct err *e)
{
    const struct trace_line *line = &t->lines[line_index];
    struct trace_cursor c;
    uint64_t first = UINT64_MAX, end = 0;
    for (trace_cursor_init(&c, t, line_index); trace_cursor_next(&c);) {
        const struct trace_event_metadata *m = trace_event_meta(t, line, &c.event);
        if (m == NULL || framework_op_parse(m->name).kind == FRAMEWORK_UNKNOWN)
            continue;
        const uint64_t begin = c.event.start_ps, stop = begin + c.event.dur_ps;
        const uint64_t from = begin > end ? begin : end;
        first = begin < first ? begin : first;
        h->occurrences++;
        if (stop > from)
            h->busy_ps = op_add(h->busy_ps, stop - from);
        end = stop > end ? stop : end;
    }
    trace_cursor_release(&c);
    if (end > first)
        h->total_ps = op_add(h->total_ps, end - first);
    return trace_cursor_ok(&c, e);
}

bool host_ops_add(struct host_ops *h, const struct trace *t, struct err *e)
{
    for (uint32_t i = 0; i < t->n_lines; i++)
        if (t->planes[t->lines[i].plane_index].kind == TRACE_PLANE_HOST && !add_thread(h, t, i, e))
            return false;
    return true;
}
