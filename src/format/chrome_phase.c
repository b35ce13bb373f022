/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/limits.h"
#include "format/chrome_internal.h"

static struct process *process_of(struct chrome *c, str pid)
{
    struct process **slot = process_map_get(&c->processes, pid);
    if (slot != NULL)
        return *slot;
    struct process *p = ARENA_NEW(&c->w.arena, struct process);
    const str kept = arena_str(&c->w.arena, pid);
    if (p == NULL || kept.p == NULL)
        return NULL;
    p->pid = kept;
    p->device = -1;
    *c->last = p;
    c->last = &p->next;
    *process_map_put(&c->processes, p->pid) = p;
    return p;
}

static struct thread *thread_new(struct chrome *c, struct thread_key key)
{
    struct process *p = process_of(c, key.pid);
    struct thread *t = ARENA_NEW(&c->w.arena, struct thread);
    const str tid = arena_str(&c->w.arena, key.tid);
    if (p == NULL || t == NULL || tid.p == NULL)
        return NULL;
    t->process = p;
    t->tid = t->name = tid;
    if (!str_to_i64(tid, &t->id))
        t->id = (int64_t)(str_fnv1a(tid) >> 1);
    *thread_map_put(&c->threads, (struct thread_key){p->pid, tid}) = t;
    return t;
}

static struct thread *thread_of(struct chrome *c, const struct entry *n)
{
    struct thread *t = c->last_thread;
    if (t != NULL && str_eq(t->tid, n->tid) && str_eq(t->process->pid, n->pid))
        return t;
    const struct thread_key key = {n->pid, n->tid};
    struct thread **known = thread_map_get(&c->threads, key);
    return c->last_thread = known != NULL ? *known : thread_new(c, key);
}

static str argument_text(const struct entry *n, enum role role)
{
    return n->by_role[role] == NULL ? (str){0} : n->by_role[role]->text;
}

/* ph M: names and order of processes and threads. */
static void take_metadata(struct chrome *c, const struct entry *n)
{
    struct arena *const a = &c->w.arena;
    if (str_starts(n->name, S("thread_"))) {
        struct thread *t = thread_of(c, n);
        if (t != NULL && str_eq(n->name, S("thread_name")))
            t->name = arena_str(a, argument_text(n, NAME));
        else if (t != NULL && str_eq(n->name, S("thread_sort_index")) &&
                 !chrome_number(argument_text(n, SORT_INDEX), &t->order))
            t->order = 0;
        return;
    }
    struct process *p = process_of(c, n->pid);
    if (p == NULL)
        return;
    if (str_eq(n->name, S("process_name")))
        p->name = arena_str(a, argument_text(n, NAME));
    else if (str_eq(n->name, S("process_labels")))
        p->label = arena_str(a, argument_text(n, LABELS));
    else if (str_eq(n->name, S("process_sort_index")))
        p->has_order = chrome_number(argument_text(n, SORT_INDEX), &p->order);
}

static bool plane_make(struct chrome *c, struct process *p)
{
    if (p->plane == NULL)
        p->plane = xspace_writer_plane(&c->w);
    return p->plane != NULL;
}

static enum row row_of(str category)
{
    if (category.n < 6)
        return ROW_HOST;
    if (str_eq_nocase(category, S("kernel")) || str_eq(category, S("gpu_memcpy")) ||
        str_eq(category, S("gpu_memset")))
        return ROW_KERNELS;
    return str_eq(category, S("gpu_user_annotation")) || str_eq(category, S("cuda_sync"))
               ? ROW_OVER_KERNELS
               : ROW_HOST;
}

static struct xspace_line_out *line_of(struct chrome *c, struct thread *t, const struct entry *n)
{
    const enum row row = row_of(n->category);
    struct process *p = t->process;
    if (row != ROW_HOST) {
        p->runs_kernels = true;
        int64_t device;
        if (p->device < 0 && chrome_number(argument_text(n, DEVICE), &device) && device >= 0)
            p->device = device;
    }
    if (t->rows[row] == NULL && plane_make(c, p))
        t->rows[row] = xspace_writer_line(&c->w, p->plane, t->id, t->name);
    return t->rows[row];
}

static void write_stats(struct chrome *c, struct process *p, struct xspace_line_out *l,
                        const struct entry *n)
{
    int64_t step;
    chrome_write_args(c, p, l, n);
    if (str_starts(n->name, S("ProfilerStep#")) &&
        str_to_i64(str_sub(n->name, 13, n->name.n), &step)) {
        c->is_kineto = true;
        xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_ROOT), 1);
        xspace_writer_stat_i64(l, chrome_stat_named(c, p, OWN_STEP), step);
    }
    if (n->category.n > 0)
        xspace_writer_stat_str(l, chrome_stat_named(c, p, OWN_CATEGORY), n->category);
}

