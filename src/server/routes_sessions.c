/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: listing, files, upload, tools, trace, report, jobs. */
#include <stdio.h>

#include "analysis/tool.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "jobs/profile_task.h"
#include "jobs/trace_pool.h"
#include "server/doc.h"
#include "server/server_inside.h"
#include "server/sessions.h"

#define SESSIONS_PAGE 100
#define PARTS_MAX 4096 /* of 16 MiB */

static bool list_sessions(struct server *s, str run, struct http_request *req,
                          struct http_response *resp, struct err *e)
{
    struct store_session *items;
    uint32_t n, wanted;
    int64_t before_ns;
    str before;
    if (!page_size(req, SESSIONS_PAGE, &wanted, e) ||
        !page_token_take(req, &before_ns, &before, e) ||
        !s->meta->ops->sessions(s->meta, run, before_ns, before, wanted + 1, &req->arena, &items,
                                &n, e))
        return false;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "items");
    json_array(&j);
    for (uint32_t i = 0; i < n && i < wanted; i++)
        session_put(&items[i], NULL, 0, &j);
    const struct store_session *last = n > wanted ? &items[wanted - 1] : NULL;
    return reply_page(&j, last == NULL ? 0 : last->created_ns,
                      last == NULL ? (str){0} : last->session, resp, e);
}

bool route_sessions(struct server *s, struct http_request *req, struct http_response *resp,
                    struct err *e)
{
    return list_sessions(s, http_query(req, "run"), req, resp, e);
}

bool route_run_sessions(struct server *s, struct http_request *req, struct http_response *resp,
                        struct err *e)
{
    int64_t newest;
    if (!s->meta->ops->last_batch(s->meta, req->params[0], &newest, e))
        return false;
    struct store_session *any;
    uint32_t n;
    if (newest == 0 && (!s->meta->ops->sessions(s->meta, req->params[0], 0, (str){0}, 1,
                                                &req->arena, &any, &n, e) ||
                        n == 0))
        return e->code != ERR_NONE
                   ? false
                   : err_set(e, ERR_NOT_FOUND, "no run '%.*s'", STR_ARG(req->params[0]));
    return list_sessions(s, req->params[0], req, resp, e);
}

static bool reply_session(struct server *s, str id, struct http_request *req,
                          struct http_response *resp, struct err *e)
{
    struct store_session t;
    struct store_target *targets;
    uint32_t n;
    if (!s->meta->ops->session_get(s->meta, id, &req->arena, &t, e) ||
        !s->meta->ops->targets(s->meta, id, &req->arena, &targets, &n, e))
        return false;
    static const struct store_target none;
    struct json j;
    reply_begin(&j, resp);
    session_put(&t, n == 0 ? &none : targets, n, &j);
    return reply_json(&j, resp, e);
}

bool route_session(struct server *s, struct http_request *req, struct http_response *resp,
                   struct err *e)
{
    return reply_session(s, req->params[0], req, resp, e);
}

static str session_file(struct http_request *req, str file, struct err *e)
{
    str run, name;
    if (!session_split(req->params[0], &run, &name, e))
        return (str){0};
    return arena_printf(&req->arena, "%.*s/%.*s", STR_ARG(session_key(&req->arena, run, name)),
                        STR_ARG(file));
}

bool route_target(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    const str file = arena_printf(&req->arena, "%.*s" TRACE_FILE_ENDING, STR_ARG(req->params[1]));
    const str key = session_file(req, file, e);
    if (key.n == 0)
        return false;
    resp->fd = s->blob->ops->open(s->blob, key, &resp->fd_bytes, e);
    resp->content_type = "application/octet-stream";
    http_add_header(resp, "Content-Disposition",
                    arena_printf(&req->arena, "attachment; filename=\"%.*s\"", STR_ARG(file)));
    return resp->fd >= 0;
}

/* ---- upload ---- */

bool route_session_add(struct server *s, struct http_request *req, struct http_response *resp,
                       struct err *e)
{
    struct doc *root = doc_parse(req->body, e);
    if (root == NULL)
        return false;
    const str run = doc_text(root, "run", &req->arena),
              name = doc_text(root, "session", &req->arena);
    const str kind = doc_text(root, "kind", &req->arena);
    doc_free(root);
    if (!path_is_safe_name(run) || !path_is_safe_name(name))
        return err_set(e, ERR_USAGE,
                       "'run' and 'session' must be names of letters, digits and ._+=@-");
    if (!may_write_run(s, req, run, e))
        return false;
    struct store_session old, t = {.run = run,
                                   .name = name,
                                   .kind = kind,
                                   .status = S("uploading"),
                                   .report_status = S("pending"),
                                   .n_findings = -1,
                                   .created_ns = clock_wall_ns()};
    struct err absent = {0};
    t.session = arena_printf(&req->arena, "%.*s~%.*s", STR_ARG(run), STR_ARG(name));
    if (!s->meta->ops->session_get(s->meta, t.session, &req->arena, &old, &absent)) {
        if (!s->meta->ops->session_put(s->meta, &t, NULL, 0, e))
            return false;
        resp->status = 201;
    }
    return reply_session(s, t.session, req, resp, e);
}

