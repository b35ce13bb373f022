/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pod_steps.h"

#include <stdlib.h>

struct joiner {
    struct pod_steps *out;
    struct arena *arena;
    struct err *err;
    struct map_str_u32 by_key, seen; /* the latter of the core at hand */
    uint32_t seen_trace, seen_plane;
    uint32_t trace_index;
    bool has_steps; /* the trace at hand */
};

/* How many steps of that name and number the core at hand had before. */
static uint32_t seen_before(struct joiner *b, const struct pod_step *like, uint32_t plane_index)
{
    if (b->seen_trace != b->trace_index || b->seen_plane != plane_index) {
        map_str_u32_release(&b->seen);
        b->seen_trace = b->trace_index;
        b->seen_plane = plane_index;
    }
    return (*map_str_u32_put(&b->seen, arena_printf(b->arena, "%.*s %lld", STR_ARG(like->name),
                                                    (long long)like->number)))++;
}

/* Programs number training and evaluation alike, some twice: a step is known by its name, number and
 * how often it came before. */
static struct pod_step *step_of(struct joiner *b, struct pod_step like, uint32_t plane_index)
{
    struct pod_steps *out = b->out;
    const str key = arena_printf(b->arena, "%.*s %lld %u", STR_ARG(like.name),
                                 (long long)like.number, seen_before(b, &like, plane_index));
    const uint32_t *at = map_str_u32_get(&b->by_key, key);
    if (at != NULL)
        return &out->items[*at];
    if (key.n == 0 || !ARENA_PUSH(b->arena, out->items, out->n, out->capacity)) {
        (void)arena_full(b->arena, b->err);
        return NULL;
    }
    out->items[out->n - 1] = like;
    *map_str_u32_put(&b->by_key, key) = out->n - 1;
    return &out->items[out->n - 1];
}

static bool put(struct joiner *b, struct pod_list *to, struct pod_core core)
{
    core.trace_index = b->trace_index;
    b->has_steps = true;
    if (!ARENA_PUSH(b->arena, to->items, to->n, to->capacity))
        return arena_full(b->arena, b->err);
    to->items[to->n - 1] = core;
    return true;
}

/* What the core did that is not said to be anything else is its rest. */
static void set_other(struct pod_core *c)
{
    uint64_t said = 0;
    for (uint32_t i = 0; i < POD_OTHER; i++)
        said += c->class_ps[i];
    c->class_ps[POD_OTHER] = pod_core_ps(c) > said ? pod_core_ps(c) - said : 0;
}

static struct pod_core tpu_core(const struct step_core *c)
{
    const uint64_t *part = c->part_ps;
    const uint64_t between = part[CORE_COLLECTIVE] + part[CORE_DEVICE];
    struct pod_core out = {
        .plane_index = c->plane_index, .begin_ps = c->begin_ps, .end_ps = c->end_ps, .tpu = c};
    out.class_ps[POD_COMPUTE] = c->active_ps > between ? c->active_ps - between : 0;
    out.class_ps[POD_DEVICE] = part[CORE_DEVICE];
    out.class_ps[POD_COLLECTIVE] = part[CORE_COLLECTIVE];
    out.class_ps[POD_INPUT] = part[CORE_INFEED] + part[CORE_HOST_RECV];
    out.class_ps[POD_OUTPUT] = part[CORE_OUTFEED] + part[CORE_HOST_SEND];
    set_other(&out);
    return out;
}

static bool add_tpu(struct joiner *b, const struct trace *t, const struct grouping *g)
{
    struct host_steps *const steps = &b->out->steps[b->trace_index];
    if (!steps_of(t, g, b->arena, steps, b->err))
        return false;
    for (uint32_t i = 0; i < steps->n_cores; i++) {
        const struct step_core *c = &steps->cores[i];
        const struct pod_step like = {.number = c->number,
                                      .has_number = steps->source == STEPS_DEVICE};
        struct pod_step *s = step_of(b, like, c->plane_index);
        const struct pod_core core = tpu_core(c);
        if (s == NULL || !put(b, &s->cores, core) || !put(b, &s->devices, core))
            return false;
    }
    return true;
}