static void write_event(struct chrome *c, struct thread *t, const struct entry *n, uint64_t dur_ps)
{
    struct xspace_line_out *l = line_of(c, t, n);
    if (l == NULL)
        return;
    write_stats(c, t->process, l, n);
    xspace_writer_event(&c->w, l, chrome_name_id(c, t->process, n->name), n->start.ns,
                        n->start.sub_ps, dur_ps);
    c->n_events++;
}

/* -- events with an end of their own -- */

static bool event_begin(struct chrome *c, struct xspace_line_out *l, const struct entry *n,
                        struct open_event **open)
{
    struct open_event *b = c->free_events;
    if (b != NULL)
        c->free_events = b->outer;
    else
        b = ARENA_NEW(&c->w.arena, struct open_event);
    if (b == NULL || l == NULL || l->n_events == 0)
        return false;
    *b = (struct open_event){l, l->n_events - 1, n->start, *open};
    *open = b;
    c->n_unended++;
    c->n_events--;
    return true;
}

static void event_end(struct chrome *c, struct process *p, const struct entry *n,
                      struct open_event **open)
{
    struct open_event *const b = *open;
    if (b == NULL) {
        c->n_unbegun++;
        return;
    }
    *open = b->outer;
    b->outer = c->free_events;
    c->free_events = b;
    c->n_unended--;
    c->n_events++;
    if (b->event < b->line->n_events)
        b->line->events[b->event].dur_ps = chrome_span_ps(b->start, n->start);
    if (n->n_args > 0) {
        chrome_write_args(c, p, b->line, n);
        xspace_writer_late(&c->w, b->line, b->event);
    }
}

static void take_slice(struct chrome *c, const struct entry *n)
{
    const char phase = n->phase.p[0];
    if (!n->start.known || (phase == 'X' && (!n->length.known || n->length.ns < 0))) {
        c->n_no_time++;
        return;
    }
    struct thread *t = thread_of(c, n);
    if (t == NULL)
        return;
    if (phase == 'X')
        write_event(c, t, n, chrome_span_ps((struct moment){0}, n->length));
    else if (phase == 'E')
        event_end(c, t->process, n, &t->open);
    else {
        write_event(c, t, n, XSPACE_OPEN);
        struct xspace_line_out *l = line_of(c, t, n);
        if (!event_begin(c, l, n, &t->open))
            c->w.full = true;
    }
}

/* -- b n e -- */

static uint64_t async_key(const struct entry *n)
{
    const uint64_t place = n->id_local.n > 0 || n->id.n > 0 ? str_hash(n->category) : 0;
    const uint64_t id = n->id_local.n > 0 ? str_hash(n->id_local) : str_hash(n->id);
    return map_hash_u64(place ^ map_hash_u64(id ^ map_hash_u64(str_hash(n->pid))));
}

static struct xspace_line_out *async_line(struct chrome *c, struct process *p,
                                          const struct entry *n)
{
    const uint64_t key = map_hash_u64(str_hash(p->pid)) ^ str_hash(n->category);
    struct xspace_line_out **known = line_map_get(&c->async_lines, key);
    if (known != NULL)
        return *known;
    if (!plane_make(c, p))
        return NULL;
    const str name = n->category.n == 0
                         ? S("Async")
                         : arena_printf(&c->w.arena, "Async: %.*s", STR_ARG(n->category));
    struct xspace_line_out *l =
        xspace_writer_line(&c->w, p->plane, (int64_t)(str_fnv1a(name) >> 1), name);
    *line_map_put(&c->async_lines, key) = l;
    return l;
}

static void take_async(struct chrome *c, const struct entry *n)
{
    if (!n->start.known) {
        c->n_no_time++;
        return;
    }
    struct process *p = process_of(c, n->pid);
    struct xspace_line_out *l = p == NULL ? NULL : async_line(c, p, n);
    if (l == NULL)
        return;
    const char phase = n->phase.p[0];
    struct open_event **open = async_map_put(&c->async, async_key(n));
    if (phase == 'e' || phase == 'F') {
        event_end(c, p, n, open);
        return;
    }
    const bool begins = phase == 'b' || phase == 'S';
    write_stats(c, p, l, n);
    xspace_writer_stat_str(l, chrome_stat_named(c, p, OWN_ASYNC_ID),
                           n->id_local.n > 0 ? n->id_local : n->id);
    xspace_writer_event(&c->w, l, xspace_writer_name(&c->w, l->plane, n->name), n->start.ns,
                        n->start.sub_ps, begins ? XSPACE_OPEN : 0);
    c->n_events++;
    if (begins && !event_begin(c, l, n, open))
        c->w.full = true;
}

