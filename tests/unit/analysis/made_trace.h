/* SPDX-License-Identifier: Apache-2.0 */
/* Traces for tests, each event written with its stats. */
#ifndef TACHO_TESTS_MADE_TRACE_H
#define TACHO_TESTS_MADE_TRACE_H

#include "../xspace_build.h"
#include "format/xspace.h"

enum { R = 1, STEP, A, PT, P, CT, C, ID, KID, RUN, N_STATS }; /* ids of stats */

static const char *const made_stats[N_STATS] = {
    "",    "_r", "step_num",       "_a",          "_pt",   "_p",
    "_ct", "_c", "correlation_id", "correlation", "run_id"};

/* Names of events by id; 0 is 1. */
static const char *const made_names[] = {"",          "event", "k2", "k3", "k4", "k5",
                                         "MemcpyH2D", "nccl",  "8",  "9",  "10"};

struct made { /* an event and its stats: {id, value} up to id 0 */
    int64_t offset, duration, stats[4][2], name;
};

struct made_line {
    str name;
    const struct made *events;
    size_t n;
};

struct made_plane {
    str name;
    struct made_line lines[4];
};

#define EVENTS(list) (list), sizeof(list) / sizeof *(list)

static inline void made_add_line(struct buf *plane, const struct made_line *l)
{
    struct buf line;
    buf_init(&line, 1 << 22);
    put_bytes(&line, 2, l->name);
    put_number(&line, 3, 1000);
    for (size_t i = 0; i < l->n; i++) {
        const struct made *m = &l->events[i];
        struct buf ev;
        buf_init(&ev, 1 << 16);
        put_number(&ev, 1, m->name == 0 ? 1 : m->name);
        put_number(&ev, 2, m->offset);
        put_number(&ev, 3, m->duration);
        for (size_t k = 0; k < 4 && m->stats[k][0] != 0; k++) {
            struct buf stat;
            buf_init(&stat, 1 << 10);
            put_number(&stat, 1, m->stats[k][0]);
            put_number(&stat, 4, m->stats[k][1]);
            put_bytes(&ev, 4, buf_str(&stat));
            buf_release(&stat);
        }
        put_bytes(&line, 4, buf_str(&ev));
        buf_release(&ev);
    }
    put_bytes(plane, 3, buf_str(&line));
    buf_release(&line);
}

static inline struct trace *made_trace(const struct made_plane *planes, size_t n)
{
    struct buf space;
    struct err e = {0};
    buf_init(&space, 1 << 23);
    for (size_t i = 0; i < n; i++) {
        struct buf plane;
        buf_init(&plane, 1 << 23);
        put_bytes(&plane, 2, planes[i].name);
        for (size_t k = 0; k < 4 && planes[i].lines[k].n > 0; k++)
            made_add_line(&plane, &planes[i].lines[k]);
        for (size_t k = 1; k < sizeof made_names / sizeof *made_names; k++)
            put_entry(&plane, 4, (int64_t)k, str_from(made_names[k]));
        for (int k = R; k < N_STATS; k++)
            put_entry(&plane, 5, k, str_from(made_stats[k]));
        put_bytes(&space, 1, buf_str(&plane));
        buf_release(&plane);
    }
    const struct xspace_options o = {.file = S("t.xplane.pb"), .spill_fd = -1};
    struct trace *t = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(t);
    buf_release(&space);
    return t;
}

#endif
