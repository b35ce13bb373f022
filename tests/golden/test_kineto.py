# SPDX-License-Identifier: Apache-2.0
"""Real traces of PyTorch, read here by json and by the importer: the same events, sums and facts."""
import collections
import csv
import decimal
import gzip
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
FOLDER = SHARED / "data" / "kineto"
CASES = [p for p in sorted(FOLDER.rglob("*.json.gz"))]
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
pytestmark = pytest.mark.skipif(not CASES, reason="the shared traces are not there (TACHO_SHARED)")


def summary(*words):
    run = subprocess.run([TACHO, "tool", "summary", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def entries(path):
    document = json.loads(gzip.open(path).read(), parse_float=decimal.Decimal)
    return document, document["traceEvents"]


def picoseconds(microseconds):
    return int(decimal.Decimal(microseconds) * 1000000)


def union(spans):
    total, reached = 0, None
    for start, end in sorted(spans):
        if reached is None or start > reached:
            total += end - start
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


@pytest.mark.parametrize("path", CASES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_events_and_sums_are_those_of_the_json(path):
    document, events = entries(path)
    got = json.loads(summary(path, "--json"))
    slices = [e for e in events if e["ph"] == "X"]
    instants = [e for e in events if e["ph"] in "iI"]
    assert got["kind"] == "kineto"
    assert got["events"] == len(slices) + len(instants)
    assert got["planes"] == len({str(e["pid"]) for e in slices + instants})
    starts = [picoseconds(e["ts"]) for e in slices + instants]
    ends = [picoseconds(e["ts"]) + picoseconds(e["dur"]) for e in slices]
    assert abs(got["duration_ns"] - (max(ends + starts) - min(starts)) / 1000) <= 1
    steps = {int(e["name"].partition("#")[2]) for e in slices if e["name"].startswith("ProfilerStep#")}
    assert set(got["steps"]) == steps
    if "rank" in document.get("distributedInfo", {}):
        assert got["ranks"] == [document["distributedInfo"]["rank"]]


@pytest.mark.parametrize("path", CASES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_streams_are_busy_as_their_kernels_are(path):
    _, events = entries(path)
    spans, numbers = collections.defaultdict(list), collections.Counter()
    for e in events:
        if e["ph"] == "X" and e.get("cat") in WORK:
            start = picoseconds(e["ts"])
            key = f"Stream #{str(e['tid']).rpartition(' ')[2]}"
            spans[key].append((start, start + picoseconds(e["dur"])))
            numbers[key] += 1
    seen = {}
    for cells in csv.reader(summary(path, "--csv").splitlines()):
        if len(cells) == 5 and cells[2].startswith("Stream #"):
            seen[cells[2]] = (int(cells[3]), int(cells[4]))
    assert {k: v[0] for k, v in seen.items()} == dict(numbers)
    for key, (_, busy_ps) in seen.items():
        assert busy_ps <= union(spans[key])  # impossible durations are cut
        assert busy_ps >= union(spans[key]) * 0.99


def launched_steps(events):
    """By device: {number: (first start, last end)} of the work whose call stands in a step's marker, by its time. Where
    other streams run ahead into the work of the step before, the stream that is busy most tells the starts."""
    marks = sorted((picoseconds(e["ts"]), picoseconds(e["dur"]), int(e["name"].partition("#")[2])) for e in events
                   if e["ph"] == "X" and e["name"].startswith("ProfilerStep#") and e["cat"] != "gpu_user_annotation")
    calls = {e["args"]["correlation"]: picoseconds(e["ts"]) for e in events
             if e["ph"] == "X" and e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime", "runtime")
             and "correlation" in e.get("args", {})}
    streams = collections.defaultdict(lambda: collections.defaultdict(list))
    for e in events:
        if e["ph"] == "X" and str(e.get("cat")).lower() in WORK + ("memcpy", "memset"):
            start, at = picoseconds(e["ts"]), calls.get(e["args"].get("correlation"), -1)
            numbers = [n for begin, dur, n in marks if begin <= at <= begin + dur] or [None]
            streams[e["args"]["device"]][e["tid"]].append((numbers[0], start, start + picoseconds(e["dur"])))
    out = {}
    for device, of in streams.items():
        def extents(spans):
            return {n: (min(s for m, s, _ in spans if m == n), max(t for m, _, t in spans if m == n))
                    for n in sorted({m for m, _, _ in spans} - {None})}
        every = extents([span for spans in of.values() for span in spans])
        main = extents(max(of.values(), key=lambda spans: union([(s, t) for _, s, t in spans])))
        ahead = any(every[b][0] < max(every[a][0], main.get(a, (0, 0))[1]) for a, b in zip(every, list(every)[1:]))
        starts = main if ahead else every
        out[device] = {n: (starts[n][0], every[n][1]) for n in starts}
    return marks, {device: of for device, of in out.items() if of}


@pytest.mark.parametrize("path", CASES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_a_step_with_a_row_on_the_gpu_is_one_step(path):
    """PyTorch writes a step's mark on the host's thread and again beside the GPU's streams."""
    _, events = entries(path)
    marks, devices = launched_steps(events)
    run = subprocess.run([TACHO, "tool", "steps", path, "--json"], capture_output=True, text=True, check=True)
    table = json.loads(run.stdout)
    names = [c["name"] for c in table["columns"]]
    rows = [dict(zip(names, cells)) for cells in table["rows"]]
    lanes = collections.defaultdict(list)
    for r in rows:
        lanes[r["device"]].append(r)
    origin = min(picoseconds(e["ts"]) for e in events if e["ph"] in "XiI")
    assert [r["step"] for r in lanes.pop(None, [])] == [n for _, _, n in marks]
    if not marks:
        return
    assert (table["values"]["steps"], table["values"]["lanes"]) == (len(marks), len(set(r["device"] for r in rows)))
    for device, of in devices.items():
        ours = lanes.pop(f"GPU {device}")
        assert [r["step"] for r in ours] == sorted(of)
        for r in ours:
            assert r["start_ps"] == pytest.approx(of[r["step"]][0] - origin, abs=2000), r
            assert r["marked_ps"] == pytest.approx(of[r["step"]][1] - of[r["step"]][0], abs=2000), r
    assert set(lanes) <= {"CPU"}
