/* SPDX-License-Identifier: Apache-2.0 */
/* XProf's HTTP routes, so that its front end and scripts read the sessions here. Its `run` is "run/session" with the
 * names that we have; nothing in a request is a path. Parameters that a tool does not know are ignored, as there.
 * Errors are ours: a status and a problem document. Source: XProf's profile plugin (facts: names and shapes). */
#include "analysis/tool.h"
#include "base/file.h"
#include "base/limits.h"
#include "jobs/profile_task.h"
#include "server/server_inside.h"
#include "server/sessions.h"

#define ALL_HOSTS "ALL_HOSTS"

/* ---- names ---- */

/* "run/session" to "run~session". */
static str id_of(struct arena *a, str name, struct err *e)
{
    str run, session;
    if (!str_cut(name, '/', &run, &session) || !path_is_safe_name(run) ||
        !path_is_safe_name(session)) {
        err_set(e, ERR_NOT_FOUND, "no session '%.*s': a name is run/session", STR_ARG(name));
        return (str){0};
    }
    const str id = arena_printf(a, "%.*s~%.*s", STR_ARG(run), STR_ARG(session));
    if (id.p == NULL)
        arena_full(a, e);
    return id;
}

/* The session that a request is about: session_path, or run_path and run, or run. XProf has file system paths in the
 * first two; here they are names as in the third. */
static str asked_session(struct http_request *req, struct err *e)
{
    const str session = http_query(req, "session_path"), group = http_query(req, "run_path");
    const str run = http_query(req, "run");
    if (session.n > 0)
        return id_of(&req->arena, session, e);
    if (group.n > 0 && str_find_char(run, '/') < 0)
        return id_of(&req->arena,
                     arena_printf(&req->arena, "%.*s/%.*s", STR_ARG(group), STR_ARG(run)), e);
    if (run.n == 0) {
        err_set(e, ERR_USAGE, "which run? run=run/session");
        return (str){0};
    }
    return id_of(&req->arena, run, e);
}

/* ---- lists ---- */

/* The newest sessions first, of one run where run_path says so, as names. */
static bool put_runs(struct server *s, struct http_request *req, struct json *j, struct err *e)
{
    const str of_run = http_query(req, "run_path");
    int64_t before_ns = 0;
    str before = {0};
    for (;;) {
        struct store_session *items;
        uint32_t n;
        if (!s->meta->ops->sessions(s->meta, of_run, before_ns, before, LIMIT_HTTP_PAGE_SIZE,
                                    &req->arena, &items, &n, e))
            return false;
        for (uint32_t i = 0; i < n; i++)
            if (of_run.n > 0)
                json_str(j, items[i].name);
            else
                json_strf(j, "%.*s/%.*s", STR_ARG(items[i].run), STR_ARG(items[i].name));
        if (n < LIMIT_HTTP_PAGE_SIZE)
            return true;
        before_ns = items[n - 1].created_ns;
        before = items[n - 1].session;
    }
}

bool route_xprof_runs(struct server *s, struct http_request *req, struct http_response *resp,
                      struct err *e)
{
    struct json j;
    struct store_session t;
    const str one = http_query(req, "session_path"), group = http_query(req, "run_path");
    if (group.n > 0 && !path_is_safe_name(group))
        return err_set(e, ERR_NOT_FOUND, "no run '%.*s'", STR_ARG(group));
    if (one.n > 0) {
        const str id = id_of(&req->arena, one, e);
        if (id.n == 0 || !s->meta->ops->session_get(s->meta, id, &req->arena, &t, e))
            return false;
    }
    reply_begin(&j, resp);
    json_array(&j);
    if (one.n > 0)
        json_str(&j, t.name);
    else if (!put_runs(s, req, &j, e))
        return false;
    json_end(&j);
    return reply_json(&j, resp, e);
}

/* XProf's own lists: tools of which the whole session is the only view, and those that also have it. */
enum whole { WHOLE_NEVER = 0, WHOLE_TOO, WHOLE_ONLY };

