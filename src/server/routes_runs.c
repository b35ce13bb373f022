/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: listing, one run, its ledger, steps, hosts, events, output. */

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "goodput/print.h"
#include "server/doc.h"
#include "server/run_cache.h"
#include "server/run_filter.h"
#include "server/run_summary.h"
#include "server/series.h"
#include "server/server_inside.h"

#define RUNS_PAGE 100
#define FILTER_BATCH 500 /* runs that a filter looks at in one query */
#define OUTPUT_BYTES LIMIT_OUTPUT_TAIL_BYTES

/* A run that nobody has looked at yet: what its row says, the rest unknown. */
static void put_bare_run(struct json *j, const struct store_run *r)
{
    static const char *const unknown[] = {
        "ended",   "wall_s", "goodput_percent", "ledger",   "step_time_p50_s", "attempts",
        "verdict", "step",   "hosts",           "sessions", "framework",       "live"};
    json_object(j);
    json_kstr(j, "run", r->run);
    json_kstr(j, "name", r->name.n > 0 ? r->name : r->run);
    json_kstr_or_null(j, "group", r->group);
    json_kstr(j, "phase", r->phase);
    json_kstr_or_null(j, "reason", r->reason);
    json_kstr(j, "health", r->health);
    json_ktime(j, "started", r->started_ns);
    json_ktime(j, "last", r->last_ns);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        json_knull(j, unknown[i]);
    json_end(j);
}

/* What a page holds so far, and the last run that was looked at: where the next page begins. */
struct page {
    uint32_t wanted, n_shown, n_seen;
    int64_t last_ns;
    char last[256];
    bool is_more;
};

static str run_text(const struct store_run *r, struct buf *bare)
{
    struct json j;
    struct err ignored = {0};
    if (r->summary.n > 0)
        return r->summary;
    buf_clear(bare);
    json_init_buf(&j, bare);
    put_bare_run(&j, r);
    return json_done(&j, &ignored) ? buf_str(bare) : S("null");
}

/* Puts those that fit (f NULL: all) until the page is full and one more fits. */
static void put_fitting(struct page *page, const struct filter *f, const struct store_run *runs,
                        uint32_t n, struct json *j)
{
    struct buf bare;
    buf_init(&bare, LIMIT_ARENA_REQUEST_BYTES);
    for (uint32_t i = 0; i < n && !page->is_more; i++) {
        const str text = run_text(&runs[i], &bare);
        const bool fits = f == NULL || run_filter_fits(f, text, runs[i].details);
        page->is_more = fits && page->n_shown == page->wanted;
        if (page->is_more)
            break;
        if (fits)
            json_raw(j, text);
        page->n_shown += fits;
        page->n_seen++;
        page->last_ns = runs[i].started_ns;
        snprintf(page->last, sizeof page->last, "%.*s", STR_ARG(runs[i].run));
    }
    buf_release(&bare);
}

static bool put_runs(struct server *s, struct store_run_query *q, const struct filter *f,
                     struct page *page, struct json *j, struct err *e)
{
    bool ok = true, is_last = false;
    q->limit = f == NULL ? page->wanted + 1 : FILTER_BATCH;
    while (ok && !page->is_more && !is_last) {
        struct arena a;
        struct store_run *runs;
        uint32_t n = 0;
        arena_init(&a, "runs", LIMIT_ARENA_REQUEST_BYTES);
        ok = s->meta->ops->runs(s->meta, q, &a, &runs, &n, e);
        if (ok)
            put_fitting(page, f, runs, n, j);
        arena_release(&a);
        is_last = n < q->limit;
        q->before_started_ns = page->last_ns;
        q->before_run = str_from(page->last);
        page->is_more |=
            !is_last && page->n_seen >= LIMIT_FILTER_SCAN; /* a short page, not a long wait */
    }
    return ok;
}

