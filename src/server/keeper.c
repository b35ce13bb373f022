/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "keeper"
#include "server/keeper.h"

#include "jobs/trace_pool.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "jobs/compact.h"
#include "server/run_cache.h"
#include "server/run_summary.h"

#define WAIT_MS 1000
#define BREATH_NS (200 * NS_PER_MS) /* many changes are looked at together */
#define COMPACT_BATCHES 256 /* of a run that goes on; one that has ended is compacted whole */
#define REST_FACTOR 10      /* a summary that took 50 ms is not made again for 500 ms */
#define LIVE_EVERY_NS (5 * NS_PER_S) /* a run that says nothing is looked at so often */
#define STREAM_METRICS_MAX 500       /* metric events at once; more are left to the charts */

struct subscriber {
    struct http_stream *stream;
    char run[256];
    int64_t batch;
    struct subscriber *next;
};

struct timing { /* of a run's summary */
    char run[256];
    int64_t batch;    /* that it knows */
    uint64_t made_ns; /* monotonic */
    uint64_t not_before_ns;
    bool is_compacted; /* it has ended and everything is in blocks */
    struct timing *next;
};

struct keeper {
    struct server *server;
    pthread_t thread;
    pthread_mutex_t lock; /* guards subscribers and closing */
    struct subscriber *subscribers;
    bool closing;
    struct timing *timings; /* of the thread alone */
};

static struct timing *timing_of(struct keeper *k, str run)
{
    for (struct timing *t = k->timings; t != NULL; t = t->next)
        if (str_eq(str_from(t->run), run))
            return t;
    struct timing *t = map_alloc(1, sizeof *t);
    snprintf(t->run, sizeof t->run, "%.*s", STR_ARG(run));
    t->next = k->timings;
    k->timings = t;
    return t;
}

/* Puts the run object into the store; false when it cannot be made now. */
static bool make_summary(struct keeper *k, str run, struct arena *a, struct store_run *row,
                         struct err *e)
{
    struct server *s = k->server;
    struct store_session *sessions;
    struct run_summary sum;
    struct buf text;
    struct json j;
    uint32_t n;
    if (!s->meta->ops->sessions(s->meta, run, 0, (str){0}, (uint32_t)LIMIT_HTTP_PAGE_SIZE, a,
                                &sessions, &n, e))
        return false;
    struct run_view *v = run_view_open(s->runs, run, e);
    if (v == NULL)
        return false;
    buf_init(&text, LIMIT_ARENA_REQUEST_BYTES);
    json_init_buf(&j, &text);
    run_summary_make(v, clock_wall_ns(), a, &sum);
    run_summary_put(v, &sum, n, (str){0}, RUN_BRIEF, a, &j);
    *row = (struct store_run){.run = run,
                              .name = sum.name,
                              .group = sum.group,
                              .phase = str_from(sum.phase),
                              .reason = str_from(sum.reason),
                              .health = str_from(sum.health),
                              .started_ns = sum.started_ns,
                              .ended_ns = sum.ended_ns,
                              .last_ns = sum.last_ns,
                              .batch = v->decoder.batch};
    run_view_close(v);
    bool ok = json_done(&j, e) && buf_ok(&text, "the summary", e);
    row->summary = arena_str(a, buf_str(&text));
    buf_clear(&text);
    json_init_buf(&j, &text);
    run_summary_put_details(&sum, &j);
    ok = ok && json_done(&j, e) && buf_ok(&text, "configuration and labels", e);
    row->details = arena_str(a, buf_str(&text));
    buf_release(&text);
    return ok && s->meta->ops->run_put(s->meta, row, e);
}

static void compact(struct keeper *k, struct timing *t, bool has_ended)
{
    struct server *s = k->server;
    struct err e = {0};
    int64_t batch;
    uint64_t n_after;
    uint32_t n_blocks;
    if (!s->meta->ops->compacted(s->meta, str_from(t->run), &batch, &n_after, &e) ||
        (n_after < COMPACT_BATCHES && !(has_ended && n_after > 0))) {
        t->is_compacted = has_ended && e.code == ERR_NONE;
        return;
    }
    if (compact_run(s->meta, s->blob, str_from(t->run), &n_blocks, &e))
        t->is_compacted = has_ended;
    else
        log_warn("cannot compact run '%s': %s", t->run, e.msg);
}

