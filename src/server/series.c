/* SPDX-License-Identifier: Apache-2.0 */
#include "server/series.h"

#include "base/clock.h"
#include "base/file.h"
#include "server/run_cache.h"
#include "store/block.h"
#include "store/run_decode.h"

#define POINTS_PER_POINT 4 /* a level is good enough with so many of its buckets a point */

struct series {
    uint32_t process;
    str name, kind;
    uint64_t count;
    int64_t last_ns;
    double last;
    struct block_bucket *buckets; /* in any order until sorted */
    uint32_t n_buckets, capacity;
    struct series *next;
};

struct gather {
    struct arena *a;
    struct run_decoder decoder; /* processes, and the records after the newest block */
    struct store_block *blocks;
    uint32_t n_blocks;
    struct series *all, **last;
};

/* Blocks and the batch up to which they go, of one moment: compaction may be at work. */
static bool read_blocks(struct gather *g, struct server *s, str run, str name, struct err *e)
{
    int64_t before, after;
    uint64_t n_after;
    do {
        if (!s->meta->ops->compacted(s->meta, run, &before, &n_after, e) ||
            !s->meta->ops->blocks(s->meta, run, name, g->a, &g->blocks, &g->n_blocks, e) ||
            !s->meta->ops->compacted(s->meta, run, &after, &n_after, e))
            return false;
    } while (before != after);
    g->decoder.batch = after;
    return true;
}

static bool gather_open(struct gather *g, struct server *s, str run, str name, struct arena *a,
                        struct err *e)
{
    int64_t newest = 0;
    *g = (struct gather){.a = a};
    g->last = &g->all;
    run_decoder_init(&g->decoder, s->meta, s->blob, run, RUN_DECODE_METRICS, 0);
    if (path_is_safe_name(run) && !s->meta->ops->last_batch(s->meta, run, &newest, e))
        return false;
    if (newest == 0)
        return err_set(e, ERR_NOT_FOUND, "no run '%.*s'", STR_ARG(run));
    return read_blocks(g, s, run, name, e) && run_decoder_processes(&g->decoder, e) &&
           run_decoder_more(&g->decoder, e);
}

static void gather_close(struct gather *g)
{
    run_decoder_release(&g->decoder);
}

static struct series *series_of(struct gather *g, uint32_t process, str name, str kind)
{
    for (struct series *s = g->all; s != NULL; s = s->next)
        if (s->process == process && str_eq(s->name, name) && str_eq(s->kind, kind))
            return s;
    struct series *s = ARENA_NEW(g->a, struct series);
    if (s == NULL)
        return NULL;
    *s = (struct series){.process = process, .name = arena_str(g->a, name), .kind = kind};
    *g->last = s;
    g->last = &s->next;
    return s;
}

static uint32_t process_of(const struct gather *g, str journal)
{
    for (uint32_t i = 0; i < g->decoder.n_journals; i++)
        if (str_eq(str_from(g->decoder.journals[i].info.id_hex), journal))
            return g->decoder.journals[i].process;
    return 0;
}

static bool add_bucket(struct gather *g, struct series *s, const struct block_bucket *b)
{
    if (!ARENA_PUSH(g->a, s->buckets, s->n_buckets, s->capacity))
        return false;
    s->buckets[s->n_buckets - 1] = *b;
    return true;
}

static bool is_metric(const struct record *r)
{
    return r->kind == RECORD_METRIC || r->kind == RECORD_SYSTEM;
}

static str kind_of(const struct record *r)
{
    return r->kind == RECORD_METRIC ? S("metric") : S("system");
}

/* ---- the list ---- */

static void note_last(struct series *s, uint64_t count, int64_t t_ns, double value)
{
    s->count += count;
    if (t_ns >= s->last_ns) {
        s->last_ns = t_ns;
        s->last = value;
    }
}

static bool list_blocks(struct gather *g, struct err *e)
{
    for (uint32_t i = 0; i < g->n_blocks; i++) {
        const struct store_block *b = &g->blocks[i];
        const struct arena_mark m = arena_mark(g->a);
        struct block_point *points;
        uint32_t n;
        if (!block_decode_points(b->points, g->a, &points, &n, e))
            return false;
        const struct block_point newest = points[n - 1];
        arena_reset(g->a, m);
        struct series *s = series_of(g, process_of(g, b->journal), b->name, b->kind);
        if (s == NULL)
            return arena_full(g->a, e);
        note_last(s, b->n_points, newest.t_ns, newest.value);
    }
    return true;
}

static bool list_records(struct gather *g, struct err *e)
{
    const struct record_set *set = &g->decoder.set;
    for (uint32_t i = 0; i < set->n_records; i++) {
        const struct record *r = &set->records[i];
        struct series *s = is_metric(r) ? series_of(g, r->process, r->text, kind_of(r)) : NULL;
        if (s != NULL)
            note_last(s, 1, r->wall_ns, r->value);
    }
    return !g->a->overflow || arena_full(g->a, e);
}

