# SPDX-License-Identifier: Apache-2.0
"""sync_points beside a second calculation that reads the same trace in Python, and small traces by hand."""
import bisect
import collections
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

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def sync_points(path):
    run = subprocess.run([TACHO, "tool", "sync_points", path, "--json"], capture_output=True, text=True, check=True)
    table = json.loads(run.stdout)
    names = [column["name"] for column in table["columns"]]
    return table["values"]["steps"], [dict(zip(names, cells)) for cells in table["rows"]]


def trace(path, events):
    """events: (category, name, thread, start us, duration us); kernels are on the device."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": cat, "name": name, "pid": 0 if cat == "kernel" else 900, "tid": tid, "ts": ts, "dur": dur,
         "args": {"device": 0, "stream": tid} if cat == "kernel" else {}} for cat, name, tid, ts, dur in events]}))
    return path


def test_the_innermost_call_waits_and_the_first_in_a_gap_owns_it(tmp_path):
    steps, rows = sync_points(trace(tmp_path / "t.json", [
        ("kernel", "gemm", 7, 0, 100), ("kernel", "gemm", 7, 150, 50), ("kernel", "gemm", 7, 300, 10),
        ("python_function", "train.py(10): log", 1, 20, 200),
        ("cpu_op", "aten::item", 1, 30, 80), ("cpu_op", "aten::_local_scalar_dense", 1, 31, 78),
        ("cuda_runtime", "cudaMemcpyAsync", 1, 32, 5), ("cuda_runtime", "cudaStreamSynchronize", 1, 40, 66),
        ("cuda_runtime", "cudaDeviceSynchronize", 1, 120, 10),   # in a gap that another call opened
        ("cuda_runtime", "cudaDeviceSynchronize", 1, 210, 5),    # opens one, after the work of its own accord
        ("cuda_runtime", "cudaDeviceSynchronize", 1, 400, 5)]))  # no work follows: the profile ends
    us = 1_000_000
    assert steps == 0
    assert [(r["call"], r["operation"], r["stack"], r["count"], r["per_step"]) for r in rows] == [
        ("cudaDeviceSynchronize", None, "train.py(10): log", 2, None),
        ("cudaStreamSynchronize", "aten::item", "train.py(10): log", 1, None),
        ("cudaDeviceSynchronize", None, None, 1, None)]
    assert [(r["wait_ps"], r["idle_after_ps"], r["idle_during_ps"]) for r in rows] == [
        (15 * us, 85 * us, 15 * us), (66 * us, 44 * us, 6 * us), (5 * us, 0, 0)]


def test_without_a_device_nothing_is_said_of_its_idle_time(tmp_path):
    _, rows = sync_points(trace(tmp_path / "t.json", [("cpu_op", "aten::item", 1, 0, 9),
                                                      ("cuda_runtime", "cudaStreamSynchronize", 1, 20, 5)]))
    assert [(r["call"], r["wait_ps"], r["idle_after_ps"], r["idle_during_ps"]) for r in rows] == [
        ("cudaStreamSynchronize", 5_000_000, None, None)]


CALLS = {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize",
         "hipMemcpyWithStream", "cudaFree"}


def union(spans):
    out = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1]:
            out[-1][1] = max(b, out[-1][1])
        else:
            out.append([a, b])
    return out


def expected(path):
    """By runtime calls alone: per call count, waiting and idle time, nanoseconds."""
    with gzip.open(path) as f:
        events = json.load(f, parse_float=decimal.Decimal)["traceEvents"]
    ns = lambda v: round(v * 1000)  # noqa: E731
    slices = [e for e in events if e.get("ph") == "X" and isinstance(e.get("dur"), (int, decimal.Decimal))]
    busy = union((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in slices
                 if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
    ends = [b for _, b in busy]
    out = collections.defaultdict(lambda: [0, 0, 0, 0])
    seen = set()
    calls = [e for e in slices if e.get("cat") == "cuda_runtime" and e["name"] in CALLS]
    for e in sorted(calls, key=lambda e: ns(e["ts"]) + ns(e["dur"])):
        begin, end = ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])
        row = out[e["name"]]
        row[0] += 1
        row[1] += end - begin
        gaps = [(a, b) for a, b in zip(ends, (a for a, _ in busy[1:]))]
        row[3] += sum(max(0, min(b, end) - max(a, begin)) for a, b in gaps)
        after = bisect.bisect_right(ends, end)
        if 0 < after < len(busy) and busy[after][0] > end and after not in seen:
            seen.add(after)
            row[2] += busy[after][0] - end
    return dict(out)


@needs_shared
@pytest.mark.parametrize("name", ["diagnosis/C12/p1/trace.json.gz", "diagnosis/C12/clean/trace.json.gz",
                                  "kineto/h100/gaunernst_bert-small-uncased__1016001.json.gz",
                                  "kineto/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
                                  "kineto/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
                                  "kineto/hta/nccl_data.json.gz", "kineto/hta/critical_path_alexnet"])
def test_another_reader_counts_the_same(name):
    path = SHARED / "data" / name
    path = next(path.iterdir()) if path.is_dir() else path
    _, rows = sync_points(path)
    got = collections.defaultdict(lambda: [0, 0, 0, 0])
    for r in rows:
        for i, column in enumerate(("count", "wait_ps", "idle_after_ps", "idle_during_ps")):
            got[r["call"]][i] += r[column]
    assert {call: [v[0], *(round(ps / 1000) for ps in v[1:])] for call, v in got.items()} == expected(path)


@needs_shared
def test_a_scalar_is_read_in_every_step():
    steps, rows = sync_points(SHARED / "data/diagnosis/C12/p1")
    first = rows[0]
    assert (steps, first["per_step"]) == (6, 1)
    assert (first["call"], first["operation"]) == ("cudaStreamSynchronize", "aten::item")
    assert "train.py(118): log_metrics" in first["stack"]
    truth = {c["id"]: c for c in json.loads((SHARED / "data/diagnosis/cases.json").read_text())["cases"]}["C12-p1"]
    per_step_s = first["idle_after_ps"] / first["count"] / 1e12
    assert per_step_s == pytest.approx(truth["truth_impact"]["amount"], rel=0.1)


@needs_shared
def test_jax_waits_where_its_user_waited():
    """The Python tracer's frame says where; XLA's Await inside it is the call."""
    _, rows = sync_points(SHARED / "data/xspace/mi300x_jax_conv.xplane.pb")
    assert [(r["call"], r["count"]) for r in rows] == [("$api.py:2743 block_until_ready", 10)]
    _, rows = sync_points(SHARED / "data/xspace/cpu_single")
    assert {r["call"] for r in rows} == {"CommonPjRtBuffer::Await"}
    assert all(r["idle_after_ps"] is None for r in rows)
