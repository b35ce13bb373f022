/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs through sysfs: no library, no privilege. The files stay open and are read with pread, four
 * reads a device and sample. Only DRM cards of PCI vendor 0x1002, in the order of their card numbers.
 *
 *     amd_open(&a, "/sys");
 *     for (uint32_t i = 0; i < a.n; i++) amd_sample(&a, i, &sample);
 *     amd_close(&a);
 *
 * Source: docs.kernel.org/gpu/amdgpu/thermal.html and driver-misc.html: gpu_busy_percent (%),
 * mem_info_vram_used and _total (bytes), hwmon power1_average, else power1_input (microwatt),
 * temp1_input "edge", else temp2_input "junction" (millidegree Celsius; accelerators without a display
 * have no edge sensor), product_name (server cards only). A file that is missing or says no number
 * (a card that sleeps) is not measured. Thread: one at a time. */
#ifndef TACHO_CAPTURE_AMD_H
#define TACHO_CAPTURE_AMD_H

#include "base/str.h"
#include "capture/gpu_sample.h"

#define AMD_GPUS_MAX 64 /* eight boards of eight partitions */

enum amd_file {
    AMD_FILE_BUSY,
    AMD_FILE_VRAM_USED,
    AMD_FILE_POWER,
    AMD_FILE_TEMPERATURE,
    AMD_FILE_N
};

struct json; /* base/json.h: jansson's users include this header too */

struct amd_gpus {
    uint32_t n;
    struct amd_gpu {
        int card;            /* number of /sys/class/drm/cardN */
        int fds[AMD_FILE_N]; /* -1 = the card does not have it */
    } gpu[AMD_GPUS_MAX];
};

void amd_open(struct amd_gpus *a, const char *sys_root);
void amd_close(struct amd_gpus *a);
void amd_sample(const struct amd_gpus *a, uint32_t i, struct gpu_sample *out);
/* One object a device, into an open array; the first is device number first_device. */
void amd_facts_json(const char *sys_root, uint32_t first_device, struct json *j);

#endif
