/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the file of a loaded XSpace secrets stand, so that a copy of it can be given away: whoever overwrites
 * these bytes, with as many others, has an XSpace that is still whole. The same rules as for the trace in
 * memory (model/trace_mask.h). Thread: any. */
#ifndef TACHO_FORMAT_XSPACE_MASK_H
#define TACHO_FORMAT_XSPACE_MASK_H

#include "model/trace.h"

struct xspace_secret {
    uint64_t pos, n; /* bytes of the file */
};

/* All of them, by position, apart from each other. Reads the file once. Allocated in a. */
MUST_CHECK bool xspace_secrets(const struct trace *t, struct arena *a, struct xspace_secret **out,
                               uint32_t *n, struct err *e);

#endif
