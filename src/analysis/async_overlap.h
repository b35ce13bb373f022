/* SPDX-License-Identifier: Apache-2.0 */
/* What a TPU core's asynchronous operations (copies, collectives) cost: how much of each, from its start
 * to its end, the core spent on nothing else.
 *
 *     core   ├ copy-start ┤├── fusion ──┤├─ copy-done ─┤
 *     window ├────────────────────────────────────────┤
 *     exposed├────────────┤              ├─────────────┤
 *
 * Windows are the events of the line "Async XLA Ops"; where a core has none, they go from a -start to
 * its -done on the line "XLA Ops" (the done that has it as operand, else that of the same number).
 * Starting and waiting for asynchronous operations, and what only encloses others (while), is
 * nothing else. Times: picoseconds of the trace. Everything lives in the arena; names borrow it. */
#ifndef TACHO_ANALYSIS_ASYNC_OVERLAP_H
#define TACHO_ANALYSIS_ASYNC_OVERLAP_H

#include "analysis/spans.h"

#define ASYNC_HIDDEN_RATIO                                                                         \
    0.9 /* of a window that overlaps with other work, from which on it is hidden */
#define ASYNC_EXPOSED_RATIO 0.1 /* up to which it is exposed; between, partly so */

enum async_class { ASYNC_HIDDEN = 0, ASYNC_PARTIAL, ASYNC_EXPOSED, ASYNC_CLASSES };

struct async_window {
    uint32_t core; /* into cores */
    str name;      /* "copy-start.2" */
    str op;        /* "copy" */
    uint64_t start_ps, span_ps, exposed_ps;
};

struct async_sum {
    uint64_t count, span_ps, exposed_ps;
    uint64_t classes[ASYNC_CLASSES];
};

struct async_core {
    const struct trace *trace;
    uint32_t plane_index;
    bool paired; /* windows are from start to done, there is no line of them */
    uint32_t most_at_once;
    struct async_sum sum;
};

struct async_op {
    str op;
    struct async_sum sum;
};

struct async_overlap {
    struct async_core *cores;     /* with operations, by trace, then plane */
    struct async_op *ops;         /* as they come */
    struct async_window *windows; /* most exposed first, then core, then start */
    uint32_t n_cores, cores_capacity, n_ops, ops_capacity, n_windows, windows_capacity;
    uint64_t n_unpaired; /* starts without an end, and ends without a start */
    struct async_sum sum;
};

MUST_CHECK bool async_overlap_of(const struct profile *p, struct arena *a,
                                 struct async_overlap *out, struct err *e);
enum async_class async_class_of(const struct async_window *w);
const char *async_class_name(enum async_class c);
/* Of the window or sum that other work covers, 0 to 1; NaN without length. */
double async_overlap_ratio(uint64_t span_ps, uint64_t exposed_ps);

#endif
