/* SPDX-License-Identifier: Apache-2.0 */
/* The server of one data folder: HTTP API and web UI, follower of local journals and sessions,
 * report jobs, compaction.
 *
 *     struct server *s = server_open(&options, e);
 *     ... server_url(s), server_token(s) ...
 *     server_close(s);
 *
 * One server a data folder (a lock in <data>/server). Thread: one. */
#ifndef TACHO_SERVER_SERVER_H
#define TACHO_SERVER_SERVER_H

#include "base/err.h"
#include "base/str.h"

struct server_options {
    const char *data_dir;
    str cache_dir;     /* for indexes that do not fit beside their profile; empty: the user's own */
    str listen;        /* "127.0.0.1:7480"; port 0 = any free one */
    str allowed_hosts; /* comma-separated names that a Host header may carry, too */
    unsigned worker_threads;
    uint64_t parser_memory_bytes, parser_cpu_s;
};

struct server;

/* ERR_CONFLICT: another server has the folder, or the port is in use. Owned. */
struct server *server_open(const struct server_options *o, struct err *e);
void server_close(struct server *s);              /* NULL allowed */
const char *server_url(const struct server *s);   /* "http://127.0.0.1:7480" */
const char *server_token(const struct server *s); /* of role admin */

#endif
