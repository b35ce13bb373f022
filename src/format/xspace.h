/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of XSpace files (tsl/profiler/protobuf/xplane.proto) into a struct trace.
 *
 * Two passes over pread windows: the skim finds planes and lines and reads the metadata maps (real
 * files put them after the lines), then lines are decoded into row groups, several side by side. The file is
 * never held whole; memory is the metadata, what the lines at hand need, and the row groups up to
 * LIMIT_TRACE_IN_FLIGHT_BYTES; those beyond lie in a file.
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
    int spill_fd; /* a temporary file, readable and writable, or -1. Taken. */
    int index_fd; /* the file of an index that is being made, readable and writable; 0 or less: none. Taken. */
    unsigned n_threads; /* that decode lines; 0 or 1: this one alone */
    uint64_t
        most_events; /* about that many, the first of each line: the trace says is_partial; 0: all */
};

/* Takes the descriptors (also on failure). With index_fd all row groups lie there, from the place on where an
 * index has them; index_end() makes it one. Without both files everything stays in memory. What is loaded does not
 * depend on the number of threads. Returns owned, or NULL and e. */
struct trace *xspace_load(int fd, const struct xspace_options *o, struct err *e);
/* The same from memory, by way of a memfd: for tests and fuzzing. */
struct trace *xspace_load_memory(str bytes, const struct xspace_options *o, struct err *e);

/* True when the first bytes can begin an XSpace. */
bool xspace_looks_like(str head);

#endif
