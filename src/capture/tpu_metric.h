/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of libtpu's runtime metric service: a request made, an answer read.
 *
 * Source: tpu_info/proto/tpu_metric_service.proto of AI-Hypercomputer/cloud-accelerator-diagnostics,
 * package tpu.monitoring.runtime: MetricRequest {metric_name 1}; MetricResponse {TPUMetric metric 1
 * {repeated Metric metrics 3 {Attribute attribute 1 {AttrValue value 2 {string 1 | int64 3}},
 * Gauge gauge 3 {double 1 | int64 2}}}}. A metric that names no device, or holds no number that can be
 * (finite, not negative), is left out: it is not device 0 and not 0. Thread: any. */
#ifndef TACHO_CAPTURE_TPU_METRIC_H
#define TACHO_CAPTURE_TPU_METRIC_H

#include "base/err.h"
#include "base/str.h"

#define TPU_DEVICES_MAX 64 /* chips or cores of one host that are told apart; more are left out */

struct tpu_values {
    uint32_t n;
    struct tpu_value {
        uint64_t device; /* as the runtime numbers it */
        double value;
    } of[TPU_DEVICES_MAX];
};

/* Writes the request for one metric; 0 when it does not fit. */
size_t tpu_metric_request(str name, char *out, size_t out_size);
/* Adds what the answer says to out; of two values of one device the first stays. Error: PARSE with the
 * byte position in the message; out is as it was then. */
MUST_CHECK bool tpu_metric_read(str message, struct tpu_values *out, struct err *e);

#endif
