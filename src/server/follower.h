/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the journals and sessions of the server's own data folder: once a second it looks for
 * files that are new or have grown, takes their new records into the store as if they had been
 * sent, and registers sessions whose files have stopped changing. What was taken is remembered in
 * the store, so a restart reads only what has grown. Thread: one of its own. */
#ifndef TACHO_SERVER_FOLLOWER_H
#define TACHO_SERVER_FOLLOWER_H

#include "server/server_inside.h"

struct follower *follower_open(struct server *s);
void follower_close(struct follower *f); /* NULL allowed */

#endif
