/* SPDX-License-Identifier: Apache-2.0 */
/* What each device of a profile did: computed, communicated, copied, and when.
 *
 *     struct work_devices d;
 *     if (!work_devices_of(profile, a, &d, e)) return false;
 *     ... spans_within(&d.items[i].compute, begin_ps, end_ps) ...
 *
 * A device is a GPU or a TPU core with work; where a target has none, a device of XLA:CPU ("CPU 2",
 * by device_ordinal), else the process that ran PyTorch's operations. Work is what spans.h calls
 * work, told apart here: communication between devices (NCCL and its kin, HLO collectives and their
 * asynchronous transfers), copies and fills of memory, and all else, which computes. Waiting for the
 * host (infeed, outfeed, send, recv) is no work. A "-done" only waits for its transfer, so it counts as
 * communication or copy only where the transfers themselves were not recorded.
 *
 * `compute`, `compute_comm` and `busy` are each within the next one, so a window divides exactly:
 * compute; communication beside no compute (compute_comm less compute); copies beside neither
 * (busy less compute_comm); the rest is idle.
 *
 * Times: picoseconds since the trace's origin. Everything lives in the arena. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_DEVICE_WORK_H
#define TACHO_ANALYSIS_DEVICE_WORK_H

#include "analysis/memo.h"
#include "analysis/spans.h"

enum work_kind {
    WORK_NONE = 0,
    WORK_COMPUTE,
    WORK_COMM,
    WORK_COPY, /* fills too */
    WORK_WAIT, /* for the host */
    WORK_KINDS
};

struct work_name {
    uint64_t hash, count;
};

struct work_device {
    const struct trace *trace;
    uint32_t plane_index; /* UINT32_MAX: of a CPU */
    int64_t ordinal;      /* of a CPU device; else of the plane, -1 unknown */
    str name;             /* "GPU 0", "TPU 1", "CPU 2" */
    str label; /* alone in the profile: "rank 3", "host-1 GPU 0", "GPU 0" where there is one host */
    int64_t rank; /* of its process, when the profile says it */
    bool has_rank;
    uint64_t from_ps, to_ps; /* of its first and last work */
    uint64_t sum_ps[WORK_KINDS], count[WORK_KINDS];
    struct spans compute, comm, copy, wait, compute_comm, busy;
    struct work_name *names; /* of what it computed, by hash */
    uint32_t n_names, names_capacity;
};

struct work_devices {
    struct work_device *items; /* by trace, then plane or ordinal */
    uint32_t n, capacity;
};

MUST_CHECK bool work_devices_of(const struct profile *p, struct arena *a, struct work_devices *out,
                                struct err *e);

/* What an operation of the HLO is, by category and name, either may be empty:
 * ("all-reduce", "all-reduce.3"), ("", "all-gather-start.1-async"). */
enum work_kind work_kind_of_op(str category, str name);
/* What a kernel or copy on a GPU's stream is. */
enum work_kind work_kind_of_kernel(str name);
/* Of an event on a line of a device's plane; known: a memo kept for the plane's events. */
enum work_kind work_kind_at(struct memo *known, const struct trace *t, uint32_t line_index,
                            const struct trace_event *ev);
/* Of an event of the host: the stats to pick, and what it is as work of a CPU device. */
enum work_cpu_asked { WORK_CPU_HLO_OP = 0, WORK_CPU_ORDINAL, WORK_CPU_CATEGORY, WORK_CPU_ASKED };
extern const str work_cpu_names[WORK_CPU_ASKED];
enum work_kind work_kind_on_cpu(const struct trace_stat *values, str name);
/* Calls fn for each event of the device's lines, or of its CPU device; kind may be WORK_NONE or
 * WORK_WAIT. fn answers false to stop, which is a failure that it has set in e. */
typedef bool (*work_fn)(void *ctx, uint32_t line_index, const struct trace_cursor *c,
                        enum work_kind kind, struct err *e);
MUST_CHECK bool work_each(const struct work_device *d, work_fn fn, void *ctx, struct err *e);
/* "all-reduce" of "%all-reduce-start.3 = …" and of "all_reduce"; empty when it is no collective. */
str work_collective(str name);
/* "all-reduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)"; also "broadcast", "reduce", "send-recv". */
str work_collective_of_kernel(str name);
/* The device of that plane or ordinal (see struct work_device), or UINT32_MAX. */
uint32_t work_device_find(const struct work_devices *d, const struct trace *t, uint32_t plane_index,
                          int64_t ordinal);
/* A line of a TPU's plane with transfers beside its operations. */
bool work_is_async_line(const struct trace *t, uint32_t line_index);
/* Whether the plane has such transfers. */
bool work_has_transfers(const struct trace *t, const struct trace_plane *p);
/* Its process's rank, as the importer kept it. */
bool trace_rank(const struct trace *t, int64_t *rank);

#endif
