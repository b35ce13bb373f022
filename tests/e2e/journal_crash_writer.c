/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records from several threads and acknowledges each in shared memory once the call has
 * returned: the counter file (argv[1]) holds one uint64 a thread. Ends only by a signal. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tachograph/tachograph.h"

#define N_THREADS 4

static tacho_run *run;
static _Atomic uint64_t *acknowledged;

static void *write_forever(void *arg)
{
    const intptr_t thread = (intptr_t)arg;
    char name[8];
    snprintf(name, sizeof name, "t%d", (int)thread);
    for (int64_t i = 0;; i++) {
        tacho_metric(run, name, (double)i, i);
        atomic_store(&acknowledged[thread], (uint64_t)i + 1);
    }
    return arg;
}

int main(int argc, char **argv)
{
    const int fd = argc < 2 ? -1 : open(argv[1], O_RDWR);
    if (fd == -1)
        return 2;
    acknowledged = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    run = tacho_open(NULL);
    if (acknowledged == MAP_FAILED || run == NULL)
        return 3;
    puts(tacho_journal_path(run));
    fflush(stdout);
    for (intptr_t i = 1; i < N_THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, write_forever, (void *)i) != 0)
            return 4;
    }
    write_forever((void *)0);
}
