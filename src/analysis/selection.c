/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/selection.h"

#include <stdlib.h>

#include "analysis/step_lanes.h"
#include "base/limits.h"
#include "model/trace_groups.h"

#define NAMES_BYTES 140 /* of a list in a hint */

struct step_range {
    int64_t first, last;
};

/* --- what there is, for the person who asked for something else ------------------------------- */

struct names {
    str items[16];
    uint32_t n;
    bool more;
};

static void names_add(struct names *n, str name)
{
    for (uint32_t i = 0; i < n->n; i++)
        if (str_eq(n->items[i], name))
            return;
    if (n->n < sizeof n->items / sizeof *n->items)
        n->items[n->n++] = name;
    else
        n->more = true;
}

static bool not_found(const struct names *n, str asked, const char *what, const char *kinds,
                      struct err *e)
{
    struct buf b;
    buf_init(&b, NAMES_BYTES);
    for (uint32_t i = 0; i < n->n; i++)
        buf_addf(&b, "%s%.*s", i == 0 ? "" : ", ", STR_ARG(n->items[i]));
    if (n->more)
        buf_add_str(&b, S(", …"));
    const str list = buf_str(&b);
    err_set(e, ERR_NOT_FOUND, "the profile has no %s '%.*s'", what, STR_ARG(asked));
    if (list.n > 0)
        err_hint(e, "%s: %.*s", kinds, STR_ARG(list));
    else
        err_hint(e, "the profile has no %s", kinds);
    buf_release(&b);
    return false;
}

/* --- hosts ------------------------------------------------------------------------------------ */

static bool is_host(const struct trace *t, str name)
{
    return str_eq(name, t->host) || str_eq(name, trace_target(t));
}

/* The whole is one name, or else a list of them. */
static bool is_one_of(const struct trace *t, str list)
{
    str name, rest = list;
    if (is_host(t, list))
        return true;
    while (str_cut(rest, ',', &name, &rest))
        if (is_host(t, name))
            return true;
    return false;
}

/* The first name of the list that is no host's, or an empty one. */
static str unknown_host(str list, const struct profile *p)
{
    str name, rest = list;
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (is_host(p->traces[i], list))
            return (str){0};
    while (str_cut(rest, ',', &name, &rest)) {
        bool known = false;
        for (uint32_t i = 0; i < p->n_traces && !known; i++)
            known = is_host(p->traces[i], name);
        if (!known)
            return name.n > 0 ? name : list;
    }
    return (str){0};
}

static bool keep_hosts(str host, const struct profile *p, struct profile *view, struct err *e)
{
    struct names names = {0};
    const bool all = host.n == 0 || str_eq(host, S("ALL_HOSTS"));
    view->n_traces = 0;
    for (uint32_t i = 0; i < p->n_traces; i++) {
        struct trace *t = p->traces[i];
        names_add(&names, t->host.n > 0 ? t->host : trace_target(t));
        if (all || is_one_of(t, host))
            view->traces[view->n_traces++] = t;
    }
    const str unknown = all ? (str){0} : unknown_host(host, p);
    return unknown.n == 0 || not_found(&names, unknown, "host", "hosts", e);
}

/* --- devices ---------------------------------------------------------------------------------- */

static bool is_device(const struct trace_plane *p)
{
    return p->kind == TRACE_PLANE_TPU || p->kind == TRACE_PLANE_TPU_SPARSE ||
           p->kind == TRACE_PLANE_GPU || p->kind == TRACE_PLANE_CUSTOM;
}

/* "GPU:3" is of "/device:GPU:3", "TPU:0" also of "/device:TPU:0 SparseCore 1". */
static bool is_named(const struct trace_plane *p, str device)
{
    const str prefix = S("/device:");
    if (str_eq(p->name, device))
        return true;
    if (!str_starts(p->name, prefix))
        return false;
    const str name = str_sub(p->name, prefix.n, p->name.n);
    if (!str_starts(name, device))
        return false;
    return name.n == device.n || (p->kind == TRACE_PLANE_TPU_SPARSE && name.p[device.n] == ' ');
}

