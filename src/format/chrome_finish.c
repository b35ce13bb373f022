/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "format/chrome_internal.h"

static int moment_order(struct moment x, struct moment y)
{
    if (x.ns != y.ns)
        return x.ns < y.ns ? -1 : 1;
    return x.sub_ps < y.sub_ps ? -1 : x.sub_ps > y.sub_ps;
}

/* -- arrows -- */

/* Where an arrow touches an event. */
struct touch {
    struct xspace_line_out *line;
    struct process *process;
    struct moment at;
    uint64_t id;
    bool produces, ends; /* at the begin of an arrow; the very last point of it */
};

static int flow_order(const void *a, const void *b)
{
    const struct flow_point *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    const int by_time = moment_order(x->at, y->at);
    return by_time != 0 ? by_time : (y->phase == 's') - (x->phase == 's');
}

static int touch_order(const void *a, const void *b)
{
    const struct touch *x = a, *y = b;
    if (x->line != y->line)
        return (uintptr_t)x->line < (uintptr_t)y->line ? -1 : 1;
    const int by_time = moment_order(x->at, y->at);
    return by_time != 0 ? by_time : x->id < y->id ? -1 : x->id > y->id;
}

static void touch_add(const struct flow_point *f, uint64_t id, bool produces, struct touch *all,
                      uint32_t *n)
{
    struct xspace_line_out *line = NULL;
    for (int row = 0; line == NULL && row < N_ROWS; row++)
        line = f->thread->rows[row];
    if (line != NULL)
        all[(*n)++] = (struct touch){line, f->thread->process, f->at,
                                     id,   produces,           f->phase == 'f' && !produces};
}

/* Points of one key, in order of time, into links from each to the one after it. */
static void link_points(struct chrome *c, const struct flow_point *f, uint32_t n, struct touch *all,
                        uint32_t *n_all)
{
    uint64_t id = f->key & INT64_MAX;
    bool begun = false, used = true;
    for (uint32_t i = 0; i < n; i++) {
        if (f[i].phase != 's') {
            if (begun)
                touch_add(&f[i], id, false, all, n_all);
            c->n_lone_flows += !begun;
            used = true;
        }
        if (f[i].phase != 'f') {
            c->n_lone_flows += begun && !used;
            id = map_hash_u64(id + 1) & INT64_MAX;
            touch_add(&f[i], id, true, all, n_all);
            begun = true;
            used = false;
        }
    }
    c->n_lone_flows += begun && !used;
}

struct span_at {
    struct moment from;
    uint64_t dur_ps, event;
};

