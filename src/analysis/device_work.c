/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/device_work.h"

#include <stdlib.h>

#include "analysis/framework_op.h"
#include "analysis/op_metrics.h"
#include "model/trace_pick.h"

/* HLO's collectives; PyTorch's, NCCL's and MPI's words for them are the same without the signs between. */
static const str collectives[] = {STR_INIT("all-reduce"),          STR_INIT("all-gather"),
                                  STR_INIT("reduce-scatter"),      STR_INIT("ragged-all-to-all"),
                                  STR_INIT("all-to-all"),          STR_INIT("collective-permute"),
                                  STR_INIT("collective-broadcast")};
#define N_COLLECTIVES (sizeof collectives / sizeof *collectives)

static char folded(char c)
{
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether s goes on with the word from there, case and kind of dash aside. */
static bool continues(str s, size_t at, str word)
{
    if (s.n < at + word.n)
        return false;
    for (size_t i = 0; i < word.n; i++)
        if (folded(s.p[at + i]) != word.p[i])
            return false;
    return true;
}

str work_collective(str name)
{
    const size_t at = str_starts(name, S("%")) ? 1 : 0;
    for (size_t i = 0; i < N_COLLECTIVES; i++)
        if (continues(name, at, collectives[i]))
            return collectives[i];
    return (str){0};
}

/* NCCL writes the words without signs between them. */
str work_collective_of_kernel(str name)
{
    static const struct {
        str word, collective;
    } words[] = {{STR_INIT("allreduce"), STR_INIT("all-reduce")},
                 {STR_INIT("allgather"), STR_INIT("all-gather")},
                 {STR_INIT("reducescatter"), STR_INIT("reduce-scatter")},
                 {STR_INIT("alltoall"), STR_INIT("all-to-all")},
                 {STR_INIT("all_to_all"), STR_INIT("all-to-all")},
                 {STR_INIT("sendrecv"), STR_INIT("send-recv")},
                 {STR_INIT("broadcast"), STR_INIT("broadcast")},
                 {STR_INIT("reduce"), STR_INIT("reduce")}};
    const str hlo = work_collective(name);
    for (size_t i = 0; hlo.n == 0 && i < sizeof words / sizeof *words; i++)
        if (str_find_nocase(name, words[i].word) >= 0)
            return words[i].collective;
    return hlo;
}

static bool is_word(str name, str word)
{
    const size_t at = str_starts(name, S("%")) ? 1 : 0;
    const str rest = str_sub(name, at, name.n);
    return str_starts(rest, word) && (rest.n == word.n || rest.p[word.n] == '.' ||
                                      rest.p[word.n] == '-' || rest.p[word.n] == ' ');
}

static bool encloses(str category, str name)
{
    static const str words[] = {STR_INIT("while"), STR_INIT("conditional"), STR_INIT("call")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (category.n > 0 ? str_eq(category, words[i]) : i < 2 && is_word(name, words[i]))
            return true;
    return false;
}

enum work_kind work_kind_of_op(str category, str name)
{
    if (encloses(category, name))
        return WORK_NONE;
    if (work_collective(category).n > 0 || work_collective(name).n > 0)
        return WORK_COMM;
    if (category.n > 0 && op_is_off_duty(category) && !str_eq(category, S("megacore fusion")))
        return str_starts(category, S("send")) || str_starts(category, S("recv")) ? WORK_COMM
                                                                                  : WORK_WAIT;
    if (is_word(category, S("copy-start")) || is_word(category, S("copy-done")) ||
        is_word(name, S("copy-start")) || is_word(name, S("copy-done")) ||
        str_eq(category, S("async-copy")))
        return WORK_COPY;
    return WORK_COMPUTE;
}

enum work_kind work_kind_of_kernel(str name)
{
    static const str words[] = {STR_INIT("nccl"),
                                STR_INIT("rccl"),
                                STR_INIT("mscclpp"),
                                STR_INIT("nvshmem"),
                                STR_INIT("cross_device_reduce"),
                                STR_INIT("allreduce_fusion")};
    if (copy_kind(name) != FRAMEWORK_UNKNOWN || str_starts(name, S("Memset")) ||
        str_starts(name, S("Memcpy")))
        return WORK_COPY;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_find_nocase(name, words[i]) >= 0)
            return WORK_COMM;
    return work_collective(name).n > 0 ? WORK_COMM : WORK_COMPUTE;
}

static const struct trace_plane *plane_of(const struct trace *t, uint32_t line_index)
{
    return &t->planes[t->lines[line_index].plane_index];
}

bool work_is_async_line(const struct trace *t, uint32_t line_index)
{
    return plane_of(t, line_index)->kind == TRACE_PLANE_TPU &&
           str_starts(t->lines[line_index].name, S("Async XLA Ops"));
}

static enum work_kind kind_in_plane(const struct trace *t, uint32_t line_index,
                                    const struct trace_event *ev)
{
    const str name = trace_event_name(t, &t->lines[line_index], ev);
    if (plane_of(t, line_index)->kind != TRACE_PLANE_TPU)
        return work_kind_of_kernel(name);
    str category = {0};
    const struct trace_event_metadata *m = trace_event_meta(t, &t->lines[line_index], ev);
    if (m != NULL)
        trace_stat_str(trace_stat_find(m->stats, S("hlo_category")), &category);
    if (!work_is_async_line(t, line_index))
        return work_kind_of_op(category, name);
    return work_collective(name).n > 0 ? WORK_COMM : WORK_COPY; /* only transfers are there */
}

enum work_kind work_kind_at(struct memo *known, const struct trace *t, uint32_t line_index,
                            const struct trace_event *ev)
{
    uint8_t *answer = memo_at(known, t, &t->lines[line_index], ev);
    if (*answer == 0)
        *answer = (uint8_t)(1 + kind_in_plane(t, line_index, ev));
    return (enum work_kind)(*answer - 1);
}

bool trace_rank(const struct trace *t, int64_t *rank)
{
    for (uint32_t i = 0; i < t->n_planes; i++)
        if (trace_stat_i64(trace_stat_find(t->planes[i].stats, S("rank")), rank))
            return true;
    return false;
}

/* ---- the devices of a profile ---- */

struct collector {
    struct work_devices *out;
    struct arena *arena;
    struct err *err;
    const struct trace *trace;
    uint32_t first; /* of this trace's devices */
    struct map_u64_u32 by_ordinal;
    struct map_u64_u32 names; /* of the device at hand, hash to index */
    struct memo kinds;
};

static struct work_device *new_device(struct collector *c, uint32_t plane, int64_t ordinal,
                                      str name)
{
    struct work_devices *out = c->out;
    if (!ARENA_PUSH(c->arena, out->items, out->n, out->capacity))
        return NULL;
    struct work_device *d = &out->items[out->n - 1];
    *d = (struct work_device){.trace = c->trace,
                              .plane_index = plane,
                              .ordinal = ordinal,
                              .name = name,
                              .from_ps = UINT64_MAX};
    d->has_rank = trace_rank(c->trace, &d->rank);
    return d;
}

static struct spans *spans_for(struct work_device *d, enum work_kind kind)
{
    switch (kind) {
    case WORK_COMPUTE:
        return &d->compute;
    case WORK_COMM:
        return &d->comm;
    case WORK_COPY:
        return &d->copy;
    case WORK_WAIT:
        return &d->wait;
    case WORK_NONE:
    case WORK_KINDS:
        break;
    }
    return NULL;
}

static bool add_work(struct collector *c, struct work_device *d, enum work_kind kind,
                     const struct trace_event *ev)
{
    const uint64_t end = ev->start_ps + ev->dur_ps;
    struct spans *s = spans_for(d, kind);
    if (s == NULL || ev->num_occurrences > 0)
        return true;
    d->sum_ps[kind] += ev->dur_ps;
    d->count[kind]++;
    d->from_ps = ev->start_ps < d->from_ps ? ev->start_ps : d->from_ps;
    d->to_ps = end > d->to_ps ? end : d->to_ps;
    return spans_add(s, c->arena, ev->start_ps, end) || arena_full(c->arena, c->err);
}

static bool add_name(struct collector *c, struct work_device *d, str name, uint64_t count)
{
    const uint64_t hash = str_hash(name);
    const uint32_t *at = map_u64_u32_get(&c->names, hash);
    if (at != NULL) {
        d->names[*at].count += count;
        return true;
    }
    *map_u64_u32_put(&c->names, hash) = d->n_names;
    if (!ARENA_PUSH(c->arena, d->names, d->n_names, d->names_capacity))
        return arena_full(c->arena, c->err);
    d->names[d->n_names - 1] = (struct work_name){hash, count};
    return true;
}

/* Where the transfers are recorded, what waits for them is not work. */
static bool only_waits(str name, bool has_transfers)
{
    return has_transfers && str_find(name, S("-done")) >= 0;
}

static bool add_line(struct collector *c, struct work_device *d, uint32_t line, bool has_transfers,
                     uint64_t *counts)
{
    const struct trace *t = c->trace;
    const uint32_t unknown = plane_of(t, line)->n_event_metadata;
    struct trace_cursor cursor;
    bool ok = true;
    for (trace_cursor_init_work(&cursor, t, line); ok && trace_cursor_next(&cursor);) {
        const struct trace_event *ev = &cursor.event;
        const enum work_kind kind = work_kind_at(&c->kinds, t, line, ev);
        if (kind == WORK_COMPUTE && ev->num_occurrences == 0)
            counts[ev->metadata_index < unknown ? ev->metadata_index : unknown]++;
        if ((kind == WORK_COMM || kind == WORK_COPY) &&
            only_waits(trace_event_name(t, &t->lines[line], ev), has_transfers))
            continue;
        ok = add_work(c, d, kind, ev);
    }
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
}

bool work_has_transfers(const struct trace *t, const struct trace_plane *p)
{
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (work_is_async_line(t, l) && t->lines[l].n_events > 0)
            return true;
    return false;
}

static bool plane_has_work(const struct trace *t, const struct trace_plane *p)
{
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(t, l) && t->lines[l].n_events > 0)
            return true;
    return false;
}

