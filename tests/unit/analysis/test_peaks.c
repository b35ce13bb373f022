/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "analysis/device_info.h"

struct made {
    const char *vendor, *name;
    int64_t major, minor, cores, khz;
    double bytes_per_s;
    double tera_flops, ridge, shared_gb; /* wanted; 0 = not asked */
    const char *product;                 /* wanted, or NULL */
};

static struct device_info info_of(const struct made *m, struct arena *a)
{
    const struct trace_stat stats[] = {
        {.name = S("device_vendor"), .type = TRACE_STAT_STR, .text = str_from(m->vendor)},
        {.name = S("gpu_device_name"), .type = TRACE_STAT_STR, .text = str_from(m->name)},
        {.name = S("compute_cap_major"), .type = TRACE_STAT_I64, .i64 = m->major},
        {.name = S("compute_cap_minor"), .type = TRACE_STAT_I64, .i64 = m->minor},
        {.name = S("core_count"), .type = TRACE_STAT_I64, .i64 = m->cores},
        {.name = S("clock_rate"), .type = TRACE_STAT_I64, .i64 = m->khz},
        {.name = S("memory_bandwidth"), .type = TRACE_STAT_F64, .f64 = m->bytes_per_s},
    };
    const struct trace_plane plane = {.kind = TRACE_PLANE_GPU,
                                      .stats = {stats, sizeof stats / sizeof *stats}};
    return device_info_of(&plane, a);
}

/* XProf's own numbers (its hardware_type_utils_test and data sheets in it). */
static void test_peaks_as_xprof_derives_them(void **state)
{
    (void)state;
    static const struct made gpus[] = {
        {"Nvidia", "", 7, 0, 80, 1530000, 900e9, 125.34, 139.26, 0, "Tesla V100 SXM2"},
        {"Nvidia", "", 8, 0, 108, 1410000, 2039e9, 311.87, 0, 0, "A100 SXM4 80 GB"},
        {"Nvidia", "", 9, 0, 114, 1620000, 2039e9, 756.4, 0, 0, "H100 PCIe"},
        {"Nvidia", "NVIDIA B200", 10, 0, 148, 1830000, 8000e9, 2218.7, 0, 0, "B200"},
        {"AMD", "gfx908:sramecc+:xnack-", 9, 0, 120, 1502000, 1228.8e9, 184.6, 0, 0,
         "Instinct MI100"},
        {"AMD", "gfx90a", 9, 0, 104, 1700000, 1638.4e9, 181.04, 0, 0, NULL},
        {"AMD", "gfx942", 9, 4, 304, 2100000, 2662.4e9, 1307.44, 491.08, 81715.2,
         "Instinct MI300X"},
        {"AMD", "", 9, 5, 256, 2400000, 4096e9, 2516.6, 0, 157286.4, "Instinct MI355X"},
        {"AMD", "gfx1100", 11, 0, 96, 2500000, 960e9, 0, 0, 0, NULL},
        {"AMD", "", 9, 0, 96, 2500000, 960e9, 0, 0, 0, NULL},
    };
    struct arena a;
    arena_init(&a, "test", 0);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        const struct made *m = &gpus[i];
        const struct device_info d = info_of(m, &a);
        const double ridge = d.peak_tera_flops * 1e3 / d.hbm_gb;
        if (fabs(d.peak_tera_flops - m->tera_flops) > m->tera_flops * 2e-4)
            fail_msg("%zu: %g TFLOP/s", i, d.peak_tera_flops);
        if (m->ridge > 0 && fabs(ridge - m->ridge) > m->ridge * 2e-4)
            fail_msg("%zu: ridge %g", i, ridge);
        if (m->shared_gb > 0 && fabs(d.sram_read_gb - m->shared_gb) > 0.1)
            fail_msg("%zu: shared %g", i, d.sram_read_gb);
        if (m->product == NULL ? d.product != NULL
                               : d.product == NULL || strcmp(d.product->name, m->product) != 0)
            fail_msg("%zu: product %s", i, d.product == NULL ? "none" : d.product->name);
        assert_true(d.derived);
    }
    arena_release(&a);
}

static void test_products_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *product;
        int64_t major, minor;
    } known[] = {
        {"NVIDIA H100 80GB HBM3", "H100 SXM5", 9, 0},
        {"NVIDIA H100 PCIe", "H100 PCIe", 9, 0},
        {"NVIDIA H100 NVL", "H100 NVL", 9, 0},
        {"NVIDIA H200", "H200 SXM5", 9, 0},
        {"NVIDIA H20", "H20", 9, 0},
        {"NVIDIA A100-SXM4-40GB", "A100 SXM4 40 GB", 8, 0},
        {"NVIDIA A10", "A10", 8, 6},
        {"NVIDIA L40S", "L40S", 8, 9},
        {"NVIDIA L4", "L4", 8, 9},
        {"Tesla T4", "T4", 7, 5},
        {"Tesla V100-SXM2-16GB", "Tesla V100 SXM2", 7, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct peak_product *p = peak_product_gpu(
            peak_arch_nvidia(known[i].major, known[i].minor), str_from(known[i].name), 0, 0, 0);
        if (p == NULL || strcmp(p->name, known[i].product) != 0)
            fail_msg("%s: %s", known[i].name, p == NULL ? "none" : p->name);
    }
    assert_null(peak_product_gpu(peak_arch_nvidia(9, 0), S("NVIDIA H800"), 0, 0, 0));
    assert_string_equal(peak_product_tpu(S("TPU v6 Lite"))->name, "TPU v6e");
    assert_string_equal(peak_product_tpu(S("TPU v5"))->name, "TPU v5p");
    assert_null(peak_product_tpu(S("TPU v99")));
    assert_null(peak_arch_nvidia(13, 0));
    assert_string_equal(peak_arch_nvidia(12, 1)->key, "12.0");
    assert_string_equal(peak_arch_nvidia(8, 7)->key, "8.6");
}

/* Two sources of one number: a slip in either shows (vector units run at higher clocks). The known exceptions sell less than the architecture. */
static void test_data_sheets_agree_with_the_architecture(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < peak_n_products; i++) {
        const struct peak_product *p = &peak_products[i];
        const struct peak_arch *arch = peak_arch_of(p);
        assert_true((arch == NULL) == (p->vendor == PEAK_GOOGLE));
        assert_true(p->memory_gb > 0 && *p->source != '\0');
        if (arch == NULL || p->cores <= 0 || p->mhz <= 0 || strcmp(p->name, "H20") == 0 ||
            strncmp(p->name, "GeForce", 7) == 0)
            continue;
        for (enum peak_type t = 0; t < PEAK_TYPES; t++) {
            const double derived = peak_derived(arch, t, p->cores, p->mhz);
            const double stated = p->tera_flops[t];
            if (stated > 0 && fabs(derived - stated) > 0.12 * stated)
                fail_msg("%s %s: %g stated, %g derived", p->name, peak_type_name(t).p, stated,
                         derived);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peaks_as_xprof_derives_them),
        cmocka_unit_test(test_products_by_name),
        cmocka_unit_test(test_data_sheets_agree_with_the_architecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
