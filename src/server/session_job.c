/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "jobs"
#include "server/session_job.h"

#include "analysis/facts.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "jobs/profile_task.h"
#include "report/build.h"
#include "report/print.h"
#include "server/doc.h"
#include "server/run_cache.h"
#include "server/session_facts.h"
#include "server/sessions.h"

/* ---- in the parser ---- */

static void put_trace(const struct trace *t, struct json *j)
{
    json_object(j);
    str target = path_base(t->file);
    if (str_ends(target, S(TRACE_FILE_ENDING)))
        target = str_sub(target, 0, target.n - TRACE_FILE_ENDING_BYTES);
    json_kstr(j, "target", target);
    json_kstr(j, "host", t->host);
    json_ku64(j, "planes", t->n_planes);
    json_ku64(j, "lines", t->n_lines);
    json_ku64(j, "events", t->n_events);
    json_end(j);
}

static bool put_targets(const struct profile *p, struct buf *out, struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    json_object(&j);
    json_key(&j, "targets");
    json_array(&j);
    for (uint32_t i = 0; i < p->n_traces; i++)
        put_trace(p->traces[i], &j);
    json_end(&j);
    json_end(&j);
    return json_done(&j, e);
}

/* The length of the targets' document, the document, the packed facts. */
static bool describe(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    struct buf targets;
    struct profile_facts facts;
    struct arena a;
    (void)ctx;
    arena_init(&a, "profile facts", LIMIT_ARENA_TOOL_BYTES);
    buf_init(&targets, LIMIT_ARENA_REQUEST_BYTES);
    bool ok = put_targets(p, &targets, e);
    const uint64_t n = targets.n;
    ok = ok && buf_add(out, &n, sizeof n) && buf_add_str(out, buf_str(&targets)) &&
         profile_facts_of(p, &a, &facts, e) && profile_facts_pack(&facts, out, e);
    buf_release(&targets);
    arena_release(&a);
    return ok;
}

/* ---- in the server: what came back is checked before it is kept ---- */

static void take_targets(struct doc *list, struct store_target *targets, uint32_t n,
                         struct arena *a)
{
    for (size_t i = 0; i < doc_count(list); i++) {
        struct doc *item = doc_item(list, i);
        const char *name = doc_cstr(item, "target");
        const str host = doc_text(item, "host", a);
        for (uint32_t k = 0; name != NULL && k < n; k++) {
            if (!str_eq(targets[k].target, str_from(name)))
                continue;
            targets[k].planes = doc_i64(item, "planes", -1);
            targets[k].lines = doc_i64(item, "lines", -1);
            targets[k].events = doc_i64(item, "events", -1);
            if (host.n > 0)
                targets[k].host = host;
        }
    }
}

static bool keep(struct server *s, const struct store_session *t, struct arena *a, const char *file,
                 str content, struct err *e)
{
    const str folder = session_key(a, t->run, t->name);
    return s->blob->ops->put(s->blob, arena_printf(a, "%.*s/%s", STR_ARG(folder), file), content,
                             e);
}

static bool keep_report(struct server *s, struct store_session *t, const struct report *r,
                        struct arena *a, struct err *e)
{
    struct buf page;
    struct json j;
    buf_init(&page, LIMIT_ARENA_REQUEST_BYTES / 2);
    json_init_buf(&j, &page);
    report_print_json(r, &j);
    bool ok = json_done(&j, e) && keep(s, t, a, "report.json", buf_str(&page), e);
    buf_clear(&page);
    ok = ok && report_print_html(r, NULL, &page, e) &&
         keep(s, t, a, "summary.html", buf_str(&page), e);
    buf_release(&page);
    t->n_findings = r->n_findings;
    t->first_finding = r->n_findings > 0 ? arena_str(a, r->findings[0].title) : (str){0};
    return ok;
}

static bool take_facts(struct server *s, str packed, struct store_session *t, struct arena *a,
                       struct err *e)
{
    struct profile_facts facts;
    struct report r = {0};
    if (!profile_facts_unpack(packed, a, &facts, e)) {
        e->code = e->code == ERR_PARSE ? ERR_CRASH : e->code;
        return false;
    }
    const struct report_input in = {.subject = arena_printf(a, "Profile %.*s", STR_ARG(t->name)),
                                    .facts = &facts,
                                    .profile = t->name};
    const bool ok = report_build(&r, &in, e) && keep_report(s, t, &r, a, e) &&
                    keep(s, t, a, SESSION_FACTS_FILE, packed, e);
    report_release(&r);
    return ok;
}

static bool take_result(struct server *s, str answer, struct store_session *t,
                        struct store_target *targets, uint32_t n, struct arena *a, struct err *e)
{
    uint64_t length = 0;
    if (answer.n >= sizeof length)
        memcpy(&length, answer.p, sizeof length);
    if (answer.n < sizeof length || length > answer.n - sizeof length)
        return err_set(e, ERR_CRASH, "the parser's answer is cut off");
    const size_t end = sizeof length + (size_t)length;
    struct doc *d = doc_parse(str_sub(answer, sizeof length, end), e);
    if (d == NULL) {
        e->code = ERR_CRASH;
        return err_wrap(e, "the parser's answer");
    }
    take_targets(doc_get(d, "targets"), targets, n, a);
    doc_free(d);
    if (!take_facts(s, str_sub(answer, end, answer.n), t, a, e))
        return false;
    t->report_status = S("done");
    return s->meta->ops->session_put(s->meta, t, targets, n, e);
}

static bool make_report(struct server *s, struct store_session *t, struct arena *a, struct err *e)
{
    struct store_target *targets;
    uint32_t n;
    struct buf out;
    const struct parser_limits limits = {
        .memory_bytes = s->parser_memory_bytes, .cpu_s = s->parser_cpu_s, .indexes = &s->indexes};
    const char *path = path_join(a, s->data_dir, session_key(a, t->run, t->name));
    if (!s->meta->ops->targets(s->meta, t->session, a, &targets, &n, e))
        return false;
    buf_init(&out, LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = profile_task_run(path, &limits, describe, NULL, &out, e) &&
                    take_result(s, buf_str(&out), t, targets, n, a, e);
    buf_release(&out);
    return ok;
}

bool session_job_run(void *ctx, const struct store_job *job, struct err *e)
{
    struct server *s = ctx;
    struct store_session t;
    struct arena a;
    if (!str_eq(job->kind, S("report")))
        return err_set(e, ERR_USAGE, "no worker here knows jobs of kind '%.*s'",
                       STR_ARG(job->kind));
    arena_init(&a, "report job", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = s->meta->ops->session_get(s->meta, job->subject, &a, &t, e);
    if (ok && !make_report(s, &t, &a, e)) {
        struct err unsaid = {0};
        server_hide_paths(s, e); /* it is kept, and shown to clients */
        t.report_status = S("failed");
        t.first_finding = arena_str(&a, str_from(e->msg));
        if (!s->meta->ops->session_put(s->meta, &t, NULL, 0, &unsaid))
            log_error("cannot note the failure: %s", unsaid.msg);
        ok = false;
    }
    arena_release(&a);
    run_cache_changed(s->runs, job->subject);
    return ok;
}
