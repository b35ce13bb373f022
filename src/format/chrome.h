/* SPDX-License-Identifier: Apache-2.0 */
/* Import of traces in Chrome's JSON (also PyTorch's and Kineto's) as an XSpace.
 *
 * A process becomes a plane ("/device:GPU:N" when it runs kernels, N being the device of their arguments;
 * its own name when it is called as a plane, "/device:…"; else "/host:CPU"), a thread a line, an argument a stat. `ts` and `dur` are microseconds whatever
 * displayTimeUnit says; baseTimeNanoseconds is added. Ids are text: numbers of any width stay apart.
 *
 *   ph X, B with its E     an event
 *   b n e (S T F)          an event of the process's line "Async: <category>", stat async_id
 *   i I R                  an event without a duration
 *   C                      one such event a series on the line "_counters_", stat counter_value
 *   s t f                  stats _pt and _p of the event at the begin of the arrow, _ct and _c of the one at
 *                          its end (XProf's producers and consumers). Not those from a launch to its kernel:
 *                          correlation_id says the same.
 *   M                      names and order of processes and threads
 *
 * Arguments that mean what a stat of XProf's means have its name: format/chrome_args.def, kernel_details,
 * memcpy_details and Memset_details. PyTorch's "[memory]" instants become MemoryAllocation and
 * MemoryDeallocation with XProf's stats. deviceProperties become the device planes' stats (core_count …).
 *
 * What else than kernels and copies stands on the row of a stream (the user's annotations, waits) becomes a
 * row of its own, and host threads of a process that also runs kernels are "Framework Ops", so that neither
 * counts as the device's work. Rank and world size of distributedInfo are stats "rank" and "world_size" of
 * every plane; the other facts of the document are stats of the first one.
 *
 * PyTorch's marks of steps ("ProfilerStep#7") become roots with their step_num, as XProf's writers mark
 * them. What was left out, repaired or had no end is counted in the XSpace's warnings.
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
