/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation, or a whole program, computed and moved a second, and which of the device's
 * limits it came closest to.
 *
 * Rates are those of one core: amounts over time, both summed over cores. Memory rates are GiB/s as
 * in XProf's tables, while data sheets and struct device_info count 10^9 bytes: op_peak converts. A
 * resource's use is its rate over its peak, 0 where the peak is not known. Bytes without a memory
 * space count as HBM's. Formulas: XProf's op_metrics_to_record and op_stats_to_roofline_model. */
#ifndef TACHO_ANALYSIS_OP_RATES_H
#define TACHO_ANALYSIS_OP_RATES_H

#include "analysis/op_metrics.h"

#define BYTES_PER_GIB 1073741824.0

enum op_resource {
    OP_COMPUTE = 0,
    OP_HBM,
    OP_CMEM_READ,
    OP_CMEM_WRITE,
    OP_VMEM_READ,
    OP_VMEM_WRITE, /* GPU: shared memory and L1 */
    OP_RESOURCES,
    OP_RESOURCE_NONE = OP_RESOURCES,
};

struct op_rates {
    double rate[OP_RESOURCES]; /* of compute 10^9 FLOP/s, 8-bit work as half; of memories GiB/s */
    double use[OP_RESOURCES];  /* 1 = the peak */
    double intensity_of[OP_RESOURCES]; /* FLOP a byte of that memory; of compute: of all bytes */
    double model_giga_flops, gib; /* FLOP as the model counts them; bytes of all memory spaces */
    enum op_resource bound;       /* the one of most use, or OP_RESOURCE_NONE */
    double efficiency;            /* its use */
    double memory_use;            /* most of any memory */
    double optimal_giga_flops;    /* at full use of what bounds it */
};

/* Amounts of m over time_ps. */
struct op_rates op_rates_of(const struct op_metrics *m, uint64_t time_ps,
                            const struct device_info *d);
/* 10^9 FLOP/s or GiB/s; 0 = not known. */
double op_peak(const struct device_info *d, enum op_resource r);
/* The limit of some memory is known. */
bool op_has_memory_peak(const struct device_info *d);
/* FLOP a byte from which on compute binds and not that memory; 0 = not known. */
double op_ridge(const struct device_info *d, enum op_resource r);
/* "Compute", "HBM", … "Unknown". */
str op_resource_name(const struct device_info *d, enum op_resource r);
/* FLOP a byte of what bounds it. */
static inline double op_bound_intensity(const struct op_rates *r)
{
    return r->intensity_of[r->bound == OP_RESOURCE_NONE ? OP_COMPUTE : r->bound];
}

/* Adds what n operations like x did, and what they moved, to a sum over operations. */
void op_work_add(struct op_metrics *sum, const struct op_metrics *x, uint64_t n);
/* The core waits for data of the host, or hands it some. */
bool op_is_feed(const struct op_metrics *m);

#endif