static enum whole whole_session(str tool)
{
    static const struct {
        const char *tool;
        enum whole whole;
    } known[] = {{"overview_page", WHOLE_ONLY},     {"pod_viewer", WHOLE_ONLY},
                 {"smart_suggestion", WHOLE_ONLY},  {"input_pipeline_analyzer", WHOLE_TOO},
                 {"framework_op_stats", WHOLE_TOO}, {"kernel_stats", WHOLE_TOO},
                 {"megascale_stats", WHOLE_TOO},    {"roofline_model", WHOLE_TOO},
                 {"hlo_stats", WHOLE_TOO},          {"op_profile", WHOLE_TOO}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_eq(tool, str_from(known[i].tool)))
            return known[i].whole;
    return WHOLE_NEVER;
}

static void put_host(struct json *j, str name)
{
    json_object(j);
    json_kstr(j, "hostname", name);
    json_end(j);
}

bool route_xprof_hosts(struct server *s, struct http_request *req, struct http_response *resp,
                       struct err *e)
{
    struct json j;
    struct store_session t;
    struct store_target *targets;
    uint32_t n;
    const str id = asked_session(req, e);
    if (id.n == 0 || !s->meta->ops->session_get(s->meta, id, &req->arena, &t, e) ||
        !s->meta->ops->targets(s->meta, id, &req->arena, &targets, &n, e))
        return false;
    const enum whole whole = whole_session(http_query(req, "tag"));
    reply_begin(&j, resp);
    json_array(&j);
    if (whole == WHOLE_ONLY || (whole == WHOLE_TOO && n > 1))
        put_host(&j, S(ALL_HOSTS));
    for (uint32_t i = 0; i < n && whole != WHOLE_ONLY; i++)
        put_host(&j, targets[i].target);
    json_end(&j);
    return reply_json(&j, resp, e);
}

/* ---- what a parser answers ---- */

/* The names of tool_names, of those that this program has. */
static void put_tools(struct json *j, str names)
{
    str line, rest = names;
    json_array(j);
    while (str_cut(rest, '\n', &line, &rest))
        if (tool_find(str_trim(line)) != NULL)
            json_str(j, str_trim(line));
    json_end(j);
}

bool route_xprof_tools(struct server *s, struct http_request *req, struct http_response *resp,
                       struct err *e)
{
    struct buf names;
    struct json j;
    const str id = asked_session(req, e);
    const char *path = id.n == 0 ? NULL : session_folder(s, id, &req->arena, e);
    const struct parser_limits limits = server_parser_limits(s);
    if (path == NULL)
        return false;
    buf_init(&names, LIMIT_HTTP_BODY_BYTES);
    const bool ok =
        profile_task_tool(path, &limits, tool_find(S("tool_names")), NULL, 0, TOOL_CSV, &names, e);
    reply_begin(&j, resp);
    if (ok)
        put_tools(&j, buf_str(&names));
    buf_release(&names);
    return ok && reply_json(&j, resp, e);
}

/* Names of the programs, each once: profile_fn. */
static bool module_names(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    struct map_str_u32 seen = {0};
    (void)ctx;
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            const struct trace_plane *plane = &p->traces[i]->planes[k];
            for (uint32_t m = 0; plane->kind == TRACE_PLANE_METADATA && m < plane->n_event_metadata;
                 m++) {
                const str name = plane->event_metadata[m].name;
                if (map_str_u32_get(&seen, name) != NULL)
                    continue;
                *map_str_u32_put(&seen, name) = 1;
                if (out->n > 0)
                    buf_add_char(out, ',');
                buf_add_str(out, name);
            }
        }
    map_str_u32_release(&seen);
    return buf_ok(out, "the list of modules", e);
}