static void empty_line(struct trace_line *l)
{
    l->n_events = l->busy_ps = l->end_ps = 0;
    l->start_ps = UINT64_MAX;
    l->n_groups = 0;
}

/* Answers how many planes stay. */
static uint32_t keep_devices(str device, struct trace *t, struct names *names)
{
    const str prefix = S("/device:");
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        struct trace_plane *p = &t->planes[i];
        if (!is_device(p))
            continue;
        names_add(names,
                  str_starts(p->name, prefix) ? str_sub(p->name, prefix.n, p->name.n) : p->name);
        if (is_named(p, device)) {
            n++;
            continue;
        }
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++)
            empty_line(&t->lines[l]);
        p->n_lines = 0;
        p->kind = TRACE_PLANE_OTHER;
        p->left_out = true;
    }
    return n;
}

/* --- steps ------------------------------------------------------------------------------------ */

static bool read_steps(str text, struct step_range *out, struct err *e)
{
    const ptrdiff_t dots = str_find(text, S(".."));
    const str first = dots < 0 ? text : str_sub(text, 0, (size_t)dots);
    const str last = dots < 0 ? text : str_sub(text, (size_t)dots + 2, text.n);
    if (str_to_i64(first, &out->first) && str_to_i64(last, &out->last) && out->first <= out->last)
        return true;
    return err_set(e, ERR_USAGE, "steps is '%.*s'; it may be a step or a range, as 3 or 3..7",
                   STR_ARG(text));
}

/* Shows of a line what starts in [from, to), with its own sums, counted as the reader counts them. */
static bool cut_line(const struct trace *whole, uint32_t index, uint64_t from_ps, uint64_t to_ps,
                     struct trace_line *line, struct err *e)
{
    struct trace_cursor c;
    uint64_t reached_ps = from_ps;
    empty_line(line);
    line->n_groups = whole->lines[index].n_groups;
    line->is_part = true;
    trace_cursor_init(&c, whole, index);
    trace_cursor_seek(&c, from_ps);
    while (trace_cursor_next(&c) && c.event.start_ps < to_ps) {
        const uint64_t end_ps = c.event.start_ps + c.event.dur_ps;
        if (c.event.start_ps < from_ps || (line->n_events == 0 && c.event.num_occurrences > 0))
            continue;
        if (line->n_events++ == 0) {
            line->first_event = c.index;
            line->start_ps = c.event.start_ps;
        }
        line->end_ps = end_ps > line->end_ps ? end_ps : line->end_ps;
        if (c.event.num_occurrences > 0 || end_ps <= reached_ps)
            continue;
        line->busy_ps += end_ps - (c.event.start_ps > reached_ps ? c.event.start_ps : reached_ps);
        reached_ps = end_ps;
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, e);
}

static bool cut_plane(const struct trace *whole, const struct step_lane *lane, uint32_t plane,
                      struct step_range r, struct trace *t, struct err *e)
{
    const struct step_window *first = NULL, *last = NULL;
    for (uint32_t i = 0; lane != NULL && i < lane->n; i++)
        if (lane->items[i].number >= r.first && lane->items[i].number <= r.last) {
            first = first == NULL ? &lane->items[i] : first;
            last = &lane->items[i];
        }
    const struct trace_plane *p = &t->planes[plane];
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        if (first == NULL)
            empty_line(&t->lines[l]);
        else if (t->lines[l].n_events > 0 &&
                 !cut_line(whole, l, first->begin_ps, last->end_ps, &t->lines[l], e))
            return false;
    }
    return true;
}

/* What is known of the steps of all traces, for the check and its message. */
struct known_steps {
    int64_t least, most;
    bool any, has_first, has_last;
};

static void know_steps(struct known_steps *k, const struct step_lanes *lanes, struct step_range r)
{
    for (uint32_t i = 0; i < lanes->n; i++)
        for (uint32_t w = 0; w < lanes->items[i].n; w++) {
            const int64_t number = lanes->items[i].items[w].number;
            k->least = !k->any || number < k->least ? number : k->least;
            k->most = !k->any || number > k->most ? number : k->most;
            k->any = true;
            k->has_first |= number == r.first;
            k->has_last |= number == r.last;
        }
}

