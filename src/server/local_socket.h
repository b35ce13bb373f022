/* SPDX-License-Identifier: Apache-2.0 */
/* How a command finds the server of its data folder: <data>/server/socket (0600, in a folder of 0700)
 * answers each connection of the same user with one JSON object, {"url","token","pid"}, and closes.
 *
 *     s->local = local_socket_open(s, e);                        the server
 *     if (local_server_find(data_dir, &found, e)) ...            a command
 *
 * Neither side trusts a name alone: both ask the kernel who is at the other end. */
#ifndef TACHO_SERVER_LOCAL_SOCKET_H
#define TACHO_SERVER_LOCAL_SOCKET_H

#include "base/err.h"

struct server;
struct local_socket;

/* Owned. Needs the lock of <data>/server: a socket that is there already is dead, and is replaced. */
struct local_socket *local_socket_open(const struct server *s, struct err *e);
void local_socket_close(struct local_socket *l); /* NULL allowed */

struct local_server {
    char url[320], token[128];
    int64_t pid;
};
/* ERR_NOT_FOUND when no server of the data folder answers; ERR_DENIED when it is another user's. */
MUST_CHECK bool local_server_find(const char *data_dir, struct local_server *out, struct err *e);

#endif
