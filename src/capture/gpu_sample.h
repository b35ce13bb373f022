/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU's measurements at one moment, whoever made it. NaN = not measured. */
#ifndef TACHO_CAPTURE_GPU_SAMPLE_H
#define TACHO_CAPTURE_GPU_SAMPLE_H

#include <math.h>

struct gpu_sample {
    double utilization_percent, memory_used_bytes, power_w, temperature_celsius;
};

#define GPU_SAMPLE_NONE ((struct gpu_sample){NAN, NAN, NAN, NAN})

#endif
