/* SPDX-License-Identifier: Apache-2.0 */
/* Time of one journal record from C: prints "c p50_ns p99_ns". The data folder is TACHO_DATA. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tachograph/tachograph.h"

#define N_RECORDS 200000

static uint32_t taken_ns[N_RECORDS];

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int main(void)
{
    tacho_run *run = tacho_open(NULL);
    if (run == NULL) {
        fprintf(stderr, "journal_bench: cannot open a journal\n");
        return 1;
    }
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        const uint64_t from = clock_monotonic_ns();
        tacho_event_begin(run, TACHO_STEP, i, NULL);
        taken_ns[i] = (uint32_t)(clock_monotonic_ns() - from);
    }
    qsort(taken_ns, N_RECORDS, sizeof taken_ns[0], compare_u32);
    printf("c %u %u\n", taken_ns[N_RECORDS / 2], taken_ns[N_RECORDS / 100 * 99]);
    tacho_close(run, 0);
    return 0;
}
