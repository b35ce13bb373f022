/* SPDX-License-Identifier: Apache-2.0 */
/* csv: every event as a row (RFC 4180). */
#include <inttypes.h>

#include "format/export_inside.h"

static void put_field(struct buf *out, str s)
{
    buf_add_char(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, s.p[i]);
    }
    buf_add_str(out, S("\","));
}

static bool put_line(struct export_work *w, const struct trace *t, uint32_t line_index,
                     struct err *e)
{
    const struct trace_line *line = &t->lines[line_index];
    const struct arena_mark m = arena_mark(&w->scratch);
    struct buf head; /* the same for all of the line */
    struct export_cursor c;
    buf_init(&head, (size_t)1 << 23);
    put_field(&head, export_utf8(&w->scratch, t->host));
    put_field(&head, export_utf8(&w->scratch, export_plane_name(&t->planes[line->plane_index])));
    put_field(&head, export_utf8(&w->scratch, export_line_name(line)));
    bool ok = buf_ok(&head, "the names of a line", e);
    for (export_cursor_init(&c, w, t, line_index); ok && export_next(&c);) {
        arena_reset(&w->scratch, m);
        buf_add_str(&w->out, buf_str(&head));
        put_field(&w->out, export_utf8(&w->scratch, trace_event_name(t, line, &c.event)));
        buf_addf(&w->out, "%" PRIu64 ",%" PRIu64 ",%u,%u\r\n", c.start_ps, c.event.dur_ps,
                 c.event.depth, c.event.num_occurrences > 0 ? c.event.num_occurrences : 1);
        ok = export_flush(w, e);
    }
    buf_release(&head);
    return export_cursor_end(&c, e) && ok;
}

bool export_csv(struct export_work *w, struct err *e)
{
    buf_add_str(&w->out, S("host,plane,line,name,start_ps,dur_ps,depth,occurrences\r\n"));
    for (const struct trace *t = NULL; (t = export_next_trace(w, t)) != NULL;)
        for (uint32_t l = 0; l < t->n_lines; l++)
            if (!put_line(w, t, l, e))
                return false;
    return true;
}