bool route_runs(struct server *s, struct http_request *req, struct http_response *resp,
                struct err *e)
{
    struct store_run_query q = {.text = http_query(req, "q"), .state = http_query(req, "state")};
    const str text = http_query(req, "filter");
    struct page page = {0};
    const struct filter *f = NULL;
    struct json j;
    if (!page_size(req, RUNS_PAGE, &page.wanted, e) ||
        !page_token_take(req, &q.before_started_ns, &q.before_run, e))
        return false;
    if (text.n > 0 && (f = run_filter_parse(text, clock_wall_ns(), &req->arena, e)) == NULL)
        return false;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "items");
    json_array(&j);
    if (!put_runs(s, &q, f, &page, &j, e))
        return false;
    return reply_page(&j, page.last_ns, page.is_more ? str_from(page.last) : (str){0}, resp, e);
}

bool route_run(struct server *s, struct http_request *req, struct http_response *resp,
               struct err *e)
{
    struct store_session *sessions;
    struct run_summary sum;
    uint32_t n;
    if (!s->meta->ops->sessions(s->meta, req->params[0], 0, (str){0},
                                (uint32_t)LIMIT_HTTP_PAGE_SIZE, &req->arena, &sessions, &n, e))
        return false;
    struct run_view *v = run_view_open(s->runs, req->params[0], e);
    if (v == NULL)
        return false;
    struct json j;
    reply_begin(&j, resp);
    run_summary_make(v, clock_wall_ns(), &req->arena, &sum);
    run_summary_put(v, &sum, n, (str){0}, RUN_FULL, &req->arena, &j);
    run_view_close(v);
    return reply_json(&j, resp, e);
}

static void put_wall(struct json *j, const char *key, int64_t wall_ns)
{
    json_key(j, key);
    json_strf(j, "%lld", (long long)wall_ns); /* text: a JavaScript number cannot hold it */
}

static void put_step_or_null(struct json *j, const char *key, int64_t step)
{
    if (step < 0)
        json_knull(j, key);
    else
        json_ki64(j, key, step);
}

static void put_segments(const struct ledger *l, const struct ledger_view *view, struct json *j)
{
    json_array(j);
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *g = &l->segments[i];
        if (g->to_ns <= view->from_ns || g->from_ns >= view->to_ns)
            continue;
        json_object(j);
        put_wall(j, "from_ns", g->from_ns < view->from_ns ? view->from_ns : g->from_ns);
        put_wall(j, "to_ns", g->to_ns > view->to_ns ? view->to_ns : g->to_ns);
        json_key(j, "category");
        if (g->detail.n > 0)
            json_strf(j, "%s:%.*s", ledger_category_word(g->category), STR_ARG(g->detail));
        else
            json_cstr(j, ledger_category_word(g->category));
        put_step_or_null(j, "step", g->step);
        json_ku64(j, "attempt", g->attempt);
        json_end(j);
    }
    json_end(j);
}

static void put_attempts(const struct ledger *l, struct json *j)
{
    json_array(j);
    for (uint32_t i = 0; i < l->n_attempts; i++) {
        const struct ledger_attempt *a = &l->attempts[i];
        const bool ended = a->reason.n > 0 || a->code >= 0 || a->signal > 0;
        json_object(j);
        json_ku64(j, "number", a->number);
        put_wall(j, "from_ns", a->from_ns);
        put_wall(j, "to_ns", a->to_ns);
        put_step_or_null(j, "first_step", a->first_step);
        put_step_or_null(j, "last_step", a->last_step);
        json_kstr_or_null(j, "reason", a->reason);
        if (a->code >= 0)
            json_ki64(j, "code", a->code);
        else
            json_knull(j, "code");
        if (ended)
            json_ki64(j, "signal", a->signal);
        else
            json_knull(j, "signal");
        json_end(j);
    }
    json_end(j);
}

/* The document of `tacho goodput --json` with two more members before its last brace. */
static bool put_ledger(const struct run_view *v, const struct ledger_view *view, struct arena *a,
                       struct buf *out, struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    if (!ledger_print_json(&v->ledger, &v->decoder.set, view, a, &j, e) || !json_done(&j, e))
        return false;
    const str text = str_trim(buf_str(out));
    must(str_ends(text, S("}")));
    out->n = text.n - 1;
    buf_add_str(out, S(",\"segments\":"));
    json_init_buf(&j, out);
    put_segments(&v->ledger, view, &j);
    if (!json_done(&j, e))
        return false;
    buf_add_str(out, S(",\"attempts_list\":"));
    json_init_buf(&j, out);
    put_attempts(&v->ledger, &j);
    return json_done(&j, e) && buf_add_char(out, '}') && buf_ok(out, "the ledger", e);
}

