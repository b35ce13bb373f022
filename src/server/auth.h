/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: tokens, login cookies, Host and Origin.
 *
 * Tokens are 256 random bits in hexadecimal; the database keeps their SHA-256. The first one, of
 * role admin, stands in <data>/server/token (0600). All are also in memory, so that the HTTP loop
 * asks without waiting. Source: SURFACE "Access". Thread: any. */
#ifndef TACHO_SERVER_AUTH_H
#define TACHO_SERVER_AUTH_H

#include "server/http.h"
#include "store/store.h"

#define AUTH_TOKEN_HEX 65 /* with the NUL */
#define AUTH_COOKIE "tacho"

struct auth;

/* server_dir: <data>/server, 0700. Owned. */
struct auth *auth_open(struct store_meta *meta, const char *server_dir, str listen,
                       str allowed_hosts, struct err *e);
void auth_close(struct auth *a);
const char *auth_token(const struct auth *a);

/* Host is the listen address, localhost or one of allowed_hosts; Origin, when there is one, is
 * Host's. */
MUST_CHECK bool auth_check_host(struct auth *a, const struct http_request *req, struct err *e);
/* Sets req->role, token_id and run_group by the token or cookie; ERR_UNAUTHORIZED without a good
 * one. */
MUST_CHECK bool auth_check_token(struct auth *a, struct http_request *req, struct err *e);
/* ERR_DENIED when `have` may not do what needs `want`. */
MUST_CHECK bool auth_check_role(enum store_role have, enum store_role want, struct err *e);

/* Makes a token of that role, for ever, and keeps it; asked again within a day by the same token (asker)
 * with the same key, it answers the same one. ERR_CONFLICT when the key made another token, or one that was
 * revoked since. The secret is not kept: it is made again from the first token, the key and a salt. */
MUST_CHECK bool auth_make_once(struct auth *a, enum store_role role, str name, str run_group,
                               int64_t asker, str key, char token[static AUTH_TOKEN_HEX],
                               struct err *e);
/* Makes a token of that role and keeps it; lifetime 0 = for ever. */
MUST_CHECK bool auth_make(struct auth *a, enum store_role role, str name, str run_group,
                          int64_t lifetime_ns, char token[static AUTH_TOKEN_HEX], struct err *e);
/* The role of a token; ERR_UNAUTHORIZED when there is none such. */
MUST_CHECK bool auth_find(struct auth *a, str token, struct store_token *out, struct err *e);
MUST_CHECK bool auth_revoke(struct auth *a, int64_t id, struct err *e);

#endif
