/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, opened at run time when the machine has it; never required.
 * Source: NVML API reference (nvmlInit_v2, nvmlDeviceGetHandleByIndex_v2 …). Loaded once per process.
 * Thread: any. */
#ifndef TACHO_CAPTURE_NVML_H
#define TACHO_CAPTURE_NVML_H

#include "base/json.h"
#include "capture/gpu_sample.h"

uint32_t nvml_device_count(void); /* 0 without the library */
void nvml_device_sample(uint32_t device, struct gpu_sample *out);
/* One object a device, into an open array. */
void nvml_facts_json(struct json *j);

#endif