static struct run_view *open_with_ledger(struct server *s, str run, struct err *e)
{
    struct run_view *v = run_view_open(s->runs, run, e);
    if (v == NULL || v->has_ledger)
        return v;
    *e = v->why_no_ledger;
    run_view_close(v);
    return NULL;
}

bool route_ledger(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct run_view *v = open_with_ledger(s, req->params[0], e);
    if (v == NULL)
        return false;
    struct ledger_view view = ledger_view_all(&v->ledger);
    int64_t from = view.from_ns, to = view.to_ns;
    bool ok = query_time(req, "from", &from, e) && query_time(req, "to", &to, e);
    if (ok) {
        view.from_ns = from > view.from_ns ? from : view.from_ns;
        view.to_ns = to < view.to_ns ? to : view.to_ns;
        ok = view.from_ns < view.to_ns || v->ledger.from_ns == v->ledger.to_ns ||
             err_set(e, ERR_USAGE, "nothing of the run lies between from and to");
    }
    resp->content_type = "application/json";
    ok = ok && put_ledger(v, &view, &req->arena, &resp->body, e);
    run_view_close(v);
    return ok;
}

bool route_steps(struct server *s, struct http_request *req, struct http_response *resp,
                 struct err *e)
{
    struct run_view *v = open_with_ledger(s, req->params[0], e);
    if (v == NULL)
        return false;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "steps");
    json_array(&j);
    for (uint32_t i = 0; i < v->ledger.n_steps; i++) {
        const struct ledger_step *t = &v->ledger.steps[i];
        json_object(&j);
        json_ki64(&j, "step", t->step);
        put_wall(&j, "from_ns", t->from_ns);
        json_ki64(&j, "duration_ns", t->dur_ns);
        json_ku64(&j, "attempt", t->attempt);
        json_kbool(&j, "wasted", t->wasted);
        json_kbool(&j, "startup", t->startup);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    run_view_close(v);
    return reply_json(&j, resp, e);
}

/* ---- hosts ---- */

static void put_process(struct json *j, const struct record_process *p)
{
    json_object(j);
    json_ku64(j, "pid", p->pid);
    if (p->rank >= 0)
        json_ki64(j, "rank", p->rank);
    else
        json_knull(j, "rank");
    json_kbool(j, "runner", p->runner);
    json_kstr(j, "journal", p->journal_id);
    put_wall(j, "start_ns", p->start_ns);
    put_wall(j, "last_ns", p->last_ns);
    json_kbool(j, "ended", p->ended);
    json_ku64(j, "records", p->n_records);
    json_ku64(j, "lost_records", p->n_lost);
    json_end(j);
}

static void put_facts(struct json *j, const struct record_set *set, str host, struct arena *a)
{
    json_key(j, "facts");
    for (uint32_t i = 0; i < set->n_records; i++) {
        const struct record *r = &set->records[i];
        struct err ignored = {0};
        if (r->kind != RECORD_HOST || !str_eq(set->processes[r->process].host, host))
            continue;
        struct doc *d = doc_parse(r->text, &ignored);
        const str text = doc_dump(d, a);
        doc_free(d);
        if (text.n == 0)
            continue;
        json_raw(j, text);
        return;
    }
    json_object(j);
    json_end(j);
}

static void put_host(struct json *j, const struct record_set *set, str host, struct arena *a)
{
    json_object(j);
    json_kstr(j, "host", host);
    json_key(j, "ranks");
    json_array(j);
    for (uint32_t i = 0; i < set->n_processes; i++) {
        bool again = !str_eq(set->processes[i].host, host) || set->processes[i].rank < 0;
        for (uint32_t k = 0; k < i && !again; k++)
            again = set->processes[k].rank == set->processes[i].rank &&
                    str_eq(set->processes[k].host, host);
        if (!again)
            json_i64(j, set->processes[i].rank);
    }
    json_end(j);
    json_key(j, "processes");
    json_array(j);
    for (uint32_t i = 0; i < set->n_processes; i++)
        if (str_eq(set->processes[i].host, host))
            put_process(j, &set->processes[i]);
    json_end(j);
    put_facts(j, set, host, a);
    json_end(j);
}