static str unit_of(str name)
{
    static const struct {
        str name, unit;
    } units[] = {
#define X(symbol, metric, unit, what) {STR_INIT(metric), STR_INIT(unit)},
#include "model/metrics.def"
#undef X
    };
    const ptrdiff_t brace = str_find_char(name, '{');
    const str bare = brace < 0 ? name : str_sub(name, 0, (size_t)brace);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (str_eq(units[i].name, bare))
            return units[i].unit;
    return (str){0};
}

/* Which process a series is of: with its journal no two series of a name are alike. */
static void put_process(const struct gather *g, const struct series *s, struct json *j)
{
    const struct record_process *p = &g->decoder.set.processes[s->process];
    if (p->rank >= 0)
        json_ki64(j, "rank", p->rank);
    else
        json_knull(j, "rank");
    json_kstr(j, "host", p->host);
    json_ku64(j, "pid", p->pid);
    if (p->attempt > 0)
        json_ku64(j, "attempt", p->attempt);
    else
        json_knull(j, "attempt");
    json_kstr(j, "journal", p->journal_id);
}

/* The attempts are the ledger's: the run's view has them, where it can be had. */
static void take_attempts(struct gather *g, struct server *s, str run)
{
    struct err ignored = {0};
    struct run_view *v = run_view_open(s->runs, run, &ignored);
    if (v == NULL)
        return;
    const struct record_set *all = &v->decoder.set;
    for (uint32_t i = 0; i < g->decoder.set.n_processes; i++) {
        struct record_process *p = &g->decoder.set.processes[i];
        for (uint32_t k = 0; k < all->n_processes; k++)
            if (str_eq(all->processes[k].journal_id, p->journal_id))
                p->attempt = all->processes[k].attempt;
    }
    run_view_close(v);
}

bool series_put_list(struct server *s, str run, struct arena *a, struct json *j, struct err *e)
{
    struct gather g;
    bool ok = gather_open(&g, s, run, (str){0}, a, e) && list_blocks(&g, e) && list_records(&g, e);
    if (ok)
        take_attempts(&g, s, run);
    json_object(j);
    json_key(j, "metrics");
    json_array(j);
    for (const struct series *x = g.all; ok && x != NULL; x = x->next) {
        json_object(j);
        json_kstr(j, "name", x->name);
        json_kstr(j, "unit", unit_of(x->name));
        json_kstr(j, "kind", x->kind);
        put_process(&g, x, j);
        json_ku64(j, "count", x->count);
        json_kf64(j, "last", x->last);
        json_end(j);
    }
    json_end(j);
    json_end(j);
    gather_close(&g);
    return ok;
}

/* ---- the points ---- */

static bool is_outside(const struct series_request *r, int64_t from_ns, int64_t to_ns)
{
    return (r->has_from && to_ns < r->from_ns) || (r->has_to && from_ns > r->to_ns);
}

static uint64_t points_in_blocks(const struct gather *g, const struct series_request *r)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->n_blocks; i++)
        if (!is_outside(r, g->blocks[i].from_ns, g->blocks[i].to_ns))
            n += g->blocks[i].n_points;
    return n;
}

/* 1, or the coarsest level that still has enough buckets. */
static uint32_t choose_factor(uint64_t n_points, uint32_t max_points)
{
    uint32_t factor = 1;
    for (size_t i = 0; i < BLOCK_LEVELS; i++)
        if (n_points / block_factors[i] >= (uint64_t)max_points * POINTS_PER_POINT)
            factor = block_factors[i];
    return factor;
}

static bool add_points(struct gather *g, struct series *s, const struct store_block *b,
                       const struct series_request *r, struct err *e)
{
    struct block_point *points;
    uint32_t n;
    if (!block_decode_points(b->points, g->a, &points, &n, e))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct block_bucket one;
        if (is_outside(r, points[i].t_ns, points[i].t_ns))
            continue;
        block_bucket_begin(&one);
        block_bucket_add(&one, &points[i]);
        if (!add_bucket(g, s, &one))
            return arena_full(g->a, e);
    }
    return true;
}

static bool add_blocks(struct gather *g, const struct series_request *r, struct err *e)
{
    const uint32_t factor = choose_factor(points_in_blocks(g, r), r->max_points);
    for (uint32_t i = 0; i < g->n_blocks; i++) {
        const struct store_block *b = &g->blocks[i];
        if (is_outside(r, b->from_ns, b->to_ns))
            continue;
        struct series *s = series_of(g, process_of(g, b->journal), b->name, b->kind);
        if (s == NULL)
            return arena_full(g->a, e);
        if (factor == 1) {
            if (!add_points(g, s, b, r, e))
                return false;
            continue;
        }
        struct block_bucket *buckets;
        uint32_t n;
        if (!block_decode_level(b->levels, factor, g->a, &buckets, &n, e))
            return false;
        for (uint32_t k = 0; k < n; k++)
            if (!is_outside(r, buckets[k].from_ns, buckets[k].to_ns) &&
                !add_bucket(g, s, &buckets[k]))
                return arena_full(g->a, e);
    }
    return true;
}

