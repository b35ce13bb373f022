/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "journal/run_identity.h"

#define STAT_BYTES 1024
#define FIELD_THREADS 20
#define FIELD_START_TICKS 22

static bool is_of_this_kernel(const struct record_process *p)
{
    static const uint8_t unknown[16];
    struct run_identity me;
    uint8_t boot_id[16];
    run_identity_find(&me);
    clock_boot_id(boot_id);
    return p->pid > 0 && p->pid <= INT32_MAX && memcmp(boot_id, unknown, sizeof boot_id) != 0 &&
           memcmp(boot_id, p->boot_id, sizeof boot_id) == 0 && p->pid_namespace != 0 &&
           p->pid_namespace == run_pid_namespace() && str_eq(p->host, str_from(me.host));
}

/* The text of /proc/PID/stat; false when it cannot be read. */
static bool read_stat(uint32_t pid, char text[static STAT_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return false;
    const ssize_t n = read(fd, text, STAT_BYTES - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* State, threads and start of the process; its name, in parentheses, may hold anything. */
static bool parse_stat(const char *text, char *state, uint64_t *n_threads, uint64_t *start_ticks)
{
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ' || at[2] == '\0')
        return false;
    *state = at[2];
    at += 2;
    for (int field = 3; field < FIELD_START_TICKS; field++) {
        at = strchr(at, ' ');
        if (at == NULL)
            return false;
        at++;
        if (field + 1 == FIELD_THREADS)
            *n_threads = strtoull(at, NULL, 10);
    }
    *start_ticks = strtoull(at, NULL, 10);
    return true;
}

enum record_presence presence_of(const struct record_process *p)
{
    char text[STAT_BYTES], state = '\0';
    uint64_t n_threads = 0, start_ticks = 0;
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    if (!is_of_this_kernel(p))
        return PRESENCE_UNKNOWN;
    if (kill((pid_t)p->pid, 0) == -1 && errno == ESRCH)
        return PRESENCE_GONE;
    if (!read_stat(p->pid, text) || ticks_per_s <= 0 ||
        !parse_stat(text, &state, &n_threads, &start_ticks))
        return PRESENCE_UNKNOWN;
    if ((state == 'Z' || state == 'X') && n_threads <= 1)
        return PRESENCE_GONE;
    const uint64_t tick_ns = (uint64_t)NS_PER_S / (uint64_t)ticks_per_s;
    return start_ticks > p->boottime_ns / tick_ns ? PRESENCE_GONE : PRESENCE_THERE;
}

void presence_look_late(struct record_process *p)
{
    const uint64_t now_ns = clock_monotonic_ns();
    p->presence = presence_of(p);
    if (p->presence != PRESENCE_GONE)
        return;
    if (p->gone_seen_ns == 0)
        p->gone_seen_ns = now_ns;
    if (now_ns - p->gone_seen_ns < PRESENCE_LATE_NS)
        p->presence = PRESENCE_THERE;
}
