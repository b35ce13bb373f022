/* SPDX-License-Identifier: Apache-2.0 */
/* The same collective on every device that took part, and who waited for whom.
 *
 * No participant can end before the last one came, so what the one with the shortest duration took is
 * the transfer, and what another took beyond that it waited: wait = duration - transfer. The last to
 * arrive waits least: the culprit is the one that looks fast inside the collective. That needs no
 * common clock; when they entered does, and is told only where there is one.
 *
 * Participants belong together by operation (program and HLO name; or NCCL's name and process group),
 * sequence number or run where the profile has them, and order on the device. Devices that have it less
 * often (their capture was cut) are shifted to where the ends agree best on a common clock; without one
 * they stay unmatched, as does what one device alone was seen to do: transfer and wait are unknown
 * then, not 0. An asynchronous collective of a TPU lasts from its start to the end of its transfer.
 *
 * Bus bandwidth is NCCL's: bytes, less what stays on the device, over the transfer; it is comparable
 * with the link's peak. Source: nccl-tests, doc/PERFORMANCE.md.
 *
 * Times: picoseconds; `start_ps` of the session's clock. Everything lives in the arena. */
#ifndef TACHO_ANALYSIS_COLLECTIVE_MATCH_H
#define TACHO_ANALYSIS_COLLECTIVE_MATCH_H

#include "analysis/device_work.h"

struct collective { /* one operation in one group of devices */
    str name;       /* "all-reduce.3", "allreduce" */
    str kind;       /* "all-reduce", … "send-recv", "broadcast", "reduce"; empty: unknown */
    str group;      /* as the profile says it: "[0, 1]"; empty: all */
    uint64_t program_id;
    uint32_t group_size; /* as the profile says it; 0 unknown */
};

struct collective_instance {
    uint32_t collective;
    int64_t sequence;              /* number or run that the profile gives; INT64_MIN: none */
    uint32_t first, n;             /* participants[first …] */
    uint64_t start_ps, end_ps;     /* first start and last end */
    uint64_t bytes;                /* of its payload; 0 unknown */
    uint64_t transfer_ps, wait_ps; /* wait_ps of all together */
    uint64_t apart_ps;             /* from the first to the last start */
    bool matched;                  /* transfer and wait are known */
    bool has_apart;                /* starts are on one clock */
    uint32_t last;                 /* device that came last; UINT32_MAX unknown */
};

struct collective_part {
    uint32_t device; /* of the work_devices */
    uint32_t collective;
    int64_t sequence;
    uint64_t start_ps, dur_ps, bytes;
    uint64_t wait_ps;
};

struct collective_rank {
    uint64_t parts, matched, last_count;
    uint64_t time_ps, matched_ps, wait_ps;
    uint64_t late_ps; /* Σ of its starts after the first one's, where clocks allow */
    uint64_t n_late;  /* of how many */
};

struct collectives {
    struct work_devices devices;
    struct collective *items;
    uint32_t n, capacity;
    struct collective_part *parts;
    uint32_t n_parts, parts_capacity;
    struct collective_instance *instances; /* by start */
    uint32_t n_instances, instances_capacity;
    struct collective_rank *ranks; /* of each device */
    uint64_t n_unmatched, n_sizes_differ, n_incomplete;
};

MUST_CHECK bool collectives_of(const struct profile *p, struct arena *a, struct collectives *out,
                               struct err *e);

/* What crosses the link for a payload of that many bytes among n; 0 unknown. */
double collective_bus_bytes(str kind, uint64_t bytes, uint32_t n);

#endif
