/* SPDX-License-Identifier: Apache-2.0 */
/* The job that follows every session: reads its profile in a parser, counts planes, lines and
 * events of each target, makes the report, and keeps report.json and summary.html in the session's
 * folder. A profile that crashes the parser fails this job and nothing else. Thread: worker. */
#ifndef TACHO_SERVER_SESSION_JOB_H
#define TACHO_SERVER_SESSION_JOB_H

#include "server/server_inside.h"

/* queue_fn; ctx is the server. */
bool session_job_run(void *ctx, const struct store_job *job, struct err *e);

#endif
