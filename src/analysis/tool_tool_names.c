/* SPDX-License-Identifier: Apache-2.0 */
/* tool_names: XProf's tools that have something to say about this profile, in XProf's order. The first eight always
 * are; the others when a host (any: XProf looks at the first only) has an event that they would show. Our own table has
 * those that can be asked of this program and notes the others; --xprof is XProf's list. */
#include "analysis/spans.h"
#include "analysis/tool.h"
#include "model/trace_pick.h"

enum needs { NOTHING = 0, KERNELS, PROGRAMS, TRANSFERS, COUNTERS, KNOWN_COUNTERS, NEEDS };

static const struct {
    const char *name;
    enum needs needs;
} offers[] = {
    {"trace_viewer@", NOTHING},
    {"overview_page", NOTHING},
    {"input_pipeline_analyzer", NOTHING},
    {"framework_op_stats", NOTHING},
    {"memory_profile", NOTHING},
    {"op_profile", NOTHING},
    {"hlo_stats", NOTHING},
    {"roofline_model", NOTHING},
    {"kernel_stats", KERNELS},
    {"memory_viewer", PROGRAMS},
    {"graph_viewer", PROGRAMS},
    {"megascale_stats", TRANSFERS},
    {"perf_counters", COUNTERS},
    {"utilization_viewer", KNOWN_COUNTERS},
    {"kernel_utilization", KNOWN_COUNTERS},
};

/* An event of which the metadata or a stat is as asked. */
struct sought {
    str stat;        /* or empty */
    str name_prefix; /* or empty */
};

static bool line_has(const struct trace *t, uint32_t l, const struct sought *s, bool *found,
                     struct err *e)
{
    struct trace_picker p;
    struct trace_cursor c;
    bool ok = true;
    trace_picker_init(&p, t, l, &s->stat, s->stat.n > 0 ? 1 : 0);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init(&c, t, l); ok && !*found && trace_cursor_next(&c);) {
        if (!str_starts(trace_event_name(t, &t->lines[l], &c.event), s->name_prefix))
            continue;
        ok = trace_pick(&p, &c.event, e);
        *found = ok && (s->stat.n == 0 || p.values[0].type != TRACE_STAT_NONE);
    }
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && (*found || trace_cursor_ok(&c, e));
}

static bool plane_has(const struct trace *t, const struct trace_plane *p, const struct sought *s,
                      bool *found, struct err *e)
{
    bool knows = s->stat.n == 0;
    for (uint32_t i = 0; i < p->n_stat_names && !knows; i++)
        knows = str_eq(p->stat_names[i], s->stat);
    for (uint32_t l = p->first_line; knows && l < p->first_line + p->n_lines && !*found; l++)
        if (!line_has(t, l, s, found, e))
            return false;
    return true;
}

static bool has_program(const struct trace_plane *p)
{
    for (uint32_t i = 0; i < p->n_event_metadata; i++)
        if (trace_stat_find(p->event_metadata[i].stats, S("Hlo Proto")) != NULL)
            return true;
    return false;
}

static bool has_kernel(const struct trace *t, const struct trace_plane *p)
{
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
        if (t->lines[l].n_events > 0 && spans_is_work_line(t, l))
            return true;
    return false;
}

/* Which of its counters utilization_viewer knows stands in its tables for these two. */
static bool has_known_counters(const struct trace_plane *p)
{
    str type = {0};
    trace_stat_str(trace_stat_find(p->stats, S("device_type_string")), &type);
    return str_find(type, S("v6 Lite")) >= 0 || str_find(type, S("v7x")) >= 0;
}

static bool look_at(const struct trace *t, const struct trace_plane *p, bool has[static NEEDS],
                    struct err *e)
{
    static const struct sought counter = {.stat = STR_INIT("counter_value")};
    static const struct sought transfer = {.stat = STR_INIT("dcn_label"),
                                           .name_prefix = STR_INIT("MegaScale:")};
    switch (p->kind) {
    case TRACE_PLANE_METADATA:
        has[PROGRAMS] = has[PROGRAMS] || has_program(p);
        return true;
    case TRACE_PLANE_GPU:
        has[KERNELS] = has[KERNELS] || has_kernel(t, p);
        return true;
    case TRACE_PLANE_HOST:
        return has[TRANSFERS] || plane_has(t, p, &transfer, &has[TRANSFERS], e);
    case TRACE_PLANE_TPU: {
        bool found = false;
        if (!plane_has(t, p, &counter, &found, e))
            return false;
        has[COUNTERS] = has[COUNTERS] || found;
        has[KNOWN_COUNTERS] = has[KNOWN_COUNTERS] || (found && has_known_counters(p));
        return true;
    }
    case TRACE_PLANE_TPU_SPARSE:
    case TRACE_PLANE_CUSTOM:
    case TRACE_PLANE_ENVIRONMENT:
    case TRACE_PLANE_OTHER:
        break;
    }
    return true;
}

static bool look(const struct profile *p, bool has[static NEEDS], struct err *e)
{
    memset(has, 0, NEEDS * sizeof *has);
    has[NOTHING] = true;
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++)
            if (!look_at(p->traces[i], &p->traces[i]->planes[k], has, e))
                return false;
    return true;
}

static bool names_run(const struct tool_request *r, struct arena *a, struct table **out,
                      struct err *e)
{
    bool has[NEEDS];
    uint32_t n_absent = 0;
    str absent = {0};
    struct table *t = *out = table_new(a, S("tool_names"), S("Tools"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("tool"), S("Tool"), CELL_TEXT, S(""));
    if (!look(r->profile, has, e))
        return false;
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        const str name = str_from(offers[i].name);
        const bool offered = has[offers[i].needs], here = tool_find(name) != NULL;
        struct cell *row = offered && here ? table_row(t) : NULL;
        if (row != NULL)
            row[0] = cell_text(name);
        if (offered && !here)
            absent = n_absent++ == 0 ? name : arena_printf(a, "%.*s, %s", STR_ARG(absent), name.p);
    }
    if (absent.n > 0)
        table_note(t, S("not_here"), n_absent, "tools of XProf are not in this program: %.*s",
                   STR_ARG(absent));
    return true;
}

static bool names_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                        struct err *e)
{
    bool has[NEEDS];
    struct json j;
    (void)a;
    if (!look(r->profile, has, e))
        return false;
    json_init_buf(&j, out);
    json_array(&j);
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        if (has[offers[i].needs])
            json_cstr(&j, offers[i].name);
    json_end(&j);
    return json_done(&j, e);
}

const struct tool_functions tool_tool_names = {.run = names_run, .xprof = names_xprof};
