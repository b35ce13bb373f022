/* SPDX-License-Identifier: Apache-2.0 */
/* The run object of the API, from a run's records and ledger. Unknown is null.
 *
 * Phase and reason: of the newest attempt's end, as `tacho run` saw it, else as the processes said
 * it. Without an end the run is ACTIVE while one of its processes is there, on a host of its own
 * kernel (journal/presence.h); what another host's process does is known from records alone: it
 * counts as gone RUNNER_SILENCE_S (the runner writes every ten seconds) or WORKLOAD_SILENCE_S after
 * its newest one. When all are gone the run is FAILED, `lost`. Source: SURFACE "Run state",
 * docs/formats/api.md. */
#ifndef TACHO_SERVER_RUN_SUMMARY_H
#define TACHO_SERVER_RUN_SUMMARY_H

#include "base/json.h"
#include "server/run_cache.h"

#define RUNNER_SILENCE_S 60
#define WORKLOAD_SILENCE_S 900

struct run_summary {
    str name, group;                     /* in the arena given */
    const char *phase, *reason, *health; /* static, or in the arena; reason may be NULL */
    int64_t started_ns, ended_ns, last_ns;
    str framework, labels, argv, facts; /* JSON texts but framework; empty = unknown */
    str configs;                        /* JSON object */
    int64_t step;                       /* -1 = unknown */
    uint32_t n_hosts;
    uint32_t n_attempts; /* of the ledger, else of the runners; 0 = unknown */
    bool is_live;
};

void run_summary_make(const struct run_view *v, int64_t now_ns, struct arena *a,
                      struct run_summary *out);
#define RUN_SESSIONS_UNKNOWN UINT32_MAX
/* Writes the object. n_sessions; `verdict` a sentence or empty; full: with configs, labels and so
 * on. */
enum run_detail { RUN_BRIEF = 0, RUN_FULL };
void run_summary_put(const struct run_view *v, const struct run_summary *s, uint32_t n_sessions,
                     str verdict, enum run_detail detail, struct arena *a, struct json *j);
/* {"configs":…,"labels":…}: what a filter may ask beside the brief object. */
void run_summary_put_details(const struct run_summary *s, struct json *j);

#endif
