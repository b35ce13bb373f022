/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the host and one command's process tree: model/metrics.def. The files of /proc stay open
 * and are read with pread, so a sample costs some tens of microseconds plus two reads a process.
 * Rates need two samples: the first has none. What a machine does not have is left out.
 * A sample may wait TPU_SAMPLE_MS for libtpu's runtime, where there is one (capture/tpu.h).
 *
 *     struct system_metrics m;
 *     system_metrics_open(&m, &host_roots_here);
 *     n = system_metrics_sample(&m, pid, out, SYSTEM_METRICS_MAX);
 *     system_metrics_close(&m);
 *
 * Thread: one at a time. */
#ifndef TACHO_CAPTURE_SYSTEM_METRICS_H
#define TACHO_CAPTURE_SYSTEM_METRICS_H

#include <sys/types.h>

#include "base/str.h"
#include "capture/amd.h"
#include "capture/host_facts.h"
#include "capture/tpu.h"

enum system_metric {
#define X(name, word, unit, help) SYSTEM_METRIC_##name,
#include "model/metrics.def"
#undef X
    SYSTEM_METRIC_N
};
extern const struct system_metric_row {
    const char *name, *unit, *help;
} system_metric_table[SYSTEM_METRIC_N];

#define SYSTEM_METRICS_MAX 512
#define SYSTEM_METRICS_PROCESSES 32 /* processes with a series of their own, in tree order */

struct system_sample {
    char name[64]; /* with labels */
    double value;
};

enum system_file {
    SYSTEM_FILE_STAT = 0,
    SYSTEM_FILE_MEMINFO,
    SYSTEM_FILE_LOADAVG,
    SYSTEM_FILE_DISKSTATS,
    SYSTEM_FILE_NETWORK,
    SYSTEM_FILE_PRESSURE_CPU,
    SYSTEM_FILE_PRESSURE_MEMORY,
    SYSTEM_FILE_PRESSURE_IO,
    SYSTEM_FILE_N
};

struct system_metrics {
    int fds[SYSTEM_FILE_N]; /* -1 = the kernel does not have it */
    uint64_t at_ns;         /* of the last sample; 0 = none */
    uint64_t cpu_busy, cpu_total;
    uint64_t disk_read_bytes, disk_write_bytes, receive_bytes, transmit_bytes;
    struct amd_gpus amd;
    struct tpu tpu;
};

void system_metrics_open(struct system_metrics *m, const struct host_roots *at);
void system_metrics_close(struct system_metrics *m);
/* Returns the number of samples put into out. pid 0: the host only. */
size_t system_metrics_sample(struct system_metrics *m, pid_t pid, struct system_sample *out,
                             size_t max);

#endif
