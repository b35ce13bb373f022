/* SPDX-License-Identifier: Apache-2.0 */
/* folded: "frame;frame;frame value" a line, as flame graph programs read it. The first frames are
 * the plane and the line (and the host, where there are several). Values of slices are nanoseconds of self
 * time, those of samples their weights. */
#include <inttypes.h>

#include "format/export_inside.h"
#include "format/export_stacks.h"

/* A frame may hold neither the separator nor the end of a line. */
static void put_frame(struct buf *out, str s)
{
    for (size_t i = 0; i < s.n; i++)
        buf_add_char(out, s.p[i] == ';' ? ':' : (uint8_t)s.p[i] < 0x20 ? ' ' : s.p[i]);
}

static void put_stack(struct export_work *w, const struct stack_tree *s, uint32_t node)
{
    uint32_t path[EXPORT_STACK_FRAMES];
    uint32_t n = export_stack_path(s, node, path);
    while (n-- > 0) {
        put_frame(&w->out, export_utf8(&w->scratch, interner_str(&s->names, path[n])));
        if (n > 0)
            buf_add_char(&w->out, ';');
    }
}

static bool put_all(struct export_work *w, const struct stack_tree *s, struct err *e)
{
    uint64_t carry_ps = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        carry_ps = s->nodes[i].line == i ? 0 : carry_ps;
        const struct arena_mark m = arena_mark(&w->scratch);
        const uint64_t ns = stack_tree_self_ns(&s->nodes[i], &carry_ps);
        const uint64_t weight = export_stack_weight(&s->nodes[i]);
        if (ns > 0 || weight > 0) {
            put_stack(w, s, i);
            buf_addf(&w->out, " %" PRIu64 "\n", ns > 0 ? ns : weight);
        }
        arena_reset(&w->scratch, m);
        if (!export_flush(w, e))
            return false;
    }
    return true;
}

bool export_folded(struct export_work *w, struct err *e)
{
    struct export_stacks s;
    const bool ok = export_stacks_make(&s, w, e) && put_all(w, &s.tree, e);
    export_stacks_release(&s);
    return ok;
}
