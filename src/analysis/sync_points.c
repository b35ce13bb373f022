/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/sync_points.h"

#include <stdlib.h>

#include "analysis/frames.h"
#include "analysis/step_lanes.h"
#include "base/buf.h"

enum class {
    PLAIN = 1,
    PYTHON,
    OPERATION,      /* PyTorch's */
    WAITS,          /* of the runtime, or of JAX */
    WAITS_OPERATION /* of PyTorch's, those that wait */
};

struct frame { /* an open event of the thread */
    str name;
    uint64_t begin_ps, end_ps;
    enum class class;
    bool holds_wait;
};

struct sync { /* one call */
    uint64_t begin_ps, end_ps;
    uint32_t row;
};

struct collector {
    struct sync_points *out;
    struct arena *arena;
    struct err *err;
    const struct trace *trace;
    bool has_device;
    struct map_str_u32 rows; /* by call, operation and stack */
    struct memo classes;
    struct frame *open; /* by depth */
    uint32_t n_open, open_capacity;
    struct sync *syncs; /* of the trace */
    uint32_t n_syncs, syncs_capacity;
    const struct step_window *steps; /* complete ones */
    uint32_t n_steps;
    struct buf text;
};

/* ---- which calls wait ---- */

static bool is_one_of(str name, const str *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(name, words[i]))
            return true;
    return false;
}

/* Of CUDA and HIP. What stands behind an underscore is a version. */
static bool is_waiting_call(str name)
{
    static const str words[] = {
        STR_INIT("StreamSynchronize"), STR_INIT("DeviceSynchronize"), STR_INIT("EventSynchronize"),
        STR_INIT("ThreadSynchronize"), STR_INIT("CtxSynchronize"),    STR_INIT("Memcpy"),
        STR_INIT("Memcpy2D"),          STR_INIT("Memcpy3D"),          STR_INIT("MemcpyDtoH"),
        STR_INIT("MemcpyHtoD"),        STR_INIT("MemcpyDtoD"),        STR_INIT("MemcpyToSymbol"),
        STR_INIT("MemcpyFromSymbol"),  STR_INIT("MemcpyWithStream"),  STR_INIT("Free")};
    static const str runtimes[] = {STR_INIT("cuda"), STR_INIT("cu"), STR_INIT("hip")};
    const ptrdiff_t version = str_find_char(name, '_');
    const str call = version < 0 ? name : str_sub(name, 0, (size_t)version);
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (str_starts(call, runtimes[i]) &&
            is_one_of(str_sub(call, runtimes[i].n, call.n), words, sizeof words / sizeof *words))
            return true;
    return false;
}

static enum class class_of(str name) {
    static const str waits[] = {STR_INIT("block_until_ready"), STR_INIT("BlockHostUntilReady"),
                                STR_INIT("BlockUntilReady")};
    static const str operations[] = {STR_INIT("aten::item"), STR_INIT("aten::_local_scalar_dense"),
                                     STR_INIT("aten::is_nonzero"), STR_INIT("aten::nonzero")};
    const ptrdiff_t space = str_find_char(name, ' ');
    const bool python = frame_is_python(name);
    const str function = python && str_starts(name, S("$")) && space > 0
                             ? str_sub(name, (size_t)space + 1, name.n)
                             : name;
    if (is_one_of(function, waits, sizeof waits / sizeof *waits) || is_waiting_call(name) ||
        str_ends(name, S("Buffer::Await")) || str_ends(name, S("::ToLiteralSync"))) return WAITS;
    if (python) return PYTHON;
    if (is_one_of(name, operations, sizeof operations / sizeof *operations)) return WAITS_OPERATION;
    return str_find(name, S("::")) > 0 && name.p[0] >= 'a' && name.p[0] <= 'z' ? OPERATION : PLAIN;
}

/* ---- one thread ---- */

/* PyTorch's outermost operation around the call, with nothing but operations between. */
static str operation_around(const struct collector *c)
{
    str found = {0};
    for (uint32_t i = c->n_open; i > 0; i--) {
        const struct frame *f = &c->open[i - 1];
        if (f->class != OPERATION && f->class != WAITS_OPERATION)
            break;
        found = f->name;
    }
    return found;
}

