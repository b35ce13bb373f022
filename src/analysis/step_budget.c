/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/step_budget.h"

#include <stdlib.h>

#include "base/limits.h"

struct builder {
    struct step_budget *out;
    struct arena *arena;
    struct arena *gaps; /* where they are made: the arena, or one for each device in turn */
    struct err *err;
};

static bool has_cores(const struct trace *t)
{
    for (uint32_t i = 0; i < t->n_planes; i++)
        if (t->planes[i].kind == TRACE_PLANE_TPU)
            return true;
    return false;
}

static bool read_trace(const struct trace *t, struct arena *a, struct budget_trace *out,
                       struct err *e)
{
    out->trace = t;
    if (!grouping_of(t, a, &out->grouping, e) ||
        !step_lanes_of(t, &out->grouping, a, &out->lanes, e) ||
        !launch_times_of(t, &out->grouping, a, &out->launches, e))
        return false;
    if (!has_cores(t))
        return true;
    out->flows = ARENA_NEW(a, struct flows);
    return out->flows != NULL ? flows_of(t, &out->grouping, a, out->flows, e) : arena_full(a, e);
}

bool budget_traces_of(const struct profile *p, struct arena *a, struct budget_trace **out,
                      struct err *e)
{
    *out = ARENA_ARRAY(a, struct budget_trace, p->n_traces);
    if (*out == NULL && p->n_traces > 0)
        return arena_full(a, e);
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (!read_trace(p->traces[i], a, &(*out)[i], e))
            return false;
    return true;
}

static void cut_step(const struct budget_device *d, struct budget_step *s)
{
    const uint64_t begin = s->begin_ps, end = s->end_ps;
    const uint64_t compute = spans_within(&d->device->compute, begin, end);
    const uint64_t compute_comm = spans_within(&d->device->compute_comm, begin, end);
    const uint64_t busy = spans_within(&d->device->busy, begin, end);
    const uint64_t idle = end - begin - busy;
    s->part_ps[BUDGET_COMPUTE] = compute;
    s->part_ps[BUDGET_COMM] = compute_comm - compute;
    s->part_ps[BUDGET_COPY] = busy - compute_comm;
    s->part_ps[BUDGET_STARVED] = spans_within(&d->gaps.starved, begin, end);
    s->part_ps[BUDGET_BLOCKED] = spans_within(&d->gaps.blocked, begin, end);
    s->part_ps[BUDGET_LATENCY] = spans_within(&d->gaps.latency, begin, end);
    s->part_ps[BUDGET_UNKNOWN] =
        idle - s->part_ps[BUDGET_STARVED] - s->part_ps[BUDGET_BLOCKED] - s->part_ps[BUDGET_LATENCY];
}

static bool cut_device(struct builder *b, struct budget_device *d)
{
    const struct work_device *w = d->device;
    d->n_steps = d->lane != NULL ? d->lane->n : w->to_ps > w->from_ps;
    d->steps = ARENA_ARRAY(b->arena, struct budget_step, d->n_steps);
    if (d->steps == NULL && d->n_steps > 0)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < d->n_steps; i++) {
        struct budget_step *s = &d->steps[i];
        if (d->lane != NULL) {
            const struct step_window *window = &d->lane->items[i];
            *s = (struct budget_step){.number = window->number,
                                      .name = window->name,
                                      .begin_ps = window->begin_ps,
                                      .end_ps = window->end_ps};
        } else {
            *s = (struct budget_step){.begin_ps = w->from_ps, .end_ps = w->to_ps};
        }
        s->is_complete = d->lane != NULL && (d->n_steps <= 2 || (i > 0 && i + 1 < d->n_steps));
        cut_step(d, s);
    }
    return true;
}

static bool read_device(struct builder *b, struct budget_device *d)
{
    const struct work_device *w = d->device;
    const struct budget_trace *t = budget_trace_of(b->out, w->trace);
    d->lane = step_lanes_for(&t->lanes, w->plane_index);
    d->has_copies = w->plane_index != UINT32_MAX || w->count[WORK_COPY] > 0;
    d->has_comm = w->plane_index != UINT32_MAX || w->count[WORK_COMM] > 0;
    d->has_waits =
        w->plane_index != UINT32_MAX && w->trace->planes[w->plane_index].kind == TRACE_PLANE_TPU;
    if (!device_gaps_of(w, &t->grouping, &t->launches, t->flows, b->gaps, &d->gaps, b->err))
        return false;
    const bool ok = cut_device(b, d);
    if (b->gaps == b->arena)
        return ok;
    d->gaps = (struct device_gaps){0};
    arena_release(b->gaps);
    return ok;
}

