/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/intervals.h"

#define OPEN_MAX 256 /* phases open at once; with more, the oldest are left open */

struct opened {
    uint32_t items[OPEN_MAX]; /* indices into the intervals */
    uint32_t n;
};

static bool same_thread(const struct interval *v, const struct record *r)
{
    return v->thread == r->thread || v->thread == 0 || r->thread == 0 || r->phase == PHASE_STEP;
}

static uint32_t find_open(const struct opened *o, const struct intervals *in,
                          const struct record *r, bool any_thread)
{
    for (uint32_t i = o->n; i > 0; i--) {
        const struct interval *v = &in->items[o->items[i - 1]];
        if (v->phase == r->phase && (any_thread || same_thread(v, r)) && str_eq(v->type, r->text))
            return i - 1;
    }
    return UINT32_MAX;
}

static void forget(struct opened *o, uint32_t at)
{
    memmove(&o->items[at], &o->items[at + 1], (o->n - at - 1) * sizeof o->items[0]);
    o->n--;
}

/* A thread that died in its phase never ends it: the next begin of any thread does, unless its end
 * shows up. */
static void replace(const struct opened *o, struct intervals *in, const struct record *r)
{
    for (uint32_t i = 0; i < o->n; i++) {
        struct interval *v = &in->items[o->items[i]];
        if (v->phase == r->phase && v->replaced_ns == INT64_MAX && str_eq(v->type, r->text))
            v->replaced_ns = r->wall_ns;
    }
}

static void begin(struct timeline *t, struct opened *o, struct intervals *in,
                  const struct record *r)
{
    const uint32_t at = find_open(o, in, r, false);
    replace(o, in, r);
    if (at != UINT32_MAX)
        forget(o, at);
    if (!ARENA_PUSH(t->a, in->items, in->n, in->capacity))
        return;
    in->items[in->n - 1] = (struct interval){.phase = r->phase,
                                             .type = r->text,
                                             .from_ns = r->wall_ns,
                                             .to_ns = INT64_MAX,
                                             .step = r->step,
                                             .thread = r->thread,
                                             .open = true,
                                             .replaced_ns = INT64_MAX};
    if (o->n == OPEN_MAX)
        forget(o, 0);
    o->items[o->n++] = in->n - 1;
}

static void end(struct opened *o, struct intervals *in, const struct record *r)
{
    uint32_t at = find_open(o, in, r, false);
    if (at == UINT32_MAX)
        at = find_open(o, in, r, true);
    if (at == UINT32_MAX) {
        in->n_ends_alone++;
        return;
    }
    in->items[o->items[at]].to_ns = r->wall_ns;
    in->items[o->items[at]].open = false;
    forget(o, at);
}

static void add_step_thread(struct intervals *in, uint32_t thread)
{
    for (uint32_t i = 0; i < in->n_step_threads; i++)
        if (in->step_threads[i] == thread)
            return;
    if (thread == 0 || in->n_step_threads == INTERVALS_STEP_THREADS)
        in->any_step_thread = true;
    else
        in->step_threads[in->n_step_threads++] = thread;
}

bool intervals_is_prefetch(const struct intervals *in, const struct interval *v)
{
    if (v->phase != PHASE_DATA_LOADING || v->thread == 0 || in->any_step_thread)
        return false;
    for (uint32_t i = 0; i < in->n_step_threads; i++)
        if (in->step_threads[i] == v->thread)
            return false;
    return in->n_step_threads > 0;
}

void intervals_pair(struct timeline *t, uint32_t process, int64_t from_ns, int64_t to_ns,
                    bool without_steps, struct intervals *out)
{
    struct opened o = {.n = 0};
    for (uint32_t i = timeline_record_at(t, from_ns); i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->wall_ns > to_ns)
            break;
        if (r->process != process || r->phase == PHASE_JOB || r->phase == PHASE_NONE ||
            (without_steps && r->phase == PHASE_STEP))
            continue;
        if (r->kind == RECORD_BEGIN && r->phase == PHASE_STEP)
            add_step_thread(out, r->thread);
        if (r->kind == RECORD_BEGIN)
            begin(t, &o, out, r);
        else if (r->kind == RECORD_END)
            end(&o, out, r);
    }
}

uint32_t intervals_at(const struct intervals *in, int64_t ns)
{
    uint32_t low = 0, high = in->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (in->items[middle].from_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
