/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "sessions"
#include "server/session_facts.h"

#include "analysis/facts.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/sessions.h"

#define SESSIONS_LOOKED_AT 16u

static bool facts_of(struct server *s, const struct store_session *t, struct arena *a,
                     struct profile_facts *out)
{
    struct err e = {0};
    str packed;
    const str folder = session_key(a, t->run, t->name);
    const str key = arena_printf(a, "%.*s/" SESSION_FACTS_FILE, STR_ARG(folder));
    if (s->blob->ops->get(s->blob, key, LIMIT_ARENA_REQUEST_BYTES / 4, a, &packed, &e) &&
        profile_facts_unpack(packed, a, out, &e))
        return true;
    if (e.code != ERR_NOT_FOUND)
        log_warn("facts of session %.*s: %s", STR_ARG(t->session), e.msg);
    return false;
}

bool session_facts_newest(struct server *s, str run, struct arena *a, struct profile_facts *out,
                          str *name)
{
    struct store_session *sessions;
    uint32_t n;
    struct err e = {0};
    if (!s->meta->ops->sessions(s->meta, run, 0, (str){0}, SESSIONS_LOOKED_AT, a, &sessions, &n,
                                &e)) {
        log_warn("sessions of run %.*s: %s", STR_ARG(run), e.msg);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        *name = sessions[i].name;
        if (str_eq(sessions[i].report_status, S("done")))
            return facts_of(s, &sessions[i], a, out);
    }
    return false;
}
