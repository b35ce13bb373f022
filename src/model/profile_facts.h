/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says of its devices, steps and input in a few numbers: the ground that the rules
 * of the report stand on.
 *
 * A number that the profile cannot tell has `known` false: it is unknown, never zero. Times are
 * picoseconds. Device times are per device and summed over devices: busy + idle of a device is its
 * host's window. On a CPU backend a device is what the operations name as theirs (device_ordinal), busy
 * while any executor thread ran one of its operations.
 *
 * Text borrows the profile; arrays live in the arena given. Thread: one at a time per arena. */
#ifndef TACHO_MODEL_PROFILE_FACTS_H
#define TACHO_MODEL_PROFILE_FACTS_H

#include "model/trace.h"

struct fact_ps {
    bool known;
    uint64_t ps;
};

enum device_kind { DEVICE_NONE = 0, DEVICE_CPU, DEVICE_GPU, DEVICE_TPU };

struct device_fact {
    enum device_kind kind;
    str name; /* the plane's name; "CPU 2" on CPU, or the host's when operations name no device */
    str host;
    uint64_t busy_ps, idle_ps;
};

struct step_fact {
    str host;
    int64_t number;                /* as the program numbered it */
    uint64_t start_ps, dur_ps;     /* start since the trace's origin */
    struct fact_ps device_busy_ps; /* union over the devices of that host, inside the step */
    struct fact_ps input_ps;       /* waiting for input inside the step */
};

struct op_fact {
    str name;     /* of the operation */
    str category; /* XLA's, or empty */
    str source;   /* "model.py:47", or empty */
    uint64_t self_ps, occurrences;
};

#define FACTS_TOP_OPS 10

struct profile_facts {
    struct device_fact *devices;
    uint32_t n_devices;
    struct fact_ps window_ps; /* first to last activity of any device, longest over hosts */
    int64_t window_from_ns;   /* its begin, wall clock; only with has_epoch */
    struct fact_ps busy_ps;   /* Σ over devices of the union of their work */
    struct fact_ps idle_ps;   /* Σ over devices of their host's window - busy */
    struct step_fact *steps;  /* by host, then start */
    uint32_t n_steps;
    struct fact_ps median_step_ps;  /* of the complete ones: first and last of a host left out */
    struct fact_ps input_wait_ps;   /* Σ over steps; unknown without a sign of an input pipeline */
    struct fact_ps host_compile_ps; /* union of compilation that began after the second step */
    struct fact_ps host_compile_idle_ps; /* of it, while no device of that host worked */
    uint32_t n_compiles_after_warmup;
    struct op_fact top_ops[FACTS_TOP_OPS]; /* by self time */
    uint32_t n_top_ops;
    uint64_t op_self_ps; /* Σ over all operations, for shares */
    uint64_t n_dropped;  /* events that the profiler said it lost, or that cannot be read */
    uint32_t n_errors, n_warnings; /* said inside the files */
    bool has_hlo, has_steps, has_ops, has_epoch;
    uint32_t n_hosts;
};

#endif