static str part_prefix(struct http_request *req, struct err *e)
{
    return session_file(req, arena_printf(&req->arena, "parts/%.*s.", STR_ARG(req->params[1])), e);
}

bool route_upload(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    uint64_t part;
    struct store_session t;
    if (!s->meta->ops->session_get(s->meta, req->params[0], &req->arena, &t, e) ||
        !may_write_run(s, req, t.run, e))
        return false;
    if (!str_to_u64(http_query(req, "part"), &part) || part >= PARTS_MAX)
        return err_set(e, ERR_USAGE, "part '%.*s' is not a number below %d",
                       STR_ARG(http_query(req, "part")), PARTS_MAX);
    sha256_init(&hash);
    sha256_add(&hash, req->body.p, req->body.n);
    sha256_end(&hash, digest);
    sha256_hex(digest, hex);
    if (!str_eq_nocase(http_header(req, "X-Checksum-SHA256"), str_from(hex)))
        return err_set(e, ERR_PARSE, "the part has SHA-256 %s, not what X-Checksum-SHA256 says",
                       hex);
    const str prefix = part_prefix(req, e);
    resp->status = 204;
    return prefix.n > 0 &&
           s->blob->ops->put(s->blob,
                             arena_printf(&req->arena, "%.*s%u", STR_ARG(prefix), (unsigned)part),
                             req->body, e);
}

bool route_upload_complete(struct server *s, struct http_request *req, struct http_response *resp,
                           struct err *e)
{
    struct doc *root = doc_parse(req->body, e);
    if (root == NULL)
        return false;
    const str sha256 = doc_text(root, "sha256", &req->arena);
    const int64_t n = doc_i64(root, "parts", 0);
    doc_free(root);
    if (n < 1 || n > PARTS_MAX || sha256.n != SHA256_HEX - 1)
        return err_set(e, ERR_USAGE, "the body needs 'parts', a number of 1 to %d, and 'sha256'",
                       PARTS_MAX);
    uint64_t size;
    bool is_new;
    str run, name;
    const str prefix = part_prefix(req, e);
    const str file = arena_printf(&req->arena, "%.*s" TRACE_FILE_ENDING, STR_ARG(req->params[1]));
    return prefix.n > 0 && session_split(req->params[0], &run, &name, e) &&
           may_write_run(s, req, run, e) &&
           s->blob->ops->join(s->blob, session_file(req, file, e), prefix, (uint32_t)n, sha256,
                              &size, e) &&
           session_register(s, run, name, &is_new, e) &&
           reply_session(s, req->params[0], req, resp, e);
}

/* ---- what a parser answers ---- */

