/* SPDX-License-Identifier: Apache-2.0 */
/* A whole XSpace: loaded, and every event's stats decoded; chosen ones are the same. */
#include "base/limits.h"
#include "format/xspace.h"
#include "model/trace_pick.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void pick(struct trace_picker *p, const struct trace_event *ev, struct trace_stats stats)
{
    struct err e = {0};
    must(trace_pick(p, ev, &e));
    for (uint32_t i = 0; i < p->n; i++) {
        const struct trace_stat *s = trace_stat_find(stats, p->names[i]);
        must(p->values[i].type == (s == NULL ? TRACE_STAT_NONE : s->type));
        if (p->values[i].type >= TRACE_STAT_STR)
            must(str_eq(p->values[i].text, s->text));
    }
}

static void walk(const struct trace *t)
{
    struct arena a;
    arena_init(&a, "fuzz", 16u << 20);
    for (uint32_t l = 0; l < t->n_lines; l++) {
        struct trace_cursor c;
        struct trace_picker p;
        uint64_t before = 0;
        const struct trace_plane *plane = &t->planes[t->lines[l].plane_index];
        trace_picker_init(&p, t, l, plane->stat_names, plane->n_stat_names > 0 ? 1 : 0);
        for (trace_cursor_init(&c, t, l); trace_cursor_next(&c);) {
            struct trace_stats stats;
            struct err e = {0};
            must(c.event.start_ps >= before);
            before = c.event.start_ps;
            const struct arena_mark m = arena_mark(&a);
            const bool decoded = trace_event_stats(t, &t->lines[l], &c.event, &a, &stats, &e);
            must(decoded || e.code != ERR_NONE);
            if (decoded)
                pick(&p, &c.event, stats);
            must(trace_event_name(t, &t->lines[l], &c.event).n > 0);
            arena_reset(&a, m);
        }
        trace_picker_release(&p);
        struct err e = {0};
        must(trace_cursor_ok(&c, &e));
    }
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct xspace_options o = {.file = S("fuzz"), .spill_fd = -1, .index_fd = -1};
    struct err e = {0};
    struct trace *t = xspace_load_memory((str){(const char *)data, n}, &o, &e);
    must(t != NULL || e.code != ERR_NONE);
    if (t != NULL)
        walk(t);
    trace_free(t);
    return 0;
}
