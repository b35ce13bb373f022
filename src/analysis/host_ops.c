/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/host_ops.h"

#include "analysis/framework_op.h"
#include "analysis/memo.h"
#include "analysis/op_metrics.h"

static bool is_operation(struct memo *m, const struct trace *t, const struct trace_line *line,
                         const struct trace_event *ev)
{
    enum { NO = 1, YES };
    uint8_t *known = memo_at(m, t, line, ev);
    if (*known == 0) {
        const struct trace_event_metadata *md = trace_event_meta(t, line, ev);
        *known = md != NULL && framework_op_parse(md->name).kind != FRAMEWORK_UNKNOWN ? YES : NO;
    }
    return *known == YES;
}

/* Events come by start: what reaches beyond all that came before is new. */
static bool add_thread(struct host_ops *h, const struct trace *t, uint32_t line_index,
                       struct memo *operations, struct err *e)
{
    const struct trace_line *line = &t->lines[line_index];
    struct trace_cursor c;
    uint64_t first = UINT64_MAX, end = 0;
    for (trace_cursor_init(&c, t, line_index); trace_cursor_next(&c);) {
        if (!is_operation(operations, t, line, &c.event))
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
    struct memo operations = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_lines; i++)
        if (t->planes[t->lines[i].plane_index].kind == TRACE_PLANE_HOST)
            ok = add_thread(h, t, i, &operations, e);
    memo_release(&operations);
    return ok;
}