static str plane_label(struct arena *a, const struct trace_plane *p)
{
    const char *kind = p->kind == TRACE_PLANE_TPU ? "TPU" : "GPU";
    return p->ordinal < 0 ? p->name : arena_printf(a, "%s %d", kind, p->ordinal);
}

static bool add_plane(struct collector *c, uint32_t index)
{
    const struct trace_plane *p = &c->trace->planes[index];
    struct work_device *d = new_device(c, index, p->ordinal, plane_label(c->arena, p));
    uint64_t *counts = map_alloc((size_t)p->n_event_metadata + 1, sizeof *counts);
    const bool has_transfers = work_has_transfers(c->trace, p);
    bool ok = d != NULL || arena_full(c->arena, c->err);
    for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(c->trace, l) || work_is_async_line(c->trace, l))
            ok = add_line(c, d, l, has_transfers, counts);
    for (uint32_t i = 0; ok && i < p->n_event_metadata; i++)
        if (counts[i] > 0) {
            const struct trace_event_metadata *m = &p->event_metadata[i];
            ok = add_name(c, d, m->display_name.n > 0 ? m->display_name : m->name, counts[i]);
        }
    map_free(counts);
    map_u64_u32_release(&c->names);
    return ok;
}

/* ---- CPU backends ---- */

