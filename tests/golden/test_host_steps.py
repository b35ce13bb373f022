# SPDX-License-Identifier: Apache-2.0
"""Host compute of the steps of CPU profiles, by another decoder and another method, beside ours and XProf's.

XProf sweeps over the edges of a step's events with an end before a start of the same time (ToNonOverlappedEvents in
xprof/utils/event_span.cc). An event that takes no time is thus closed before it is opened: its class stays the current
one, with none open, up to the next edge of any event. Where nothing else is open, all that time is counted as host
compute. Both sums are made here from the same events: what they cover is ours, XProf's rule gives its answer."""
import collections
import json

import pytest
from test_cpu_operations import CASES, SHARED, dump, parts, statistics
from test_xprof_parity import needs_shared, overview_xprof


class Event:
    def __init__(self, name, begin_ps, end_ps, known):
        self.name, self.begin_ps, self.end_ps, self.known = name, begin_ps, end_ps, known
        self.caused, self.group = [], None


def threads(path):
    """The events of each thread of the host, by start."""
    data = path.read_bytes()
    for plane in parts(data, (0, len(data)), 1):
        decoded = dump.plane(data, plane)
        if decoded["name"] != "/host:CPU":
            continue
        for line in parts(data, plane, 3):
            zero = dump.line(data, line)["timestamp_ns"] * 1000
            events = []
            for span in parts(data, line, 4):
                raw = dump.event(data, span)
                begin = zero + raw["offset"]
                events.append(Event(decoded["names"].get(raw["id"], ""), begin, begin + raw["duration"],
                                    statistics(data, span, decoded["stat_names"])))
            yield sorted(events, key=lambda e: (e.begin_ps, -e.end_ps))


def nest(events):
    around = []
    for event in events:
        while around and around[-1].end_ps < event.end_ps:
            around.pop()
        if around:
            around[-1].caused.append(event)
        around.append(event)


def steps_of(path):
    """Markers with the events that they caused: nested ones, and consumers of what those produced."""
    events, producers, consumers = [], collections.defaultdict(list), collections.defaultdict(list)
    for thread in threads(path):
        nest(thread)
        events += thread
    for event in events:
        if "_pt" in event.known and "_p" in event.known:
            producers[event.known["_pt"], event.known["_p"]].append(event)
        if "_ct" in event.known and "_c" in event.known:
            consumers[event.known["_ct"], event.known["_c"]].append(event)
    for key, ends in producers.items():
        for event in ends:
            event.caused += consumers[key]
    markers = sorted((e for e in events if e.known.get("_r")), key=lambda e: e.begin_ps)
    for marker in markers:
        reached = [marker]
        while reached:
            event = reached.pop()
            if event.group is None:
                event.group = marker
                reached += event.caused
    operations = [(e.begin_ps, e.end_ps) for e in events if e.known.get("hlo_op")]
    return [(m, [e for e in events if e.group is m and e is not m], operations) for m in markers]


def covered(marker, spans):
    clipped = [(max(begin, marker.begin_ps), min(end, marker.end_ps)) for begin, end in spans]
    return dump.union_ps([span for span in clipped if span[0] < span[1]])


def as_xprof_sweeps(events):
    edges = sorted([(e.begin_ps, 1) for e in events] + [(e.end_ps, 0) for e in events])  # an end before a start
    n_open, current = 0, False
    for (at, opens), (following, _) in zip(edges, edges[1:]):
        n_open += 1 if opens else -1
        current = bool(opens) or (current and n_open > 0)
        if current:
            yield at, following


def column(rows, index):
    return {row["c"][0]["v"]: row["c"][index]["v"] for row in rows}


def marked_steps(path):
    return {f"{m.name} {m.known['step_num']}": (m, events, operations) for m, events, operations in steps_of(path)}


@needs_shared
@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_host_compute_is_what_the_events_of_a_step_cover(folder):
    """Beside the time in which operations of XLA:CPU ran, which is the device's. XProf counts both as the host's."""
    golden = json.loads((SHARED / "data" / "xprof_goldens" / folder.name / "overview_page.json").read_text())
    first = sorted(folder.glob("plugins/profile/*/*.xplane.pb"))[0]
    rows = overview_xprof(folder.name, f"host={first.name.removesuffix('.xplane.pb')}")[1]["rows"]
    ours, xprofs = column(rows, 4), column(golden[1]["rows"], 4)
    steps = marked_steps(first)
    assert list(ours) == list(xprofs) and ours and set(ours) <= set(steps)
    for name in ours:
        marker, events, operations = steps[name]
        union = covered(marker, [(e.begin_ps, e.end_ps) for e in events])
        beside = covered(marker, [(e.begin_ps, e.end_ps) for e in events] + operations) - covered(marker, operations)
        assert ours[name] * 1e9 == pytest.approx(beside, abs=0.5), name
        assert xprofs[name] * 1e9 == pytest.approx(covered(marker, as_xprof_sweeps(events)), abs=0.5), name
        without = covered(marker, as_xprof_sweeps([e for e in events if e.begin_ps < e.end_ps]))
        assert union == pytest.approx(without, abs=0.5), f"{name}: without events of no time"


@needs_shared
@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_cpu_steps_compute_what_their_operations_cover(folder):
    for path in folder.glob("plugins/profile/*/*.xplane.pb"):
        table = overview_xprof(folder.name, f"host={path.name.removesuffix('.xplane.pb')}")[1]["rows"]
        compute, other, lasts = column(table, 1), column(table, 9), column(table, 11)
        steps = marked_steps(path)
        assert compute and set(compute) <= set(steps)
        for name, ms in compute.items():
            marker, events, operations = steps[name]
            assert ms > 0
            assert ms * 1e9 == pytest.approx(covered(marker, operations), abs=0.5), name
            anything = covered(marker, [(e.begin_ps, e.end_ps) for e in events] + operations)
            assert other[name] * 1e9 == pytest.approx(lasts[name] * 1e9 - anything, abs=1), name


@needs_shared
def test_steps_of_two_hosts_are_paired_by_number():
    """Each lasts as long as on the host where it lasts longest; the first and the last may be cut off."""
    folder = next(f for f in CASES if f.name == "cpu_two_hosts")
    hosts = [{m.known["step_num"]: m.end_ps - m.begin_ps for m, *_ in steps_of(path)}
             for path in sorted(folder.glob("plugins/profile/*/*.xplane.pb"))]
    both = sorted(hosts[0].keys() & hosts[1].keys())
    assert len(hosts) == 2 and len(both) > 5 and hosts[0].keys() != hosts[1].keys()
    want = {f"train {n}": max(hosts[0][n], hosts[1][n]) / 1e9 for n in both[1:-1]}
    assert column(overview_xprof(folder.name)[1]["rows"], 11) == pytest.approx(want, rel=1e-9)
