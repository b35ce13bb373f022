/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/device_info.h"

static double plane_f64(const struct trace_plane *p, str name)
{
    double v = 0;
    return trace_stat_f64(trace_stat_find(p->stats, name), &v) ? v : 0;
}

static int64_t plane_i64(const struct trace_plane *p, str name)
{
    int64_t v = 0;
    return trace_stat_i64(trace_stat_find(p->stats, name), &v) ? v : 0;
}

static str plane_str(const struct trace_plane *p, str name)
{
    str v = {0};
    trace_stat_str(trace_stat_find(p->stats, name), &v);
    return v;
}

static str nvidia_name(int64_t major, int64_t minor)
{
    switch (major) {
    case 3:
        return S("Nvidia GPU (Kepler)");
    case 5:
        return S("Nvidia GPU (Maxwell)");
    case 6:
        return S("Nvidia GPU (Pascal)");
    case 7:
        return minor < 5 ? S("Nvidia GPU (Volta)") : S("Nvidia GPU (Turing)");
    case 8:
        return minor < 9 ? S("Nvidia GPU (Ampere)") : S("Nvidia GPU (Ada Lovelace)");
    case 9:
        return S("Nvidia GPU (Hopper)");
    case 10:
    case 11:
    case 12:
        return S("Nvidia GPU (Blackwell)");
    default:
        return S("Nvidia GPU");
    }
}

/* "gfx942" of the device's name, else of the capability that ROCm writes for it. */
static str amd_arch(const struct trace_plane *p, int64_t major, int64_t minor)
{
    const str name = plane_str(p, S("gpu_device_name"));
    const ptrdiff_t at = str_find(name, S("gfx"));
    if (at >= 0)
        return str_sub(name, (size_t)at, (size_t)at + 6);
    if (major == 9 && (minor == 4 || minor == 5))
        return minor == 4 ? S("gfx942") : S("gfx950");
    return (str){0};
}

static void fill_gpu(const struct trace_plane *p, struct arena *a, struct device_info *d)
{
    const int64_t major = plane_i64(p, S("compute_cap_major"));
    const int64_t minor = plane_i64(p, S("compute_cap_minor"));
    const bool amd = str_eq(plane_str(p, S("device_vendor")), S("AMD"));
    const str gfx = amd ? amd_arch(p, major, minor) : (str){0};
    d->is_gpu = true;
    d->derived = true;
    d->type = amd ? (gfx.n > 0 ? arena_printf(a, "AMD GPU - %.*s", STR_ARG(gfx)) : S("AMD GPU"))
                  : nvidia_name(major, minor);
    if (d->type.p == NULL)
        d->type = S("AMD GPU");
    d->hbm_gb = plane_f64(p, S("memory_bandwidth")) / 1e9;
    d->clock_mhz = plane_f64(p, S("clock_rate")) / 1e3;
    d->cores = plane_f64(p, S("core_count"));
    d->arch = amd ? peak_arch_amd(gfx) : peak_arch_nvidia(major, minor);
    d->product = peak_product_gpu(d->arch, plane_str(p, S("gpu_device_name")), d->cores, d->hbm_gb,
                                  d->clock_mhz);
    if (d->arch == NULL)
        return;
    const double giga_clocks = d->cores * d->clock_mhz / 1e3; /* of all cores in a second */
    d->peak_tera_flops = peak_xprof_flops_per_clock(d->arch) * giga_clocks / 1e3;
    d->sram_read_gb = d->sram_write_gb = d->arch->shared_bytes_per_clock * giga_clocks;
}

static void fill_tpu(const struct trace_plane *p, struct device_info *d)
{
    d->is_tpu = true;
    d->type = plane_str(p, S("device_type_string"));
    d->product = peak_product_tpu(d->type);
    d->hbm_gb = plane_f64(p, S("peak_hbm_bw_gigabytes_per_second"));
    d->sram_read_gb = plane_f64(p, S("peak_sram_rd_bw_gigabytes_per_second"));
    d->sram_write_gb = plane_f64(p, S("peak_sram_wr_bw_gigabytes_per_second"));
}

struct device_info device_info_of(const struct trace_plane *p, struct arena *a)
{
    struct device_info d = {.type = S("CPU")};
    if (p->kind == TRACE_PLANE_GPU)
        fill_gpu(p, a, &d);
    else if (p->kind == TRACE_PLANE_TPU || p->kind == TRACE_PLANE_TPU_SPARSE)
        fill_tpu(p, &d);
    const double said = plane_f64(p, S("peak_teraflops_per_second"));
    if (said > 0) {
        d.peak_tera_flops = said;
        d.derived = false;
    }
    d.cmem_read_gb = plane_f64(p, S("peak_cmem_rd_bw_gigabytes_per_second"));
    d.cmem_write_gb = plane_f64(p, S("peak_cmem_wr_bw_gigabytes_per_second"));
    d.vmem_read_gb = plane_f64(p, S("peak_vmem_rd_bw_gigabytes_per_second"));
    d.vmem_write_gb = plane_f64(p, S("peak_vmem_wr_bw_gigabytes_per_second"));
    return d;
}

#define MEMORY_RATE_LEAST                                                                          \
    0.6 /* of the data sheet's: below it the profile's is a mistake, not a slower clock */

void device_memory_note(const struct device_info *d, struct table *t)
{
    if (d->product != NULL && d->hbm_gb > 0 &&
        d->hbm_gb < MEMORY_RATE_LEAST * d->product->memory_gb)
        table_note(t, S("memory_rate_too_low"), 1,
                   "device whose plane says little more than half of its data sheet's memory rate: "
                   "ridge points are too high and memory is used less than shown");
}