static bool cut_steps(const struct trace *whole, struct trace *t, struct step_range r,
                      struct known_steps *known, struct err *e)
{
    struct arena a;
    struct grouping g;
    struct step_lanes lanes;
    arena_init(&a, "steps", LIMIT_ARENA_TOOL_BYTES);
    bool ok = grouping_of(whole, &a, &g, e) && step_lanes_of(whole, &g, &a, &lanes, e);
    if (ok)
        know_steps(known, &lanes, r);
    for (uint32_t i = 0; ok && i < t->n_planes; i++)
        ok = cut_plane(whole, step_lanes_for(&lanes, i), i, r, t, e);
    arena_release(&a);
    return ok;
}

/* --- the view --------------------------------------------------------------------------------- */

static struct trace *copy_trace(const struct trace *t, struct arena *a)
{
    struct trace *copy = ARENA_NEW(a, struct trace);
    struct trace_plane *planes = ARENA_ARRAY(a, struct trace_plane, t->n_planes);
    struct trace_line *lines = ARENA_ARRAY(a, struct trace_line, t->n_lines);
    if (copy == NULL || (planes == NULL && t->n_planes > 0) || (lines == NULL && t->n_lines > 0))
        return NULL;
    *copy = *t;
    copy->arena = (struct arena){0}; /* the original's text is borrowed */
    copy->planes = planes;
    copy->lines = lines;
    if (t->n_planes > 0)
        memcpy(planes, t->planes, t->n_planes * sizeof *planes);
    if (t->n_lines > 0)
        memcpy(lines, t->lines, t->n_lines * sizeof *lines);
    return copy;
}

static void sum_lines(struct trace *t)
{
    t->n_events = t->end_ps = 0;
    t->start_ps = UINT64_MAX;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        const struct trace_line *l = &t->lines[i];
        if (l->n_events == 0)
            continue;
        t->n_events += l->n_events;
        t->start_ps = l->start_ps < t->start_ps ? l->start_ps : t->start_ps;
        t->end_ps = l->end_ps > t->end_ps ? l->end_ps : t->end_ps;
    }
    if (t->n_events == 0)
        t->start_ps = 0;
}

static bool no_step(const struct selection *s, const struct known_steps *k, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "the profile has no step '%.*s'", STR_ARG(s->steps));
    if (!k->any)
        return err_hint(e, "the profile marks no steps");
    return err_hint(e, "steps: %lld..%lld", (long long)k->least, (long long)k->most);
}

static bool narrow(const struct selection *s, struct profile *view, struct arena *a, struct err *e)
{
    struct step_range range = {0};
    struct known_steps known = {0};
    struct names devices = {0};
    uint32_t n_devices = 0;
    if (s->steps.n > 0 && !read_steps(s->steps, &range, e))
        return false;
    for (uint32_t i = 0; i < view->n_traces; i++) {
        const struct trace *whole = view->traces[i];
        struct trace *t = copy_trace(whole, a);
        if (t == NULL)
            return arena_full(a, e);
        if (s->device.n > 0)
            n_devices += keep_devices(s->device, t, &devices);
        if (s->steps.n > 0 && !cut_steps(whole, t, range, &known, e))
            return false;
        sum_lines(t);
        view->traces[i] = t;
    }
    if (s->device.n > 0 && n_devices == 0)
        return not_found(&devices, s->device, "device", "devices", e);
    return s->steps.n == 0 || (known.has_first && known.has_last) || no_step(s, &known, e);
}

bool selection_view(const struct selection *s, struct profile *p, struct arena *a,
                    struct profile **out, struct err *e)
{
    *out = p;
    if (s->host.n == 0 && s->device.n == 0 && s->steps.n == 0)
        return true;
    struct profile *view = ARENA_NEW(a, struct profile);
    struct trace **traces = ARENA_ARRAY(a, struct trace *, p->n_traces);
    if (view == NULL || (traces == NULL && p->n_traces > 0))
        return arena_full(a, e);
    *view = *p;
    view->arena = (struct arena){0};
    view->traces = traces;
    *out = view;
    return keep_hosts(s->host, p, view, e) &&
           ((s->device.n == 0 && s->steps.n == 0) || narrow(s, view, a, e));
}
