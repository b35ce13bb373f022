/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a session's profile, kept beside its report so that the run's report can rest on them
 * without reading the profile again. They are a cache: what another version wrote is as good as absent.
 * Thread: any. */
#ifndef TACHO_SERVER_SESSION_FACTS_H
#define TACHO_SERVER_SESSION_FACTS_H

#include "model/profile_facts.h"
#include "server/server_inside.h"

#define SESSION_FACTS_FILE "facts.bin"

/* Of the run's newest session whose report is done; false when there is none. The name of the session
 * and the facts live in a. */
bool session_facts_newest(struct server *s, str run, struct arena *a, struct profile_facts *out,
                          str *name);

#endif
