/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/presence.h"

#include "base/clock.h"
#include "base/process.h"
#include "journal/run_identity.h"

enum record_presence presence_of(const struct record_process *p)
{
    struct run_identity me;
    struct process_mark mark = {.pid = (pid_t)p->pid, .boottime_ns = p->boottime_ns};
    memcpy(mark.boot_id, p->boot_id, sizeof mark.boot_id);
    run_identity_find(&me);
    if (p->pid > INT32_MAX || p->pid_namespace == 0 || p->pid_namespace != run_pid_namespace() ||
        !str_eq(p->host, str_from(me.host)))
        return PRESENCE_UNKNOWN;
    switch (process_look(&mark)) {
    case PROCESS_GONE:
        return PRESENCE_GONE;
    case PROCESS_LIVES:
        return PRESENCE_THERE;
    case PROCESS_UNKNOWN:
        break;
    }
    return PRESENCE_UNKNOWN;
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
