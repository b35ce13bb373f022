/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/trace_view_json.h"

static void begin_meta(struct json *j, const char *what, const struct view_row *row, bool thread)
{
    json_object(j);
    json_kcstr(j, "ph", "M");
    json_kcstr(j, "name", what);
    json_ku64(j, "pid", row->pid);
    if (thread)
        json_ku64(j, "tid", row->tid);
    json_key(j, "args");
    json_object(j);
}

static void end_meta(struct json *j)
{
    json_end(j);
    json_end(j);
}

bool view_json_row(void *ctx, const struct view_row *row, struct err *e)
{
    struct view_json *x = ctx;
    struct json *j = x->j;
    (void)e;
    if (!x->any_row || x->last_pid != row->pid) {
        begin_meta(j, "process_name", row, false);
        if (x->with_host && row->trace->host.n > 0)
            json_key(j, "name"),
                json_strf(j, "%.*s %.*s", STR_ARG(row->trace->host), STR_ARG(row->plane->name));
        else
            json_kstr(j, "name", row->plane->name);
        end_meta(j);
        begin_meta(j, "process_sort_index", row, false);
        json_ku64(j, "sort_index", row->pid);
        end_meta(j);
    }
    x->any_row = true;
    x->last_pid = row->pid;
    begin_meta(j, "thread_name", row, true);
    json_kstr(j, "name", row->name);
    end_meta(j);
    begin_meta(j, "thread_sort_index", row, true);
    json_ku64(j, "sort_index", row->tid);
    end_meta(j);
    return !j->failed;
}

static void put_flow(struct json *j, const struct flow *f)
{
    static const char *const kinds[] = {
        [FLOW_LAUNCH] = "gpu_launch", [FLOW_CAUSE] = "cause", [FLOW_ASYNC] = "async"};
    json_ku64(j, "bind_id", f->id);
    json_kcstr(j, "cat", kinds[f->kind]);
    json_kbool(j, f->is_source ? "flow_out" : "flow_in", true);
}

/* The event's own statistics; those of its name where the event does not say otherwise. */
static bool put_stats(struct view_json *x, const struct view_event *ev, struct err *e)
{
    const struct view_row *row = ev->row;
    struct trace_stats own;
    const struct arena_mark m = arena_mark(x->scratch);
    if (!trace_event_stats(row->trace, row->line, ev->recorded, x->scratch, &own, e))
        return false;
    const struct trace_event_metadata *md = trace_event_meta(row->trace, row->line, ev->recorded);
    tool_print_stats(x->j, own);
    for (uint32_t i = 0; md != NULL && i < md->stats.n; i++)
        if (trace_stat_find(own, md->stats.items[i].name) == NULL)
            tool_print_stats(x->j, (struct trace_stats){&md->stats.items[i], 1});
    arena_reset(x->scratch, m);
    return true;
}

static bool put_args(struct view_json *x, const struct view_event *ev, struct err *e)
{
    json_key(x->j, "args");
    json_object(x->j);
    if (ev->group != GROUP_NONE)
        json_ki64(x->j, "group_id", ev->group);
    json_ku64(x->j, "uid", ev->uid);
    if (x->with_stats && ev->long_name.n > 0)
        json_kstr(x->j, "long_name", ev->long_name);
    const bool ok = !x->with_stats || ev->recorded == NULL || put_stats(x, ev, e);
    json_end(x->j);
    return ok;
}

static bool put_counter(struct view_json *x, const struct view_event *ev, struct err *e)
{
    const struct view_row *row = ev->row;
    struct trace_stats own;
    const struct arena_mark m = arena_mark(x->scratch);
    if (!trace_event_stats(row->trace, row->line, ev->recorded, x->scratch, &own, e))
        return false;
    json_object(x->j);
    json_kcstr(x->j, "ph", "C");
    json_ku64(x->j, "pid", row->pid);
    json_key(x->j, "ts");
    json_fixed(x->j, ev->start_ps, 6);
    json_kstr(x->j, "name", ev->name);
    json_key(x->j, "args");
    json_object(x->j);
    const struct trace_stat *value = trace_stat_find(own, S("counter_value"));
    if (value != NULL)
        tool_print_stats(x->j, (struct trace_stats){value, 1});
    json_end(x->j);
    json_end(x->j);
    x->n_counters++;
    arena_reset(x->scratch, m);
    return !x->j->failed;
}

bool view_json_event(void *ctx, const struct view_event *ev, struct err *e)
{
    struct view_json *x = ctx;
    struct json *j = x->j;
    if (x->counters && ev->recorded != NULL && str_eq(ev->row->line->name, S("_counters_")))
        return put_counter(x, ev, e);
    const bool instant = x->instants && ev->dur_ps == 0;
    json_object(j);
    json_kcstr(j, "ph", instant ? "i" : "X");
    if (instant)
        json_kcstr(j, "s", "t");
    json_ku64(j, "pid", ev->row->pid);
    json_ku64(j, "tid", ev->row->tid);
    json_key(j, "ts");
    json_fixed(j, ev->start_ps, 6);
    if (!instant) {
        json_key(j, "dur");
        json_fixed(j, ev->dur_ps, 6);
    }
    json_kstr(j, "name", ev->name);
    if (ev->has_flow)
        put_flow(j, &ev->flow);
    if (!put_args(x, ev, e))
        return false;
    json_end(j);
    x->n_events++;
    return !j->failed;
}
