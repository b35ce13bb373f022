/* SPDX-License-Identifier: Apache-2.0 */
/* Import of Perfetto's protobuf traces (.pftrace, .perfetto-trace) as an XSpace.
 *
 * Track events: a process becomes a plane ("/host:CPU", with name and pid when there are several), a track a
 * line, slices and instants events, debug annotations stats (nested ones as a.b and a[0]), flows the stats _p and
 * _c as in format/chrome.h, samples of counter tracks events of the line "_counters_" with the stat
 * counter_value. Switches of ftrace become lines "CPU n" of the plane "Scheduling": what ran, with its pid.
 *
 * Times are of any clock that the trace's clock snapshots know, incremental ones too, brought to the primary
 * clock and from there to wall time. Interned data and defaults are kept by sequence; packets that need state
 * which was lost are left out and counted, as are ends without a begin, damaged packets and what follows a cut.
 *
 * The file is read two times, packet by packet: descriptors of tracks may stand behind their events. Errors:
 * ERR_PARSE with the byte when nothing of it can be read. Source: protos/perfetto/trace of
 * github.com/google/perfetto. Thread: any. */
#ifndef TACHO_FORMAT_PERFETTO_H
#define TACHO_FORMAT_PERFETTO_H

#include "base/err.h"
#include "base/str.h"

/* Reads from_fd (gzip or not), appends an XSpace to to_fd. Borrows both. */
MUST_CHECK bool perfetto_import(int from_fd, int to_fd, struct err *e);
/* True when the first bytes (not compressed) begin packets with fields that a plane of an XSpace has not. */
bool perfetto_looks_like(str head);

#endif
