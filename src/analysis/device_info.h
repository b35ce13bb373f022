/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of device a plane stands for and what it could do at most.
 *
 * Rates are per core: FLOP/s in units of 10^12, bytes in units of 10^9 a second; 0 = unknown.
 * A TPU plane says its peaks; a GPU's are derived from clock, cores and compute capability (marked
 * `derived`), as XProf derives them. What the vendor's data sheet states stands in `product`. Source:
 * analysis/peaks.def. */
#ifndef TACHO_ANALYSIS_DEVICE_INFO_H
#define TACHO_ANALYSIS_DEVICE_INFO_H

#include "analysis/peaks.h"
#include "model/table.h"
#include "model/trace.h"

struct device_info {
    str type; /* "TPU v6 Lite", "Nvidia GPU (Hopper)", "AMD GPU - gfx942", "CPU" */
    double peak_tera_flops;
    double hbm_gb, sram_read_gb, sram_write_gb, cmem_read_gb, cmem_write_gb, vmem_read_gb,
        vmem_write_gb; /* 10^9 bytes a second */
    bool is_gpu, is_tpu;
    bool derived;                       /* the peaks are computed, not said by the profile */
    double cores, clock_mhz;            /* of a GPU, as the profile says; 0 = unknown */
    const struct peak_arch *arch;       /* of a GPU, or NULL */
    const struct peak_product *product; /* or NULL */
};

struct device_info device_info_of(const struct trace_plane *plane, struct arena *a);
/* Says in a table with shares of the memory's peak where the profile's peak cannot be true: ROCm gives MI300X half of
 * its data sheet's rate, and operations then reach 110 %. The shares are of what the profile says, as XProf's. */
void device_memory_note(const struct device_info *d, struct table *t);

#endif
