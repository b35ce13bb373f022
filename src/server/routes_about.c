/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says about itself: version, OpenAPI document, its own metrics. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "server/server_inside.h"

bool route_server(struct server *s, struct http_request *req, struct http_response *resp,
                  struct err *e)
{
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_kcstr(&j, "version", TACHO_VERSION);
    json_ki64(&j, "protocol", SERVER_PROTOCOL);
    json_kcstr(&j, "role", store_role_word((enum store_role)req->role));
    json_ktime(&j, "started", s->started_ns);
    json_ktime(&j, "now", clock_wall_ns());
    json_end(&j);
    return reply_json(&j, resp, e);
}

static const struct {
    route_fn fn;
    const char *name, *type, *meaning;
} query_parameters[] = {
#define X(handler, name, type, meaning) {handler, name, #type, meaning},
#include "server/params.def"
#undef X
};

static void put_parameter(struct json *j, str name, const char *in, const char *type,
                          const char *meaning)
{
    json_object(j);
    json_kstr(j, "name", name);
    json_kcstr(j, "in", in);
    json_kbool(j, "required", strcmp(in, "path") == 0);
    if (meaning != NULL)
        json_kcstr(j, "description", meaning);
    json_key(j, "schema");
    json_object(j);
    json_kcstr(j, "type", type);
    json_end(j);
    json_end(j);
}

static void put_parameters(struct json *j, const struct route *r)
{
    str path = str_from(r->path), part;
    json_key(j, "parameters");
    json_array(j);
    while (str_cut(path, '/', &part, &path))
        if (str_starts(part, S("{")))
            put_parameter(j, str_sub(part, 1, part.n - 1), "path", "string", NULL);
    for (size_t i = 0; i < sizeof query_parameters / sizeof *query_parameters; i++)
        if (query_parameters[i].fn == r->fn)
            put_parameter(j, str_from(query_parameters[i].name), "query", query_parameters[i].type,
                          query_parameters[i].meaning);
    json_end(j);
}

static void put_operation(struct json *j, const struct route *r)
{
    char method[16] = {0};
    for (size_t i = 0; r->method[i] != '\0' && i < sizeof method - 1; i++)
        method[i] = (char)(r->method[i] | 0x20);
    json_key(j, method);
    json_object(j);
    json_kcstr(j, "summary", r->summary);
    json_kcstr(j, "x-role", store_role_word((enum store_role)r->role));
    put_parameters(j, r);
    if (r->role == ROLE_NONE) {
        json_key(j, "security");
        json_array(j);
        json_end(j);
    }
    json_key(j, "responses");
    json_object(j);
    json_key(j, "default");
    json_object(j);
    json_kcstr(j, "description", "the answer, or a problem document (RFC 9457)");
    json_end(j);
    json_end(j);
    json_end(j);
}

/* Each path once, with all its methods; a path's first route stands for it. */
static void put_paths(struct json *j)
{
    for (uint32_t i = 0; i < route_count; i++) {
        const str path = str_from(route_table[i].path);
        bool earlier = false;
        for (uint32_t k = 0; k < i && !earlier; k++)
            earlier = str_eq(path, str_from(route_table[k].path));
        if (earlier)
            continue;
        json_key_str(j, path);
        json_object(j);
        for (uint32_t k = i; k < route_count; k++)
            if (str_eq(path, str_from(route_table[k].path)))
                put_operation(j, &route_table[k]);
        json_end(j);
    }
}

bool route_openapi(struct server *s, struct http_request *req, struct http_response *resp,
                   struct err *e)
{
    (void)s, (void)req;
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_kcstr(&j, "openapi", "3.1.0");
    json_key(&j, "info");
    json_object(&j);
    json_kcstr(&j, "title", "Tachograph");
    json_kcstr(&j, "version", TACHO_VERSION);
    json_end(&j);
    json_key(&j, "paths");
    json_object(&j);
    put_paths(&j);
    json_end(&j);
    json_key(&j, "components");
    json_object(&j);
    json_key(&j, "securitySchemes");
    json_object(&j);
    json_key(&j, "token");
    json_object(&j);
    json_kcstr(&j, "type", "http");
    json_kcstr(&j, "scheme", "bearer");
    json_end(&j);
    json_end(&j);
    json_end(&j);
    json_key(&j, "security");
    json_array(&j);
    json_object(&j);
    json_key(&j, "token");
    json_array(&j);
    json_end(&j);
    json_end(&j);
    json_end(&j);
    json_end(&j);
    return reply_json(&j, resp, e);
}

static void put_metric(struct buf *b, const char *name, const char *type, const char *help,
                       uint64_t value)
{
    buf_addf(b, "# HELP tacho_%s %s\n# TYPE tacho_%s %s\ntacho_%s %" PRIu64 "\n", name, help, name,
             type, name, value);
}

/* Not getrusage's ru_maxrss: that one is of whoever started us, too. */
static bool max_resident(struct arena *a, uint64_t *kib)
{
    struct err ignored = {0};
    str text, line;
    if (!file_read(a, "/proc/self/status", 65536, &text, &ignored))
        return false;
    while (str_cut(text, '\n', &line, &text))
        if (str_starts(line, S("VmHWM:")) && str_ends(line, S(" kB")))
            return str_to_u64(str_trim(str_sub(line, 6, line.n - 3)), kib);
    return false;
}

bool route_metrics(struct server *s, struct http_request *req, struct http_response *resp,
                   struct err *e)
{
    (void)s;
    struct http_stats h;
    uint64_t resident_kib;
    struct buf *b = &resp->body;
    http_stats(req->server, &h);
    put_metric(b, "connections_total", "counter", "connections taken", h.connections);
    put_metric(b, "connections_open", "gauge", "connections open now", h.connections_open);
    put_metric(b, "requests_total", "counter", "requests", h.requests);
    put_metric(b, "requests_waiting", "gauge", "requests that wait for a worker", h.suspended);
    put_metric(b, "requests_timed_out_total", "counter", "requests told to come back", h.timed_out);
    put_metric(b, "bodies_refused_total", "counter", "bodies beyond a limit", h.refused_bodies);
    put_metric(b, "connections_cut_total", "counter", "connections cut off for slowness",
               h.closed_idle);
    put_metric(b, "streams_open", "gauge", "event streams open now", h.streams_open);
    put_metric(b, "oddities_total", "counter", "things that should not have happened",
               err_odd_count());
    if (max_resident(&req->arena, &resident_kib))
        put_metric(b, "process_max_resident_bytes", "gauge", "most memory so far",
                   resident_kib * 1024);
    const uint64_t cpu_ns = clock_process_cpu_ns(), ns_per_s = (uint64_t)NS_PER_S;
    buf_addf(b,
             "# HELP tacho_process_cpu_seconds_total CPU time\n"
             "# TYPE tacho_process_cpu_seconds_total counter\n"
             "tacho_process_cpu_seconds_total %" PRIu64 ".%09" PRIu64 "\n",
             cpu_ns / ns_per_s, cpu_ns % ns_per_s);
    resp->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return buf_ok(b, "the metrics", e);
}
