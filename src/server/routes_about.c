/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says about itself: version, OpenAPI document, its own metrics. */
#include <inttypes.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/err.h"
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

static void put_parameters(struct json *j, str path)
{
    str part;
    json_key(j, "parameters");
    json_array(j);
    while (str_cut(path, '/', &part, &path)) {
        if (!str_starts(part, S("{")))
            continue;
        json_object(j);
        json_kstr(j, "name", str_sub(part, 1, part.n - 1));
        json_kcstr(j, "in", "path");
        json_kbool(j, "required", true);
        json_key(j, "schema");
        json_object(j);
        json_kcstr(j, "type", "string");
        json_end(j);
        json_end(j);
    }
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
    put_parameters(j, str_from(r->path));
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

bool route_metrics(struct server *s, struct http_request *req, struct http_response *resp,
                   struct err *e)
{
    (void)s;
    struct http_stats h;
    struct rusage usage;
    struct buf *b = &resp->body;
    http_stats(req->server, &h);
    getrusage(RUSAGE_SELF, &usage);
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
    put_metric(b, "process_max_resident_bytes", "gauge", "most memory so far",
               (uint64_t)usage.ru_maxrss * 1024);
    put_metric(b, "process_cpu_ms_total", "counter", "CPU time in milliseconds",
               clock_process_cpu_ns() / (uint64_t)NS_PER_MS);
    resp->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return buf_ok(b, "the metrics", e);
}
