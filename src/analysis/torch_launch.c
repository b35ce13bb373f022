/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/torch_launch.h"

#include "analysis/spans.h"
#include "model/trace_pick.h"

struct open_operator {
    uint64_t end_ps;
    str name;
    struct torch_cost cost;
    uint64_t event; /* on its line */
    uint32_t item;  /* UINT32_MAX: it has launched nothing yet */
};

struct reader {
    struct torch_launches *out;
    const struct trace *trace;
    const struct grouping *grouping;
    struct arena *arena;
    struct err *err;
    struct open_operator *open;
    uint32_t n_open, open_capacity;
    uint32_t at; /* the launch at hand or the next: they ascend as the events do */
};

enum asked { CATEGORY = 0, INPUT_DIMS, INPUT_TYPE, ASKED };
static const str asked_names[ASKED] = {STR_INIT("category"), STR_INIT("Input Dims"),
                                       STR_INIT("Input type")};

static bool begin(struct reader *r, const struct trace_cursor *c, const struct trace_stat *stats,
                  str name)
{
    str dims = {0}, types = {0};
    if (!ARENA_PUSH(r->arena, r->open, r->n_open, r->open_capacity))
        return arena_full(r->arena, r->err);
    struct open_operator *o = &r->open[r->n_open - 1];
    *o = (struct open_operator){.end_ps = c->event.start_ps + c->event.dur_ps,
                                .name = name,
                                .event = c->index,
                                .item = UINT32_MAX};
    if (torch_has_cost(name) && trace_stat_str(&stats[INPUT_DIMS], &dims) &&
        trace_stat_str(&stats[INPUT_TYPE], &types))
        o->cost = torch_cost(name, dims, types);
    return true;
}

/* The event may be a call that launches: then the innermost operator did it. */
static bool note_launch(struct reader *r, uint32_t line, uint64_t event)
{
    const struct grouping *g = r->grouping;
    struct torch_launches *l = r->out;
    const uint64_t node = g->first_node[line] + event;
    while (r->at < g->n_launches && g->launches[r->at] < node)
        r->at++;
    if (r->n_open == 0 || r->at == g->n_launches || g->launches[r->at] != node)
        return true;
    struct open_operator *o = &r->open[r->n_open - 1];
    if (o->item == UINT32_MAX) {
        if (!ARENA_PUSH(r->arena, l->items, l->n, l->capacity))
            return arena_full(r->arena, r->err);
        l->items[l->n - 1] = (struct torch_launch){
            .name = o->name, .cost = o->cost, .group = group_at(g, line, o->event)};
        o->item = l->n - 1;
    }
    l->of_launch[r->at] = o->item;
    return true;
}

static bool read_event(struct reader *r, uint32_t line, const struct trace_cursor *c,
                       const struct trace_stat *stats)
{
    while (r->n_open > 0 && r->open[r->n_open - 1].end_ps <= c->event.start_ps)
        r->n_open--;
    if (spans_is_operator(&stats[CATEGORY]))
        return begin(r, c, stats, trace_event_name(r->trace, &r->trace->lines[line], &c->event));
    return note_launch(r, line, c->index);
}

static bool read_thread(struct reader *r, uint32_t line)
{
    struct trace_cursor c;
    struct trace_picker p;
    bool ok = true;
    r->n_open = 0;
    trace_picker_init(&p, r->trace, line, asked_names, ASKED);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init(&c, r->trace, line); ok && trace_cursor_next(&c);)
        ok = trace_pick(&p, &c.event, r->err) && read_event(r, line, &c, p.values);
    trace_cursor_release(&c);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&c, r->err);
}

static bool may_show(const struct trace_plane *p)
{
    return p->kind == TRACE_PLANE_HOST && spans_plane_names(p, asked_names[CATEGORY]);
}

bool torch_may_launch(const struct trace *t)
{
    for (uint32_t i = 0; i < t->n_planes; i++)
        if (may_show(&t->planes[i]))
            return true;
    return false;
}

bool torch_launches_of(struct torch_launches *out, const struct trace *t, const struct grouping *g,
                       struct arena *a, struct err *e)
{
    struct reader r = {.out = out, .trace = t, .grouping = g, .arena = a, .err = e};
    *out = (struct torch_launches){0};
    if (!torch_may_launch(t))
        return true;
    out->n_launches = g->n_launches;
    out->of_launch = ARENA_ARRAY(a, uint32_t, g->n_launches);
    if (out->of_launch == NULL && g->n_launches > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < g->n_launches; i++)
        out->of_launch[i] = UINT32_MAX;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        if (!may_show(p))
            continue;
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
            if (g->first_node[l] != GROUP_NO_NODE && !read_thread(&r, l))
                return false;
    }
    return true;
}

struct torch_launch *torch_launches_find(const struct torch_launches *l, uint32_t launch)
{
    return launch >= l->n_launches || l->of_launch[launch] == UINT32_MAX
               ? NULL
               : &l->items[l->of_launch[launch]];
}
