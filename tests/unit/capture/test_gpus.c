/* SPDX-License-Identifier: Apache-2.0 */
/* Two NVIDIA GPUs (a made library) and three AMD ones (a made /sys) on one host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "capture/amd.h"
#include "capture/system_metrics.h"

static char root[] = "/tmp/tacho-sys-XXXXXX";

/* Writes root/class/drm/NAME with all folders above it. */
static void put(const char *name, const char *text)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/class/drm/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(path, 0755);
        *p = '/';
    }
    if (!file_replace(path, str_from(text), 0644, &e))
        fail_msg("%s", e.msg);
}

static int make_cards(void **state)
{
    (void)state;
    if (mkdtemp(root) == NULL)
        return -1;
    /* A server card: everything, and a number that sorts behind card2 only as a number. */
    put("card10/device/vendor", "0x1002\n");
    put("card10/device/device", "0x74a1\n");
    put("card10/device/product_name", "AMD Instinct MI300X\n");
    put("card10/device/gpu_busy_percent", "97\n");
    put("card10/device/mem_info_vram_total", "206141652992\n");
    put("card10/device/mem_info_vram_used", "1073741824\n");
    put("card10/device/hwmon/hwmon7/power1_input", "143000000\n");
    put("card10/device/hwmon/hwmon7/temp2_input", "41000\n");
    /* A workstation's: average power before the present one, the edge before the junction. */
    put("card2/device/vendor", "0x1002\n");
    put("card2/device/device", "0x73bf\n");
    put("card2/device/gpu_busy_percent", "0\n");
    put("card2/device/mem_info_vram_used", "0\n");
    put("card2/device/hwmon/hwmon3/power1_average", "17250000\n");
    put("card2/device/hwmon/hwmon3/power1_input", "99000000\n");
    put("card2/device/hwmon/hwmon3/temp1_input", "38500\n");
    put("card2/device/hwmon/hwmon3/temp2_input", "99000\n");
    /* One that sleeps: files that say no number, and no sensors. */
    put("card3/device/vendor", "0x1002\n");
    put("card3/device/gpu_busy_percent", "N/A\n");
    put("card3/device/mem_info_vram_used", "");
    /* Not AMD's, and a connector. */
    put("card0/device/vendor", "0x8086\n");
    put("card0/device/gpu_busy_percent", "50\n");
    put("card2-DP-1/device/vendor", "0x1002\n");
    put("renderD128/device/vendor", "0x1002\n");
    return 0;
}

static int remove_cards(void **state)
{
    (void)state;
    struct err e = {0};
    return dir_remove(root, &e) ? 0 : -1;
}

static void amd(void **state)
{
    struct amd_gpus a;
    struct gpu_sample g;
    amd_open(&a, root);
    assert_int_equal(a.n, 3);
    amd_sample(&a, 0, &g);                                               /* card2 */
    assert_true(g.utilization_percent == 0 && g.memory_used_bytes == 0); /* measured zeros */
    assert_true(g.power_w == 17.25 && g.temperature_celsius == 38.5);
    amd_sample(&a, 1, &g); /* card3 */
    assert_true(isnan(g.utilization_percent) && isnan(g.memory_used_bytes));
    assert_true(isnan(g.power_w) && isnan(g.temperature_celsius));
    amd_sample(&a, 2, &g); /* card10 */
    assert_true(g.utilization_percent == 97 && g.memory_used_bytes == 1073741824.0);
    assert_true(g.power_w == 143 && g.temperature_celsius == 41);
    amd_sample(&a, 3, &g);
    assert_true(isnan(g.utilization_percent)); /* no such device */
    amd_close(&a);
    assert_int_equal(a.n, 0);
    amd_open(&a, "/nonexistent");
    assert_int_equal(a.n, 0);
    amd_close(&a);
}

static double find(const struct system_sample *s, size_t n, const char *name)
{
    double v = NAN;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].name, name) == 0) {
            assert_true(isnan(v)); /* no name twice */
            v = s[i].value;
        }
    return v;
}

static void together(void **state)
{
    const struct host_roots at = {root, "/nonexistent"};
    struct system_metrics m;
    struct system_sample s[SYSTEM_METRICS_MAX];
    system_metrics_open(&m, &at);
    const size_t n = system_metrics_sample(&m, 0, s, SYSTEM_METRICS_MAX);
    system_metrics_close(&m);
    assert_true(find(s, n, "gpu_utilization_percent{device=\"0\"}") == 71);
    assert_true(find(s, n, "gpu_memory_used_bytes{device=\"0\"}") == 600);
    assert_true(find(s, n, "gpu_power_w{device=\"0\"}") == 250.5);
    assert_true(find(s, n, "gpu_temperature_celsius{device=\"0\"}") == 64);
    assert_true(isnan(find(s, n, "gpu_utilization_percent{device=\"1\"}")));
    assert_true(find(s, n, "gpu_power_w{device=\"2\"}") == 17.25);
    assert_true(isnan(find(s, n, "gpu_utilization_percent{device=\"3\"}")));
    assert_true(find(s, n, "gpu_utilization_percent{device=\"4\"}") == 97);
    assert_true(isnan(find(s, n, "gpu_utilization_percent{device=\"5\"}")));
}

static const char *text_of(const json_t *list, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(list, i), key));
}

static void facts(void **state)
{
    const struct host_roots at = {root, "/nonexistent"};
    struct buf b;
    struct err e = {0};
    buf_init(&b, 1 << 20);
    assert_true(host_facts_text(&at, NULL, &b, &e));
    json_t *o = json_loadb(b.p, b.n, 0, NULL), *list = json_object_get(o, "accelerators");
    assert_int_equal(json_array_size(list), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(json_integer_value(json_object_get(json_array_get(list, i), "device")), i);
    assert_string_equal(text_of(list, 0, "kind"), "nvidia_gpu");
    assert_string_equal(text_of(list, 0, "name"), "Made GPU");
    assert_string_equal(text_of(list, 2, "kind"), "amd_gpu");
    assert_null(text_of(list, 2, "name"));
    assert_string_equal(text_of(list, 2, "pci_device"), "0x73bf");
    assert_null(json_object_get(json_array_get(list, 2), "memory_bytes"));
    assert_string_equal(text_of(list, 4, "name"), "AMD Instinct MI300X");
    assert_true(json_integer_value(json_object_get(json_array_get(list, 4), "memory_bytes")) ==
                206141652992);
    json_decref(o);
    buf_release(&b);
}

int main(void)
{
    if (dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(amd), cmocka_unit_test(together),
                                       cmocka_unit_test(facts)};
    return cmocka_run_group_tests(tests, make_cards, remove_cards);
}