/* -- counters, flows, instants -- */

/* A number of each argument: series "name", or "name key" when it has several. */
static void take_counter(struct chrome *c, const struct entry *n)
{
    struct process *p = process_of(c, n->pid);
    if (!n->start.known || p == NULL || !plane_make(c, p)) {
        c->n_no_time++;
        return;
    }
    for (uint32_t i = 0; i < n->n_args; i++) {
        const struct argument *a = &n->args[i];
        double value;
        if (a->type != JSON_SCAN_NUMBER || !str_to_f64(a->text, &value) || !isfinite(value))
            continue;
        buf_clear(&c->text);
        buf_add_str(&c->text, n->name);
        if (n->id.n > 0)
            buf_addf(&c->text, "[%.*s]", STR_ARG(n->id));
        if (n->n_args > 1)
            buf_addf(&c->text, " %.*s", STR_ARG(a->name->text));
        if (p->counters == NULL)
            p->counters = xspace_writer_line(&c->w, p->plane, INT64_MAX - 1, S("_counters_"));
        xspace_writer_stat_f64(p->counters, chrome_stat_named(c, p, OWN_COUNTER), value);
        xspace_writer_event(&c->w, p->counters,
                            xspace_writer_name(&c->w, p->plane, buf_str(&c->text)), n->start.ns,
                            n->start.sub_ps, 0);
        c->n_events++;
    }
}

static void take_flow(struct chrome *c, const struct entry *n)
{
    /* from a launch to its kernel: both have the correlation id */
    if (str_eq(n->category, S("ac2g")) || str_eq(n->category, S("async_cpu_to_gpu")) ||
        str_eq(n->category, S("async_gpu")))
        return;
    struct thread *t = thread_of(c, n);
    if (!n->start.known || t == NULL) {
        c->n_no_time++;
        return;
    }
    if (!ARENA_PUSH(&c->w.arena, c->flows, c->n_flows, c->flows_capacity))
        return;
    const uint64_t key = map_hash_u64(
        str_hash(n->category) ^ map_hash_u64(str_hash(n->name) ^ map_hash_u64(str_hash(n->id))));
    c->flows[c->n_flows - 1] =
        (struct flow_point){.key = key, .at = n->start, .thread = t, .phase = n->phase.p[0]};
}

static bool take_memory(struct chrome *c, struct thread *t, const struct entry *n)
{
    struct memory_record m = {.at = n->start, .thread = t, .made = c->n_memory};
    if (!str_eq(n->name, S("[memory]")) || !chrome_number(argument_text(n, MEMORY_BYTES), &m.bytes))
        return false;
    const bool known = chrome_number(argument_text(n, MEMORY_ALLOCATED), &m.allocated) &&
                       chrome_number(argument_text(n, MEMORY_RESERVED), &m.reserved);
    m.has_totals = known;
    if (!chrome_number(argument_text(n, MEMORY_ADDRESS), &m.address))
        m.address = 0;
    if (!chrome_number(argument_text(n, MEMORY_DEVICE), &m.device) ||
        !chrome_number(argument_text(n, MEMORY_DEVICE_TYPE), &m.device_type))
        return false;
    if (ARENA_PUSH(&c->w.arena, c->memory, c->n_memory, c->memory_capacity))
        c->memory[c->n_memory - 1] = m;
    line_of(c, t, n);
    c->is_kineto = true;
    return true;
}

static void take_instant(struct chrome *c, const struct entry *n)
{
    struct thread *t = n->start.known ? thread_of(c, n) : NULL;
    if (t == NULL)
        c->n_no_time++;
    else if (!take_memory(c, t, n))
        write_event(c, t, n, 0);
}

void chrome_take(struct chrome *c, const struct entry *n)
{
    switch (n->phase.n == 1 ? n->phase.p[0] : '\0') {
    case 'X':
    case 'B':
    case 'E':
        take_slice(c, n);
        break;
    case 'b':
    case 'n':
    case 'e':
    case 'S':
    case 'T':
    case 'F':
        take_async(c, n);
        break;
    case 'i':
    case 'I':
    case 'R':
        take_instant(c, n);
        break;
    case 'C':
        take_counter(c, n);
        break;
    case 's':
    case 't':
    case 'f':
        take_flow(c, n);
        break;
    case 'M':
        take_metadata(c, n);
        break;
    default:
        c->n_left_out++;
    }
}
