/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/memory_events.h"

#include <math.h>

enum asked {
    ALLOCATOR = 0,
    DEVICE,
    INDEX_ON_HOST,
    RESERVED,
    ALLOCATED,
    AVAILABLE,
    FRAGMENTATION,
    LIFETIME_PEAK,
    BYTES,
    ADDRESS,
    ASKED
};
static const str asked_names[ASKED] = {
    STR_INIT("allocator_name"), STR_INIT("device_ordinal"),    STR_INIT("index_on_host"),
    STR_INIT("bytes_reserved"), STR_INIT("bytes_allocated"),   STR_INIT("bytes_available"),
    STR_INIT("fragmentation"),  STR_INIT("peak_bytes_in_use"), STR_INIT("allocation_bytes"),
    STR_INIT("addr"),
};

enum what { NOTHING = 0, ALLOCATION, RELEASE };

struct memory_source {
    struct trace_cursor cursor;
    struct trace_picker picker;
    uint32_t line;
    const uint8_t *what; /* enum what, by metadata index */
};

int64_t memory_in_use(const struct memory_use *u)
{
    if (u->heap == MEMORY_UNKNOWN || u->stack == MEMORY_UNKNOWN)
        return u->heap;
    int64_t sum;
    return __builtin_add_overflow(u->heap, u->stack, &sum) ? INT64_MAX : sum;
}

static enum what what_of(const struct memory_source *s)
{
    const uint32_t i = s->cursor.event.metadata_index;
    return i == UINT32_MAX ? NOTHING : (enum what)s->what[i];
}

/* To the next event of an allocator. */
static bool advance(struct memory_source *s)
{
    while (trace_cursor_next(&s->cursor))
        if (what_of(s) != NOTHING)
            return true;
    return false;
}

static bool before(const struct memory_events *s, uint32_t a, uint32_t b)
{
    const uint64_t x = s->sources[a].cursor.event.start_ps;
    const uint64_t y = s->sources[b].cursor.event.start_ps;
    return x != y ? x < y : a < b;
}

static void swap(uint32_t *a, uint32_t *b)
{
    const uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_down(struct memory_events *s, uint32_t i)
{
    for (;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->n_heap; child++)
            if (before(s, s->heap[child], s->heap[least]))
                least = child;
        if (least == i)
            return;
        swap(&s->heap[i], &s->heap[least]);
        i = least;
    }
}

/* What each name of the plane's events stands for; NULL in *out when none is an allocator's. */
static bool classify(struct memory_events *s, const struct trace_plane *p, uint8_t **out,
                     struct err *e)
{
    bool any = false;
    uint8_t *what = ARENA_ARRAY(s->arena, uint8_t, (size_t)p->n_event_metadata + 1);
    if (what == NULL)
        return arena_full(s->arena, e);
    for (uint32_t i = 0; i < p->n_event_metadata; i++) {
        const str name = p->event_metadata[i].name;
        what[i] = str_eq(name, S("MemoryAllocation"))     ? ALLOCATION
                  : str_eq(name, S("MemoryDeallocation")) ? RELEASE
                                                          : NOTHING;
        any |= what[i] != NOTHING;
    }
    *out = any ? what : NULL;
    return true;
}

static bool open_line(struct memory_events *s, uint32_t line, const uint8_t *what, struct err *e)
{
    if (!ARENA_PUSH(s->arena, s->sources, s->n_sources, s->capacity))
        return arena_full(s->arena, e);
    struct memory_source *source = &s->sources[s->n_sources - 1];
    source->line = line;
    source->what = what;
    trace_cursor_init(&source->cursor, s->trace, line);
    trace_picker_init(&source->picker, s->trace, line, asked_names, ASKED);
    if (advance(source))
        return true;
    const bool ok = trace_cursor_ok(&source->cursor, e);
    trace_cursor_release(&source->cursor);
    trace_picker_release(&source->picker);
    s->n_sources--;
    return ok;
}