static struct work_device *cpu_device(struct collector *c, const struct trace_stat *ordinal)
{
    int64_t number = -1;
    const bool said = trace_stat_i64(ordinal, &number);
    uint32_t *at = map_u64_u32_get(&c->by_ordinal, (uint64_t)number);
    if (at != NULL)
        return &c->out->items[*at];
    const str name = said ? arena_printf(c->arena, "CPU %lld", (long long)number) : S("CPU");
    struct work_device *d = new_device(c, UINT32_MAX, number, name);
    if (d != NULL)
        *map_u64_u32_put(&c->by_ordinal, (uint64_t)number) = c->out->n - 1;
    return d;
}

const str work_cpu_names[WORK_CPU_ASKED] = {STR_INIT("hlo_op"), STR_INIT("device_ordinal"),
                                            STR_INIT("category")};

/* XLA's operations name themselves; PyTorch's are of a category. */
enum work_kind work_kind_on_cpu(const struct trace_stat *values, str name)
{
    str op;
    if (trace_stat_str(&values[WORK_CPU_HLO_OP], &op))
        return work_kind_of_op((str){0}, op);
    if (!spans_is_operator(&values[WORK_CPU_CATEGORY]))
        return WORK_NONE;
    return str_eq(name, S("record_param_comms")) || str_starts(name, S("c10d::")) ? WORK_COMM
                                                                                  : WORK_COMPUTE;
}