static str stack_around(struct collector *c)
{
    buf_clear(&c->text);
    for (uint32_t i = 0; i < c->n_open; i++) {
        if (c->open[i].class != PYTHON)
            continue;
        if (c->text.n > 0)
            buf_add_char(&c->text, ';');
        buf_add_str(&c->text, frame_clean(c->open[i].name, c->arena));
    }
    return buf_str(&c->text);
}

static bool is_in_steps(const struct collector *c, uint64_t at_ps)
{
    return c->n_steps > 0 && at_ps >= c->steps[0].begin_ps &&
           at_ps < c->steps[c->n_steps - 1].end_ps;
}

static uint32_t row_for(struct collector *c, str call)
{
    struct sync_points *out = c->out;
    const str operation = operation_around(c), stack = stack_around(c);
    const str key = arena_printf(c->arena, "%.*s%c%.*s%c%.*s", STR_ARG(call), 0, STR_ARG(operation),
                                 0, STR_ARG(stack));
    const uint32_t *at = map_str_u32_get(&c->rows, key);
    if (at != NULL)
        return *at;
    if (key.p == NULL || !ARENA_PUSH(c->arena, out->items, out->n, out->capacity))
        return UINT32_MAX;
    out->items[out->n - 1] = (struct sync_point){
        .call = call, .operation = operation, .stack = arena_str(c->arena, stack)};
    *map_str_u32_put(&c->rows, key) = out->n - 1;
    return out->n - 1;
}

static bool add_sync(struct collector *c, const struct frame *f)
{
    const uint32_t row = row_for(c, f->name);
    if (row == UINT32_MAX || !ARENA_PUSH(c->arena, c->syncs, c->n_syncs, c->syncs_capacity))
        return arena_full(c->arena, c->err);
    c->syncs[c->n_syncs - 1] = (struct sync){f->begin_ps, f->end_ps, row};
    struct sync_point *p = &c->out->items[row];
    const uint64_t wait = f->end_ps - f->begin_ps;
    p->count++;
    p->wait_ps += wait;
    p->longest_ps = wait > p->longest_ps ? wait : p->longest_ps;
    p->in_steps += is_in_steps(c, f->begin_ps);
    p->has_idle |= c->has_device;
    return true;
}

/* Closes what ended before the depth; the stack around a call is there still. */
static bool close_to(struct collector *c, uint32_t depth)
{
    bool ok = true;
    while (ok && c->n_open > depth) {
        const struct frame f = c->open[--c->n_open];
        const bool waits = f.class == WAITS || (f.class == WAITS_OPERATION && c->has_device);
        if (waits && !f.holds_wait)
            ok = add_sync(c, &f);
        if (c->n_open > 0)
            c->open[c->n_open - 1].holds_wait |= waits || f.holds_wait;
    }
    return ok;
}

static bool open_event(struct collector *c, uint32_t line, const struct trace_event *ev)
{
    const struct trace_line *l = &c->trace->lines[line];
    const str name = trace_event_name(c->trace, l, ev);
    uint8_t *known = memo_at(&c->classes, c->trace, l, ev);
    if (*known == 0)
        *known = (uint8_t)class_of(name);
    if (!close_to(c, ev->depth))
        return false;
    if (!ARENA_PUSH(c->arena, c->open, c->n_open, c->open_capacity))
        return arena_full(c->arena, c->err);
    c->open[c->n_open - 1] = (struct frame){.name = name,
                                            .begin_ps = ev->start_ps,
                                            .end_ps = ev->start_ps + ev->dur_ps,
                                            .class = (enum class) * known};
    return true;
}

static bool collect_thread(struct collector *c, uint32_t line)
{
    struct trace_cursor cursor;
    bool ok = true;
    for (trace_cursor_init(&cursor, c->trace, line); ok && trace_cursor_next(&cursor);)
        if (cursor.event.num_occurrences == 0)
            ok = open_event(c, line, &cursor.event);
    trace_cursor_release(&cursor);
    ok = ok && close_to(c, 0);
    c->n_open = 0;
    return ok && trace_cursor_ok(&cursor, c->err);
}

/* ---- what the devices did meanwhile ---- */

static int by_end(const void *x, const void *y)
{
    const struct sync *a = x, *b = y;
    return a->end_ps < b->end_ps ? -1 : a->end_ps > b->end_ps;
}