bool memory_events_open(struct memory_events *s, const struct trace *t, struct arena *a,
                        struct err *e)
{
    *s = (struct memory_events){.trace = t, .arena = a};
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        uint8_t *what = NULL;
        if (p->kind != TRACE_PLANE_HOST)
            continue;
        if (!classify(s, p, &what, e))
            return false;
        for (uint32_t l = p->first_line; what != NULL && l < p->first_line + p->n_lines; l++)
            if (!open_line(s, l, what, e))
                return false;
    }
    s->heap = ARENA_ARRAY(a, uint32_t, (size_t)s->n_sources + 1);
    if (s->heap == NULL)
        return arena_full(a, e);
    for (s->n_heap = 0; s->n_heap < s->n_sources; s->n_heap++)
        s->heap[s->n_heap] = s->n_heap;
    for (uint32_t i = s->n_heap / 2; i-- > 0;)
        sift_down(s, i);
    return true;
}

static int64_t number_of(const struct trace_stat *v)
{
    int64_t out;
    return trace_stat_i64(v, &out) ? out : MEMORY_UNKNOWN;
}

static str allocator_of(struct memory_events *s, const struct trace_stat *v)
{
    str name = {0};
    if (trace_stat_str(&v[ALLOCATOR], &name) && name.n > 0)
        return name;
    int64_t device = number_of(&v[DEVICE]);
    if (device == MEMORY_UNKNOWN)
        device = number_of(&v[INDEX_ON_HOST]);
    if (device == MEMORY_UNKNOWN)
        return S("");
    snprintf(s->number, sizeof s->number, "%lld", (long long)device);
    return str_from(s->number);
}

bool memory_address(const struct trace_stat *v, uint64_t *out)
{
    *out = 0;
    if (v != NULL && v->type == TRACE_STAT_U64)
        *out = v->u64;
    else if (v != NULL && v->type == TRACE_STAT_I64)
        *out = (uint64_t)v->i64;
    return *out != 0;
}

static void take(struct memory_events *s, const struct memory_source *source)
{
    const struct trace_stat *v = source->picker.values;
    struct memory_event *m = &s->event;
    *m = (struct memory_event){.line = source->line,
                               .index = source->cursor.index,
                               .at = source->cursor.event,
                               .allocator = allocator_of(s, v),
                               .is_release = what_of(source) == RELEASE,
                               .bytes = number_of(&v[BYTES])};
    m->has_address = memory_address(&v[ADDRESS], &m->address);
    m->use = (struct memory_use){.stack = number_of(&v[RESERVED]),
                                 .heap = number_of(&v[ALLOCATED]),
                                 .free = number_of(&v[AVAILABLE]),
                                 .lifetime_peak = number_of(&v[LIFETIME_PEAK]),
                                 .fragmentation_ratio = NAN};
    (void)trace_stat_f64(&v[FRAGMENTATION], &m->use.fragmentation_ratio);
}

/* The source that gave the last event goes on, or is done. */
static bool step_on(struct memory_events *s)
{
    if (!s->started) {
        s->started = true;
        return true;
    }
    struct memory_source *source = &s->sources[s->heap[0]];
    if (!advance(source)) {
        if (!trace_cursor_ok(&source->cursor, &s->failure))
            return false;
        s->heap[0] = s->heap[--s->n_heap];
    }
    sift_down(s, 0);
    return true;
}

bool memory_events_next(struct memory_events *s)
{
    if (s->failed || s->n_heap == 0)
        return false;
    s->failed = !step_on(s);
    if (s->failed || s->n_heap == 0)
        return false;
    struct memory_source *source = &s->sources[s->heap[0]];
    s->failed = !trace_pick(&source->picker, &source->cursor.event, &s->failure);
    if (!s->failed)
        take(s, source);
    return !s->failed;
}

bool memory_events_close(struct memory_events *s, struct err *e)
{
    for (uint32_t i = 0; i < s->n_sources; i++) {
        trace_cursor_release(&s->sources[i].cursor);
        trace_picker_release(&s->sources[i].picker);
    }
    s->n_sources = s->n_heap = 0;
    if (s->failed && e != NULL)
        *e = s->failure;
    return !s->failed;
}
