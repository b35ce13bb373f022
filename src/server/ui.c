/* SPDX-License-Identifier: Apache-2.0 */
/* The web UI: files that tools/embed-ui put into the binary, gzip'ed. A path without a file is a
 * page of the UI and gets index.html. */
#include "server/server_inside.h"
#include "server/ui_files.h"

static const struct ui_file *find_file(str path)
{
    for (uint32_t i = 0; i < ui_file_count; i++)
        if (str_eq(path, str_from(ui_files[i].path)))
            return &ui_files[i];
    return NULL;
}

void ui_reply(struct http_request *req, struct http_response *resp)
{
    const struct ui_file *f = find_file(req->path);
    if (f == NULL && str_starts(req->path, S("/assets/"))) {
        struct err e = {0};
        err_set(&e, ERR_NOT_FOUND, "no such file: '%.*s'", STR_ARG(req->path));
        reply_problem(req, resp, &e);
        return;
    }
    if (f == NULL)
        f = find_file(S("/index.html"));
    must(f != NULL);
    resp->status = 200;
    resp->content_type = f->content_type;
    buf_add(&resp->body, f->bytes, f->n);
    resp->is_gzip = true;
    resp->cache = f->is_hashed ? "public, max-age=31536000, immutable" : "no-cache";
}
