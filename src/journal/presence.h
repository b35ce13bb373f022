/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the process that wrote a journal is still there, asked of this host's kernel by base/process.h.
 * Its pid says something only where boot id, host and pid namespace are this process's own. */
#ifndef TACHO_JOURNAL_PRESENCE_H
#define TACHO_JOURNAL_PRESENCE_H

#include "model/record.h"

/* Ask before the journal is read to its end: a process that writes its end and exits in between would
 * look lost. Borrows p. Cannot fail. Thread: any. */
enum record_presence presence_of(const struct record_process *p);

/* For who gets the records some time after they were written (a server): a process counts as gone only
 * PRESENCE_LATE_NS after it was first seen gone. Sets presence and gone_seen_ns of p. */
#define PRESENCE_LATE_NS 4000000000ull
void presence_look_late(struct record_process *p);

#endif
