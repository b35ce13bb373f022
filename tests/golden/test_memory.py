# SPDX-License-Identifier: Apache-2.0
"""Memory of allocators beside the truth of the generated profiles, and read again by another decoder."""
import collections
import json
import os
import pathlib
import subprocess

import pytest
from test_cpu_operations import dump, parts, statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"
TRUE_CASES = sorted(p.parent.name for p in XSPACE.glob("gpu_*/truth.json")) if XSPACE.is_dir() else []
CASES = [*TRUE_CASES, "mi300x_jax_conv"]

needs_shared = pytest.mark.skipif(not XSPACE.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def path_of(case):
    return XSPACE / case if (XSPACE / case).exists() else XSPACE / f"{case}.xplane.pb"


def tables(case):
    """allocators, live_at_peak and timeline: each a list of rows."""
    run = subprocess.run([TACHO, "tool", "memory_profile", path_of(case), "--json"],
                         capture_output=True, text=True, check=True)
    out = {}
    for table in json.loads(run.stdout)["tables"]:
        names = [column["name"] for column in table["columns"]]
        out[table["table"]] = [dict(zip(names, row)) for row in table["rows"]]
    return out


def xprof(case, *params):
    run = subprocess.run([TACHO, "tool", "memory_profile", path_of(case), *params, "--xprof"],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["memoryProfilePerAllocator"]


def read_again(path):
    """Allocator to its events by time: (time_ps, is_release, statistics)."""
    data = path.read_bytes()
    out = collections.defaultdict(list)
    for plane, shown in zip(parts(data, (0, len(data)), 1), dump.decode(data)):
        for line, known in zip(parts(data, plane, 3), shown["lines"]):
            for span, event in zip(parts(data, line, 4), known["events"]):
                name = shown["names"].get(event["id"], "")
                if shown["name"].startswith("/host:") and name in ("MemoryAllocation", "MemoryDeallocation"):
                    stats = statistics(data, span, shown["stat_names"])
                    time_ps = known["timestamp_ns"] * 1000 + event["offset"]
                    out[stats["allocator_name"]].append((time_ps, name == "MemoryDeallocation", stats))
    for events in out.values():
        events.sort(key=lambda event: event[0])
    return out


def live_at(events, n):
    """What the first n events left live, by address."""
    live = {}
    for _, is_release, stats in events[:n]:
        if is_release:
            live.pop(stats["addr"], None)
        else:
            live[stats["addr"]] = stats
    return list(live.values())


def peak_of(events):
    used = [stats["bytes_reserved"] + stats["bytes_allocated"] for _, _, stats in events]
    return max(i for i, bytes_used in enumerate(used) if bytes_used == max(used))


@needs_shared
@pytest.mark.parametrize("case", TRUE_CASES)
def test_peak_of_allocators(case):
    rows = {(row["host"], row["allocator"]): row for row in tables(case)["allocators"]}
    want = {(host["host"]["name"], name): memory
            for host in json.loads((XSPACE / case / "truth.json").read_text())["hosts"]
            for name, memory in host["host"].get("memory", {}).items()}
    assert rows.keys() == want.keys()
    for key, memory in want.items():
        row = rows[key]
        assert row["peak_bytes"] == memory["peak_bytes"] == row["lifetime_peak_bytes"]
        assert row["peak_time_ps"] == memory["peak_time_ps"]
        assert row["stack_bytes"] == memory["stack_bytes"]
        assert row["capacity_bytes"] == memory["capacity_bytes"]
        assert row["use_percent"] == pytest.approx(100 * memory["peak_bytes"] / memory["capacity_bytes"], rel=1e-12)
        assert row["allocations"] + row["releases"] == memory["events"]


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_live_at_the_peak(case):
    """The pieces that a replay in Python leaves live explain the heap with what was there before."""
    rows = tables(case)
    live = collections.defaultdict(list)
    for row in rows["live_at_peak"]:
        live[row["host"], row["allocator"]].append(row)
    files = [path_of(case)] if path_of(case).is_file() else sorted(path_of(case).rglob("*.xplane.pb"))
    seen = 0
    for file in files:
        host = next(row["host"] for row in rows["allocators"]) if len(files) == 1 and rows["allocators"] else \
            file.name.removesuffix(".xplane.pb")
        for name, events in read_again(file).items():
            at = peak_of(events)
            want = collections.Counter((s["allocation_bytes"], s["requested_bytes"], s.get("shape")) for s in
                                       live_at(events, at + 1))
            mine = live[host, name]
            got = collections.Counter()
            for row in mine:
                if row["kind"] == "allocation":
                    got[row["piece_bytes"], row["requested_bytes"], row["shape"]] += row["count"]
                    assert row["data_type"] in (None, "float32")
                    assert row["bytes"] == row["count"] * row["piece_bytes"]
            assert got == want
            explained = sum(row["bytes"] for row in mine if row["kind"] != "stack")
            assert explained == events[at][2]["bytes_allocated"]
            seen += 1
    assert seen == len(rows["allocators"])


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_timeline_is_every_event_where_they_are_few(case):
    rows = collections.defaultdict(list)
    for row in tables(case)["timeline"]:
        rows[row["allocator"]].append((row["heap_bytes"], row["free_bytes"]))
    files = [path_of(case)] if path_of(case).is_file() else sorted(path_of(case).rglob("*.xplane.pb"))
    want = collections.defaultdict(list)
    for file in files:
        for name, events in read_again(file).items():
            want[name] += [(s["bytes_allocated"], s["bytes_available"]) for _, _, s in events]
    assert rows == want


@needs_shared
def test_events_of_two_lines_are_in_the_order_of_time():
    for name, events in xprof("mi300x_jax_conv").items():
        samples = events["sampledTimelineSnapshots"]
        times = [int(s["timeOffsetPs"]) for s in samples]
        assert times == sorted(times), name
        for before, after in zip(samples, samples[1:]):
            activity = after["activityMetadata"]
            change = int(activity["allocationBytes"]) * (-1 if activity["memoryActivity"] == "DEALLOCATION" else 1)
            heap = int(before["aggregationStats"]["heapAllocatedBytes"])
            assert int(after["aggregationStats"]["heapAllocatedBytes"]) == heap + change


@needs_shared
def test_a_release_is_described_by_its_piece():
    for name, events in xprof("gpu_h100_2").items():
        piece, n = {}, 0
        for sample in events["sampledTimelineSnapshots"]:
            activity = sample["activityMetadata"]
            told = (activity["tfOpName"], activity["regionType"], activity["tensorShape"])
            if activity["memoryActivity"] == "ALLOCATION":
                piece[activity["address"]] = told
            else:
                assert piece[activity["address"]] == told
                n += 1
        assert n == 128, name


@needs_shared
@pytest.mark.parametrize("case", ["cpu_single", "tpu_v6e_2core", "gpu_h100_no_steps"])
def test_no_allocator_is_unknown(case):
    assert tables(case)["allocators"] == []
    run = subprocess.run([TACHO, "tool", "get_memory_profile", path_of(case), "--xprof"],
                         capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout)
    assert answer["memory_capacity_gib"] is None and answer["peak_memory_usage_gib"] is None
    assert set(answer["peak_usage_details"].values()) == {None}