static void set_classes(struct pod_core *c, const uint64_t *ps)
{
    c->class_ps[POD_COMPUTE] = ps[STEP_COMPUTE_16] + ps[STEP_COMPUTE_32];
    c->compute_16_ps = ps[STEP_COMPUTE_16];
    c->class_ps[POD_DEVICE] = ps[STEP_D2D];
    c->class_ps[POD_COLLECTIVE] = ps[STEP_COLLECTIVE];
    c->class_ps[POD_HOST] = ps[STEP_HOST];
    c->class_ps[POD_LAUNCH] = ps[STEP_LAUNCH];
    c->class_ps[POD_INPUT] = ps[STEP_WAIT_INPUT] + ps[STEP_COPY_IN] + ps[STEP_H2D];
    c->class_ps[POD_OUTPUT] = ps[STEP_D2H];
    set_other(c);
}

static bool add_devices(struct joiner *b, struct pod_step *s, const struct step_parts *p)
{
    for (uint32_t i = 0; i < p->n_devices; i++) {
        const struct step_device *d = &p->devices[i];
        struct pod_core core = {
            .plane_index = d->plane_index, .begin_ps = d->begin_ps, .end_ps = d->end_ps};
        set_classes(&core, d->class_ps);
        if (!put(b, &s->devices, core))
            return false;
    }
    return true;
}

static bool add_generic(struct joiner *b, const struct trace *t, const struct grouping *g)
{
    struct steps_parts steps;
    if (!step_parts_of(t, g, b->arena, &steps, b->err))
        return false;
    for (uint32_t i = 0; i < steps.n; i++) {
        const struct step_parts *p = &steps.items[i];
        const struct pod_step like = {.name = p->name,
                                      .number = p->has_number ? p->number : (int64_t)i,
                                      .has_number = p->has_number};
        struct pod_step *s = step_of(b, like, UINT32_MAX);
        struct pod_core core = {
            .plane_index = UINT32_MAX, .begin_ps = p->begin_ps, .end_ps = p->end_ps};
        set_classes(&core, p->class_ps);
        if (s == NULL || !put(b, &s->cores, core) || !add_devices(b, s, p))
            return false;
    }
    return true;
}

static bool has_tpu(const struct profile *p)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++)
            if (p->traces[i]->planes[k].kind == TRACE_PLANE_TPU)
                return true;
    return false;
}

static int by_number(const void *x, const void *y)
{
    const struct pod_step *a = x, *b = y;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    const uint64_t begin_a = a->cores.items[0].begin_ps, begin_b = b->cores.items[0].begin_ps;
    return begin_a < begin_b ? -1 : begin_a > begin_b;
}

bool pod_steps_of(const struct profile *p, struct grouping *const *groupings, struct arena *a,
                  struct pod_steps *out, struct err *e)
{
    struct joiner b = {.out = out, .arena = a, .err = e};
    bool ok = true;
    *out = (struct pod_steps){.profile = p, .is_tpu = has_tpu(p)};
    if (out->is_tpu && (out->steps = ARENA_ARRAY(a, struct host_steps, p->n_traces)) == NULL)
        return arena_full(a, e);
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        const struct grouping *g = groupings == NULL ? NULL : groupings[i];
        b.trace_index = i;
        b.has_steps = false;
        ok = out->is_tpu ? add_tpu(&b, p->traces[i], g) : add_generic(&b, p->traces[i], g);
        out->n_hosts += b.has_steps;
    }
    map_str_u32_release(&b.by_key);
    map_str_u32_release(&b.seen);
    if (ok && out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_number);
    return ok;
}

const char *pod_class_name(enum pod_class class)
{
    static const char *const names[POD_CLASSES] = {
        "Device compute", "Device to device", "Device collective communication",
        "Host compute",   "Kernel launch",    "Input",
        "Output",         "Compilation",      "All others"};
    return names[class];
}

