/* SPDX-License-Identifier: Apache-2.0 */
/* A whole XSpace: loaded, and every event's stats decoded. */
#include "base/limits.h"
#include "format/xspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void walk(const struct trace *t)
{
    struct arena a;
    arena_init(&a, "fuzz", 16u << 20);
    for (uint32_t l = 0; l < t->n_lines; l++) {
        struct trace_cursor c;
        uint64_t before = 0;
        for (trace_cursor_init(&c, t, l); trace_cursor_next(&c);) {
            struct trace_stats stats;
            struct err e = {0};
            must(c.event.start_ps >= before);
            before = c.event.start_ps;
            const struct arena_mark m = arena_mark(&a);
            const bool decoded = trace_event_stats(t, &t->lines[l], &c.event, &a, &stats, &e);
            must(decoded || e.code != ERR_NONE);
            must(trace_event_name(t, &t->lines[l], &c.event).n > 0);
            arena_reset(&a, m);
        }
        struct err e = {0};
        must(trace_cursor_ok(&c, &e));
    }
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct xspace_options o = {.file = S("fuzz"), .spill_fd = -1};
    struct err e = {0};
    struct trace *t = xspace_load_memory((str){(const char *)data, n}, &o, &e);
    must(t != NULL || e.code != ERR_NONE);
    if (t != NULL)
        walk(t);
    trace_free(t);
    return 0;
}
