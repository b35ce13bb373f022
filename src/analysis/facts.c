/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/facts.h"

#include <stdlib.h>

#include "analysis/op_metrics.h"
#include "analysis/spans.h"
#include "analysis/steps.h"
#include "base/file.h"
#include "base/limits.h"

#define STEPS_WARM 2u /* compilation before the end of the second step is warm-up */

struct measurer {
    const struct profile *profile;
    struct arena *arena; /* of what stays */
    struct arena work;   /* of one trace */
    struct op_db db;
    struct profile_facts *out;
    struct err *err;
    uint32_t devices_capacity, steps_capacity;
    uint64_t from_ps; /* of the earliest window, since the session's origin */
    struct spans any; /* when any device of the trace at hand worked; in work */
};

struct device_row {
    enum device_kind kind;
    str name;
    struct spans busy;
};

/* ---- devices ---- */

static bool add_line(struct measurer *x, const struct trace *t, uint32_t line, struct spans *busy)
{
    struct trace_cursor c;
    bool ok = true;
    for (trace_cursor_init_work(&c, t, line); ok && trace_cursor_next(&c);) {
        if (!spans_is_work(t, line, &c.event))
            continue;
        ok = spans_add(busy, &x->work, c.event.start_ps, c.event.start_ps + c.event.dur_ps) ||
             arena_full(&x->work, x->err);
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, x->err);
}

static bool plane_row(struct measurer *x, const struct trace *t, const struct trace_plane *p,
                      struct device_row *row)
{
    *row = (struct device_row){.kind = p->kind == TRACE_PLANE_TPU ? DEVICE_TPU : DEVICE_GPU,
                               .name = p->name};
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(t, l) && !add_line(x, t, l, &row->busy))
            return false;
    spans_close(&row->busy);
    return true;
}

static void cpu_rows(const struct measurer *x, const struct trace *t, struct device_row *rows,
                     uint32_t *n)
{
    for (uint32_t i = 0; i < x->db.n_cpu_devices; i++) {
        const struct op_cpu_device *d = &x->db.cpu_devices[i];
        if (d->trace == t)
            rows[(*n)++] =
                (struct device_row){.kind = DEVICE_CPU, .name = d->name, .busy = d->busy};
    }
}

static bool rows_of(struct measurer *x, const struct trace *t, struct device_row **rows,
                    uint32_t *n)
{
    const size_t most = (size_t)t->n_planes + x->db.n_cpu_devices;
    *n = 0;
    *rows = ARENA_ARRAY(&x->work, struct device_row, most);
    if (*rows == NULL)
        return most == 0 || arena_full(&x->work, x->err);
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if ((p->kind == TRACE_PLANE_TPU || p->kind == TRACE_PLANE_GPU) && p->n_lines > 0 &&
            !plane_row(x, t, p, &(*rows)[(*n)++]))
            return false;
    }
    cpu_rows(x, t, *rows, n);
    return true;
}

static void add_known(struct fact_ps *f, uint64_t ps)
{
    f->known = true;
    f->ps = f->ps > UINT64_MAX - ps ? UINT64_MAX : f->ps + ps;
}

static bool add_device(struct measurer *x, const struct trace *t, const struct device_row *row,
                       uint64_t window_ps)
{
    struct profile_facts *f = x->out;
    if (!ARENA_PUSH(x->arena, f->devices, f->n_devices, x->devices_capacity))
        return arena_full(x->arena, x->err);
    const uint64_t busy = spans_within(&row->busy, 0, UINT64_MAX);
    f->devices[f->n_devices - 1] = (struct device_fact){.kind = row->kind,
                                                        .name = row->name,
                                                        .host = t->host,
                                                        .busy_ps = busy,
                                                        .idle_ps = window_ps - busy};
    add_known(&f->busy_ps, busy);
    add_known(&f->idle_ps, window_ps - busy);
    return true;
}

static bool add_spans(struct measurer *x, struct spans *to, const struct spans *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        if (!spans_add(to, &x->work, more->items[i].begin_ps, more->items[i].end_ps))
            return arena_full(&x->work, x->err);
    return true;
}