static void look_after(struct keeper *k, str run)
{
    struct server *s = k->server;
    struct timing *t = timing_of(k, run);
    struct arena a;
    struct err e = {0};
    struct store_run row;
    int64_t newest;
    const uint64_t start = clock_monotonic_ns();
    if (start < t->not_before_ns || !s->meta->ops->last_batch(s->meta, run, &newest, &e) ||
        (newest == t->batch && start - t->made_ns < (uint64_t)LIVE_EVERY_NS))
        return;
    arena_init(&a, "summary", LIMIT_ARENA_REQUEST_BYTES);
    if (make_summary(k, run, &a, &row, &e)) {
        t->batch = row.batch;
        compact(k, t, !str_eq(row.phase, S("ACTIVE")));
    } else {
        log_warn("cannot summarise run '%.*s': %s", STR_ARG(run), e.msg);
        t->batch = newest;
    }
    arena_release(&a);
    t->made_ns = clock_monotonic_ns();
    t->not_before_ns = t->made_ns + (t->made_ns - start) * REST_FACTOR;
}

static void look_after_all(struct keeper *k)
{
    struct arena a;
    struct err e = {0};
    str *runs;
    uint32_t n;
    arena_init(&a, "runs", 0);
    if (k->server->meta->ops->runs_stale(k->server->meta, &a, &runs, &n, &e)) {
        for (uint32_t i = 0; i < n; i++)
            look_after(k, runs[i]);
    } else {
        log_warn("cannot look after the runs: %s", e.msg);
    }
    arena_release(&a);
}

/* ---- streams ---- */

static bool add_event(struct buf *out, const char *event, int64_t id, const struct buf *data)
{
    return buf_addf(out, "event: %s\nid: %lld\ndata: ", event, (long long)id) &&
           buf_add_str(out, buf_str(data)) && buf_add_str(out, S("\n\n"));
}

static void add_metric(struct buf *out, const struct record *r, int64_t id, struct buf *data)
{
    struct json j;
    struct err ignored = {0};
    buf_clear(data);
    json_init_buf(&j, data);
    json_object(&j);
    json_kstr(&j, "name", r->text);
    json_key(&j, "t_ns");
    json_strf(&j, "%lld", (long long)r->wall_ns); /* text: a JavaScript number cannot hold it */
    json_kf64(&j, "value", r->value);
    json_ki64(&j, "step", r->step);
    json_end(&j);
    if (json_done(&j, &ignored))
        add_event(out, "metric", id, data);
}

/* The newest ones, the oldest of them first. */
static void add_metrics(struct buf *out, const struct run_decoder *d, struct buf *data)
{
    uint32_t first = d->set.n_records, n = 0;
    while (first > 0 && n < STREAM_METRICS_MAX)
        n += d->set.records[--first].kind == RECORD_METRIC;
    for (uint32_t i = first; i < d->set.n_records; i++)
        if (d->set.records[i].kind == RECORD_METRIC)
            add_metric(out, &d->set.records[i], d->batch, data);
}

