# SPDX-License-Identifier: Apache-2.0
"""A random trace of track events, written with the message classes of Perfetto's own Python package.

    perfetto_trace.py SEED TRACE TRUTH      TRUTH: JSON of what is in it, as it was meant
"""
import json
import random
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pf


def make(seed):
    rng, trace = random.Random(seed), pf.Trace()
    boot, wall = 10**9, 1_700_000_000 * 10**9

    def packet(sequence):
        p = trace.packet.add()
        p.trusted_packet_sequence_id = sequence
        return p

    p = packet(1)
    p.sequence_flags = pf.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    p.clock_snapshot.primary_trace_clock = pf.BUILTIN_CLOCK_BOOTTIME
    for clock, value in ((pf.BUILTIN_CLOCK_BOOTTIME, boot), (pf.BUILTIN_CLOCK_REALTIME, wall),
                         (pf.BUILTIN_CLOCK_MONOTONIC, boot - 12345)):
        c = p.clock_snapshot.clocks.add()
        c.clock_id, c.timestamp = clock, value
    names = [f"op {i}" for i in range(8)]
    p = packet(1)
    for i, name in enumerate(names):
        e = p.interned_data.event_names.add()
        e.iid, e.name = i + 1, name
    slices, counters = [], []
    for t in range(4):
        uuid, pid, sequence = 1000 + t, 10 + t % 2, 1 + t % 2
        p = packet(sequence)
        p.track_descriptor.uuid = uuid
        p.track_descriptor.thread.pid, p.track_descriptor.thread.tid = pid, 100 + t
        p.track_descriptor.thread.thread_name = f"thread {t}"
        at, open_ = boot + rng.randrange(1000), []
        for _ in range(60):
            at += rng.randrange(1, 500)
            p = packet(sequence)
            e = p.track_event
            e.track_uuid = uuid
            if rng.random() < 0.3:  # the same moment on another clock
                p.timestamp, p.timestamp_clock_id = at - 12345, pf.BUILTIN_CLOCK_MONOTONIC
            else:
                p.timestamp = at
            if open_ and rng.random() < 0.5:
                e.type = pf.TrackEvent.TYPE_SLICE_END
                name, begin, value = open_.pop()
                slices.append([f"thread {t}", name, begin - boot, at - begin, value])
                continue
            e.type = pf.TrackEvent.TYPE_SLICE_BEGIN
            k, value = rng.randrange(len(names)), rng.randrange(-10**12, 10**12)
            if sequence == 1:
                e.name_iid = k + 1
                p.sequence_flags = pf.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            else:
                e.name = names[k]
            a = e.debug_annotations.add()
            a.name, a.int_value = "value", value
            open_.append((names[k], at, value))
        while open_:
            at += 7
            p = packet(sequence)
            p.timestamp, p.track_event.track_uuid, p.track_event.type = at, uuid, pf.TrackEvent.TYPE_SLICE_END
            name, begin, value = open_.pop()
            slices.append([f"thread {t}", name, begin - boot, at - begin, value])
    p = packet(3)
    p.track_descriptor.uuid, p.track_descriptor.name = 5000, "load"
    p.track_descriptor.counter.unit_name = "%"
    for i in range(20):
        p = packet(3)
        p.timestamp = boot + i * 100
        p.track_event.type, p.track_event.track_uuid = pf.TrackEvent.TYPE_COUNTER, 5000
        p.track_event.double_counter_value = i / 8
        counters.append([i * 100, i / 8])
    return trace.SerializeToString(), {"slices": sorted(slices), "counters": counters}


def main():
    data, truth = make(int(sys.argv[1]))
    open(sys.argv[2], "wb").write(data)
    json.dump(truth, open(sys.argv[3], "w"))


if __name__ == "__main__":
    main()
