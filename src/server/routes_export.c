/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions out of the server: in formats of other programs, and as answers to SQL. */
#define LOG_DOMAIN "export"
#include "base/limits.h"
#include "base/log.h"
#include "jobs/export_task.h"
#include "jobs/sql_task.h"
#include "server/doc.h"
#include "server/sessions.h"

struct export_reply {
    const struct exporter *exporter;
    struct http_request *req;
    struct http_response *resp;
    struct http_stream *stream; /* once something came: the answer is on its way */
};

/* "2026_01_01_00_00_00.json": the session's name and the format's ending. */
static str file_name(struct http_request *req, const struct exporter *x)
{
    str run, name, ending = {0}, rest;
    struct err ignored = {0};
    str_cut(str_from(x->endings), ',', &ending, &rest);
    if (!session_split(req->params[0], &run, &name, &ignored))
        name = S("session");
    return arena_printf(&req->arena, "attachment; filename=\"%.*s%.*s\"", STR_ARG(name),
                        STR_ARG(ending));
}

static bool take(void *ctx, str bytes, struct err *e)
{
    struct export_reply *r = ctx;
    if (r->stream == NULL) {
        r->resp->content_type = r->exporter->content_type;
        http_add_header(r->resp, "Content-Disposition", file_name(r->req, r->exporter));
        r->stream = r->resp->stream = http_stream_new_long(r->req->server);
        if (!http_stream_start(r->req, r->resp))
            return err_set(e, ERR_UNREACHABLE, "nobody waits for the export");
    }
    return http_stream_write(r->stream, bytes) ||
           err_set(e, ERR_UNREACHABLE, "the client of the export is gone");
}

static bool query_ps(const struct http_request *req, const char *name, uint64_t *out, struct err *e)
{
    const str text = http_query(req, name);
    return text.n == 0 || (str_to_u64(text, out) && *out <= INT64_MAX) ||
           err_set(e, ERR_USAGE, "%s '%.*s' is no number of picoseconds", name, STR_ARG(text));
}

static bool options_of(const struct http_request *req, const struct exporter *x,
                       struct export_options *o, struct err *e)
{
    const bool is_text =
        strncmp(x->content_type, "text/", 5) == 0 || strstr(x->content_type, "json") != NULL;
    *o = (struct export_options){
        .host = http_query(req, "host"),
        .is_gzip = is_text && str_find(http_header(req, "Accept-Encoding"), S("gzip")) >= 0};
    return query_ps(req, "from_ps", &o->from_ps, e) && query_ps(req, "to_ps", &o->to_ps, e);
}

bool route_export(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct export_options o;
    struct export_counts counts;
    const struct parser_limits limits = server_parser_limits(s);
    struct export_reply reply = {.exporter = export_find(req->params[1]), .req = req, .resp = resp};
    const struct parser_sink sink = {take, &reply};
    if (reply.exporter == NULL)
        return err_set(e, ERR_NOT_FOUND, "there is no format '%.*s'", STR_ARG(req->params[1]));
    const char *path = session_folder(s, req->params[0], &req->arena, e);
    if (path == NULL || !options_of(req, reply.exporter, &o, e))
        return false;
    resp->is_gzip = o.is_gzip;
    const bool ok = export_task_run(path, &limits, reply.exporter, &o, &sink, &counts, e);
    if (reply.stream == NULL) { /* it failed, or it is empty */
        resp->content_type = reply.exporter->content_type;
        return ok;
    }
    if (!ok)
        log_warn("export of session %.*s: %s", STR_ARG(req->params[0]), e->msg);
    http_stream_finish(reply.stream, ok);
    return true;
}

bool route_sql(struct server *s, struct http_request *req, struct http_response *resp,
               struct err *e)
{
    struct doc *root = doc_parse(req->body, e);
    if (root == NULL)
        return false;
    const str session = doc_text(root, "session", &req->arena);
    const str text = doc_text(root, "sql", &req->arena);
    doc_free(root);
    if (session.n == 0 || text.n == 0)
        return err_set(e, ERR_USAGE, "the body needs 'session' and 'sql'");
    const char *path = session_folder(s, session, &req->arena, e);
    const struct parser_limits limits = server_parser_limits(s);
    resp->content_type = "application/json";
    return path != NULL && sql_task_run(path, &limits, text, 0, TOOL_JSON, &resp->body, e);
}