static void add_ledger(struct buf *out, const struct run_view *v, struct buf *data)
{
    struct json j;
    struct err ignored = {0};
    buf_clear(data);
    json_init_buf(&j, data);
    json_object(&j);
    json_key(&j, "total_elapsed_s");
    json_fixed(&j, v->ledger.total_ns, 9);
    json_key(&j, "ledger");
    json_array(&j);
    for (uint32_t i = 0; i < v->ledger.n_totals; i++) {
        json_object(&j);
        json_kstr(&j, "category", v->ledger.totals[i].word);
        json_key(&j, "seconds");
        json_fixed(&j, v->ledger.totals[i].total_ns, 9);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    if (json_done(&j, &ignored))
        add_event(out, "ledger", v->decoder.batch, data);
}

static void add_run(struct buf *out, const struct run_view *v, uint32_t n_sessions,
                    struct buf *data)
{
    struct run_summary sum;
    struct arena a;
    struct json j;
    struct err ignored = {0};
    arena_init(&a, "stream", LIMIT_ARENA_REQUEST_BYTES);
    buf_clear(data);
    json_init_buf(&j, data);
    run_summary_make(v, clock_wall_ns(), &a, &sum);
    run_summary_put(v, &sum, n_sessions, (str){0}, RUN_BRIEF, &a, &j);
    if (json_done(&j, &ignored))
        add_event(out, "run", v->decoder.batch, data);
    arena_release(&a);
}

static bool feed_run(struct server *s, struct subscriber *x, struct buf *out, struct buf *data,
                     struct err *e)
{
    struct store_session *sessions;
    struct arena a;
    uint32_t n = 0;
    arena_init(&a, "sessions", 0);
    bool ok = s->meta->ops->sessions(s->meta, str_from(x->run), 0, (str){0},
                                     (uint32_t)LIMIT_HTTP_PAGE_SIZE, &a, &sessions, &n, e);
    arena_release(&a);
    struct run_view *v = ok ? run_view_open(s->runs, str_from(x->run), e) : NULL;
    if (v == NULL)
        return false;
    add_run(out, v, n, data);
    if (v->has_ledger)
        add_ledger(out, v, data);
    run_view_close(v);
    return true;
}

/* False when the client is gone. */
static bool feed(struct server *s, struct subscriber *x)
{
    struct err e = {0};
    struct run_decoder d;
    struct buf out, data;
    int64_t newest;
    if (!s->meta->ops->last_batch(s->meta, str_from(x->run), &newest, &e) || newest == x->batch)
        return true;
    buf_init(&out, LIMIT_HTTP_BODY_BYTES);
    buf_init(&data, LIMIT_HTTP_BODY_BYTES);
    run_decoder_init(&d, s->meta, s->blob, str_from(x->run), RUN_DECODE_METRICS, x->batch);
    bool alive = true;
    if (run_decoder_more(&d, &e)) {
        add_metrics(&out, &d, &data);
        if (feed_run(s, x, &out, &data, &e))
            x->batch = d.batch;
        alive = http_stream_send(x->stream, buf_str(&out));
    }
    run_decoder_release(&d);
    buf_release(&out);
    buf_release(&data);
    return alive;
}

static void feed_all(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    struct subscriber *list = k->subscribers, *keep = NULL;
    k->subscribers = NULL;
    pthread_mutex_unlock(&k->lock);
    for (struct subscriber *x = list, *next; x != NULL; x = next) {
        next = x->next;
        if (feed(k->server, x) && http_stream_is_open(x->stream)) {
            x->next = keep;
            keep = x;
        } else {
            http_stream_drop(x->stream);
            free(x);
        }
    }
    pthread_mutex_lock(&k->lock);
    struct subscriber **last = &k->subscribers;
    while (*last != NULL)
        last = &(*last)->next;
    *last = keep;
    pthread_mutex_unlock(&k->lock);
}

void keeper_subscribe(struct keeper *k, struct http_stream *st, str run, int64_t after)
{
    struct subscriber *x = map_alloc(1, sizeof *x);
    x->stream = st;
    x->batch = after;
    snprintf(x->run, sizeof x->run, "%.*s", STR_ARG(run));
    pthread_mutex_lock(&k->lock);
    x->next = k->subscribers;
    k->subscribers = x;
    pthread_mutex_unlock(&k->lock);
    run_cache_changed(k->server->runs, run);
}

static bool is_closing(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    const bool closing = k->closing;
    pthread_mutex_unlock(&k->lock);
    return closing;
}

static void *keep(void *arg)
{
    struct keeper *k = arg;
    uint64_t changes = 0;
    const struct timespec breath = {.tv_nsec = BREATH_NS};
    while (!is_closing(k)) {
        look_after_all(k);
        feed_all(k);
        trace_pool_sweep(k->server->traces);
        run_cache_wait(k->server->runs, &changes, WAIT_MS);
        nanosleep(&breath, NULL);
    }
    return NULL;
}

struct keeper *keeper_open(struct server *s)
{
    struct keeper *k = map_alloc(1, sizeof *k);
    k->server = s;
    pthread_mutex_init(&k->lock, NULL);
    must(pthread_create(&k->thread, NULL, keep, k) == 0);
    return k;
}

void keeper_close(struct keeper *k)
{
    if (k == NULL)
        return;
    pthread_mutex_lock(&k->lock);
    k->closing = true;
    pthread_mutex_unlock(&k->lock);
    run_cache_changed(k->server->runs, (str){0});
    pthread_join(k->thread, NULL);
    for (struct subscriber *x = k->subscribers, *next; x != NULL; x = next) {
        next = x->next;
        http_stream_drop(x->stream);
        free(x);
    }
    for (struct timing *t = k->timings, *next; t != NULL; t = next) {
        next = t->next;
        free(t);
    }
    pthread_mutex_destroy(&k->lock);
    free(k);
}
