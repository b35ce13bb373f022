/* SPDX-License-Identifier: Apache-2.0 */
/* Import of pprof profiles (Go, py-spy, gperftools, Pyroscope …) as an XSpace.
 *
 * A sample type (cpu, inuse_space …) becomes a line "<type> (<unit>)" of the plane "/host:CPU", a stack an event's
 * metadata: named as its leaf, with the stat `stack` (frames from the root, `;` between). A sample becomes
 * an event without a duration with the stat `weight`, its labels being stats too. pprof tells no times of
 * samples: all stand at the profile's begin; its length is the plane's stat duration_ns.
 *
 * Samples that name locations or functions that are not there keep what is known of their stack and are
 * counted in the XSpace's warnings. Damage of the wire format is ERR_PARSE with the byte. The whole profile
 * is held in memory, up to LIMIT_PPROF_BYTES. Source: github.com/google/pprof, proto/profile.proto. Thread:
 * any. */
#ifndef TACHO_FORMAT_PPROF_H
#define TACHO_FORMAT_PPROF_H

#include "base/err.h"
#include "base/str.h"

/* Reads from_fd (gzip or not), appends an XSpace to to_fd. Borrows both. */
MUST_CHECK bool pprof_import(int from_fd, int to_fd, struct err *e);
/* True when the first bytes (not compressed) can begin a pprof profile: they do not begin an XSpace then. */
bool pprof_looks_like(str head);

#endif
