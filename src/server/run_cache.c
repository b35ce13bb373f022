/* SPDX-License-Identifier: Apache-2.0 */
#include "server/run_cache.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/map.h"
#include "goodput/ledger_build.h"
#include "journal/presence.h"
#include "journal/reader.h"

struct run_cache {
    struct server *server;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint64_t n_changes, clock;
    struct run_view *views;
};

struct run_cache *run_cache_open(struct server *s)
{
    struct run_cache *c = map_alloc(1, sizeof *c);
    c->server = s;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    return c;
}

static void view_free(struct run_view *v)
{
    run_decoder_release(&v->decoder);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

void run_cache_close(struct run_cache *c)
{
    if (c == NULL)
        return;
    for (struct run_view *v = c->views, *next; v != NULL; v = next) {
        next = v->next;
        view_free(v);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
}

void run_cache_changed(struct run_cache *c, str run)
{
    (void)run;
    pthread_mutex_lock(&c->lock);
    c->n_changes++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void run_cache_wait(struct run_cache *c, uint64_t *changes, unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(ms % 1000) * NS_PER_MS;
    until.tv_sec += ms / 1000 + until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    pthread_mutex_lock(&c->lock);
    while (*changes == c->n_changes)
        if (pthread_cond_timedwait(&c->changed, &c->lock, &until) != 0)
            break;
    *changes = c->n_changes;
    pthread_mutex_unlock(&c->lock);
}

/* "Now" of a run that is going: its newest record, whoever wrote it. */
static int64_t newest_record(const struct record_set *set)
{
    int64_t newest = 0;
    for (uint32_t i = 0; i < set->n_processes; i++)
        if (set->processes[i].last_ns > newest)
            newest = set->processes[i].last_ns;
    return newest;
}

static bool build_ledger(struct run_view *v, struct err *e)
{
    record_set_sort(&v->decoder.set);
    v->decoder.set.query_ns = newest_record(&v->decoder.set);
    v->n_notes = v->decoder.set.n_notes;
    v->notes = ARENA_ARRAY(&v->decoder.set.arena, struct note, v->n_notes + 1);
    if (v->notes == NULL)
        return arena_full(&v->decoder.set.arena, e);
    if (v->n_notes > 0)
        memcpy(v->notes, v->decoder.set.notes, v->n_notes * sizeof *v->notes);
    v->mark = arena_mark(&v->decoder.set.arena);
    v->is_marked = true;
    v->has_ledger = ledger_build(&v->decoder.set, &v->ledger, &v->why_no_ledger);
    if (!v->has_ledger && v->why_no_ledger.code == ERR_NONE)
        err_set(&v->why_no_ledger, ERR_INTERNAL, "the ledger failed without a reason");
    return true;
}

bool run_view_load(struct run_view *v, const char *dir, str run, struct err *e)
{
    *v = (struct run_view){0};
    snprintf(v->run, sizeof v->run, "%.*s", STR_ARG(run));
    record_set_init(&v->decoder.set, LIMIT_ARENA_RUN_BYTES);
    const struct record_set *set = &v->decoder.set;
    if (journal_decode_run(&v->decoder.set, dir, e) &&
        (set->n_processes > 0 || set->n_notes == 0 ||
         err_set(e, ERR_PARSE, "%.*s", STR_ARG(set->notes[0].message))) &&
        build_ledger(v, e))
        return true;
    run_view_unload(v);
    return err_wrap(e, "cannot read run '%s'", v->run);
}

void run_view_unload(struct run_view *v)
{
    record_set_release(&v->decoder.set);
}

static void look_for_processes(struct run_view *v)
{
    for (uint32_t i = 0; i < v->decoder.set.n_processes; i++)
        if (!v->decoder.set.processes[i].ended)
            presence_look_late(&v->decoder.set.processes[i]);
}

static bool refresh(struct run_view *v, struct err *e)
{
    struct store_meta *m = v->cache->server->meta;
    int64_t newest;
    if (!m->ops->last_batch(m, str_from(v->run), &newest, e))
        return false;
    if (newest == 0)
        return err_set(e, ERR_NOT_FOUND, "no run '%s'", v->run);
    if (newest <= v->decoder.batch)
        return true;
    if (v->is_marked) {
        arena_reset(&v->decoder.set.arena, v->mark);
        v->decoder.set.notes = v->notes;
        v->decoder.set.n_notes = v->n_notes;
        v->decoder.set.notes_capacity = v->n_notes;
        v->is_marked = v->has_ledger = false;
        v->ledger = (struct ledger){0};
    }
    return run_decoder_more(&v->decoder, e) && run_decoder_processes(&v->decoder, e) &&
           build_ledger(v, e);
}

static struct run_view *find_or_add(struct run_cache *c, str run)
{
    for (struct run_view *v = c->views; v != NULL; v = v->next)
        if (str_eq(str_from(v->run), run))
            return v;
    struct run_view *v = map_alloc(1, sizeof *v);
    snprintf(v->run, sizeof v->run, "%.*s", STR_ARG(run));
    v->cache = c;
    run_decoder_init(&v->decoder, c->server->meta, c->server->blob, run, RUN_DECODE_ALL, 0);
    pthread_mutex_init(&v->lock, NULL);
    v->next = c->views;
    c->views = v;
    return v;
}

/* With the cache's lock: frees the view that was not used for longest, as often as needed, and
 * those that hold nothing. */
static void evict(struct run_cache *c)
{
    for (;;) {
        uint64_t bytes = 0;
        struct run_view **oldest = NULL;
        bool is_empty = false;
        for (struct run_view **at = &c->views; *at != NULL && !is_empty; at = &(*at)->next) {
            if ((*at)->n_users > 0)
                continue;
            is_empty = (*at)->decoder.batch == 0;
            bytes += (*at)->decoder.set.arena.used_bytes;
            if (is_empty || oldest == NULL || (*at)->used_at < (*oldest)->used_at)
                oldest = at;
        }
        if (oldest == NULL || (!is_empty && bytes <= RUN_CACHE_BYTES))
            return;
        struct run_view *gone = *oldest;
        *oldest = gone->next;
        view_free(gone);
    }
}

/* With the view's lock held. A view that failed is emptied: the next one begins anew. */
static void forget(struct run_view *v)
{
    struct server *s = v->cache->server;
    run_decoder_release(&v->decoder);
    run_decoder_init(&v->decoder, s->meta, s->blob, str_from(v->run), RUN_DECODE_ALL, 0);
    v->is_marked = v->has_ledger = false;
}

struct run_view *run_view_open(struct run_cache *c, str run, struct err *e)
{
    if (!path_is_safe_name(run)) {
        err_set(e, ERR_NOT_FOUND, "no run '%.*s'", STR_ARG(run));
        return NULL;
    }
    pthread_mutex_lock(&c->lock);
    struct run_view *v = find_or_add(c, run);
    v->n_users++;
    v->used_at = ++c->clock;
    pthread_mutex_unlock(&c->lock);
    pthread_mutex_lock(&v->lock);
    if (refresh(v, e)) {
        look_for_processes(v);
        return v;
    }
    forget(v);
    run_view_close(v);
    return NULL;
}

void run_view_close(struct run_view *v)
{
    struct run_cache *c = v->cache;
    pthread_mutex_unlock(&v->lock);
    pthread_mutex_lock(&c->lock);
    v->n_users--;
    evict(c);
    pthread_mutex_unlock(&c->lock);
}
