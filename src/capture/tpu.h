/* SPDX-License-Identifier: Apache-2.0 */
/* TPUs of this host: whether there are any, what they are, and what libtpu's runtime says of them.
 *
 *     tpu_open(&t, &host_roots_here, getenv("TPU_RUNTIME_METRICS_PORTS"));
 *     tpu_sample(&t, clock_boottime_ns(), &sample);
 *     tpu_close(&t);
 *
 * The runtime lives in the workload's process and answers gRPC on localhost (capture/tpu_metric.h):
 * port 8431, or those of TPU_RUNTIME_METRICS_PORTS, one a process. It is asked only when this host has
 * a TPU that this process can open, or the variable is set. A port that does not answer is left alone
 * for 1 s, then 2 s and so on up to 64 s. The devices of several ports are told apart by the numbers
 * that the runtimes give: of two with one number the earlier port's stays.
 * Thread: one at a time. */
#ifndef TACHO_CAPTURE_TPU_H
#define TACHO_CAPTURE_TPU_H

#include "base/buf.h"
#include "capture/host_facts.h"
#include "capture/tpu_metric.h"

#define TPU_PORTS_MAX 16
#define TPU_SAMPLE_MS 200 /* longest that one sample waits for all ports together */

struct json;

struct tpu {
    uint32_t n_ports; /* 0 = nobody is asked */
    uint32_t wait_ms; /* TPU_SAMPLE_MS; tests on a busy machine wait longer */
    struct tpu_port {
        uint16_t number;
        bool total_known;               /* said once a port, it does not change */
        uint64_t next_ask_ns, pause_ns; /* of the caller's clock */
    } port[TPU_PORTS_MAX];
    struct buf answer;
};

/* What was not said is not in it; memory_total_bytes holds devices only the first time. */
struct tpu_sample {
    struct tpu_values duty_cycle_percent, memory_used_bytes, memory_total_bytes;
};

/* ports: "8431,8432", NULL or empty = by what the host has. What is no port is left out. */
void tpu_open(struct tpu *t, const struct host_roots *at, const char *ports);
void tpu_close(struct tpu *t);
/* now_ns: any clock that does not go back. Waits at most TPU_SAMPLE_MS. */
void tpu_sample(struct tpu *t, uint64_t now_ns, struct tpu_sample *out);
/* One object a chip, into an open array. */
void tpu_facts_json(const struct host_roots *at, struct json *j);

#endif
