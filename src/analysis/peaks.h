/* SPDX-License-Identifier: Apache-2.0 */
/* What accelerators can do at most: the one table (peaks.def), by architecture and by product.
 *
 * A rate is stated by a vendor's data sheet, or derived: cores x FLOP a clock (of the architecture) x
 * clock. The two differ where a data sheet counts another clock than the profile's, or where the vendor
 * sells less than the architecture can do (GeForce, H20); so each is told with where it is from.
 * Every number counts one device. Thread: any. */
#ifndef TACHO_ANALYSIS_PEAKS_H
#define TACHO_ANALYSIS_PEAKS_H

#include "base/str.h"

enum peak_vendor { PEAK_NVIDIA = 0, PEAK_AMD, PEAK_GOOGLE };
enum peak_type {
    PEAK_FP64 = 0,
    PEAK_FP64_MATRIX,
    PEAK_FP32,
    PEAK_TF32,
    PEAK_BF16,
    PEAK_FP16,
    PEAK_FP8,
    PEAK_FP4,
    PEAK_INT8,
    PEAK_TYPES
};

struct peak_arch {
    enum peak_vendor vendor;
    const char *key; /* "9.0", "gfx942" */
    const char *name;
    double flops_per_clock[PEAK_TYPES]; /* of one SM or CU; 0 = none */
    double shared_bytes_per_clock;
    double threads; /* that one holds at once */
    const char *source;
};

struct peak_product {
    enum peak_vendor vendor;
    const char *arch; /* key of one, or empty */
    const char *name, *words;
    double cores, mhz;             /* 0 = not stated */
    double memory_gb;              /* 10^9 bytes a second */
    double tera_flops[PEAK_TYPES]; /* 10^12 a second; 0 = not stated */
    const char *source;
};

extern const struct peak_arch peak_archs[];
extern const uint32_t peak_n_archs;
extern const struct peak_product peak_products[];
extern const uint32_t peak_n_products;

str peak_vendor_name(enum peak_vendor v);
str peak_type_name(enum peak_type t); /* "bf16", "fp64_matrix" */

/* Of compute capability major.minor: an unlisted minor is as the next lower one of that major. NULL: unknown. */
const struct peak_arch *peak_arch_nvidia(int64_t major, int64_t minor);
/* "gfx942", perhaps with what a driver writes behind it (":sramecc+"). NULL: unknown. */
const struct peak_arch *peak_arch_amd(str target);
const struct peak_arch *peak_arch_of(const struct peak_product *p); /* NULL: a TPU */

/* The product of that architecture whose name says it ("NVIDIA H100 PCIe"), else that alone has so many
 * cores and so fast a memory (10^9 bytes a second; ROCm reports half of an AMD's), of several that with
 * that clock. NULL: unknown. */
const struct peak_product *peak_product_gpu(const struct peak_arch *arch, str name, double cores,
                                            double memory_gb, double mhz);
/* Of a TPU's type ("TPU v6 Lite"). NULL: unknown. */
const struct peak_product *peak_product_tpu(str type);

/* 10^12 FLOP a second that the architecture would do; 0 = it has none. */
double peak_derived(const struct peak_arch *arch, enum peak_type t, double cores, double mhz);
/* The largest of fp32, tf32 and fp16 a clock: what XProf takes for the peak. */
double peak_xprof_flops_per_clock(const struct peak_arch *arch);

#endif