/* The work that goes on at that time, or the first after it; n when there is none. */
static uint32_t work_at(const struct spans *busy, uint64_t at_ps)
{
    uint32_t low = 0, high = busy->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (busy->items[mid].end_ps <= at_ps)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void measure_idle(struct collector *c, const struct spans *busy)
{
    uint32_t taken = UINT32_MAX; /* the gap before that work has its call */
    if (c->n_syncs > 1)
        qsort(c->syncs, c->n_syncs, sizeof *c->syncs, by_end);
    for (uint32_t i = 0; i < c->n_syncs && busy->n > 0; i++) {
        const struct sync *s = &c->syncs[i];
        struct sync_point *p = &c->out->items[s->row];
        const uint64_t first = busy->items[0].begin_ps, last = busy->items[busy->n - 1].end_ps;
        const uint64_t from = s->begin_ps > first ? s->begin_ps : first;
        const uint64_t to = s->end_ps < last ? s->end_ps : last;
        if (to > from)
            p->idle_during_ps += to - from - spans_within(busy, from, to);
        const uint32_t next = work_at(busy, s->end_ps);
        if (next < busy->n && next > 0 && busy->items[next].begin_ps > s->end_ps && next != taken) {
            p->idle_after_ps += busy->items[next].begin_ps - s->end_ps;
            taken = next;
        }
    }
}

/* Of all devices of the trace that are not the host itself. */
static bool busy_of(struct collector *c, const struct work_devices *d, struct spans *busy)
{
    c->has_device = false;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->items[i].trace != c->trace || d->items[i].plane_index == UINT32_MAX)
            continue;
        c->has_device = true;
        for (uint32_t k = 0; k < d->items[i].busy.n; k++)
            if (!spans_add(busy, c->arena, d->items[i].busy.items[k].begin_ps,
                           d->items[i].busy.items[k].end_ps))
                return arena_full(c->arena, c->err);
    }
    spans_close(busy);
    return true;
}

static bool find_steps(struct collector *c)
{
    struct grouping g;
    struct step_lanes lanes;
    if (!grouping_of(c->trace, c->arena, &g, c->err) ||
        !step_lanes_of(c->trace, &g, c->arena, &lanes, c->err))
        return false;
    const struct step_lane *host = step_lanes_for(&lanes, STEP_LANE_HOST);
    if (host != NULL && host->mark == STEP_MARK_PERIOD)
        host = NULL; /* a period of kernels is too weak a ground for counts a step */
    const bool cut = host != NULL && host->n >= 3; /* the first and last may be incomplete */
    c->steps = host == NULL ? NULL : host->items + cut;
    c->n_steps = host == NULL ? 0 : host->n - (cut ? 2 : 0);
    c->out->n_steps += c->n_steps;
    return true;
}

static bool collect_trace(struct collector *c, const struct work_devices *d)
{
    const struct trace *t = c->trace;
    struct spans busy = {0};
    c->n_syncs = 0;
    bool ok = busy_of(c, d, &busy) && find_steps(c);
    for (uint32_t l = 0; ok && l < t->n_lines; l++)
        if (t->planes[t->lines[l].plane_index].kind == TRACE_PLANE_HOST)
            ok = collect_thread(c, l);
    if (ok)
        measure_idle(c, &busy);
    return ok;
}

static int by_cost(const void *x, const void *y)
{
    const struct sync_point *a = x, *b = y;
    const uint64_t of_a = a->idle_after_ps + a->idle_during_ps,
                   of_b = b->idle_after_ps + b->idle_during_ps;
    if (of_a != of_b)
        return of_a < of_b ? 1 : -1;
    if (a->wait_ps != b->wait_ps)
        return a->wait_ps < b->wait_ps ? 1 : -1;
    const int call = str_cmp(a->call, b->call);
    return call != 0 ? call : str_cmp(a->stack, b->stack);
}

bool sync_points_of(const struct profile *p, struct arena *a, struct sync_points *out,
                    struct err *e)
{
    struct collector c = {.out = out, .arena = a, .err = e};
    struct work_devices devices;
    *out = (struct sync_points){0};
    buf_init(&c.text, a->cap_bytes);
    bool ok = work_devices_of(p, a, &devices, e);
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        c.trace = p->traces[i];
        ok = collect_trace(&c, &devices);
    }
    memo_release(&c.classes);
    map_str_u32_release(&c.rows);
    buf_release(&c.text);
    if (ok && out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_cost);
    return ok;
}