static bool add_thread(struct collector *c, uint32_t line)
{
    const struct trace *t = c->trace;
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, t, line, work_cpu_names, WORK_CPU_ASKED);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init(&cursor, t, line); ok && trace_cursor_next(&cursor);) {
        const str name = trace_event_name(t, &t->lines[line], &cursor.event);
        if (!(ok = trace_pick(&p, &cursor.event, c->err)))
            break;
        const enum work_kind kind = work_kind_on_cpu(p.values, name);
        if (kind == WORK_NONE)
            continue;
        struct work_device *d = cpu_device(c, &p.values[WORK_CPU_ORDINAL]);
        ok = d != NULL ? add_work(c, d, kind, &cursor.event) : arena_full(c->arena, c->err);
    }
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&cursor, c->err);
}

static bool add_cpus(struct collector *c)
{
    bool ok = true;
    for (uint32_t l = 0; ok && l < c->trace->n_lines; l++)
        if (plane_of(c->trace, l)->kind == TRACE_PLANE_HOST)
            ok = add_thread(c, l);
    map_u64_u32_release(&c->by_ordinal);
    return ok;
}

/* ---- the events of one device ---- */

static bool each_on_line(const struct work_device *d, uint32_t line, struct memo *kinds, work_fn fn,
                         void *ctx, struct err *e)
{
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init_work(&c, d->trace, line); ok && trace_cursor_next(&c);)
        ok = fn(ctx, line, &c, work_kind_at(kinds, d->trace, line, &c.event), e);
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, e);
}

static bool each_on_thread(const struct work_device *d, uint32_t line, work_fn fn, void *ctx,
                           struct err *e)
{
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, d->trace, line, work_cpu_names, WORK_CPU_ASKED);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init(&c, d->trace, line); ok && p.any && trace_cursor_next(&c);) {
        int64_t ordinal = -1;
        if (!(ok = trace_pick(&p, &c.event, e)))
            break;
        const enum work_kind kind = work_kind_on_cpu(
            p.values, trace_event_name(d->trace, &d->trace->lines[line], &c.event));
        (void)trace_stat_i64(&p.values[WORK_CPU_ORDINAL], &ordinal);
        if (kind != WORK_NONE && ordinal == d->ordinal)
            ok = fn(ctx, line, &c, kind, e);
    }
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, e);
}

bool work_each(const struct work_device *d, work_fn fn, void *ctx, struct err *e)
{
    struct memo kinds = {0};
    bool ok = true;
    for (uint32_t l = 0; ok && l < d->trace->n_lines; l++) {
        if (d->plane_index == UINT32_MAX) {
            if (plane_of(d->trace, l)->kind == TRACE_PLANE_HOST)
                ok = each_on_thread(d, l, fn, ctx, e);
        } else if (d->trace->lines[l].plane_index == d->plane_index &&
                   (spans_is_work_line(d->trace, l) || work_is_async_line(d->trace, l))) {
            ok = each_on_line(d, l, &kinds, fn, ctx, e);
        }
    }
    memo_release(&kinds);
    return ok;
}

/* ---- together ---- */