const struct pod_core *pod_longest(const struct pod_list *l)
{
    const struct pod_core *longest = NULL;
    for (uint32_t i = 0; i < l->n; i++)
        if (longest == NULL || pod_core_ps(&l->items[i]) > pod_core_ps(longest))
            longest = &l->items[i];
    return longest;
}

bool pod_step_is_whole(const struct pod_steps *s, const struct pod_step *step)
{
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < step->cores.n; i++)
        hosts += i == 0 || step->cores.items[i].trace_index != step->cores.items[i - 1].trace_index;
    return hosts == s->n_hosts;
}

enum pod_class pod_bottleneck(const struct pod_core *c)
{
    enum pod_class most = POD_COMPUTE;
    for (uint32_t i = 1; i < POD_CLASSES; i++)
        if (c->class_ps[i] > c->class_ps[most])
            most = (enum pod_class)i;
    return most;
}

str pod_core_name(const struct pod_steps *s, const struct pod_core *c, struct arena *a)
{
    const struct trace *t = s->profile->traces[c->trace_index];
    if (c->plane_index == UINT32_MAX)
        return trace_target(t);
    return arena_printf(a, "%.*s %.*s", STR_ARG(trace_target(t)),
                        STR_ARG(t->planes[c->plane_index].name));
}

/* --- the straggler --------------------------------------------------------------------------- */

struct device_sum {
    const struct pod_core *core;
    double compute_ps;
    uint32_t n;
};

struct device_sums {
    struct device_sum *items;
    uint32_t n, capacity;
    struct map_u64_u32 by_device;
};

static bool sum_device(struct device_sums *sums, const struct pod_core *c, struct arena *a)
{
    const uint64_t key = (uint64_t)c->trace_index << 32 | c->plane_index;
    const uint32_t *at = map_u64_u32_get(&sums->by_device, key);
    if (at == NULL) {
        if (!ARENA_PUSH(a, sums->items, sums->n, sums->capacity))
            return false;
        sums->items[sums->n - 1] = (struct device_sum){0};
        *map_u64_u32_put(&sums->by_device, key) = sums->n - 1;
    }
    struct device_sum *d = &sums->items[at == NULL ? sums->n - 1 : *at];
    d->core = c;
    d->compute_ps += (double)c->class_ps[POD_COMPUTE];
    d->n++;
    return true;
}

static bool sum_devices(struct device_sums *sums, const struct pod_steps *s, struct arena *a)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct pod_step *step = &s->items[i];
        const struct pod_list *l = step->devices.n > 0 ? &step->devices : &step->cores;
        for (uint32_t k = 0; k < l->n; k++)
            if (!sum_device(sums, &l->items[k], a))
                return false;
    }
    for (uint32_t i = 0; i < sums->n; i++)
        sums->items[i].compute_ps /= sums->items[i].n;
    return true;
}

static int by_compute(const void *x, const void *y)
{
    const struct device_sum *a = x, *b = y;
    return a->compute_ps < b->compute_ps ? -1 : a->compute_ps > b->compute_ps;
}

bool pod_straggler(const struct pod_steps *s, struct arena *a, struct straggler *out, struct err *e)
{
    struct device_sums sums = {0};
    *out = (struct straggler){0};
    const bool ok = sum_devices(&sums, s, a);
    map_u64_u32_release(&sums.by_device);
    if (!ok)
        return arena_full(a, e);
    out->n_devices = sums.n;
    if (sums.n < 2)
        return true;
    qsort(sums.items, sums.n, sizeof *sums.items, by_compute);
    const struct device_sum *last = &sums.items[sums.n - 1];
    const uint32_t others = sums.n - 1;
    const double median =
        (sums.items[(others - 1) / 2].compute_ps + sums.items[others / 2].compute_ps) / 2;
    out->compute_ps = last->compute_ps;
    out->others_ps = median;
    if (median > 0 && last->compute_ps >= median * STRAGGLER_RATIO)
        out->core = last->core;
    return true;
}