bool route_xprof_modules(struct server *s, struct http_request *req, struct http_response *resp,
                         struct err *e)
{
    const str id = asked_session(req, e);
    const char *path = id.n == 0 ? NULL : session_folder(s, id, &req->arena, e);
    const struct parser_limits limits = server_parser_limits(s);
    resp->content_type = "text/plain; charset=utf-8";
    return path != NULL && profile_task_run(path, &limits, module_names, NULL, &resp->body, e);
}

/* `host`, or `hosts`, names with commas between; ALL_HOSTS is the whole session. */
static str asked_hosts(const struct http_request *req)
{
    const str host = http_query(req, "host");
    const str names = host.n > 0 ? host : http_query(req, "hosts");
    return str_eq(names, S(ALL_HOSTS)) ? (str){0} : names;
}

/* The tool's own parameters of the request, and the host. */
static bool tool_params(const struct tool *tool, struct http_request *req, struct tool_param **out,
                        uint32_t *n, struct err *e)
{
    struct tool_param *p = ARENA_ARRAY(&req->arena, struct tool_param, req->n_query + 1);
    const str hosts = asked_hosts(req);
    *n = 0;
    *out = p;
    if (p == NULL)
        return arena_full(&req->arena, e);
    if (hosts.n > 0)
        p[(*n)++] = (struct tool_param){S("host"), hosts};
    for (uint32_t i = 0; i < req->n_query; i++)
        if (!str_eq(req->query[i].name, S("host")) && req->query[i].value.n > 0 &&
            tool_has_param(tool, req->query[i].name))
            p[(*n)++] = (struct tool_param){req->query[i].name, req->query[i].value};
    return true;
}

static bool answer_data(struct server *s, struct http_request *req, enum tool_format format,
                        struct http_response *resp, struct err *e)
{
    const str tag = http_query(req, "tag"), form = http_query(req, "format");
    const struct tool *tool = tool_find(str_eq(tag, S("hlo_op_profile")) ? S("op_profile") : tag);
    struct tool_param *params;
    uint32_t n;
    if (tool == NULL || tool->functions->xprof == NULL)
        return err_set(e, ERR_NOT_FOUND, "no tool '%.*s'", STR_ARG(tag));
    if (form.n > 0 && !str_eq(form, S("json")))
        return err_set(e, ERR_USAGE, "format '%.*s' is not json, which is all there is",
                       STR_ARG(form));
    const str id = asked_session(req, e);
    const char *path = id.n == 0 ? NULL : session_folder(s, id, &req->arena, e);
    const struct parser_limits limits = server_parser_limits(s);
    resp->content_type = format == TOOL_CSV ? "text/csv; charset=utf-8" : "application/json";
    return path != NULL && tool_params(tool, req, &params, &n, e) &&
           profile_task_tool(path, &limits, tool, params, n, format, &resp->body, e);
}

bool route_xprof_data(struct server *s, struct http_request *req, struct http_response *resp,
                      struct err *e)
{
    const bool csv = str_find(http_query(req, "tqx"), S("out:csv")) >= 0;
    return answer_data(s, req, csv ? TOOL_CSV : TOOL_XPROF, resp, e);
}

bool route_xprof_data_csv(struct server *s, struct http_request *req, struct http_response *resp,
                          struct err *e)
{
    return answer_data(s, req, TOOL_CSV, resp, e);
}

/* ---- about ---- */

bool route_xprof_config(struct server *s, struct http_request *req, struct http_response *resp,
                        struct err *e)
{
    struct json j;
    (void)s;
    (void)req;
    reply_begin(&j, resp);
    json_object(&j);
    json_kbool(&j, "hideCaptureProfileButton", true);
    json_kcstr(&j, "srcPathPrefix", "");
    json_end(&j);
    return reply_json(&j, resp, e);
}

bool route_xprof_version(struct server *s, struct http_request *req, struct http_response *resp,
                         struct err *e)
{
    (void)s;
    (void)req;
    resp->content_type = "text/plain; charset=utf-8";
    buf_add_str(&resp->body, S(TACHO_VERSION));
    return buf_ok(&resp->body, "the version", e);
}
