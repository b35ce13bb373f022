/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/device_gaps.h"

#include <stdlib.h>

static const struct gap_op no_op = {UINT32_MAX, UINT32_MAX};

str gap_op_name(const struct trace *t, struct gap_op op)
{
    if (op.line_index == UINT32_MAX)
        return (str){0};
    const struct trace_event ev = {.metadata_index = op.metadata_index};
    return trace_event_name(t, &t->lines[op.line_index], &ev);
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool read_calls(const struct trace *t, const struct grouping *g, uint32_t line,
                       uint32_t *next, struct launch_times *out, struct err *e)
{
    const uint64_t first = g->first_node[line];
    struct trace_cursor c;
    for (trace_cursor_init_work(&c, t, line); *next < g->n_launches && trace_cursor_next(&c);) {
        if (g->launches[*next] != first + c.index)
            continue;
        out->start_ps[*next] = c.event.start_ps;
        out->end_ps[*next] = c.event.start_ps + c.event.dur_ps;
        out->metadata_index[*next] = c.event.metadata_index;
        out->line_index[*next] = line;
        ++*next;
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, e);
}

bool launch_times_of(const struct trace *t, const struct grouping *g, struct arena *a,
                     struct launch_times *out, struct err *e)
{
    *out = (struct launch_times){.n = g->n_launches};
    out->start_ps = ARENA_ARRAY(a, uint64_t, g->n_launches);
    out->end_ps = ARENA_ARRAY(a, uint64_t, g->n_launches);
    out->metadata_index = ARENA_ARRAY(a, uint32_t, g->n_launches);
    out->line_index = ARENA_ARRAY(a, uint32_t, g->n_launches);
    if (g->n_launches > 0 && (out->start_ps == NULL || out->end_ps == NULL ||
                              out->metadata_index == NULL || out->line_index == NULL))
        return arena_full(a, e);
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->n_node_lines && next < g->n_launches; i++) {
        const uint32_t line = g->node_lines[i];
        if (g->launches[next] < g->first_node[line] + t->lines[line].n_events &&
            !read_calls(t, g, line, &next, out, e))
            return false;
    }
    return true;
}

/* --- gaps ------------------------------------------------------------------------------------- */

struct finder {
    const struct work_device *device;
    const struct trace *trace;
    const struct grouping *grouping;
    const struct launch_times *launches;
    const struct flows *flows;
    struct arena *arena;
    struct err *err;
    struct device_gaps *out;
    struct memo names; /* of calls that dispatch */
    uint32_t line;     /* at hand */
    uint32_t at;       /* the stretch of work that its last event was in */
};

/* One before each stretch of work. */
static bool make_gaps(struct finder *f)
{
    const struct spans *busy = &f->device->busy;
    f->out->items = ARENA_ARRAY(f->arena, struct device_gap, busy->n);
    if (f->out->items == NULL && busy->n > 0)
        return arena_full(f->arena, f->err);
    f->out->n = busy->n;
    for (uint32_t i = 0; i < busy->n; i++)
        f->out->items[i] = (struct device_gap){.begin_ps = i == 0 ? 0 : busy->items[i - 1].end_ps,
                                               .end_ps = busy->items[i].begin_ps,
                                               .last = no_op,
                                               .next = no_op};
    return true;
}

/* The host had issued it by then. Of several that begin together the one that was issued first. */
static void issue(struct device_gap *gap, uint64_t at_ps)
{
    if (!gap->is_issued || at_ps < gap->issued_ps)
        gap->issued_ps = at_ps;
    gap->is_issued = true;
}

/* An event of the device's work: `at` follows the stretch that it lies in. */
static void see(struct finder *f, uint32_t line, const struct trace_event *ev, uint32_t *at,
                uint32_t launch)
{
    const struct spans *busy = &f->device->busy;
    const uint64_t end_ps = ev->start_ps + ev->dur_ps;
    const struct gap_op op = {line, ev->metadata_index};
    if (ev->num_occurrences > 0 || ev->dur_ps == 0)
        return;
    while (*at < busy->n && busy->items[*at].end_ps < end_ps)
        ++*at;
    if (*at == busy->n || ev->start_ps < busy->items[*at].begin_ps)
        return; /* of no work */
    if (busy->items[*at].end_ps == end_ps && *at + 1 < f->out->n)
        f->out->items[*at + 1].last = op;
    struct device_gap *gap = &f->out->items[*at];
    if (ev->start_ps != gap->end_ps)
        return;
    if (gap->next.line_index == UINT32_MAX)
        gap->next = op;
    if (launch != GROUP_NO_LAUNCH && f->launches->start_ps[launch] <= ev->start_ps)
        issue(gap, f->launches->end_ps[launch]);
}