static int by_hash(const void *x, const void *y)
{
    const struct work_name *a = x, *b = y;
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static int by_plane(const void *x, const void *y)
{
    const struct work_device *a = x, *b = y;
    if (a->plane_index != b->plane_index)
        return a->plane_index < b->plane_index ? -1 : 1;
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

static bool add_spans(struct spans *to, const struct spans *from, struct arena *a)
{
    for (uint32_t i = 0; i < from->n; i++)
        if (!spans_add(to, a, from->items[i].begin_ps, from->items[i].end_ps))
            return false;
    return true;
}

/* Room for n, which otherwise would be found by doubling. */
static bool reserve(struct spans *s, struct arena *a, uint32_t n)
{
    s->items = ARENA_ARRAY(a, struct interval, n);
    s->capacity = s->items == NULL ? 0 : n;
    return s->items != NULL || n == 0;
}

static bool finish(struct work_device *d, struct arena *a)
{
    spans_close(&d->compute);
    spans_close(&d->comm);
    spans_close(&d->copy);
    spans_close(&d->wait);
    if (!reserve(&d->compute_comm, a, d->compute.n + d->comm.n) ||
        !add_spans(&d->compute_comm, &d->compute, a) || !add_spans(&d->compute_comm, &d->comm, a))
        return false;
    spans_close(&d->compute_comm);
    if (!reserve(&d->busy, a, d->compute_comm.n + d->copy.n) ||
        !add_spans(&d->busy, &d->compute_comm, a) || !add_spans(&d->busy, &d->copy, a))
        return false;
    spans_close(&d->busy);
    if (d->n_names > 1)
        qsort(d->names, d->n_names, sizeof *d->names, by_hash);
    return true;
}

/* Whose traces are one host's need not say which. */
static bool several_hosts(const struct profile *p)
{
    for (uint32_t i = 1; i < p->n_traces; i++)
        if (!str_eq(p->traces[i]->host, p->traces[0]->host))
            return true;
    return false;
}

static str label_of(struct arena *a, const struct work_device *d, bool with_host)
{
    if (d->has_rank)
        return arena_printf(a, "rank %lld", (long long)d->rank);
    return with_host ? arena_printf(a, "%.*s %.*s", STR_ARG(d->trace->host), STR_ARG(d->name))
                     : d->name;
}

uint32_t work_device_find(const struct work_devices *d, const struct trace *t, uint32_t plane_index,
                          int64_t ordinal)
{
    for (uint32_t i = 0; i < d->n; i++)
        if (d->items[i].trace == t && d->items[i].plane_index == plane_index &&
            (plane_index != UINT32_MAX || d->items[i].ordinal == ordinal))
            return i;
    return UINT32_MAX;
}

static bool add_trace(struct collector *c)
{
    bool ok = true, any = false;
    c->first = c->out->n;
    for (uint32_t i = 0; ok && i < c->trace->n_planes; i++)
        if (plane_has_work(c->trace, &c->trace->planes[i])) {
            any = true;
            ok = add_plane(c, i);
        }
    ok = ok && (any || add_cpus(c));
    const uint32_t n = c->out->n - c->first;
    if (ok && n > 1)
        qsort(&c->out->items[c->first], n, sizeof *c->out->items, by_plane);
    for (uint32_t i = c->first; ok && i < c->out->n; i++)
        ok = finish(&c->out->items[i], c->arena) || arena_full(c->arena, c->err);
    return ok;
}

bool work_devices_of(const struct profile *p, struct arena *a, struct work_devices *out,
                     struct err *e)
{
    struct collector c = {.out = out, .arena = a, .err = e};
    bool ok = true;
    *out = (struct work_devices){0};
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        c.trace = p->traces[i];
        ok = add_trace(&c);
    }
    memo_release(&c.kinds);
    const bool with_host = several_hosts(p);
    for (uint32_t i = 0; i < out->n; i++)
        out->items[i].label = label_of(a, &out->items[i], with_host);
    return ok && (!a->overflow || arena_full(a, e));
}
