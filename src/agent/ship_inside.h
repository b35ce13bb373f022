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
    bool is_whole; /* there is no sending it in smaller pieces */
};

/* What is to be tried again, but not before that time, so that it holds nothing else up. */
struct ship_retry {
    uint64_t at_ns, wait_ns; /* boottime; doubles each time */
};

/* Sends it. The answer's JSON object goes to *said; with said NULL it has to be 204, without content. Anything
 * else that is no failure (a page, a redirection) comes from no tachograph server: ERR_UNREACHABLE. */
MUST_CHECK bool ship_ask(struct ship *s, const struct ship_request *q, json_t **said,
                         struct err *e);
/* Sends what is new in one journal. Both count what they pass over and fail only as ship_pass does. */
MUST_CHECK bool ship_journal(struct ship *s, const char *path, str run, struct err *e);
void ship_journals_free(struct ship *s);
/* The processes of this host that write a journal and still live. */
uint32_t ship_count_writers(struct ship *s);
/* Sends the profiles of a session's folder once two looks in a row saw the same files. */
MUST_CHECK bool ship_session(struct ship *s, struct arena *a, const char *dir, str run, str name,
                             struct err *e);
void ship_sessions_free(struct ship *s);
/* Counts a journal or session that is passed over from now on. */
void ship_pass_over(struct ship *s, const char *path, const struct err *why);
/* Whether it is not its turn yet; the pass then counts as not through. */
bool ship_has_to_wait(struct ship *s, const struct ship_retry *r);
/* After a failure with one journal or session: true when the pass goes on with the others (*e is kept in
 * `trouble`), false when nothing else would get through either. */
bool ship_try_later(struct ship *s, struct ship_retry *r, struct err *e);
/* False (ERR_UNREACHABLE) when there is no time left. */
MUST_CHECK bool ship_may_go_on(const struct ship *s, struct err *e);

#endif
