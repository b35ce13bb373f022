/* SPDX-License-Identifier: Apache-2.0 */
/* What the name of an event says, found out once for each entry of its plane's event metadata.
 *
 *     uint8_t *known = memo_at(&m, t, line, &c.event);    0: not found out yet
 *     if (*known == 0)
 *         *known = 1 + class_of(trace_event_name(t, line, &c.event));
 *
 * Events of unknown metadata share one answer: they share the name "?" too. A memo holds one
 * plane; lines of a plane stand together. memo_release when done. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_MEMO_H
#define TACHO_ANALYSIS_MEMO_H

#include "model/trace.h"

struct memo {
    const struct trace_plane *plane;
    uint8_t *answers; /* owned; the last is for unknown metadata */
};

static inline uint8_t *memo_at(struct memo *m, const struct trace *t, const struct trace_line *line,
                               const struct trace_event *ev)
{
    const struct trace_plane *p = &t->planes[line->plane_index];
    if (m->plane != p) {
        map_free(m->answers);
        m->answers = map_alloc((size_t)p->n_event_metadata + 1, 1);
        m->plane = p;
    }
    return &m->answers[ev->metadata_index < p->n_event_metadata ? ev->metadata_index
                                                                : p->n_event_metadata];
}

static inline void memo_release(struct memo *m)
{
    map_free(m->answers);
    *m = (struct memo){0};
}

#endif