static int span_order(const void *a, const void *b)
{
    const struct span_at *x = a, *y = b;
    const int by_time = moment_order(x->from, y->from);
    if (by_time != 0)
        return by_time;
    if (x->dur_ps != y->dur_ps)
        return x->dur_ps > y->dur_ps ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static struct span_at *line_spans(const struct xspace_line_out *l, uint64_t *n)
{
    struct span_at *all = map_alloc(l->n_events + 1, sizeof *all);
    *n = 0;
    for (uint64_t i = 0; i < l->n_events; i++) {
        const struct xspace_event_out *ev = &l->events[i];
        if (ev->dur_ps != XSPACE_OPEN && ev->dur_ps > 0)
            all[(*n)++] = (struct span_at){{ev->start_ns, ev->sub_ps, true}, ev->dur_ps, i};
    }
    qsort(all, *n, sizeof *all, span_order);
    return all;
}

static bool holds(const struct span_at *s, struct moment at)
{
    return chrome_span_ps(s->from, at) <= s->dur_ps;
}

static void touch_write(struct chrome *c, const struct touch *t, uint64_t event)
{
    xspace_writer_stat_i64(
        t->line,
        chrome_stat_named(c, t->process, t->produces ? OWN_PRODUCER_TYPE : OWN_CONSUMER_TYPE), 0);
    xspace_writer_stat_i64(
        t->line, chrome_stat_named(c, t->process, t->produces ? OWN_PRODUCER : OWN_CONSUMER),
        (int64_t)t->id);
    xspace_writer_late(&c->w, t->line, event);
}

/* A point belongs to the innermost event around it; the end of an arrow without one to the next event. */
static void bind_line(struct chrome *c, const struct touch *t, uint32_t n)
{
    uint64_t n_spans, next = 0, depth = 0;
    struct span_at *spans = line_spans(t->line, &n_spans);
    struct span_at **stack = map_alloc(n_spans + 1, sizeof *stack);
    for (uint32_t i = 0; i < n; i++) {
        while (next < n_spans && moment_order(spans[next].from, t[i].at) <= 0) {
            while (depth > 0 && !holds(stack[depth - 1], spans[next].from))
                depth--;
            stack[depth++] = &spans[next++];
        }
        while (depth > 0 && !holds(stack[depth - 1], t[i].at))
            depth--;
        if (depth > 0)
            touch_write(c, &t[i], stack[depth - 1]->event);
        else if (t[i].ends && next < n_spans)
            touch_write(c, &t[i], spans[next].event);
        else
            c->n_lone_flows++;
    }
    map_free(stack);
    map_free(spans);
}

static void bind_flows(struct chrome *c)
{
    if (c->n_flows == 0)
        return;
    struct touch *all = map_alloc((size_t)c->n_flows * 2, sizeof *all);
    uint32_t n = 0;
    qsort(c->flows, c->n_flows, sizeof *c->flows, flow_order);
    for (uint32_t from = 0, to; from < c->n_flows; from = to) {
        for (to = from + 1; to < c->n_flows && c->flows[to].key == c->flows[from].key;)
            to++;
        link_points(c, &c->flows[from], to - from, all, &n);
    }
    qsort(all, n, sizeof *all, touch_order);
    for (uint32_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && all[to].line == all[from].line;)
            to++;
        bind_line(c, &all[from], to - from);
    }
    map_free(all);
}

/* -- PyTorch's allocator -- */

static int memory_order(const void *a, const void *b)
{
    const struct memory_record *x = a, *y = b;
    if (x->device_type != y->device_type)
        return x->device_type < y->device_type ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    const int by_time = moment_order(x->at, y->at);
    return by_time != 0 ? by_time : x->made < y->made ? -1 : x->made > y->made;
}

static str allocator_name(struct chrome *c, const struct memory_record *m)
{
    buf_clear(&c->text);
    if (m->device_type == 0)
        buf_add_str(&c->text, S("CPU"));
    else if (m->device_type == 1 || m->device_type == 6) /* CUDA, HIP: c10/core/DeviceType.h */
        buf_addf(&c->text, "GPU:%" PRIi64, m->device);
    else
        buf_addf(&c->text, "device type %" PRIi64 ":%" PRIi64, m->device_type, m->device);
    return buf_str(&c->text);
}

static void write_memory(struct chrome *c, const struct memory_record *m, int64_t peak)
{
    struct process *const p = m->thread->process;
    struct xspace_line_out *const l = m->thread->rows[ROW_HOST];
    const int64_t bytes = m->bytes < 0 ? -m->bytes : m->bytes;
    if (l == NULL)
        return;
    xspace_writer_stat_str(l, chrome_stat_named(c, p, OWN_ALLOCATOR), allocator_name(c, m));
    xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_ALLOCATION_BYTES), bytes);
    xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_REQUESTED_BYTES), bytes);
    xspace_writer_stat_u64(l, chrome_stat_named(c, p, OWN_ADDRESS), (uint64_t)m->address);
    if (m->has_totals) {
        xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_BYTES_ALLOCATED), m->allocated);
        xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_TOTAL_RESERVED), m->reserved);
        if (m->reserved >= m->allocated)
            xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_BYTES_AVAILABLE),
                                   m->reserved - m->allocated);
        xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_PEAK_BYTES), peak);
    }
    const str name = m->bytes < 0 ? S("MemoryDeallocation") : S("MemoryAllocation");
    xspace_writer_event(&c->w, l, xspace_writer_name(&c->w, l->plane, name), m->at.ns, m->at.sub_ps,
                        0);
    c->n_events++;
}

