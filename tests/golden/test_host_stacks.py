# SPDX-License-Identifier: Apache-2.0
"""host_stacks beside a second calculation in Python: every moment belongs to the call that began last."""
import collections
import csv
import decimal
import gzip
import io
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def host_stacks(path, *words):
    run = subprocess.run([TACHO, "tool", "host_stacks", path, *words, "--json"], capture_output=True, text=True,
                         check=True)
    out = {}
    for table in json.loads(run.stdout)["tables"]:
        names = [column["name"] for column in table["columns"]]
        out[table["table"]] = [dict(zip(names, cells)) for cells in table["rows"]]
    return out


def trace(path, events):
    """events: (name, thread, start us, duration us)."""
    path.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}
        for name, tid, ts, dur in events]}))
    return path


def test_self_and_total(tmp_path):
    """b ends after a's next call began: that call is not b's, and no moment counts twice."""
    path = trace(tmp_path / "t.json", [("a", 7, 0, 100), ("b", 7, 10, 22), ("c", 7, 30, 50), ("b", 7, 40, 10),
                                       ("a", 7, 90, 5), ("a", 8, 200, 7),
                                       ("<built-in method item of Tensor object at 0x7f10>", 8, 300, 1),
                                       ("<built-in method item of Tensor object at 0x7f20>", 8, 310, 1)])
    t = host_stacks(path)
    us = 1_000_000
    got = {(r["thread"], r["stack"]): (r["count"], r["self_ps"] // us, r["total_ps"] // us) for r in t["host_stacks"]}
    assert got == {("7", "a"): (1, 10 + 20 - 5, 100), ("7", "a;b"): (1, 20, 20), ("7", "a;c"): (1, 40, 50),
                   ("7", "a;c;b"): (1, 10, 10), ("7", "a;a"): (1, 5, 5), ("8", "a"): (1, 7, 7),
                   ("8", "<built-in method item of Tensor object>"): (2, 2, 2)}
    by_name = {r["function"]: (r["count"], r["self_ps"] // us, r["total_ps"] // us) for r in t["functions"]}
    assert by_name["a"] == (3, 25 + 5 + 7, 100 + 7)  # a inside a is counted once
    assert by_name["b"] == (2, 30, 30)
    assert {r["thread"]: r["total_ps"] // us for r in t["threads"]} == {"7": 100, "8": 9}
    assert {r["thread"] for r in host_stacks(path, "thread=8")["host_stacks"]} == {"8"}


def test_samples_are_weighed(tmp_path):
    """Folded samples go through pprof's and XSpace's form and come back."""
    space = tmp_path / "s.xplane.pb"
    events = [(b"main;work;leaf", 3), (b"main;work", 2), (b"main;work;leaf", 1)]

    def field(number, value):
        head = lambda wire: varint(number << 3 | wire)  # noqa: E731
        return head(0) + varint(value) if isinstance(value, int) else head(2) + varint(len(value)) + value

    def varint(v):
        out = b""
        while v > 127:
            out += bytes([v & 127 | 128])
            v >>= 7
        return out + bytes([v])

    line = field(1, 1) + field(2, b"main thread")
    metadata = b""
    for i, (stack, weight) in enumerate(events, 1):
        line += field(4, field(1, i) + field(2, i * 1000) + field(4, field(1, 2) + field(3, weight)))
        entry = field(1, i) + field(2, stack.split(b";")[-1]) + field(5, field(1, 1) + field(5, stack))
        metadata += field(4, field(1, i) + field(2, entry))
    names = b"".join(field(5, field(1, i) + field(2, field(1, i) + field(2, n)))
                     for i, n in ((1, b"stack"), (2, b"weight")))
    space.write_bytes(field(1, field(1, 1) + field(2, b"/host:CPU") + field(3, line) + metadata + names))
    t = host_stacks(space)
    got = {r["stack"]: (r["count"], r["self_samples"], r["total_samples"], r["self_ps"]) for r in t["host_stacks"]}
    assert got == {
        "main;work;leaf": (2, 4, 4, None), "main;work": (1, 2, 6, None)}
    assert {r["function"]: (r["self_samples"], r["total_samples"]) for r in t["functions"]} == {
        "main": (0, 6), "work": (2, 6), "leaf": (4, 4)}


def clean(name):
    if name.startswith("ProfilerStep#"):
        return "ProfilerStep"
    at = name.find(" at 0x")
    if at >= 0:
        end = at + 6
        while end < len(name) and name[end] in "0123456789abcdef":
            end += 1
        name = name[:at] + name[end:]
    return name.replace(";", ",")


def expected(path):
    """Self nanoseconds by (thread, stack), by stretches between edges."""
    with gzip.open(path) as f:
        events = json.load(f, parse_float=decimal.Decimal)["traceEvents"]
    threads = collections.defaultdict(list)
    devices = {e["pid"] for e in events if e.get("cat") in ("kernel", "gpu_memcpy")}
    for e in events:
        if e.get("ph") == "X" and e["pid"] not in devices and e.get("cat") != "Trace":
            begin = int(e["ts"] * 1000)
            threads[e["pid"], e["tid"]].append((begin, -int(e["dur"] * 1000), e["name"]))
    out = collections.Counter()
    for thread, calls in threads.items():
        calls.sort(key=lambda c: c[:2])
        running, now = [], 0  # [end, path], the last to begin at the end

        def until(to):
            nonlocal now
            while running and now < to:
                end, path = running[-1]
                if end > now:
                    out[thread, path] += min(end, to) - now
                    now = min(end, to)
                if end > to:
                    break
                running.pop()
            while running and running[-1][0] <= to:
                running.pop()
            now = to

        for begin, minus, name in calls:
            until(begin)
            end = begin - minus
            caller = next((p for e, p in reversed(running) if e >= end), "")
            running.append((end, f"{caller};{clean(name)}" if caller else clean(name)))
        until(1 << 62)
    return sorted((ns, stack) for (_, stack), ns in out.items() if ns)


@needs_shared
@pytest.mark.parametrize("name", ["kineto/torch_cpu_attention.json.gz", "kineto/torch_cpu_mlp.json.gz",
                                  "diagnosis/C12/p1/trace.json.gz",
                                  "kineto/mi300/gaunernst_bert-small-uncased__1016001.json.gz"])
def test_another_reader_folds_the_same(name):
    path = SHARED / "data" / name
    rows = host_stacks(path, "limit=1000000")["host_stacks"]
    assert sorted((r["self_ps"] // 1000, r["stack"]) for r in rows) == expected(path)


@needs_shared
@pytest.mark.parametrize("case", ["cpu_python_tracer", "cpu_dp4", "gpu_h100_2", "tpu_v6e_2core"])
def test_threads_add_up(case):
    """Self times of a thread's stacks sum to its total, and that is not more than the profile lasts."""
    path = SHARED / "data/xspace" / case
    t = host_stacks(path, "limit=1000000")
    sums = collections.Counter()
    for r in t["host_stacks"]:
        sums[r["thread"]] += r["self_ps"]
    assert sums == {r["thread"]: r["total_ps"] for r in t["threads"]} and sums
    run = subprocess.run([TACHO, "tool", "summary", path, "--json"], capture_output=True, text=True, check=True)
    assert max(sums.values()) <= json.loads(run.stdout)["duration_ns"] * 1000 + 1000


@needs_shared
def test_a_row_is_a_line_of_folded_text():
    path = SHARED / "data/xspace/cpu_python_tracer"
    text = subprocess.run([TACHO, "tool", "host_stacks", path, "thread=python", "limit=5", "--csv"],
                          capture_output=True, text=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(text.split("\n\n")[0])))
    assert len(rows) == 5 and all(int(r["self_ps"]) > 0 for r in rows)
    assert any("$train.py:88 run;$train.py:35 loader" in r["stack"] for r in rows)


def test_work_belongs_to_the_calls_that_launched_it(tmp_path):
    """Two kernels of one operation, one of another that is inside it, and one that nobody launched."""
    def call(name, ts, dur, correlation=None, cat="cpu_op"):
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 7, "ts": ts, "dur": dur,
                "args": {} if correlation is None else {"correlation": correlation}}

    def kernel(name, ts, dur, correlation):
        return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
                "args": {"device": 0, "stream": 7, "correlation": correlation}}

    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [
        call("aten::linear", 0, 100), call("aten::addmm", 10, 40), call("cudaLaunchKernel", 20, 5, 1, "cuda_runtime"),
        call("cudaLaunchKernel", 60, 5, 2, "cuda_runtime"), call("cudaLaunchKernel", 70, 5, 3, "cuda_runtime"),
        kernel("gemm", 200, 50, 1), kernel("bias", 250, 7, 2), kernel("bias", 260, 8, 3), kernel("lost", 300, 9, 99)]}))
    t = host_stacks(tmp_path / "t.json")
    us = 1_000_000
    assert {r["stack"]: r["device_ps"] // us for r in t["host_stacks"]} == {
        "aten::linear": 65, "aten::linear;aten::addmm": 50, "aten::linear;aten::addmm;cudaLaunchKernel": 50,
        "aten::linear;cudaLaunchKernel": 15}
    assert {r["function"]: r["device_ps"] // us for r in t["functions"]} == {
        "aten::linear": 65, "aten::addmm": 50, "cudaLaunchKernel": 65}


def test_without_a_gpu_launched_work_is_unknown(tmp_path):
    t = host_stacks(trace(tmp_path / "t.json", [("a", 7, 0, 100)]))
    assert [r["device_ps"] for r in t["host_stacks"] + t["functions"] + t["threads"]] == [None] * 3
