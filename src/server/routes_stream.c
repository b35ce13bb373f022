/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, and the report of a run. */
#include "report/build.h"
#include "report/print.h"
#include "server/keeper.h"
#include "server/run_cache.h"
#include "server/server_inside.h"
#include "server/session_facts.h"

bool route_stream(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    int64_t newest, after = 0;
    const str last_id = http_header(req, "Last-Event-ID");
    if (!s->meta->ops->last_batch(s->meta, req->params[0], &newest, e))
        return false;
    if (newest == 0)
        return err_set(e, ERR_NOT_FOUND, "no run '%.*s'", STR_ARG(req->params[0]));
    if (last_id.n == 0 || !str_to_i64(last_id, &after) || after < 0 || after > newest)
        after = newest - 1; /* a new client sees where the run stands, then what comes */
    resp->stream = http_stream_new(req->server);
    resp->content_type = "text/event-stream";
    http_add_header(resp, "X-Accel-Buffering", S("no"));
    (void)http_stream_send(resp->stream, S("retry: 2000\n\n"));
    keeper_subscribe(s->keeper, http_stream_hold(resp->stream), req->params[0], after);
    return true;
}

/* As `tacho report RUN --json` builds it. */
static bool put_report(struct server *s, struct run_view *v, struct http_request *req,
                       struct http_response *resp, struct err *e)
{
    struct report r = {0};
    struct json j;
    struct profile_facts facts;
    str profile = {0};
    const bool profiled = session_facts_newest(s, str_from(v->run), &req->arena, &facts, &profile);
    const struct report_input in = {.subject = arena_printf(&req->arena, "Run %s", v->run),
                                    .ledger = &v->ledger,
                                    .set = &v->decoder.set,
                                    .facts = profiled ? &facts : NULL,
                                    .profile = profile};
    bool ok = report_build(&r, &in, e);
    if (ok) {
        reply_begin(&j, resp);
        report_print_json(&r, &j);
        ok = reply_json(&j, resp, e);
    }
    report_release(&r);
    return ok;
}

bool route_run_report(struct server *s, struct http_request *req, struct http_response *resp,
                      struct err *e)
{
    struct run_view *v = run_view_open(s->runs, req->params[0], e);
    if (v == NULL)
        return false;
    if (!v->has_ledger)
        *e = v->why_no_ledger;
    const bool ok = v->has_ledger && put_report(s, v, req, resp, e);
    run_view_close(v);
    return ok;
}
