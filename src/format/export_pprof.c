/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: one sample for each stack that has a value of its own, gzip. A frame's name is its function
 * and its location. Slices give "events" and "time" (self time, ns), samples give "samples".
 * Source: google/pprof proto/profile.proto (field numbers below). */
#include "format/export_inside.h"
#include "format/export_stacks.h"
#include "format/wire_write.h"

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION,
    PROFILE_STRING
};
enum { PROFILE_TIME_NANOS = 9, PROFILE_DURATION_NANOS = 10, PROFILE_DEFAULT_TYPE = 14 };

struct pprof {
    struct export_work *w;
    struct stack_tree *tree;
    struct buf message, packed; /* of the item at hand */
};

static void put_type(struct pprof *p, str type, str unit)
{
    buf_clear(&p->message);
    wire_put_number(&p->message, 1, interner_id(&p->tree->names, type));
    wire_put_number(&p->message, 2, interner_id(&p->tree->names, unit));
    wire_put_bytes(&p->w->out, PROFILE_SAMPLE_TYPE, buf_str(&p->message));
}

static void put_sample(struct pprof *p, uint32_t node, uint64_t self_ns)
{
    const struct stack_node *n = &p->tree->nodes[node];
    uint32_t path[EXPORT_STACK_FRAMES];
    const uint32_t depth = export_stack_path(p->tree, node, path);
    buf_clear(&p->message);
    buf_clear(&p->packed);
    for (uint32_t i = 0; i < depth; i++)
        wire_put_varint(&p->packed, (uint64_t)path[i] + 1); /* 0 is no location */
    wire_put_bytes(&p->message, 1, buf_str(&p->packed));
    buf_clear(&p->packed);
    const bool is_sample = n->weight > 0;
    if (p->tree->has_slices) {
        wire_put_varint(&p->packed, is_sample ? 0 : n->n);
        wire_put_varint(&p->packed, self_ns);
    }
    if (p->tree->has_samples)
        wire_put_varint(&p->packed, export_stack_weight(n));
    wire_put_bytes(&p->message, 2, buf_str(&p->packed));
    wire_put_bytes(&p->w->out, PROFILE_SAMPLE, buf_str(&p->message));
}

static bool put_samples(struct pprof *p, struct err *e)
{
    uint64_t carry_ps = 0;
    for (uint32_t i = 0; i < p->tree->n; i++) {
        carry_ps = p->tree->nodes[i].line == i ? 0 : carry_ps;
        const uint64_t self_ns = stack_tree_self_ns(&p->tree->nodes[i], &carry_ps);
        if (p->tree->nodes[i].n > 0)
            put_sample(p, i, self_ns);
        if (!export_flush(p->w, e))
            return false;
    }
    return true;
}

/* A location and a function for each name; ids are one more than the name's. */
static bool put_names(struct pprof *p, uint32_t n_frames, struct err *e)
{
    for (uint32_t id = 0; id < n_frames; id++) {
        buf_clear(&p->message);
        wire_put_number(&p->message, 1, (uint64_t)id + 1);
        wire_put_number(&p->message, 2, id);
        wire_put_number(&p->message, 3, id);
        wire_put_bytes(&p->w->out, PROFILE_FUNCTION, buf_str(&p->message));
        buf_clear(&p->packed);
        wire_put_number(&p->packed, 1, (uint64_t)id + 1);
        buf_clear(&p->message);
        wire_put_number(&p->message, 1, (uint64_t)id + 1);
        wire_put_bytes(&p->message, 4, buf_str(&p->packed));
        wire_put_bytes(&p->w->out, PROFILE_LOCATION, buf_str(&p->message));
        if (!export_flush(p->w, e))
            return false;
    }
    return true;
}

static bool put_strings(struct pprof *p, struct err *e)
{
    for (uint32_t id = 0; id < p->tree->names.n; id++) {
        const struct arena_mark m = arena_mark(&p->w->scratch);
        wire_put_bytes(&p->w->out, PROFILE_STRING,
                       export_utf8(&p->w->scratch, interner_str(&p->tree->names, id)));
        arena_reset(&p->w->scratch, m);
        if (!export_flush(p->w, e))
            return false;
    }
    return true;
}

static uint64_t duration_ns(const struct export_work *w)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (const struct trace *t = NULL; (t = export_next_trace(w, t)) != NULL;) {
        if (t->end_ps < t->start_ps)
            continue;
        from = t->start_ps + t->shift_ps < from ? t->start_ps + t->shift_ps : from;
        to = t->end_ps + t->shift_ps > to ? t->end_ps + t->shift_ps : to;
    }
    from = w->options->from_ps > from ? w->options->from_ps : from;
    to = w->options->to_ps > 0 && w->options->to_ps < to ? w->options->to_ps : to;
    return to > from ? (to - from) / 1000 : 0;
}

static bool put_all(struct pprof *p, struct err *e)
{
    struct buf *const out = &p->w->out;
    const uint32_t n_frames = p->tree->names.n;
    if (p->tree->has_slices) {
        put_type(p, S("events"), S("count"));
        put_type(p, S("time"), S("nanoseconds"));
    }
    if (p->tree->has_samples)
        put_type(p, S("samples"), S("count"));
    wire_put_number(out, PROFILE_DEFAULT_TYPE,
                    interner_id(&p->tree->names, p->tree->has_slices ? S("time") : S("samples")));
    if (p->w->profile->has_epoch)
        wire_put_number(out, PROFILE_TIME_NANOS, (uint64_t)p->w->profile->origin_ns);
    wire_put_number(out, PROFILE_DURATION_NANOS, duration_ns(p->w));
    return put_samples(p, e) && put_names(p, n_frames, e) && put_strings(p, e);
}

bool export_pprof(struct export_work *w, struct err *e)
{
    struct export_stacks s;
    struct pprof p = {.w = w, .tree = &s.tree};
    buf_init(&p.message, (size_t)1 << 20);
    buf_init(&p.packed, (size_t)1 << 20);
    const bool ok =
        export_stacks_make(&s, w, e) && (w->is_gzip || export_gzip(w, e)) && put_all(&p, e);
    buf_release(&p.message);
    buf_release(&p.packed);
    export_stacks_release(&s);
    return ok;
}
