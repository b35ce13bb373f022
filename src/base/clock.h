/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Journals are stamped with CLOCK_BOOTTIME (goes on during suspend, never set back);
 * an anchor ties it to the wall clock and to CLOCK_MONOTONIC (what JAX and perf use).
 * Wall times are signed nanoseconds since 1970-01-01 UTC. Guest-safe (libc only). Thread: any. */
#ifndef TACHO_BASE_CLOCK_H
#define TACHO_BASE_CLOCK_H

#include "base/str.h"

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL
#define PS_PER_NS 1000LL

struct clock_anchor {
    uint64_t boottime_ns;  /* CLOCK_BOOTTIME */
    uint64_t monotonic_ns; /* CLOCK_MONOTONIC at the same moment */
    int64_t wall_ns;       /* CLOCK_REALTIME at the same moment */
};

uint64_t clock_boottime_ns(void);
uint64_t clock_monotonic_ns(void);
int64_t clock_wall_ns(void);
/* Names the boot that CLOCK_BOOTTIME counts from; zeros when the kernel does not say. */
void clock_boot_id(uint8_t out[16]);
uint64_t clock_thread_cpu_ns(void);
uint64_t clock_process_cpu_ns(void);

/* Reads the three clocks as close together as can be had (best of a few tries). */
struct clock_anchor clock_anchor_take(void);

/* "2026-11-29T20:27:28.123456789Z"; trailing zeros of the fraction are left out. Returns the
 * length. */
#define CLOCK_RFC3339_MAX 40
size_t clock_format_rfc3339(int64_t wall_ns, char out[static CLOCK_RFC3339_MAX]);
/* RFC 3339 with Z or an offset, seconds needed, fraction of up to 9 digits. */
bool clock_parse_rfc3339(str s, int64_t *wall_ns);

#endif
