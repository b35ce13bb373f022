/* SPDX-License-Identifier: Apache-2.0 */
/* Journals from other hosts. */
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "server/ingest_body.h"
#include "server/run_cache.h"
#include "server/server_inside.h"

bool may_write_run(struct server *s, struct http_request *req, str run, struct err *e)
{
    struct store_run r;
    if (req->role != ROLE_INGEST || req->run_group.n == 0)
        return true;
    if (!s->meta->ops->run_get(s->meta, run, &req->arena, &r, e)) {
        const bool is_new = e->code == ERR_NOT_FOUND;
        err_clear(e);
        return is_new || err_set(e, ERR_IO, "cannot look up run '%.*s'", STR_ARG(run));
    }
    return r.group.n == 0 || str_eq(r.group, req->run_group) ||
           err_set(e, ERR_DENIED, "run '%.*s' is not in the group of this token", STR_ARG(run));
}

bool route_journal(struct server *s, struct http_request *req, struct http_response *resp,
                   struct err *e)
{
    struct ingest_body body;
    struct store_ingested out;
    const bool is_zstd = str_eq_nocase(http_header(req, "Content-Encoding"), S("zstd"));
    if (!ingest_body_parse(&body, req->body, is_zstd, &req->arena, e) ||
        !may_write_run(s, req, str_from(body.info.run), e))
        return false;
    const struct store_ingest in = {.info = &body.info,
                                    .header = body.header,
                                    .run = str_from(body.info.run),
                                    .records = body.records,
                                    .received_ns = clock_wall_ns()};
    if (!s->meta->ops->ingest(s->meta, &in, &out, e))
        return false;
    if (out.n_new > 0)
        run_cache_changed(s->runs, in.run);
    struct json j;
    reply_begin(&j, resp);
    json_object(&j);
    json_kcstr(&j, "journal", body.info.id_hex);
    json_ku64(&j, "next_seq", out.next_seq);
    json_ku64(&j, "new_records", out.n_new);
    json_ktime(&j, "server_started", s->started_ns);
    json_key(&j, "missing");
    json_array(&j);
    for (uint32_t i = 0; i < out.n_missing; i++) {
        json_array(&j);
        json_u64(&j, out.missing[i].from);
        json_u64(&j, out.missing[i].to);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    return reply_json(&j, resp, e);
}

bool route_side_put(struct server *s, struct http_request *req, struct http_response *resp,
                    struct err *e)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    const str run = req->params[0], name = req->params[1];
    if (!path_is_safe_name(run))
        return err_set(e, ERR_USAGE, "'%.*s' cannot be a run", STR_ARG(run));
    if (!may_write_run(s, req, run, e))
        return false;
    sha256_init(&hash);
    sha256_add(&hash, req->body.p, req->body.n);
    sha256_end(&hash, digest);
    sha256_hex(digest, hex);
    if (!str_eq(name, str_from(hex)))
        return err_set(e, ERR_PARSE, "the body has SHA-256 %s", hex);
    resp->status = 204;
    return s->blob->ops->put(
        s->blob, arena_printf(&req->arena, "runs/%.*s/journals/side/%s", STR_ARG(run), hex),
        req->body, e);
}