static bool add_devices(struct measurer *x, const struct trace *t)
{
    struct profile_facts *f = x->out;
    struct device_row *rows;
    uint32_t n;
    uint64_t from = UINT64_MAX, to = 0;
    if (!rows_of(x, t, &rows, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct spans *s = &rows[i].busy;
        if (s->n == 0)
            continue;
        from = s->items[0].begin_ps < from ? s->items[0].begin_ps : from;
        to = s->items[s->n - 1].end_ps > to ? s->items[s->n - 1].end_ps : to;
    }
    if (to <= from)
        return true; /* planes without one event say nothing of idle time */
    if (!f->window_ps.known || from + t->shift_ps < x->from_ps)
        x->from_ps = from + t->shift_ps;
    f->window_ps.known = true;
    f->window_ps.ps = to - from > f->window_ps.ps ? to - from : f->window_ps.ps;
    for (uint32_t i = 0; i < n; i++)
        if (!add_device(x, t, &rows[i], to - from) || !add_spans(x, &x->any, &rows[i].busy))
            return false;
    spans_close(&x->any);
    return true;
}

/* ---- steps ---- */

static bool add_steps(struct measurer *x, const struct trace *t, const struct host_steps *s)
{
    struct profile_facts *f = x->out;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct step *step = &s->items[i];
        if (!ARENA_PUSH(x->arena, f->steps, f->n_steps, x->steps_capacity))
            return arena_full(x->arena, x->err);
        f->steps[f->n_steps - 1] = (struct step_fact){.host = t->host,
                                                      .number = step->number,
                                                      .start_ps = step->start_ps + t->shift_ps,
                                                      .dur_ps = step->dur_ps,
                                                      .device_busy_ps = step->device_busy_ps,
                                                      .input_ps = step->input_ps};
        if (step->input_ps.known)
            add_known(&f->input_wait_ps, step->input_ps.ps);
    }
    return true;
}

static int compare_u64(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* First and last of a host may be cut by the capture's edges; with fewer than three all count. */
static bool add_median(struct measurer *x)
{
    struct profile_facts *f = x->out;
    uint32_t n = 0;
    uint64_t *times = ARENA_ARRAY(&x->work, uint64_t, f->n_steps);
    if (times == NULL && f->n_steps > 0)
        return arena_full(&x->work, x->err);
    for (uint32_t i = 1; i + 1 < f->n_steps; i++)
        if (str_eq(f->steps[i - 1].host, f->steps[i].host) &&
            str_eq(f->steps[i + 1].host, f->steps[i].host))
            times[n++] = f->steps[i].dur_ps;
    for (uint32_t i = 0; n == 0 && i < f->n_steps; i++)
        times[i] = f->steps[i].dur_ps;
    n = n == 0 ? f->n_steps : n;
    if (n == 0)
        return true;
    qsort(times, n, sizeof *times, compare_u64);
    f->median_step_ps.known = true;
    f->median_step_ps.ps =
        n % 2 == 1 ? times[n / 2] : times[n / 2 - 1] + (times[n / 2] - times[n / 2 - 1]) / 2;
    return true;
}

/* ---- compilation on the host ---- */

/* As XLA, PjRt and JAX call the work itself: "PjRtCpuClient::Compile (main)", "XlaCompile". */
static bool is_compilation(str name)
{
    static const char *const words[] = {"::Compile", "::CompileAndLoad", "backend_compile",
                                        "XlaCompile", "XlaCompileOp"};
    size_t n = 0;
    while (n < name.n && name.p[n] != ' ' && name.p[n] != '(' && name.p[n] != '#')
        n++;
    const str call = str_sub(name, 0, n);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (call.n > 0 && call.p[0] != '$' && str_ends(call, str_from(words[i])))
            return true;
    return false;
}

static bool add_compilations(struct measurer *x, const struct trace *t, uint32_t line,
                             uint64_t warm_ps, struct spans *all)
{
    struct trace_cursor c;
    uint64_t reached = 0;
    bool ok = true;
    for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);) {
        const uint64_t end = c.event.start_ps + c.event.dur_ps;
        if (c.event.start_ps < warm_ps ||
            !is_compilation(trace_event_name(t, &t->lines[line], &c.event)))
            continue;
        x->out->n_compiles_after_warmup += end > reached; /* not a part of the one before */
        reached = end > reached ? end : reached;
        ok = spans_add(all, &x->work, c.event.start_ps, end) || arena_full(&x->work, x->err);
    }
    trace_cursor_release(&c);
    return ok && trace_cursor_ok(&c, x->err);
}

