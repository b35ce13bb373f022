/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "format/perfetto_internal.h"

/* What ran on the CPU until now becomes an event; from now on pid runs. */
static void switch_to(struct perfetto *p, struct cpu *c, uint64_t number, int64_t at_ns,
                      int64_t pid, str comm)
{
    if (p->sched == NULL && (p->sched = xspace_writer_plane(&p->w)) != NULL)
        p->sched->name = S("Scheduling");
    if (c->line == NULL)
        c->line = xspace_writer_line(&p->w, p->sched, (int64_t)number,
                                     arena_printf(&p->w.arena, "CPU %" PRIu64, number));
    if (c->line == NULL)
        return;
    if (c->runs && c->pid != 0 && at_ns >= c->since_ns) { /* pid 0 is the idle loop */
        const uint64_t ns = (uint64_t)(at_ns - c->since_ns);
        xspace_writer_stat_i64(c->line, xspace_writer_stat_id(&p->w, p->sched, S("pid")), c->pid);
        xspace_writer_event(&p->w, c->line,
                            xspace_writer_name(&p->w, p->sched, interner_str(&p->texts, c->comm)),
                            c->since_ns, 0, ns > INT64_MAX / 1000 ? INT64_MAX : ns * 1000);
        p->n_events++;
    }
    c->since_ns = at_ns;
    c->pid = pid;
    c->comm = interner_id(&p->texts, comm);
    c->runs = true;
}

/* CompactSched: columns of deltas. */
static void take_compact(struct perfetto *p, struct cpu *c, uint64_t number, str message)
{
    str at = {0}, pids = {0}, comms = {0};
    str names[256];
    uint32_t n_names = 0;
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 1)
            at = w.bytes;
        else if (w.field == 3)
            pids = w.bytes;
        else if (w.field == 6)
            comms = w.bytes;
        else if (w.field == 5 && n_names < sizeof names / sizeof *names)
            names[n_names++] = w.bytes;
    }
    uint64_t delta, pid, comm, now = 0;
    while (wire_packed_next(&at, &delta) && wire_packed_next(&pids, &pid) &&
           wire_packed_next(&comms, &comm)) {
        now += delta;
        if (now <= INT64_MAX)
            switch_to(p, c, number, (int64_t)now, (int32_t)pid,
                      comm < n_names ? names[comm] : S("?"));
    }
}

/* FtraceEvent with a sched_switch (field 4). */
static void take_event(struct perfetto *p, struct cpu *c, uint64_t number, str message)
{
    uint64_t at = 0;
    str body = {0};
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.field == 1 && w.type == WIRE_VARINT)
            at = w.number;
        else if (w.field == 4 && w.type == WIRE_LEN)
            body = w.bytes;
    }
    if (body.n == 0 || at > INT64_MAX) {
        p->n_left_out++;
        return;
    }
    int64_t pid = 0;
    str comm = {0};
    w = wire_from(body, 0);
    while (wire_next(&w)) {
        if (w.field == 6 && w.type == WIRE_VARINT)
            pid = (int32_t)w.number;
        else if (w.field == 5 && w.type == WIRE_LEN)
            comm = w.bytes;
    }
    switch_to(p, c, number, (int64_t)at, pid, comm);
}

void perfetto_ftrace(struct perfetto *p, str message)
{
    uint64_t number = 0;
    struct wire w = wire_from(message, 0);
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_VARINT)
            number = w.number;
    struct cpu *c = cpu_map_put(&p->cpus, number);
    w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 4)
            take_compact(p, c, number, w.bytes);
        else if (w.field == 2)
            take_event(p, c, number, w.bytes);
    }
}
