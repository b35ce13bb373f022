/* SPDX-License-Identifier: Apache-2.0 */
/* chrome: the "Trace Event Format" of Chrome, as its viewer, Perfetto and format/chrome.h read it.
 * A plane is a process and a line a thread, numbered as they come: real profiles repeat ids. Times are
 * decimal microseconds that keep the picoseconds. */
#include "format/export_inside.h"
#include "model/trace_json.h"

struct chrome {
    struct export_work *w;
    struct json j;
    uint64_t pid, tid;
};

static void put_meta(struct chrome *c, const char *what, bool of_thread, str name)
{
    json_object(&c->j);
    json_kcstr(&c->j, "ph", "M");
    json_kcstr(&c->j, "name", what);
    json_ku64(&c->j, "pid", c->pid);
    json_ku64(&c->j, "tid", of_thread ? c->tid : 0);
    json_key(&c->j, "args");
    json_object(&c->j);
    json_kstr(&c->j, "name", name);
    json_end(&c->j);
    json_end(&c->j);
}

static void put_order(struct chrome *c, const char *what, bool of_thread, uint64_t order)
{
    json_object(&c->j);
    json_kcstr(&c->j, "ph", "M");
    json_kcstr(&c->j, "name", what);
    json_ku64(&c->j, "pid", c->pid);
    json_ku64(&c->j, "tid", of_thread ? c->tid : 0);
    json_key(&c->j, "args");
    json_object(&c->j);
    json_ku64(&c->j, "sort_index", order);
    json_end(&c->j);
    json_end(&c->j);
}

/* What Kineto would call it: importers know a device's work by that. */
static str category_of(const struct trace *t, const struct trace_line *line, str name,
                       struct trace_stats stats)
{
    str said;
    if (trace_stat_str(trace_stat_find(stats, S("category")), &said))
        return said;
    if (t->planes[line->plane_index].kind != TRACE_PLANE_GPU ||
        !str_starts(line->name, S("Stream #")))
        return (str){0};
    return str_find_nocase(name, S("memcpy")) == 0   ? S("gpu_memcpy")
           : str_find_nocase(name, S("memset")) == 0 ? S("gpu_memset")
                                                     : S("kernel");
}

static void put_args(struct json *j, const struct trace_event *ev, struct trace_stats stats)
{
    if (stats.n == 0 && ev->num_occurrences == 0)
        return;
    json_key(j, "args");
    json_object(j);
    for (uint32_t i = 0; i < stats.n; i++)
        if (!str_eq(stats.items[i].name, S("category")))
            trace_stat_json(j, &stats.items[i]);
    if (ev->num_occurrences > 0)
        json_ku64(j, "num_occurrences", ev->num_occurrences);
    json_end(j);
}

static void put_head(struct chrome *c, const char *phase, str name, uint64_t at_ps)
{
    json_object(&c->j);
    json_kcstr(&c->j, "ph", phase);
    json_kstr(&c->j, "name", name);
    json_ku64(&c->j, "pid", c->pid);
    json_ku64(&c->j, "tid", c->tid);
    json_key(&c->j, "ts");
    json_fixed(&c->j, (int64_t)at_ps, 6);
}

static void put_counter(struct chrome *c, str name, uint64_t at_ps, double value)
{
    put_head(c, "C", name, at_ps);
    json_key(&c->j, "args");
    json_object(&c->j);
    json_kf64(&c->j, "value", value);
    json_end(&c->j);
    json_end(&c->j);
}

static void put_flow(struct chrome *c, const struct export_flow *f, uint64_t at_ps)
{
    put_head(c, f->begins ? "s" : "f", S("flow"), at_ps);
    json_kcstr(&c->j, "cat", "flow");
    json_ku64(&c->j, "id", f->id);
    if (!f->begins)
        json_kcstr(&c->j, "bp", "e"); /* it leads to the slice around it */
    json_end(&c->j);
}

static bool put_event(struct chrome *c, const struct export_cursor *at, struct err *e)
{
    struct trace_stats stats;
    struct export_flow flows[EXPORT_FLOWS_MAX];
    double value;
    const str name = trace_event_name(at->trace, at->line, &at->event);
    if (!trace_event_stats(at->trace, at->line, &at->event, &c->w->scratch, &stats, e))
        return false;
    if (export_counter(&at->event, stats, &value)) {
        put_counter(c, name, at->start_ps, value);
        return true;
    }
    const str category = category_of(at->trace, at->line, name, stats);
    put_head(c, "X", name, at->start_ps);
    json_key(&c->j, "dur");
    json_fixed(&c->j, (int64_t)at->event.dur_ps, 6);
    if (category.n > 0)
        json_kstr(&c->j, "cat", category);
    put_args(&c->j, &at->event, stats);
    json_end(&c->j);
    const uint32_t n = export_flows(at->trace, at->line, stats, flows);
    for (uint32_t i = 0; i < n; i++)
        put_flow(c, &flows[i], at->start_ps);
    return true;
}

static bool put_line(struct chrome *c, const struct trace *t, uint32_t line_index, struct err *e)
{
    struct export_cursor at;
    bool ok = true;
    put_meta(c, "thread_name", true, export_line_name(&t->lines[line_index]));
    put_order(c, "thread_sort_index", true, c->tid);
    for (export_cursor_init(&at, c->w, t, line_index); ok && export_next(&at);) {
        const struct arena_mark m = arena_mark(&c->w->scratch);
        ok = put_event(c, &at, e) && export_flush(c->w, e);
        arena_reset(&c->w->scratch, m);
    }
    return export_cursor_end(&at, e) && ok;
}

/* "host-0 /device:GPU:0" where several hosts are in one file. */
static str process_name(struct export_work *w, const struct trace *t, const struct trace_plane *p)
{
    return w->profile->n_traces > 1 && t->host.n > 0
               ? arena_printf(&w->scratch, "%.*s %.*s", STR_ARG(t->host),
                              STR_ARG(export_plane_name(p)))
               : export_plane_name(p);
}

static bool put_trace(struct chrome *c, const struct trace *t, struct err *e)
{
    for (uint32_t k = 0; k < t->n_planes; k++) {
        const struct trace_plane *p = &t->planes[k];
        if (p->n_lines == 0)
            continue;
        const struct arena_mark m = arena_mark(&c->w->scratch);
        c->pid++;
        c->tid = 0;
        put_meta(c, "process_name", false, process_name(c->w, t, p));
        put_order(c, "process_sort_index", false, c->pid);
        arena_reset(&c->w->scratch, m);
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
            c->tid++;
            if (!put_line(c, t, l, e))
                return false;
        }
    }
    return true;
}

bool export_chrome(struct export_work *w, struct err *e)
{
    struct chrome c = {.w = w};
    json_init_buf(&c.j, &w->out);
    json_object(&c.j);
    json_kcstr(&c.j, "displayTimeUnit", "ns");
    if (w->profile->has_epoch)
        json_ki64(&c.j, "baseTimeNanoseconds", w->profile->origin_ns);
    json_key(&c.j, "traceEvents");
    json_array(&c.j);
    for (const struct trace *t = NULL; (t = export_next_trace(w, t)) != NULL;)
        if (!put_trace(&c, t, e))
            return false;
    json_end(&c.j);
    json_end(&c.j);
    return json_done(&c.j, e);
}
