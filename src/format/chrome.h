/* SPDX-License-Identifier: Apache-2.0 */
/* Import of traces in Chrome's JSON (also PyTorch's and Kineto's) as an XSpace.
 *
 * A process becomes a plane ("/device:GPU:N" when it runs kernels, else "/host:CPU"), a thread a
 * line, a slice (ph X, or B with its E) an event, an argument a stat. `ts` and `dur` are
 * microseconds whatever displayTimeUnit says; baseTimeNanoseconds is added. Ids are text: numbers
 * of any width stay apart. Counters, flows and instants are left out; what was left out, repaired
 * or had no end is counted in the XSpace's warnings.
 *
 * What else than kernels and copies stands on the row of a stream (the user's annotations, waits) becomes a
 * row of its own, and host threads of a process that also runs kernels are "Framework Ops", so that neither
 * counts as the device's work. The rank of distributedInfo is the stat "rank" of
 * every plane.
 *
 * PyTorch's marks of steps ("ProfilerStep#7") become roots with their step_num, as XProf's writers mark
 * them.
 *
 * A file that ends inside the event list counts as closed there and is said to be cut. Other damage
 * is ERR_PARSE with the byte. Source: the "Trace Event Format" document of Chrome. Thread: any. */
#ifndef TACHO_FORMAT_CHROME_H
#define TACHO_FORMAT_CHROME_H

#include "base/err.h"
#include "base/str.h"

/* Reads from_fd, appends an XSpace to to_fd. Borrows both. */
MUST_CHECK bool chrome_import(int from_fd, int to_fd, struct err *e);

#endif