static bool build(struct builder *b)
{
    struct step_budget *out = b->out;
    if (!budget_traces_of(out->profile, b->arena, &out->traces, b->err) ||
        !work_devices_of(out->profile, b->arena, &out->work, b->err))
        return false;
    out->devices = ARENA_ARRAY(b->arena, struct budget_device, out->work.n);
    if (out->devices == NULL && out->work.n > 0)
        return arena_full(b->arena, b->err);
    for (uint32_t i = 0; i < out->work.n; i++) {
        out->devices[i].device = &out->work.items[i];
        if (!read_device(b, &out->devices[i]))
            return false;
    }
    return true;
}

bool step_budget_with_gaps(const struct profile *p, struct arena *a, struct step_budget *out,
                           struct err *e)
{
    struct builder b = {out, a, a, e};
    *out = (struct step_budget){.profile = p, .n_traces = p->n_traces};
    return build(&b);
}

bool step_budget_of(const struct profile *p, struct arena *a, struct step_budget *out,
                    struct err *e)
{
    struct arena gaps;
    struct builder b = {out, a, &gaps, e};
    *out = (struct step_budget){.profile = p, .n_traces = p->n_traces};
    arena_init(&gaps, "gaps of a device", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = build(&b);
    arena_release(&gaps);
    return ok;
}

const char *budget_part_word(enum budget_part p)
{
    static const char *const words[BUDGET_PARTS] = {
        "compute", "comm_exposed",   "copy_exposed", "launch_starved",
        "blocked", "launch_latency", "unknown"};
    return words[p];
}

bool budget_part_known(const struct budget_device *d, enum budget_part p)
{
    switch (p) {
    case BUDGET_COPY:
        return d->has_copies;
    case BUDGET_COMM:
        return d->has_comm;
    case BUDGET_BLOCKED:
        return d->has_waits;
    default:
        return true;
    }
}

uint32_t budget_complete(const struct budget_device *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_steps; i++)
        n += d->steps[i].is_complete;
    return n;
}

static int by_value(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static bool counts(const struct budget_device *d, uint32_t step, bool all)
{
    return all || d->steps[step].is_complete;
}

uint64_t budget_median_ps(const struct budget_device *d, struct arena *a)
{
    const struct arena_mark mark = arena_mark(a);
    uint64_t *values = ARENA_ARRAY(a, uint64_t, d->n_steps);
    const bool all = budget_complete(d) == 0;
    uint32_t n = 0;
    for (uint32_t i = 0; values != NULL && i < d->n_steps; i++)
        if (counts(d, i, all))
            values[n++] = d->steps[i].end_ps - d->steps[i].begin_ps;
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, by_value);
    const uint64_t low = values[(n - 1) / 2], high = values[n / 2];
    arena_reset(a, mark);
    return low + (high - low) / 2;
}

double budget_mean_ps(const struct budget_device *d, enum budget_part p)
{
    const bool all = budget_complete(d) == 0;
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_steps; i++)
        if (counts(d, i, all)) {
            sum += (double)d->steps[i].part_ps[p];
            n++;
        }
    return n > 0 ? sum / n : 0;
}

const struct budget_step *budget_step_at(const struct budget_device *d, uint64_t ps)
{
    uint32_t low = 0, high = d->n_steps; /* the first that ends after it */
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (d->steps[mid].end_ps <= ps)
            low = mid + 1;
        else
            high = mid;
    }
    return low < d->n_steps && d->steps[low].begin_ps <= ps ? &d->steps[low] : NULL;
}

const char *budget_confidence(const struct budget_device *d)
{
    if (d->lane == NULL)
        return "low";
    const bool of_host = d->lane->plane_index == STEP_LANE_HOST;
    return step_mark_confidence(
        d->lane->mark, d->lane->borrowed || (of_host && d->device->plane_index != UINT32_MAX));
}

const struct budget_trace *budget_trace_of(const struct step_budget *b, const struct trace *t)
{
    for (uint32_t i = 0; i < b->n_traces; i++)
        if (b->traces[i].trace == t)
            return &b->traces[i];
    return NULL;
}
