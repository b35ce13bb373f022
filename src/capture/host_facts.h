/* SPDX-License-Identifier: Apache-2.0 */
/* What this host is, as one JSON object: kernel, CPU model and count, memory, cgroup limits, and the
 * accelerators that can be seen (NVML through dlopen, AMD through sysfs, TPUs by the PCI bus and their
 * device files), and the libtpu that the command would load (capture/libtpu_find.h; "libtpu": false = not
 * where we looked). What cannot be found out is left out: an absent key is unknown. Each GPU's "device" is the
 * number in the label of its metrics: NVIDIA's by NVML's order, then AMD's. Thread: any. */
#ifndef TACHO_CAPTURE_HOST_FACTS_H
#define TACHO_CAPTURE_HOST_FACTS_H

#include "base/buf.h"

/* Where the machine is looked at; tests give folders of their own. */
struct host_roots {
    const char *sys; /* "/sys" */
    const char *dev; /* "/dev" */
};
extern const struct host_roots host_roots_here;

/* Adds the object's text to out. command: argv[0] of what will run here, NULL = nothing. */
MUST_CHECK bool host_facts_text(const struct host_roots *at, const char *command, struct buf *out,
                                struct err *e);
/* The first bytes of a small file without trailing white space; empty when it cannot be read. */
str host_read_text(const char *path, char *out, size_t out_size);
/* "/sys/fs/cgroup/…" of this process (cgroup v2), empty when there is none. */
str host_cgroup_dir(char *out, size_t out_size);
/* Processes that the kernel killed for memory in this cgroup; 0 when it does not say. */
uint64_t host_cgroup_oom_kills(void);

#endif