bool route_tools(struct server *s, struct http_request *req, struct http_response *resp,
                 struct err *e)
{
    struct store_session t;
    if (!s->meta->ops->session_get(s->meta, req->params[0], &req->arena, &t, e))
        return false;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_key(&j, "tools");
    json_array(&j);
    for (uint32_t i = 0; i < tool_count; i++) {
        json_object(&j);
        json_kcstr(&j, "name", tool_table[i].name);
        json_kcstr(&j, "title", tool_table[i].title);
        json_kcstr(&j, "parameters", tool_table[i].parameters);
        json_kcstr(&j, "help", tool_table[i].help);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    return reply_json(&j, resp, e);
}

/* Query parameters as a tool takes them, but for `left_out`. */
static struct tool_param *tool_params(struct http_request *req, str left_out, uint32_t *n)
{
    struct tool_param *p = ARENA_ARRAY(&req->arena, struct tool_param, req->n_query + 1);
    *n = 0;
    for (uint32_t i = 0; p != NULL && i < req->n_query; i++)
        if (!str_eq(req->query[i].name, left_out))
            p[(*n)++] = (struct tool_param){req->query[i].name, req->query[i].value};
    return p;
}

bool route_tool(struct server *s, struct http_request *req, struct http_response *resp,
                struct err *e)
{
    const struct tool *tool = tool_find(req->params[1]);
    const str word = http_query(req, "format");
    enum tool_format format = TOOL_JSON;
    if (tool == NULL)
        return err_set(e, ERR_NOT_FOUND, "no tool '%.*s'", STR_ARG(req->params[1]));
    if (str_eq(word, S("csv")))
        format = TOOL_CSV;
    else if (str_eq(word, S("xprof")))
        format = TOOL_XPROF;
    else if (str_eq(word, S("text")))
        format = TOOL_TEXT;
    else if (word.n > 0 && !str_eq(word, S("json")))
        return err_set(e, ERR_USAGE, "format '%.*s' is none of json, csv, xprof, text",
                       STR_ARG(word));
    const char *path = session_folder(s, req->params[0], &req->arena, e);
    uint32_t n;
    const struct tool_param *params = tool_params(req, S("format"), &n);
    const struct parser_limits limits = server_parser_limits(s);
    resp->content_type = format == TOOL_CSV    ? "text/csv; charset=utf-8"
                         : format == TOOL_TEXT ? "text/plain; charset=utf-8"
                                               : "application/json";
    return path != NULL &&
           profile_task_tool(path, &limits, tool, params, n, format, &resp->body, e);
}

static bool answer_trace(struct server *s, str view_word, struct http_request *req,
                         struct http_response *resp, struct err *e)
{
    enum tiles_view view;
    if (!tiles_view_find(view_word, &view))
        return err_set(e, ERR_NOT_FOUND, "no view '%.*s' of a trace", STR_ARG(view_word));
    const char *path = session_folder(s, req->params[0], &req->arena, e);
    uint32_t n;
    const struct tool_param *params = tool_params(req, (str){0}, &n);
    const struct parser_limits limits = server_parser_limits(s);
    resp->content_type = "application/json";
    bool partial = false;
    if (path == NULL ||
        !trace_pool_ask(s->traces, path, &limits, view, params, n, &resp->body, &partial, e))
        return false;
    resp->cache = partial ? "no-store" : "private, max-age=3600";
    return true;
}

bool route_trace(struct server *s, struct http_request *req, struct http_response *resp,
                 struct err *e)
{
    return answer_trace(s, S(""), req, resp, e);
}

bool route_trace_view(struct server *s, struct http_request *req, struct http_response *resp,
                      struct err *e)
{
    return answer_trace(s, req->params[1], req, resp, e);
}

static bool reply_kept(struct server *s, struct http_request *req, const char *file,
                       struct http_response *resp, struct err *e)
{
    struct store_session t;
    if (!s->meta->ops->session_get(s->meta, req->params[0], &req->arena, &t, e))
        return false;
    if (str_eq(t.report_status, S("pending")))
        return err_set(e, ERR_UNAVAILABLE, "the report is being made; ask again");
    if (!str_eq(t.report_status, S("done")))
        return err_set(e, ERR_PARSE, "the report could not be made: %.*s",
                       STR_ARG(t.first_finding));
    const str key = session_file(req, str_from(file), e);
    str content;
    if (key.n == 0)
        return false;
    if (!s->blob->ops->get(s->blob, key, LIMIT_ARENA_REQUEST_BYTES / 2, &req->arena, &content, e))
        return e->code == ERR_NOT_FOUND ? err_set(e, ERR_NOT_FOUND,
                                                  "this session has no report; its tools and its "
                                                  "trace can be opened")
                                        : false;
    return buf_add_str(&resp->body, content);
}

bool route_session_report(struct server *s, struct http_request *req, struct http_response *resp,
                          struct err *e)
{
    resp->content_type = "application/json";
    return reply_kept(s, req, "report.json", resp, e);
}

bool route_session_page(struct server *s, struct http_request *req, struct http_response *resp,
                        struct err *e)
{
    resp->content_type = "text/html; charset=utf-8";
    http_add_header(resp, "Content-Security-Policy",
                    S("default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; "
                      "frame-ancestors 'none'"));
    return reply_kept(s, req, "summary.html", resp, e);
}

bool route_job(struct server *s, struct http_request *req, struct http_response *resp,
               struct err *e)
{
    int64_t id;
    struct store_job job;
    if (!str_to_i64(req->params[0], &id))
        return err_set(e, ERR_NOT_FOUND, "no job '%.*s'", STR_ARG(req->params[0]));
    if (!s->meta->ops->job_get(s->meta, id, &req->arena, &job, e))
        return false;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_ki64(&j, "job", job.id);
    json_kstr(&j, "kind", job.kind);
    json_kstr(&j, "subject", job.subject);
    json_kstr(&j, "state", job.state);
    json_kstr_or_null(&j, "error", job.error);
    json_ktime(&j, "created", job.created_ns);
    json_ktime(&j, "started", job.started_ns);
    json_ktime(&j, "ended", job.ended_ns);
    json_end(&j);
    return reply_json(&j, resp, e);
}
