/* SPDX-License-Identifier: Apache-2.0 */
/* Between ship.c (which looks at a data folder), ship_journal.c and ship_session.c (which send). */
#ifndef TACHO_AGENT_SHIP_INSIDE_H
#define TACHO_AGENT_SHIP_INSIDE_H

#include <jansson.h>

#include "agent/ship.h"
#include "base/arena.h"

struct ship_request {
    const char *method, *path; /* below /api/v1/ */
    const char *type;          /* of the body */
    const char *header;        /* one more line, NULL = none */
    str body;
};

/* Sends it; the answer's JSON goes to *said when that is not NULL (NULL when it is none). */
MUST_CHECK bool ship_ask(const struct ship *s, const struct ship_request *q, json_t **said,
                         struct err *e);
/* Sends what is new in one journal. Both count what they pass over and fail only as ship_pass does. */
MUST_CHECK bool ship_journal(struct ship *s, const char *path, str run, struct err *e);
void ship_journals_free(struct ship_journal *j);
/* Sends the profiles of a session's folder once two looks in a row saw the same files. */
MUST_CHECK bool ship_session(struct ship *s, struct arena *a, const char *dir, str run, str name,
                             struct err *e);
void ship_sessions_free(struct ship_session *x);
/* Counts a journal or session that is passed over from now on. */
void ship_pass_over(struct ship *s, const char *path, const struct err *why);

#endif