static bool see_work(void *ctx, uint32_t line, const struct trace_cursor *c, enum work_kind kind,
                     struct err *e)
{
    struct finder *f = ctx;
    if (line != f->line) {
        f->line = line;
        f->at = 0;
    }
    if (kind == WORK_COMPUTE || kind == WORK_COMM || kind == WORK_COPY)
        see(f, line, &c->event, &f->at, launch_at(f->grouping, line, c->index));
    return true;
}

static bool add(struct finder *f, struct spans *s, uint64_t begin_ps, uint64_t end_ps)
{
    return spans_add(s, f->arena, begin_ps, end_ps) || arena_full(f->arena, f->err);
}

/* --- GPU -------------------------------------------------------------------------------------- */

static bool explain_gpu(struct finder *f)
{
    for (uint32_t i = 0; i < f->out->n; i++) {
        const struct device_gap *gap = &f->out->items[i];
        if (!gap->is_issued)
            continue;
        const uint64_t issued = gap->issued_ps < gap->begin_ps ? gap->begin_ps
                                : gap->issued_ps > gap->end_ps ? gap->end_ps
                                                               : gap->issued_ps;
        if (!add(f, &f->out->starved, gap->begin_ps, issued) ||
            !add(f, &f->out->latency, issued, gap->end_ps))
            return false;
    }
    return true;
}

/* --- TPU -------------------------------------------------------------------------------------- */

/* What of [begin, end) is no wait for the host. */
static bool add_but_waits(struct finder *f, struct spans *s, uint64_t begin_ps, uint64_t end_ps)
{
    const struct spans *wait = &f->out->blocked;
    uint32_t low = 0, high = wait->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (wait->items[mid].end_ps <= begin_ps)
            low = mid + 1;
        else
            high = mid;
    }
    for (; begin_ps < end_ps && low < wait->n && wait->items[low].begin_ps < end_ps; low++) {
        if (!add(f, s, begin_ps, wait->items[low].begin_ps))
            return false;
        begin_ps = wait->items[low].end_ps > begin_ps ? wait->items[low].end_ps : begin_ps;
    }
    return add(f, s, begin_ps, end_ps);
}

/* Waits for the host where nothing else ran: blocked. */
static bool add_waits(struct finder *f)
{
    const struct spans *wait = &f->device->wait, *busy = &f->device->busy;
    for (uint32_t i = 0, k = 0; i < wait->n; i++) {
        uint64_t begin = wait->items[i].begin_ps;
        const uint64_t end = wait->items[i].end_ps;
        while (k < busy->n && busy->items[k].end_ps <= begin)
            k++;
        for (uint32_t at = k; at < busy->n && busy->items[at].begin_ps < end; at++) {
            if (!add(f, &f->out->blocked, begin, busy->items[at].begin_ps))
                return false;
            begin = busy->items[at].end_ps > begin ? busy->items[at].end_ps : begin;
        }
        if (!add(f, &f->out->blocked, begin, end))
            return false;
    }
    spans_close(&f->out->blocked);
    return true;
}

/* Before a module that a call of the host launched: what of that time is in gaps. */
static bool explain_module(struct finder *f, const struct flow_link *link, uint64_t since_ps,
                           uint32_t *at)
{
    const uint64_t begin_ps = link->to_start_ps;
    while (*at < f->out->n && f->out->items[*at].end_ps <= since_ps)
        ++*at;
    for (uint32_t i = *at; i < f->out->n && f->out->items[i].begin_ps < begin_ps; i++) {
        struct device_gap *gap = &f->out->items[i];
        const uint64_t from = gap->begin_ps > since_ps ? gap->begin_ps : since_ps;
        const uint64_t to = gap->end_ps < begin_ps ? gap->end_ps : begin_ps;
        const uint64_t issued = link->from_end_ps < from ? from
                                : link->from_end_ps > to ? to
                                                         : link->from_end_ps;
        issue(gap, link->from_end_ps);
        if (from < to && (!add_but_waits(f, &f->out->starved, from, issued) ||
                          !add_but_waits(f, &f->out->latency, issued, to)))
            return false;
    }
    return true;
}

static bool explain_modules(struct finder *f, uint32_t line)
{
    const struct flows *flows = f->flows;
    uint64_t since_ps = 0; /* the end of the modules so far */
    uint32_t at = 0, k = 0;
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init(&c, f->trace, line); ok && trace_cursor_next(&c);) {
        const uint64_t end_ps = c.event.start_ps + c.event.dur_ps;
        while (k < flows->n_links && (flows->by_target[k].to.line_index < line ||
                                      (flows->by_target[k].to.line_index == line &&
                                       flows->by_target[k].to.event_index < c.index)))
            k++;
        if (k < flows->n_links && flows->by_target[k].to.line_index == line &&
            flows->by_target[k].to.event_index == c.index &&
            flows->by_target[k].kind == FLOW_LAUNCH)
            ok = explain_module(f, &flows->by_target[k], since_ps, &at);
        since_ps = end_ps > since_ps ? end_ps : since_ps;
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, f->err);
}