static bool add_records(struct gather *g, const struct series_request *r, struct err *e)
{
    const struct record_set *set = &g->decoder.set;
    for (uint32_t i = 0; i < set->n_records; i++) {
        const struct record *rec = &set->records[i];
        if (!is_metric(rec) || !str_eq(rec->text, r->name))
            continue;
        struct series *s = series_of(g, rec->process, rec->text, kind_of(rec));
        if (s == NULL)
            return arena_full(g->a, e);
        if (is_outside(r, rec->wall_ns, rec->wall_ns))
            continue;
        const struct block_point p = {rec->wall_ns, rec->value, rec->step};
        struct block_bucket one;
        block_bucket_begin(&one);
        block_bucket_add(&one, &p);
        if (!add_bucket(g, s, &one))
            return arena_full(g->a, e);
    }
    return true;
}

static int by_time(const void *left, const void *right)
{
    const struct block_bucket *a = left, *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* The span of all series, so that their points stand at the same times. */
static void find_span(const struct gather *g, int64_t *from_ns, int64_t *to_ns)
{
    bool any = false;
    *from_ns = *to_ns = 0;
    for (const struct series *s = g->all; s != NULL; s = s->next) {
        for (uint32_t i = 0; i < s->n_buckets; i++) {
            const struct block_bucket *b = &s->buckets[i];
            if (!any || b->from_ns < *from_ns)
                *from_ns = b->from_ns;
            if (!any || b->to_ns > *to_ns)
                *to_ns = b->to_ns;
            any = true;
        }
    }
}

/* Merges in place until there are at most max_points: all that begin in one slot of time. */
static void thin(struct series *s, int64_t from_ns, int64_t slot_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_buckets; i++) {
        const struct block_bucket b = s->buckets[i];
        if (kept > 0 &&
            (b.from_ns - from_ns) / slot_ns == (s->buckets[kept - 1].from_ns - from_ns) / slot_ns)
            block_bucket_merge(&s->buckets[kept - 1], &b);
        else
            s->buckets[kept++] = b;
    }
    s->n_buckets = kept;
}

static void put_point(const struct block_bucket *b, struct json *j)
{
    json_array(j);
    json_strf(j, "%lld", (long long)b->from_ns); /* text: docs/formats/api.md */
    json_f64(j, b->min);
    json_f64(j, b->n_finite > 0 ? b->sum / (double)b->n_finite : b->min);
    json_f64(j, b->max);
    if (b->step >= 0)
        json_i64(j, b->step);
    else
        json_null(j);
    json_u64(j, b->count);
    json_end(j);
}

static void put_series(struct gather *g, const struct series_request *r, struct json *j)
{
    int64_t from_ns, to_ns;
    find_span(g, &from_ns, &to_ns);
    const int64_t slot_ns = (to_ns - from_ns) / r->max_points + 1;
    bool thinned = false;
    json_key(j, "series");
    json_array(j);
    for (struct series *s = g->all; s != NULL; s = s->next) {
        if (s->n_buckets > 1)
            qsort(s->buckets, s->n_buckets, sizeof *s->buckets, by_time);
        if (s->n_buckets > r->max_points) {
            thin(s, from_ns, slot_ns);
            thinned = true;
        }
        json_object(j);
        put_process(g, s, j);
        json_key(j, "points");
        json_array(j);
        for (uint32_t i = 0; i < s->n_buckets; i++)
            put_point(&s->buckets[i], j);
        json_end(j);
        json_end(j);
    }
    json_end(j);
    json_key(j, "seconds_per_point");
    if (thinned)
        json_fixed(j, slot_ns, 9);
    else
        json_null(j);
}

bool series_put_points(struct server *s, str run, const struct series_request *r, struct arena *a,
                       struct json *j, struct err *e)
{
    struct gather g;
    bool ok =
        gather_open(&g, s, run, r->name, a, e) && add_blocks(&g, r, e) && add_records(&g, r, e);
    if (ok && g.all == NULL)
        ok = err_set(e, ERR_NOT_FOUND, "no process of this run has a metric '%.*s'",
                     STR_ARG(r->name));
    json_object(j);
    if (ok) {
        take_attempts(&g, s, run);
        json_kstr(j, "name", r->name);
        json_kstr(j, "unit", unit_of(r->name));
        json_kcstr(j, "x", "time");
        put_series(&g, r, j);
    }
    json_end(j);
    gather_close(&g);
    return ok;
}
