/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the journals and profile sessions of a data folder to a server: whole records, at least once. The
 * server knows records by journal id and number, so nothing is doubled; what it has is asked for with
 * a journal's header alone, so nothing is kept here. A batch that was not acknowledged is sent again
 * as it was. A side file goes before the record that names it.
 *
 *     struct ship s;
 *     ship_init(&s, &(struct ship_options){.data_dir = …, .server = …, .token = …});
 *     while (ship_pass(&s, e)) …            one look at every journal and session
 *     ship_release(&s);
 *
 * What is sent was synced to disk before. Source: docs/formats/api.md "Journal ingest" and the upload
 * routes. Thread: one at a time. */
#ifndef TACHO_AGENT_SHIP_H
#define TACHO_AGENT_SHIP_H

#include "base/buf.h"
#include "base/map.h"

#define SHIP_END_S 20 /* what is left is sent for at most that long */

struct ship_options {
    const char *data_dir, *server, *token; /* borrowed; token NULL = none */
    const char *run;                       /* only this run; NULL = all */
    bool here_only;                        /* only journals that this host's processes write */
    bool (*may_go_on)(void *);             /* asked often; false ends a pass soon; NULL = always */
    void *ctx;                             /* for it */
};

struct ship_journal;
struct ship_session;
struct ship_run;
MAP_DEFINE(ship_journal_map, str, struct ship_journal *, str_hash, str_eq);
MAP_DEFINE(ship_session_map, str, struct ship_session *, str_hash, str_eq);
MAP_DEFINE(ship_run_map, str, struct ship_run *, str_hash, str_eq);

struct ship {
    struct ship_options options;
    struct ship_journal_map journals;    /* by path; owned */
    struct ship_session_map sessions;    /* by path; owned */
    struct ship_run_map runs;            /* by name; owned */
    char server_started[40];             /* as its last answer said; "" = never */
    uint32_t n_restarts;                 /* of the server: it may hold less than before */
    uint64_t n_passes, n_met, n_answers; /* so far; journals looked at; answers but failures */
    uint64_t n_records, n_files;         /* acknowledged so far: records, profiles */
    uint64_t n_refused; /* journals and sessions passed over: unreadable here, or not taken there */
    struct err first_refusal; /* of those */
    uint32_t n_writers;       /* processes of this host that write a journal and still live */
    bool unsettled;           /* a session was still being written when it was looked at */
    /* The caller's: the next passes also look at runs that have long been quiet. */
    bool look_everywhere;
    bool busy;                      /* the run that is looked at is being written, or waits */
    uint32_t n_troubles, n_waiting; /* journals and sessions of this pass that are tried again */
    struct err trouble;             /* the last one of those */
    size_t body_bytes_max;          /* what the way to the server takes in one request */
};

void ship_init(struct ship *s, const struct ship_options *o);
void ship_release(struct ship *s);
/* Sends what is new. False when the server was not reached, cannot take it now, or does not take this token
 * at all, or something is to be tried again; a later pass goes on from there. What it refuses of one
 * journal or session is counted and passed over. Runs in which nothing happens are looked at in every
 * 20th pass only. */
MUST_CHECK bool ship_pass(struct ship *s, struct err *e);
/* The server's URL without slashes at its end, as it goes before "/api". */
str ship_server_url(str url);
/* True when a later pass may get through: the server is away or busy. */
bool ship_may_pass(const struct err *e);

#endif