static void write_memory_events(struct chrome *c)
{
    if (c->n_memory > 1)
        qsort(c->memory, c->n_memory, sizeof *c->memory, memory_order);
    int64_t peak = 0;
    for (uint32_t i = 0; i < c->n_memory; i++) {
        const struct memory_record *m = &c->memory[i];
        if (i == 0 || m->device != m[-1].device || m->device_type != m[-1].device_type)
            peak = 0;
        if (m->has_totals && m->allocated > peak)
            peak = m->allocated;
        write_memory(c, m, peak);
    }
}

/* -- names -- */

static bool device_taken(const struct chrome *c, const struct process *of, int64_t device)
{
    for (const struct process *p = c->first; p != NULL; p = p->next)
        if (p != of && p->runs_kernels && p->plane != NULL && p->device == device &&
            p->plane->name.n > 0)
            return true;
    return false;
}

/* N of /device:GPU:N: what its kernels say, else the first that is free. */
static int64_t device_number(const struct chrome *c, struct process *p)
{
    if (p->device < 0 || device_taken(c, p, p->device))
        for (p->device = 0; device_taken(c, p, p->device);)
            p->device++;
    return p->device;
}

/* Of planes, once it is known how many there are. */
static void name_planes(struct chrome *c)
{
    struct arena *const a = &c->w.arena;
    uint32_t n_hosts = 0;
    for (const struct process *p = c->first; p != NULL; p = p->next)
        n_hosts += p->plane != NULL && !p->runs_kernels;
    for (struct process *p = c->first; p != NULL; p = p->next) {
        const str name = p->name.n > 0 ? p->name : S("process");
        if (p->plane == NULL)
            continue;
        p->plane->order = p->has_order ? p->order : 0;
        if (str_starts(name, S("/device:")) || str_starts(name, S("/host:")))
            p->plane->name = name; /* of an XSpace that went through JSON */
        else if (p->runs_kernels)
            p->plane->name = arena_printf(a, "/device:GPU:%" PRIi64, device_number(c, p));
        else if (n_hosts == 1)
            p->plane->name = S("/host:CPU");
        else
            p->plane->name = arena_printf(a, "/host:CPU %.*s %.*s", STR_ARG(name), STR_ARG(p->pid));
        if (p->name.n > 0)
            xspace_writer_plane_str(&c->w, p->plane, S("process_name"), p->name);
        if (p->label.n > 0)
            xspace_writer_plane_str(&c->w, p->plane, S("process_labels"), p->label);
        if (p->pid.n > 0)
            xspace_writer_plane_str(&c->w, p->plane, S("process_id"), p->pid);
    }
}

/* What XProf's writers call the row of a stream, and rows of a device that are not its work: other tools
 * know it by that. */
static void name_rows(struct chrome *c)
{
    struct arena *const a = &c->w.arena;
    for (size_t i = 0; thread_map_next(&c->threads, &i);) {
        const struct thread *t = c->threads.values[i - 1];
        const str name = str_trim(t->name);
        size_t digits = name.n;
        while (digits > 0 && name.p[digits - 1] >= '0' && name.p[digits - 1] <= '9')
            digits--;
        const str number = str_sub(name, digits, name.n);
        for (int row = 0; row < N_ROWS; row++)
            if (t->rows[row] != NULL)
                t->rows[row]->order = t->order;
        if (t->rows[ROW_HOST] != NULL)
            t->rows[ROW_HOST]->name = t->process->runs_kernels
                                          ? arena_printf(a, "Framework Ops %.*s", STR_ARG(t->name))
                                          : t->name;
        if (t->rows[ROW_KERNELS] != NULL)
            t->rows[ROW_KERNELS]->name = str_starts(t->name, S("Stream #"))
                                             ? t->name
                                             : arena_printf(a, "Stream #%.*s", STR_ARG(number));
        if (t->rows[ROW_OVER_KERNELS] != NULL)
            t->rows[ROW_OVER_KERNELS]->name =
                arena_printf(a, "Framework Name Scope #%.*s", STR_ARG(number));
    }
}

/* -- facts of the document -- */

