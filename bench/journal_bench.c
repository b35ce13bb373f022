/* SPDX-License-Identifier: Apache-2.0 */
/* Time of one journal record from C, and of the write(2) alone that is in it: prints "c p50_ns p99_ns" and
 * "write p50_ns p99_ns". The data folder is TACHO_DATA. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tachograph/tachograph.h"

#define N_RECORDS 200000
#define RECORD_BYTES 44 /* of a BEGIN */

static uint32_t taken_ns[N_RECORDS];

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void say(const char *name)
{
    qsort(taken_ns, N_RECORDS, sizeof taken_ns[0], compare_u32);
    printf("%s %u %u\n", name, taken_ns[N_RECORDS / 2], taken_ns[N_RECORDS / 100 * 99]);
}

static bool measure_write(const char *folder)
{
    char path[4096];
    const char record[RECORD_BYTES] = {0};
    ssize_t written = RECORD_BYTES;
    snprintf(path, sizeof path, "%s/write", folder);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (uint32_t i = 0; i < N_RECORDS && fd != -1 && written == RECORD_BYTES; i++) {
        const uint64_t from = clock_monotonic_ns();
        written = write(fd, record, RECORD_BYTES);
        taken_ns[i] = (uint32_t)(clock_monotonic_ns() - from);
    }
    if (fd != -1)
        close(fd);
    return fd != -1 && written == RECORD_BYTES;
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
    say("c");
    tacho_close(run, 0);
    const char *folder = getenv("TACHO_DATA");
    if (folder == NULL || !measure_write(folder)) {
        fprintf(stderr, "journal_bench: cannot write in TACHO_DATA\n");
        return 1;
    }
    say("write");
    return 0;
}
