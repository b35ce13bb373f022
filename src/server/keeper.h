/* SPDX-License-Identifier: Apache-2.0 */
/* What is done when a run has changed: its summary for listings is made anew, event streams are
 * fed, and what has gathered is compacted. Thread: one of its own. */
#ifndef TACHO_SERVER_KEEPER_H
#define TACHO_SERVER_KEEPER_H

#include "server/server_inside.h"

struct keeper;
struct keeper *keeper_open(struct server *s);
void keeper_close(struct keeper *k); /* NULL allowed */

/* Feeds the stream with what happens to the run after batch `after`. Takes a reference of st. */
void keeper_subscribe(struct keeper *k, struct http_stream *st, str run, int64_t after);

#endif