static bool add_compile(struct measurer *x, const struct trace *t, const struct host_steps *s)
{
    struct spans all = {0};
    bool lanes = false;
    if (s->n <= STEPS_WARM)
        return true;
    const struct step *second = &s->items[STEPS_WARM - 1];
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (p->kind != TRACE_PLANE_HOST)
            continue;
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
            lanes |= t->lines[l].n_events > 0;
            if (!add_compilations(x, t, l, second->start_ps + second->dur_ps, &all))
                return false;
        }
    }
    spans_close(&all);
    uint64_t overlap = 0;
    for (uint32_t i = 0; i < all.n; i++)
        overlap += spans_within(&x->any, all.items[i].begin_ps, all.items[i].end_ps);
    const uint64_t compile = spans_within(&all, 0, UINT64_MAX);
    if (lanes)
        add_known(&x->out->host_compile_ps, compile);
    if (lanes && x->any.n > 0)
        add_known(&x->out->host_compile_idle_ps, compile - overlap);
    return true;
}

/* ---- operations ---- */

static bool add_ops(struct measurer *x)
{
    struct profile_facts *f = x->out;
    const struct op_db *db = &x->db;
    f->has_ops = db->n_ops > 0;
    f->has_hlo = db->hlo.n_programs > db->hlo.n_damaged;
    f->op_self_ps = db->self_ps;
    for (uint32_t i = 0; i < db->n_ops && i < FACTS_TOP_OPS; i++) {
        const struct op_metrics *m = &db->ops[i];
        const str file = path_base(m->source_file);
        f->top_ops[f->n_top_ops++] =
            (struct op_fact){.name = m->name,
                             .category = m->category,
                             .self_ps = m->self_ps,
                             .occurrences = m->occurrences,
                             .source = file.n > 0 && m->source_line > 0
                                           ? arena_printf(x->arena, "%.*s:%lld", STR_ARG(file),
                                                          (long long)m->source_line)
                                           : file};
    }
    return x->arena->overflow ? arena_full(x->arena, x->err) : true;
}

/* ---- what is missing ---- */

/* Events that the reader had to leave out, and those that the profiler says it dropped. */
static uint64_t lost_events(const struct trace *t)
{
    static const char *const codes[] = {"bad_event", "long_event", "too_deep"};
    uint64_t n = 0;
    int64_t dropped;
    for (uint32_t i = 0; i < t->n_notes; i++)
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
            n += str_eq(t->notes[i].code, str_from(codes[k])) ? t->notes[i].count : 0;
    for (uint32_t i = 0; i < t->n_planes; i++)
        if (trace_stat_i64(trace_stat_find(t->planes[i].stats, S("dropped_traces")), &dropped) &&
            dropped > 0)
            n += (uint64_t)dropped;
    return n;
}

static bool add_trace(struct measurer *x, const struct trace *t)
{
    struct profile_facts *f = x->out;
    struct host_steps steps;
    const struct arena_mark mark = arena_mark(&x->work);
    x->any = (struct spans){0};
    f->n_dropped += lost_events(t);
    f->n_errors += t->n_errors;
    f->n_warnings += t->n_warnings;
    const bool ok = steps_of(t, NULL, &x->work, &steps, x->err) && add_devices(x, t) &&
                    add_steps(x, t, &steps) && add_compile(x, t, &steps);
    arena_reset(&x->work, mark);
    return ok;
}

static bool is_first_of_host(const struct profile *p, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (str_eq(p->traces[i]->host, p->traces[index]->host))
            return false;
    return true;
}

bool profile_facts_of(const struct profile *p, struct arena *a, struct profile_facts *out,
                      struct err *e)
{
    struct measurer x = {.profile = p, .arena = a, .out = out, .err = e};
    *out = (struct profile_facts){0};
    if (!op_db_build(&x.db, p, (str){0}, a, e))
        return false;
    bool ok = true;
    arena_init(&x.work, "facts", LIMIT_ARENA_TOOL_BYTES);
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        out->n_hosts += is_first_of_host(p, i);
        ok = add_trace(&x, p->traces[i]);
    }
    out->has_steps = out->n_steps > 0;
    out->has_epoch = p->has_epoch && out->window_ps.known;
    if (out->has_epoch)
        out->window_from_ns = p->origin_ns + (int64_t)(x.from_ps / 1000);
    ok = ok && add_median(&x) && add_ops(&x);
    arena_release(&x.work);
    op_db_release(&x.db);
    return ok;
}
