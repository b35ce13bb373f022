/* SPDX-License-Identifier: Apache-2.0 */
/* What libtpu's runtime answers: only devices once each with numbers that can be, or one error. */
#include <math.h>

#include "capture/tpu_metric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tpu_values v = {0};
    struct err e = {0};
    if (!tpu_metric_read((str){(const char *)data, n}, &v, &e))
        must(e.code == ERR_PARSE && v.n == 0);
    must(v.n <= TPU_DEVICES_MAX);
    for (uint32_t i = 0; i < v.n; i++) {
        must(isfinite(v.of[i].value) && v.of[i].value >= 0);
        for (uint32_t k = 0; k < i; k++)
            must(v.of[k].device != v.of[i].device);
    }
    return 0;
}
