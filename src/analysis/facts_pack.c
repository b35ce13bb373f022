/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/facts.h"

#define PACK_VERSION 2u /* changes with the fields */

/* One walk over the fields serves both directions, so that they cannot differ. */
struct pack {
    struct buf *out; /* NULL: unpacking */
    str in;
    size_t at;
    struct arena *arena;
    bool bad;
};

static void walk_u64(struct pack *k, uint64_t *v)
{
    if (k->out != NULL) {
        buf_add(k->out, v, sizeof *v);
    } else if (k->in.n - k->at < sizeof *v) {
        k->bad = true;
        *v = 0;
    } else {
        memcpy(v, k->in.p + k->at, sizeof *v);
        k->at += sizeof *v;
    }
}

static void walk_u32(struct pack *k, uint32_t *v)
{
    uint64_t wide = *v;
    walk_u64(k, &wide);
    k->bad |= wide > UINT32_MAX;
    *v = (uint32_t)wide;
}

static void walk_i64(struct pack *k, int64_t *v)
{
    uint64_t bits = (uint64_t)*v;
    walk_u64(k, &bits);
    *v = (int64_t)bits;
}

static void walk_bool(struct pack *k, bool *v)
{
    uint64_t wide = *v;
    walk_u64(k, &wide);
    k->bad |= wide > 1;
    *v = wide == 1;
}

static void walk_str(struct pack *k, str *s)
{
    uint64_t n = s->n;
    walk_u64(k, &n);
    if (k->out != NULL) {
        buf_add_str(k->out, *s);
    } else if (k->bad || n > k->in.n - k->at) {
        k->bad = true;
        *s = (str){0};
    } else {
        *s = str_sub(k->in, k->at, k->at + (size_t)n);
        k->at += (size_t)n;
    }
}

static void walk_fact(struct pack *k, struct fact_ps *f)
{
    walk_bool(k, &f->known);
    walk_u64(k, &f->ps);
}

/* Room for the items that are announced: each takes at least `least` bytes of what is left. */
static bool walk_count(struct pack *k, uint32_t *n, void **items, size_t size, size_t least)
{
    walk_u32(k, n);
    if (k->out != NULL)
        return true;
    k->bad |= *n > (k->in.n - k->at) / least;
    if (k->bad)
        *n = 0;
    *items = *n == 0 ? NULL : arena_array(k->arena, *n, size, _Alignof(max_align_t));
    return *n == 0 || *items != NULL;
}

static void walk_device(struct pack *k, struct device_fact *d)
{
    uint32_t kind = d->kind;
    walk_u32(k, &kind);
    k->bad |= kind > DEVICE_TPU;
    d->kind = k->bad ? DEVICE_NONE : (enum device_kind)kind;
    walk_str(k, &d->name);
    walk_str(k, &d->host);
    walk_u64(k, &d->busy_ps);
    walk_u64(k, &d->idle_ps);
}

static void walk_step(struct pack *k, struct step_fact *s)
{
    walk_str(k, &s->host);
    walk_i64(k, &s->number);
    walk_u64(k, &s->start_ps);
    walk_u64(k, &s->dur_ps);
    walk_fact(k, &s->device_busy_ps);
    walk_fact(k, &s->input_ps);
}

static void walk_op(struct pack *k, struct op_fact *o)
{
    walk_str(k, &o->name);
    walk_str(k, &o->category);
    walk_str(k, &o->source);
    walk_u64(k, &o->self_ps);
    walk_u64(k, &o->occurrences);
}

static bool walk_lists(struct pack *k, struct profile_facts *f)
{
    void *devices = f->devices, *steps = f->steps;
    if (!walk_count(k, &f->n_devices, &devices, sizeof *f->devices, 5 * sizeof(uint64_t)))
        return false;
    f->devices = devices;
    for (uint32_t i = 0; i < f->n_devices; i++)
        walk_device(k, &f->devices[i]);
    if (!walk_count(k, &f->n_steps, &steps, sizeof *f->steps, 8 * sizeof(uint64_t)))
        return false;
    f->steps = steps;
    for (uint32_t i = 0; i < f->n_steps; i++)
        walk_step(k, &f->steps[i]);
    walk_u32(k, &f->n_top_ops);
    if (f->n_top_ops > FACTS_TOP_OPS) {
        k->bad = true;
        f->n_top_ops = 0;
    }
    for (uint32_t i = 0; i < f->n_top_ops; i++)
        walk_op(k, &f->top_ops[i]);
    return true;
}

static bool walk(struct pack *k, struct profile_facts *f)
{
    struct fact_ps *const facts[] = {
        &f->window_ps,           &f->busy_ps,       &f->idle_ps,
        &f->median_step_ps,      &f->input_wait_ps, &f->host_compile_ps,
        &f->host_compile_idle_ps};
    uint32_t *const counts[] = {&f->n_compiles_after_warmup, &f->n_errors, &f->n_warnings,
                                &f->n_hosts};
    bool *const flags[] = {&f->has_hlo, &f->has_steps, &f->has_ops, &f->has_epoch};
    uint32_t version = PACK_VERSION;
    walk_u32(k, &version);
    k->bad |= version != PACK_VERSION;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        walk_fact(k, facts[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        walk_u32(k, counts[i]);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        walk_bool(k, flags[i]);
    walk_u64(k, &f->op_self_ps);
    walk_u64(k, &f->n_dropped);
    walk_i64(k, &f->window_from_ns);
    return walk_lists(k, f);
}

bool profile_facts_pack(const struct profile_facts *f, struct buf *out, struct err *e)
{
    struct profile_facts copy = *f; /* the walk writes each value back as it was */
    struct pack k = {.out = out};
    return walk(&k, &copy) && buf_ok(out, "the facts of the profile", e);
}

bool profile_facts_unpack(str bytes, struct arena *a, struct profile_facts *out, struct err *e)
{
    struct pack k = {.in = bytes, .arena = a};
    *out = (struct profile_facts){0};
    if (!walk(&k, out))
        return arena_full(a, e);
    if (k.bad || k.at != bytes.n)
        return err_at(e, ERR_PARSE, k.at, "the parser's answer is not the facts of a profile");
    return true;
}