bool route_hosts(struct server *s, struct http_request *req, struct http_response *resp,
                 struct err *e)
{
    struct run_view *v = run_view_open(s->runs, req->params[0], e);
    if (v == NULL)
        return false;
    const struct record_set *set = &v->decoder.set;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "hosts");
    json_array(&j);
    for (uint32_t i = 0; i < set->n_processes; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++)
            again = str_eq(set->processes[k].host, set->processes[i].host);
        if (!again)
            put_host(&j, set, set->processes[i].host, &req->arena);
    }
    json_end(&j);
    json_end(&j);
    run_view_close(v);
    return reply_json(&j, resp, e);
}

/* ---- events and output ---- */

static void put_event(struct json *j, const struct record_set *set, const struct record *r)
{
    struct err ignored = {0};
    struct doc *d = doc_parse(r->text, &ignored);
    json_object(j);
    json_kcstr(j, "event", doc_cstr(d, "event"));
    json_kcstr(j, "message", doc_cstr(d, "message"));
    put_wall(j, "wall_ns", r->wall_ns);
    json_kstr(j, "host", set->processes[r->process].host);
    json_end(j);
    doc_free(d);
}

bool route_events(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct run_view *v = run_view_open(s->runs, req->params[0], e);
    if (v == NULL)
        return false;
    const struct record_set *set = &v->decoder.set;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "items");
    json_array(&j);
    for (uint32_t i = 0; i < set->n_records; i++)
        if (set->records[i].kind == RECORD_EVENT)
            put_event(&j, set, &set->records[i]);
    json_end(&j);
    json_knull(&j, "next_page_token");
    json_end(&j);
    run_view_close(v);
    return reply_json(&j, resp, e);
}

bool route_output(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct run_view *v = run_view_open(s->runs, req->params[0], e);
    if (v == NULL)
        return false;
    const struct record_set *set = &v->decoder.set;
    uint32_t first = set->n_records;
    uint64_t bytes = 0;
    while (first > 0 && bytes < OUTPUT_BYTES) {
        const struct record *r = &set->records[--first];
        bytes += r->kind == RECORD_OUTPUT ? r->text.n : 0;
    }
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "output");
    json_array(&j);
    for (uint32_t i = first; i < set->n_records; i++) {
        const struct record *r = &set->records[i];
        if (r->kind != RECORD_OUTPUT)
            continue;
        json_object(&j);
        put_wall(&j, "wall_ns", r->wall_ns);
        json_kcstr(&j, "stream", r->code == 2 ? "stderr" : "stdout");
        json_kstr(&j, "text", r->text);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    run_view_close(v);
    return reply_json(&j, resp, e);
}

bool route_run_metrics(struct server *s, struct http_request *req, struct http_response *resp,
                       struct err *e)
{
    struct series_request r = {.name = http_query(req, "name"), .max_points = 1000};
    const str points = http_query(req, "points");
    uint64_t n = r.max_points;
    if (points.n > 0 && (!str_to_u64(points, &n) || n == 0 || n > LIMIT_SERIES_POINTS))
        return err_set(e, ERR_USAGE, "points '%.*s' is not a number from 1 to %llu",
                       STR_ARG(points), (unsigned long long)LIMIT_SERIES_POINTS);
    r.max_points = (uint32_t)n;
    r.has_from = http_query(req, "from").n > 0;
    r.has_to = http_query(req, "to").n > 0;
    if (!query_time(req, "from", &r.from_ns, e) || !query_time(req, "to", &r.to_ns, e))
        return false;
    struct json j;
    reply_begin(&j, resp);
    return (r.name.n == 0 ? series_put_list(s, req->params[0], &req->arena, &j, e)
                          : series_put_points(s, req->params[0], &r, &req->arena, &j, e)) &&
           reply_json(&j, resp, e);
}
