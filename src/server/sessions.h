/* SPDX-License-Identifier: Apache-2.0 */
/* Profile sessions in the data folder:
 * <data>/runs/<run>/plugins/profile/<session>/<target>.xplane.pb. A session's id is
 * "<run>~<session>", one path component. Thread: any. */
#ifndef TACHO_SERVER_SESSIONS_H
#define TACHO_SERVER_SESSIONS_H

#include "jobs/parser.h"
#include "model/trace.h"
#include "server/server_inside.h"

/* "run~name" to its parts, both safe names; ERR_NOT_FOUND otherwise. */
MUST_CHECK bool session_split(str id, str *run, str *name, struct err *e);
/* Key of the session's folder below the data folder. */
str session_key(struct arena *a, str run, str name);
/* Path of the session's folder, in the arena; ERR_NOT_FOUND when the store has no such session. */
char *session_folder(struct server *s, str id, struct arena *a, struct err *e);
/* Of a parser that answers a request. */
struct parser_limits server_parser_limits(const struct server *s);
/* Looks at the folder and puts what is there into the store; a session with new files gets a report
 * job. *is_new says whether one was added. */
MUST_CHECK bool session_register(struct server *s, str run, str name, bool *is_new, struct err *e);
void session_put(const struct store_session *t, const struct store_target *targets, uint32_t n,
                 struct json *j);

#endif
