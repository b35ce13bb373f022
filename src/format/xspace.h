/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of XSpace files (tsl/profiler/protobuf/xplane.proto) into a struct trace.
 *
 * Two passes over pread windows: the skim finds planes and lines and reads the metadata maps (real
 * files put them after the lines), then each line is decoded into row groups. The file is never
 * held whole; memory is the metadata plus the row groups, and the row groups beyond
 * LIMIT_TRACE_IN_FLIGHT_BYTES go to spill_fd.
 *
 * Broken wire format, a cut file or another type of file: ERR_PARSE with the byte. An event that
 * is well-formed but impossible (negative or overflowing times) is dropped and counted in
 * trace.notes. Thread: any. */
#ifndef TACHO_FORMAT_XSPACE_H
#define TACHO_FORMAT_XSPACE_H

#include "model/trace.h"

struct xspace_options {
    str file;     /* name for messages; copied */
    str host;     /* of the file's name, or empty; copied */
    int spill_fd; /* readable and writable, or -1: everything stays in memory. Taken. */
};

/* Takes fd (also on failure). Returns owned, or NULL and e. */
struct trace *xspace_load(int fd, const struct xspace_options *o, struct err *e);
/* The same from memory, by way of a memfd: for tests and fuzzing. */
struct trace *xspace_load_memory(str bytes, const struct xspace_options *o, struct err *e);

/* True when the first bytes can begin an XSpace. */
bool xspace_looks_like(str head);

#endif
