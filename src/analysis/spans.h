/* SPDX-License-Identifier: Apache-2.0 */
/* When the devices of one trace worked, computed and waited for input, as disjoint intervals.
 *
 * What counts as work of a device is said here and nowhere else (spans_is_work_line,
 * spans_is_work): on a TPU the events of the line "XLA Ops" but those that wait for the host
 * (infeed, outfeed, send, recv: "off duty" in XProf's op_metrics_db_utils) and those that enclose
 * others (while, conditional, call); on a GPU all that runs on a stream, copies too; where there is
 * neither, the host's events that name an hlo_op, else PyTorch's operators. An event that stands for many occurrences has no place in time
 * and is none. Several at once count once.
 *
 * Intervals live in the arena. Times: picoseconds of the trace. */
#ifndef TACHO_ANALYSIS_SPANS_H
#define TACHO_ANALYSIS_SPANS_H

#include "model/trace.h"

struct interval {
    uint64_t begin_ps, end_ps;
};

struct spans { /* sorted and disjoint once closed */
    struct interval *items;
    uint32_t n, capacity;
};

/* What a TPU core's operation does, where it is not plain work. On a line in which a loop encloses
 * them, the operations inside tell. */
enum core_part {
    CORE_INFEED = 0,
    CORE_OUTFEED,
    CORE_HOST_RECV, /* from the host, but for infeed */
    CORE_HOST_SEND, /* to the host, but for outfeed */
    CORE_COLLECTIVE, /* all-reduce and its kin; of one that runs beside others, starting and waiting */
    CORE_DEVICE,     /* send and receive between devices */
    CORE_PARTS
};

struct core_spans { /* of a TPU core */
    uint32_t plane_index;
    struct spans any; /* in which any operation ran or waited */
    struct spans parts[CORE_PARTS];
};

struct device_spans {
    struct spans busy;          /* any work but waiting for the host (infeed, send and their kin) */
    struct spans compute;       /* busy without copies from the host to a GPU */
    struct spans busy_or_input; /* busy, and what the stepping thread waits in IteratorGetNext */
    bool has_work, has_input;   /* false: nothing of the kind in the trace */
    bool has_infeed;            /* a TPU core waits in an infeed */
};

/* on_core, unless NULL, is told of each TPU core with operations; what it gets is gone when it is back: the intervals of
 * one core of a long profile are many, those of all cores too many. */
typedef void (*device_core_fn)(void *ctx, const struct core_spans *core);
MUST_CHECK bool device_spans_of(const struct trace *t, struct arena *a, device_core_fn on_core,
                                void *ctx, struct device_spans *out, struct err *e);

/* Adds an interval; false beyond the arena's cap. */
bool spans_add(struct spans *s, struct arena *a, uint64_t begin_ps, uint64_t end_ps);
/* Sorts and joins what was added. */
void spans_close(struct spans *s);

/* Intervals while they are gathered, where they are many: an arena would keep each smaller copy of a list that grows. */
struct span_list {
    struct interval *items; /* owned */
    uint32_t n, capacity;
    uint32_t n_joined; /* of them: the first ones, sorted and joined */
};
/* Joins what was added where that is worth it, say at the end of a line: what lines do at the same time is kept once. */
void span_list_fold(struct span_list *l);
void span_list_add(struct span_list *l, uint64_t begin_ps, uint64_t end_ps);
/* Sorts and joins what was added. The answer borrows the list. */
struct spans span_list_close(struct span_list *l);
void span_list_release(struct span_list *l);
/* Adds what of the closed spans lies in [begin, end). */
bool spans_add_within(struct spans *to, struct arena *a, const struct spans *from,
                      uint64_t begin_ps, uint64_t end_ps);
/* The first of the closed spans that ends after begin; n when there is none. */
uint32_t spans_first_after(const struct spans *s, uint64_t begin_ps);
/* How much of [begin, end) the closed spans cover. */
uint64_t spans_within(const struct spans *s, uint64_t begin_ps, uint64_t end_ps);
/* Lines of a GPU plane that an analyser derived from the streams. */
bool spans_is_derived(str line_name);
/* A line of a TPU's or GPU's plane that holds work. */
bool spans_is_work_line(const struct trace *t, uint32_t line_index);
/* Whether an event of such a line is work. */
bool spans_is_work(const struct trace *t, uint32_t line_index, const struct trace_event *ev);
/* Some event of the plane may have a stat of that name. */
bool spans_plane_names(const struct trace_plane *p, str name);
/* True where PyTorch's operators on threads of the host stand for a device: the trace has neither a TPU nor a
 * GPU, and no event of XLA:CPU that names its hlo_op. */
bool spans_has_operators(const struct trace *t);
/* Whether an event whose stat "category" this is is such an operator. */
bool spans_is_operator(const struct trace_stat *category);

#endif
