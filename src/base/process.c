/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define FIELD_STATE 3 /* of /proc/PID/stat, proc(5) */
#define FIELD_THREADS 20
#define FIELD_START 22 /* in clock ticks since boot, rounded down */

/* The text of that field; the name in field 2 may hold anything, so count from its last ')'. */
static const char *stat_field(const char *text, int field)
{
    const char *at = strrchr(text, ')');
    for (int i = 2; at != NULL && i < field; i++)
        at = strchr(at + 1, ' ');
    return at == NULL ? NULL : at + 1;
}

static bool read_stat(pid_t pid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    struct err ignored = {0};
    const int fd = file_open(path, O_RDONLY, 0, &ignored);
    if (fd == -1)
        return false;
    const ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

enum process_state process_look(const struct process_mark *m)
{
    static const uint8_t unknown[16];
    uint8_t boot_id[16];
    char text[1024];
    clock_boot_id(boot_id);
    if (m->pid <= 0 || memcmp(boot_id, unknown, sizeof boot_id) == 0 ||
        memcmp(boot_id, m->boot_id, sizeof boot_id) != 0)
        return PROCESS_UNKNOWN;
    if (kill(m->pid, 0) != 0 && errno == ESRCH)
        return PROCESS_GONE;
    if (!read_stat(m->pid, text, sizeof text))
        return PROCESS_UNKNOWN; /* it went just now, or /proc is not there */
    const char *state = stat_field(text, FIELD_STATE), *threads = stat_field(text, FIELD_THREADS),
               *start = stat_field(text, FIELD_START);
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    if (state == NULL || threads == NULL || start == NULL || ticks_per_s <= 0)
        return PROCESS_UNKNOWN;
    const uint64_t start_ticks = strtoull(start, NULL, 10);
    const uint64_t then_ticks = m->boottime_ns / ((uint64_t)NS_PER_S / (uint64_t)ticks_per_s);
    const bool has_ended = (*state == 'Z' || *state == 'X') && strtoull(threads, NULL, 10) <= 1;
    return has_ended || start_ticks > then_ticks ? PROCESS_GONE : PROCESS_LIVES;
}

void process_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
