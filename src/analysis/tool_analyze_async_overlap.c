/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_async_overlap: which asynchronous operations of TPU cores hide behind other work, and which the
 * core waits for. */
#include "analysis/async_overlap.h"
#include "analysis/op_brief.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define WINDOWS_SHOWN 20

static str plane_of(const struct async_core *c)
{
    return c->trace->planes[c->plane_index].name;
}

/* --- our own tables ----------------------------------------------------------------------------- */

static bool add_windows(struct table *t, const struct async_overlap *x, uint64_t limit,
                        struct err *e)
{
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("core"), S("Core"), CELL_TEXT, S(""));
    table_column(t, S("name"), S("Started by"), CELL_TEXT, S(""));
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("span_ps"), S("Start to end"), CELL_U64, S("ps"));
    table_column(t, S("exposed_ps"), S("Exposed"), CELL_U64, S("ps"));
    table_column(t, S("class"), S("Is"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < x->n_windows && i < limit; i++) {
        const struct async_window *w = &x->windows[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(t->arena, e);
        row[0] = cell_text(trace_target(x->cores[w->core].trace));
        row[1] = cell_text(plane_of(&x->cores[w->core]));
        row[2] = cell_text(w->name);
        row[3] = cell_u64(w->start_ps);
        row[4] = cell_u64(w->span_ps);
        row[5] = cell_u64(w->exposed_ps);
        row[6] = cell_text(str_from(async_class_name(async_class_of(w))));
    }
    table_value(t, S("operations"), S("Asynchronous operations"), cell_u64(x->sum.count), S(""));
    table_value(t, S("span_ps"), S("Start to end, all"), cell_u64(x->sum.span_ps), S("ps"));
    table_value(t, S("exposed_ps"), S("Exposed, all"), cell_u64(x->sum.exposed_ps), S("ps"));
    if (x->n_unpaired > 0)
        table_note(t, S("unpaired"), x->n_unpaired,
                   "starts without an end or ends without a start are left out");
    if (x->sum.count == 0)
        table_note(t, S("no_async"), 1,
                   "the profile tells of no asynchronous operation (TPUs record them)");
    return true;
}

static bool add_ops(struct table *t, const struct async_overlap *x, struct err *e)
{
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    table_column(t, S("span_ps"), S("Start to end"), CELL_U64, S("ps"));
    table_column(t, S("exposed_ps"), S("Exposed"), CELL_U64, S("ps"));
    table_column(t, S("hidden"), S("Hidden"), CELL_U64, S(""));
    table_column(t, S("partial"), S("Partly"), CELL_U64, S(""));
    table_column(t, S("exposed"), S("Exposed"), CELL_U64, S(""));
    for (uint32_t i = 0; i < x->n_ops; i++) {
        const struct async_sum *s = &x->ops[i].sum;
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(t->arena, e);
        row[0] = cell_text(x->ops[i].op);
        row[1] = cell_u64(s->count);
        row[2] = cell_u64(s->span_ps);
        row[3] = cell_u64(s->exposed_ps);
        for (uint32_t k = 0; k < ASYNC_CLASSES; k++)
            row[4 + k] = cell_u64(s->classes[k]);
    }
    return true;
}

static bool overlap_run(const struct tool_request *r, struct arena *a, struct table **out,
                        struct err *e)
{
    struct async_overlap x;
    uint64_t limit;
    if (!op_limit(r, S("limit"), WINDOWS_SHOWN, &limit, e) ||
        !async_overlap_of(r->profile, a, &x, e))
        return false;
    struct table *t = *out = table_new(a, S("analyze_async_overlap"), S("Most exposed"));
    struct table *ops = table_new(a, S("async_operations"), S("Asynchronous operations"));
    if (t == NULL || ops == NULL)
        return arena_full(a, e);
    t->next = ops;
    return add_windows(t, &x, limit, e) && add_ops(ops, &x, e);
}

/* --- XProf's form -------------------------------------------------------------------------------- */

static void put_sum(struct json *j, const struct async_sum *s)
{
    json_ku64(j, "count", s->count);
    json_ku64(j, "span_ps", s->span_ps);
    json_ku64(j, "exposed_ps", s->exposed_ps);
    for (uint32_t i = 0; i < ASYNC_CLASSES; i++)
        json_ku64(j, async_class_name((enum async_class)i), s->classes[i]);
}

static void put_sums(struct json *j, const struct async_overlap *x)
{
    json_key(j, "summary");
    json_object(j);
    put_sum(j, &x->sum);
    json_ku64(j, "unpaired_ops", x->n_unpaired);
    xprof_cli_number(j, "overlap_ratio", async_overlap_ratio(x->sum.span_ps, x->sum.exposed_ps), 4);
    json_end(j);
    json_key(j, "by_op");
    json_object(j);
    for (uint32_t i = 0; i < x->n_ops; i++) {
        json_key_str(j, x->ops[i].op);
        json_object(j);
        put_sum(j, &x->ops[i].sum);
        json_end(j);
    }
    json_end(j);
}

/* Of several hosts, planes of the same name: the host stands before it. */
static void put_plane(struct json *j, const struct async_core *c, bool several, struct arena *a,
                      bool as_key)
{
    const str name = several ? arena_printf(a, "%.*s %.*s", STR_ARG(trace_target(c->trace)),
                                            STR_ARG(plane_of(c)))
                             : plane_of(c);
    if (as_key)
        json_key_str(j, name);
    else
        json_str(j, name);
}

static void put_planes(struct json *j, const struct async_overlap *x, bool several, struct arena *a)
{
    json_key(j, "by_plane");
    json_object(j);
    for (uint32_t i = 0; i < x->n_cores; i++) {
        if (x->cores[i].sum.count == 0)
            continue;
        put_plane(j, &x->cores[i], several, a, true);
        json_object(j);
        put_sum(j, &x->cores[i].sum);
        json_kcstr(j, "window_source", x->cores[i].paired ? "XLA Ops" : "Async XLA Ops");
        json_end(j);
    }
    json_end(j);
}

static void put_windows(struct json *j, const struct async_overlap *x, uint64_t limit, bool several,
                        struct arena *a)
{
    json_key(j, "top_exposed");
    json_array(j);
    for (uint32_t i = 0; i < x->n_windows && i < limit && x->windows[i].exposed_ps > 0; i++) {
        const struct async_window *w = &x->windows[i];
        json_object(j);
        json_key(j, "plane");
        put_plane(j, &x->cores[w->core], several, a, false);
        json_kstr(j, "name", w->name);
        json_kstr(j, "op", w->op);
        json_ku64(j, "start_ps", w->start_ps);
        json_ku64(j, "span_ps", w->span_ps);
        json_ku64(j, "exposed_ps", w->exposed_ps);
        xprof_cli_number(j, "overlap_ratio", async_overlap_ratio(w->span_ps, w->exposed_ps), 4);
        json_kcstr(j, "class", async_class_name(async_class_of(w)));
        json_end(j);
    }
    json_end(j);
    json_key(j, "concurrency");
    json_array(j);
    for (uint32_t i = 0; i < x->n_cores; i++) {
        if (x->cores[i].most_at_once < 2)
            continue;
        json_object(j);
        json_key(j, "plane");
        put_plane(j, &x->cores[i], several, a, false);
        json_ku64(j, "most_at_once", x->cores[i].most_at_once);
        json_end(j);
    }
    json_end(j);
}

static void put_status(struct json *j, const struct async_overlap *x, str session)
{
    json_key(j, "thresholds");
    json_object(j);
    json_kf64(j, "hidden", ASYNC_HIDDEN_RATIO);
    json_kf64(j, "exposed", ASYNC_EXPOSED_RATIO);
    json_end(j);
    json_kstr(j, "session_id", session);
    json_kcstr(j, "status", x->n_cores == 0 ? "NO_DEVICE_TIMELINE_EVENTS" : "OK");
    if (x->n_cores == 0)
        json_kcstr(j, "reason",
                   "The profile has no line \"XLA Ops\" or \"Async XLA Ops\" with events.");
}

static bool overlap_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                          struct err *e)
{
    struct async_overlap x;
    struct json j;
    uint64_t limit;
    if (!op_limit(r, S("limit"), WINDOWS_SHOWN, &limit, e) ||
        !async_overlap_of(r->profile, a, &x, e))
        return false;
    const bool several = r->profile->n_traces > 1;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    put_sums(&j, &x);
    put_planes(&j, &x, several, a);
    put_windows(&j, &x, limit, several, a);
    put_status(&j, &x, r->profile->name);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_analyze_async_overlap = {.run = overlap_run,
                                                          .xprof = overlap_xprof};
