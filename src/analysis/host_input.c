/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/host_input.h"

#include "analysis/framework_op.h"
#include "analysis/memo.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

const char *input_kind_name(enum input_kind k)
{
    static const char *const names[INPUT_KINDS] = {"Enqueue", "Demanded file read",
                                                   "Advanced file read", "Preprocessing"};
    return names[k];
}

static bool is_enqueue(str type)
{
    return str_starts(type, S("InfeedEnqueue"));
}

static bool ends_with_any(str s, const char *const *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (str_ends(s, str_from(words[i])))
            return true;
    return false;
}

static bool has_any(str s, const char *const *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (str_find(s, str_from(words[i])) >= 0)
            return true;
    return false;
}

/* INPUT_KINDS: it is no work for input. */
static enum input_kind kind_of(const struct host_op *op)
{
    static const char *const files[] = {"::TFRecord", "::TextLine", "::FixedLengthRecord",
                                        "::SSTable", "::RecordIO"};
    static const char *const ahead[] = {"::MemoryReader", "::MemoryWriter", "::Interleave",
                                        "::Prefetch", "::ParallelMap"};
    if (is_enqueue(op->type))
        return INPUT_ENQUEUE;
    if (!str_eq(op->type, S("Dataset")))
        return INPUT_KINDS;
    if (!ends_with_any(op->name, files, COUNT(files)))
        return INPUT_PREPROCESSING;
    return has_any(op->name, ahead, COUNT(ahead)) ? INPUT_ADVANCED_READ : INPUT_DEMANDED_READ;
}

/* --- how long the loop around the feeds takes -------------------------------------------------- */

struct feeds { /* of all threads, each thread's last feed left out: its round is not complete */
    uint64_t inside_ps, rounds_ps; /* in the feeds; from each one's begin to the next one's */
};

static bool add_thread(struct feeds *f, const struct trace *t, uint32_t line_index,
                       struct memo *known, struct err *e)
{
    enum { NO = 1, YES };
    struct trace_cursor c;
    uint64_t begin_ps = 0, dur_ps = 0;
    bool has_last = false;
    for (trace_cursor_init(&c, t, line_index); trace_cursor_next(&c);) {
        const struct trace_line *line = &t->lines[line_index];
        uint8_t *feeds = memo_at(known, t, line, &c.event);
        if (*feeds == 0) {
            const struct trace_event_metadata *md = trace_event_meta(t, line, &c.event);
            *feeds = md != NULL && is_enqueue(framework_op_parse(md->name).type) ? YES : NO;
        }
        if (*feeds == NO)
            continue;
        if (has_last) {
            f->inside_ps = op_add(f->inside_ps, dur_ps);
            f->rounds_ps = op_add(f->rounds_ps, c.event.start_ps - begin_ps);
        }
        has_last = true;
        begin_ps = c.event.start_ps;
        dur_ps = c.event.dur_ps;
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, e);
}

static bool feeds_of(const struct profile *p, struct feeds *f, struct err *e)
{
    struct memo known = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        const struct trace *t = p->traces[i];
        for (uint32_t k = 0; ok && k < t->n_lines; k++)
            if (t->planes[t->lines[k].plane_index].kind == TRACE_PLANE_HOST)
                ok = add_thread(f, t, k, &known, e);
    }
    memo_release(&known);
    return ok;
}

/* --- all of it --------------------------------------------------------------------------------- */

static void divide(struct host_input *in, const struct feeds *f)
{
    uint64_t own_ps[INPUT_KINDS] = {0};
    for (uint32_t i = 0; i < in->n; i++)
        own_ps[in->items[i].kind] = op_add(own_ps[in->items[i].kind], in->items[i].op->self_ps);
    const double enqueue = (double)own_ps[INPUT_ENQUEUE];
    const double others = (double)in->self_ps - enqueue;
    double share = f->rounds_ps > 0 ? (double)f->inside_ps / (double)f->rounds_ps : 0;
    share = share > 1 ? 1 : share;
    const double rest = share > 0 ? enqueue * (1 - share) / share : others;
    double said = 0;
    in->part_ps[INPUT_ENQUEUE] = enqueue;
    for (uint32_t i = INPUT_ENQUEUE + 1; i < INPUT_KINDS; i++) {
        in->part_ps[i] = others > 0 ? rest * (double)own_ps[i] / others : 0;
        said += in->part_ps[i];
    }
    in->unclassified_ps = rest > said ? rest - said : 0;
}

static bool select_ops(struct host_input *in, const struct host_ops *ops, struct arena *a,
                       bool *has_feeds, struct err *e)
{
    for (uint32_t i = 0; i < ops->n; i++) {
        const enum input_kind kind = kind_of(&ops->items[i]);
        if (kind == INPUT_KINDS)
            continue;
        if (!ARENA_PUSH(a, in->items, in->n, in->capacity))
            return arena_full(a, e);
        in->items[in->n - 1] = (struct input_op){&ops->items[i], kind};
        in->self_ps = op_add(in->self_ps, ops->items[i].self_ps);
        *has_feeds |= kind == INPUT_ENQUEUE;
    }
    return true;
}

bool host_input_of(const struct profile *p, struct arena *a, struct host_input *out, struct err *e)
{
    struct host_ops ops = {.arena = a};
    struct feeds feeds = {0};
    bool ok = true, has_feeds = false;
    *out = (struct host_input){0};
    for (uint32_t i = 0; ok && i < p->n_traces; i++)
        ok = host_ops_add(&ops, p->traces[i], e);
    host_ops_finish(&ops);
    ok = ok && select_ops(out, &ops, a, &has_feeds, e);
    if (ok && has_feeds)
        ok = feeds_of(p, &feeds, e);
    if (ok)
        divide(out, &feeds);
    return ok;
}