static bool explain_core(struct finder *f)
{
    const struct trace_plane *p = &f->trace->planes[f->device->plane_index];
    if (!add_waits(f))
        return false;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        if (str_eq(f->trace->lines[l].name, S("XLA Modules")) && f->flows != NULL &&
            !explain_modules(f, l))
            return false;
    }
    return true;
}

/* --- CPU -------------------------------------------------------------------------------------- */

struct dispatches { /* when calls began that hand a program to XLA:CPU */
    uint64_t *start_ps;
    uint32_t n, capacity;
};

enum { OTHER_NAME = 1, DISPATCH_NAME };

static bool is_dispatch(struct finder *f, uint32_t line, const struct trace_event *ev)
{
    uint8_t *known = memo_at(&f->names, f->trace, &f->trace->lines[line], ev);
    if (*known == 0) {
        const str name = trace_event_name(f->trace, &f->trace->lines[line], ev);
        *known = str_starts(name, S("PjitFunction(")) ||
                         str_find(name, S("LoadedExecutable::Execute")) >= 0
                     ? DISPATCH_NAME
                     : OTHER_NAME;
    }
    return *known == DISPATCH_NAME;
}

static bool see_calls(struct finder *f, uint32_t line, struct dispatches *d)
{
    struct trace_cursor c;
    for (trace_cursor_init(&c, f->trace, line); trace_cursor_next(&c);) {
        if (!is_dispatch(f, line, &c.event))
            continue;
        if (!ARENA_PUSH(f->arena, d->start_ps, d->n, d->capacity)) {
            trace_cursor_release(&c);
            return arena_full(f->arena, f->err);
        }
        d->start_ps[d->n - 1] = c.event.start_ps;
    }
    return trace_cursor_ok(&c, f->err);
}

static int by_time(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static bool runs_xla(const struct trace *t)
{
    for (uint32_t i = 0; i < t->n_planes; i++)
        for (uint32_t k = 0; t->planes[i].kind == TRACE_PLANE_HOST && k < t->planes[i].n_stat_names;
             k++)
            if (str_eq(t->planes[i].stat_names[k], S("hlo_op")))
                return true;
    return false;
}

static bool explain_dispatches(struct finder *f, const struct dispatches *d)
{
    for (uint32_t i = 0, k = 0; i < f->out->n; i++) {
        struct device_gap *gap = &f->out->items[i];
        while (k < d->n && d->start_ps[k] <= gap->end_ps)
            k++;
        if (k == 0 || d->start_ps[k - 1] <= gap->begin_ps)
            continue; /* issued before: what it waits for is not recorded */
        issue(gap, d->start_ps[k - 1]);
        if (!add(f, &f->out->starved, gap->begin_ps, gap->issued_ps) ||
            !add(f, &f->out->latency, gap->issued_ps, gap->end_ps))
            return false;
    }
    return true;
}

static bool explain_cpu(struct finder *f)
{
    struct dispatches d = {0};
    for (uint32_t l = 0; l < f->trace->n_lines; l++)
        if (f->trace->planes[f->trace->lines[l].plane_index].kind == TRACE_PLANE_HOST &&
            !see_calls(f, l, &d))
            return false;
    if (d.n > 1)
        qsort(d.start_ps, d.n, sizeof *d.start_ps, by_time);
    if (runs_xla(f->trace))
        return explain_dispatches(f, &d);
    for (uint32_t i = 0; i < f->out->n; i++) {
        struct device_gap *gap = &f->out->items[i];
        issue(gap, gap->end_ps);
        if (!add(f, &f->out->starved, gap->begin_ps, gap->end_ps))
            return false;
    }
    return true;
}

bool device_gaps_of(const struct work_device *d, const struct grouping *g,
                    const struct launch_times *launches, const struct flows *flows, struct arena *a,
                    struct device_gaps *out, struct err *e)
{
    struct finder f = {.device = d,
                       .trace = d->trace,
                       .grouping = g,
                       .launches = launches,
                       .flows = flows,
                       .arena = a,
                       .err = e,
                       .out = out,
                       .line = UINT32_MAX};
    *out = (struct device_gaps){0};
    bool ok = make_gaps(&f) && work_each(d, see_work, &f, e);
    if (ok && d->plane_index == UINT32_MAX)
        ok = explain_cpu(&f);
    else if (ok)
        ok = d->trace->planes[d->plane_index].kind == TRACE_PLANE_TPU ? explain_core(&f)
                                                                      : explain_gpu(&f);
    memo_release(&f.names);
    spans_close(&out->starved);
    spans_close(&out->latency);
    return ok;
}
