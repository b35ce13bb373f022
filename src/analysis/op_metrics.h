/* SPDX-License-Identifier: Apache-2.0 */
/* Time and cost of every operation that ran on the devices of a profile.
 *
 * One row an operation, keyed by program id and name, summed over devices and hosts. `self` is an
 * event's time less its direct children's. A device's total is the span from its first operation
 * or step to its last. In it the device was busy with operations, busy with what names no operation
 * (GPU: copies, kernels without XLA) or idle; XProf counts the last two as idle. What a CUDA graph ran
 * names no operation either: each launch of the graph is one execution of the operation "CUDA graph 11"
 * (analysis/op_graphs.h). On CPU backends the device is the one that each operation names
 * (device_ordinal), on whatever executor thread it ran; its total is its host's, from the first
 * operation to the last. Where a host has no XLA either, PyTorch's operators ("aten::mm") stand for its
 * operations. Flops and
 * bytes come from the event's metadata (TPU) or from the static cost model over the HLO (GPU, CPU);
 * has_cost tells an unknown from a zero.
 *
 *     struct op_db db;
 *     if (!op_db_build(&db, profile, host, a, e)) return false;
 *     ... db.ops[0 … n), by self time ...
 *     op_db_release(&db);
 *
 * Times are picoseconds. Everything lives in the arena but the maps. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_OP_METRICS_H
#define TACHO_ANALYSIS_OP_METRICS_H

#include "analysis/device_info.h"
#include "analysis/hlo_index.h"
#include "analysis/spans.h"
#include "model/table.h"

enum op_space { OP_SPACE_HBM = 0, OP_SPACE_CMEM, OP_SPACE_VMEM, OP_SPACE_OTHER, OP_SPACES };

struct op_metrics {
    uint64_t program_id;
    str name;      /* "fusion.15" */
    str long_name; /* the HLO text, or empty */
    str category, provenance, deduplicated_name;
    str source_file, source_stack;
    int64_t source_line; /* 0 = unknown */
    uint64_t occurrences, time_ps, self_ps, min_ps, max_ps, dma_stall_ps;
    double normalized_ps;               /* time at the nominal clock (TPU) */
    uint64_t flops, model_flops, bytes; /* of all occurrences; saturating */
    uint64_t read_bytes[OP_SPACES], write_bytes[OP_SPACES];
    bool has_breakdown, has_cost, is_eager;
    bool cost_is_own; /* though it runs others: theirs is not in it (PyTorch's matrix products) */
    bool uses_matrix_units; /* one of its kernels does, by the kernel's name (GPU) */
    uint64_t matrix_ps;     /* of its time, in such kernels */
    enum { OP_CORE_NONE = 0, OP_CORE_TENSOR, OP_CORE_SPARSE } core;
    const struct hlo_module *module; /* with its instruction, or NULL */
    const struct hlo_instruction *instruction;
    const struct op_metrics *once; /* what one execution does, once a step asked; not on TPU */
};

/* A step over all devices: what its operations did, where steps were asked for. On a TPU an operation
 * belongs to the step of its core in which it began, on a GPU to the one that launched it, on a CPU
 * to the one of its host in which it began. */
struct op_step {
    int64_t number;
    int32_t group;           /* of the first host that had it; see grouping.h */
    str name;                /* of its marker */
    uint64_t longest_ps;     /* of its markers, over devices and hosts */
    struct op_metrics work;  /* flops, bytes, stalls of its operations … */
    struct op_metrics feeds; /* … and those of infeed and outfeed, with their self time */
};

struct op_cpu_device {
    const struct trace *trace;
    str name; /* "CPU 2", or the host's when operations do not say where they ran */
    struct spans busy;
};

struct op_key {
    uint64_t program_id;
    str name;
};
static inline uint64_t op_key_hash(struct op_key k)
{
    return str_hash(k.name) ^ map_hash_u64(k.program_id);
}
static inline bool op_key_eq(struct op_key a, struct op_key b)
{
    return a.program_id == b.program_id && str_eq(a.name, b.name);
}
MAP_DEFINE(op_map, struct op_key, uint32_t, op_key_hash, op_key_eq);

enum op_backend { OP_BACKEND_NONE = 0, OP_BACKEND_CPU, OP_BACKEND_GPU, OP_BACKEND_TPU };

struct op_db {
    struct arena *arena;
    struct op_metrics *ops; /* by self time, then name, once built */
    uint32_t n_ops, capacity;
    uint64_t total_ps;                 /* Σ over devices of their span */
    uint64_t self_ps;                  /* Σ over operations */
    uint64_t busy_ps;                  /* Σ over devices of the time in which anything ran */
    uint64_t named_ps;                 /* of it, in which an operation ran */
    struct op_cpu_device *cpu_devices; /* CPU backend: by trace, then as they come */
    uint32_t n_cpu_devices, cpu_devices_capacity;
    uint64_t duty_busy_ps, duty_idle_ps; /* TPU: without infeed, outfeed, send, recv */
    enum op_backend backend;
    bool says_eager; /* some event tells whether its operation ran eagerly */
    uint32_t n_devices, n_hosts;
    struct device_info device; /* of the first device */
    struct hlo_index hlo;
    struct op_map by_key;
    struct op_steps *steps;      /* NULL: not asked for (op_db_build_steps) */
    struct grouping **groupings; /* one a trace; NULL: it was not needed (not GPU, another host) */
};

/* `host` empty: all hosts. Groups of consecutive kernels count as one occurrence within a step. */
MUST_CHECK bool op_db_build(struct op_db *db, const struct profile *p, str host, struct arena *a,
                            struct err *e);
/* The same, with what each step's operations did: op_db_steps(). */
MUST_CHECK bool op_db_build_steps(struct op_db *db, const struct profile *p, str host,
                                  struct arena *a, struct err *e);
/* The steps in the order of time, or none. */
const struct op_step *op_db_steps(const struct op_db *db, uint32_t *n);
void op_db_release(struct op_db *db);
/* How the time of the devices divides, as values of a table. */
void op_db_values(const struct op_db *db, struct table *t);

static inline uint64_t op_db_idle_ps(const struct op_db *db)
{
    return db->total_ps > db->busy_ps ? db->total_ps - db->busy_ps : 0;
}
/* Busy, of no operation. */
static inline uint64_t op_db_unnamed_ps(const struct op_db *db)
{
    return db->busy_ps - db->named_ps;
}
/* As XProf counts: all that is not an operation's own time. */
static inline uint64_t op_db_xprof_idle_ps(const struct op_db *db)
{
    return db->total_ps > db->self_ps ? db->total_ps - db->self_ps : 0;
}
/* An operation that runs others (`while`): its cost is already in theirs. */
static inline bool op_runs_others(const struct op_metrics *m)
{
    return m->time_ps > m->self_ps && !m->cost_is_own;
}
/* True for operations that wait for the host or another core: they do not count as busy. */
bool op_is_off_duty(str category);
/* Bytes a picosecond times 1000 = 10^9 bytes a second; likewise FLOP. 0 when the time is 0. */
double op_giga_rate(double amount, double time_ps);

/* Sums of numbers from a file saturate. */
static inline uint64_t op_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
static inline uint64_t op_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