static void copy_number(struct chrome *c, struct xspace_plane_out *p, const json_t *properties,
                        const char *from, str to)
{
    const json_t *v = json_object_get(properties, from);
    if (json_is_integer(v))
        xspace_writer_plane_i64(&c->w, p, to, json_integer_value(v));
}

static void write_device(struct chrome *c, struct xspace_plane_out *p, const json_t *properties)
{
    copy_number(c, p, properties, "numSms", S("core_count"));
    copy_number(c, p, properties, "totalGlobalMem", S("memory_size"));
    copy_number(c, p, properties, "computeMajor", S("compute_cap_major"));
    copy_number(c, p, properties, "computeMinor", S("compute_cap_minor"));
    const char *text = json_string_value(json_object_get(properties, "name"));
    if (text == NULL)
        return;
    const str name = str_from(text);
    xspace_writer_plane_str(&c->w, p, S("gpu_device_name"), name);
    if (str_find_nocase(name, S("AMD")) >= 0)
        xspace_writer_plane_str(&c->w, p, S("device_vendor"), S("AMD"));
    else if (str_find_nocase(name, S("NVIDIA")) >= 0 || str_find_nocase(name, S("Tesla")) >= 0)
        xspace_writer_plane_str(&c->w, p, S("device_vendor"), S("Nvidia"));
}

static void write_devices(struct chrome *c, str text)
{
    json_t *all = json_loadb(text.p, text.n, 0, NULL);
    json_t *device;
    size_t i;
    json_array_foreach(all, i, device)
    {
        const json_t *id = json_object_get(device, "id");
        for (struct process *p = c->first; p != NULL && json_is_integer(id); p = p->next)
            if (p->runs_kernels && p->plane != NULL && p->device == json_integer_value(id))
                write_device(c, p->plane, device);
    }
    json_decref(all);
}

static void write_facts(struct chrome *c)
{
    bool first = true;
    for (struct xspace_plane_out *p = c->w.planes; p != NULL; p = p->next, first = false) {
        xspace_writer_plane_str(&c->w, p, S("imported_from"),
                                c->is_kineto ? S("kineto") : S("chrome"));
        if (c->has_rank)
            xspace_writer_plane_i64(&c->w, p, S("rank"), c->rank);
        if (c->has_world_size)
            xspace_writer_plane_i64(&c->w, p, S("world_size"), c->world_size);
        for (uint32_t i = 0; first && i < c->n_meta; i++)
            xspace_writer_plane_str(&c->w, p, c->meta_names[i], c->meta_texts[i]);
    }
    for (uint32_t i = 0; i < c->n_meta; i++) {
        if (str_eq(c->meta_names[i], S("deviceProperties")))
            write_devices(c, c->meta_texts[i]);
        else if (str_eq(c->meta_names[i], S("host_name")) ||
                 str_eq(c->meta_names[i], S("hostname")))
            xspace_writer_host(&c->w, c->meta_texts[i]);
    }
}

static void warn(struct chrome *c, uint64_t n, const char *what)
{
    if (n > 0)
        xspace_writer_warn(&c->w, arena_printf(&c->w.arena, "%" PRIu64 " %s", n, what));
}

bool chrome_finish(struct chrome *c, int to_fd, struct err *e)
{
    bind_flows(c);
    write_memory_events(c);
    name_planes(c);
    name_rows(c);
    write_facts(c);
    warn(c, c->n_unended, "slices began and have no end: left out");
    warn(c, c->n_unbegun, "ends without a begin: left out");
    warn(c, c->n_no_time, "entries without a time or a length: left out");
    warn(c, c->n_lone_flows, "ends of arrows that lead nowhere: left out");
    warn(c, c->n_args_left_out, "arguments that are too long or too many for an event: left out");
    warn(c, c->n_meta_left_out, "facts about the trace that are too long or too many: left out");
    warn(c, c->n_left_out, "entries of unknown kinds: left out");
    warn(c, c->scan.n_bad_escapes, "backslashes that escape nothing: kept");
    warn(c, c->scan.n_not_finite, "numbers that are not finite: unknown");
    warn(c, c->cut, "file is cut inside its event list: what followed is missing");
    c->w.shift_ns = c->base_ns;
    return xspace_writer_save(&c->w, to_fd, e);
}
