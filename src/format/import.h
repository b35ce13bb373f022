/* SPDX-License-Identifier: Apache-2.0 */
/* Import of a profile in a foreign format as an XSpace. The format is told from the first bytes, gunzipped where
 * the file is gzip: Chrome's JSON, pprof, Perfetto, or an XSpace that is compressed.
 *
 *     if (import_looks_like(head)) ... if (!import_run(from_fd, to_fd, e)) ...
 *
 * Thread: any. */
#ifndef TACHO_FORMAT_IMPORT_H
#define TACHO_FORMAT_IMPORT_H

#include "base/err.h"
#include "base/str.h"

/* True for what import_run() takes and an XSpace's reader does not; for gzip whatever is in it. */
bool import_looks_like(str head);
/* Reads from_fd from its begin, appends an XSpace to to_fd. Borrows both. */
MUST_CHECK bool import_run(int from_fd, int to_fd, struct err *e);

#endif
