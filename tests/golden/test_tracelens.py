# SPDX-License-Identifier: Apache-2.0
"""Our tools beside what TraceLens published for the same traces (shared data: kineto/h100, kineto/mi300 and
xspace/mi300x_jax_conv, each with TraceLens' CSV files).

Where the numbers differ, and why:
- TraceLens keeps times of Kineto traces as doubles of microseconds since boot (1.4e12 and more), whose last bit is
  0.24 ns. Its sums carry that error of each end; ours are exact. The kernels' own durations are short numbers: equal.
- "computation_time" of TraceLens is the union of all kernels that are not NCCL's, "exposed_memcpy_time" that of
  copies beside neither: the same as ours. But fills of memory (cudaMemset) are computation to it, to us copies as
  HolisticTraceAnalysis has it; the test moves them.
- Its operators are those that launch kernels themselves; ours hold also what stands around them (aten::linear
  around aten::addmm), whose launched work counts again. So its rows are looked up in ours, not the reverse, and
  counts are compared where every call launches.
- Its report of the XSpace merges copies of one GPU with kernels of another under the mean of both
  (gpu_events_averages); ours has a row a device, whose mean is that.
"""
import collections
import csv
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
KINETO = SHARED / "data" / "kineto"
JAX = SHARED / "data" / "xspace" / "mi300x_jax_conv.xplane.pb"
JAX_CSV = SHARED / "data" / "xspace" / "mi300x_jax_conv.tracelens"
TRACES = sorted(p.relative_to(KINETO).as_posix().removesuffix(".json.gz") for where in ("h100", "mi300")
                for p in (KINETO / where).glob("*.json.gz"))
LAST_BIT_PS = 1e6 * 2**-12  # of a double of microseconds since boot

pytestmark = pytest.mark.skipif(not TRACES, reason=f"no traces with TraceLens' answers at {KINETO}: set TACHO_SHARED")


def tool(name, path, *words):
    run = subprocess.run([TACHO, "tool", name, path, *words, "--json"], capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout)
    out = {}
    for table in answer.get("tables", [answer]):
        names = [column["name"] for column in table["columns"]]
        out[table["table"]] = [dict(zip(names, cells)) for cells in table["rows"]]
    return out


def published(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def report(trace, name):
    return published(KINETO / f"{trace}_perf_report_csvs" / f"{name}.csv")


TIMELINE = {"computation_time": "compute_ps", "exposed_comm_time": "comm_exposed_ps",
            "exposed_memcpy_time": "copy_exposed_ps", "busy_time": "busy_ps", "idle_time": "idle_ps",
            "total_time": "window_ps", "total_comm_time": "comm_ps", "total_memcpy_time": "copy_ps"}


@pytest.mark.parametrize("trace", TRACES)
def test_timeline_of_the_gpu(trace):
    (window,) = tool("rank_compare", KINETO / f"{trace}.json.gz")["windows"]
    kernels = sum(int(r["Kernel duration (µs)_count"]) for r in report(trace, "kernel_summary"))
    fills = sum(r["exposed_ps"] for r in tool("copies", KINETO / f"{trace}.json.gz")["copies"]
                if r["direction"] == "fill")
    window["compute_ps"] += fills
    window["copy_ps"] -= fills  # none of them runs beside another copy here
    window["copy_exposed_ps"] -= fills
    for row in report(trace, "gpu_timeline"):
        ours = window[TIMELINE[row["type"]]]
        assert ours == pytest.approx(float(row["time ms"]) * 1e9, abs=2 * (kernels + 1) * LAST_BIT_PS), row["type"]


def test_timelines_of_two_gpus():
    """TraceLens' process 8 is GPU 7, which ran the program, and process 1 is GPU 0, which handed out its input."""
    windows = {r["device"]: r for r in tool("rank_compare", JAX)["windows"]}
    assert set(windows) == {"GPU 0", "GPU 7"}
    for row in published(JAX_CSV / "gpu_timeline.csv"):
        ours = windows[{"8": "GPU 7", "1": "GPU 0"}[row["gpu_pid"]]][TIMELINE[row["type"]]]
        assert ours == pytest.approx(float(row["time ms"]) * 1e9, abs=1000), row
    for row in published(JAX_CSV / "gpu_events_averages.csv"):
        mean = sum(w[TIMELINE[row["type"]]] for w in windows.values()) / len(windows)
        assert mean == pytest.approx(float(row["time ms"]) * 1e9, abs=1000), row


def kernels_by_name(path):
    out = {}
    for r in tool("kernel_stats", path)["kernel_stats"]:
        n, total, least, most = out.get(r["kernel"], (0, 0, 1 << 62, 0))
        out[r["kernel"]] = (n + r["occurrences"], total + r["total_time_ps"], min(least, r["min_time_ps"]),
                            max(most, r["max_time_ps"]))
    return out


@pytest.mark.parametrize("trace", TRACES)
def test_kernels(trace):
    want = {}
    for r in report(trace, "kernel_summary"):
        n, total, least, most = want.get(r["Kernel name"], (0, 0, 1 << 62, 0))
        ps = {key: round(float(r[f"Kernel duration (µs)_{key}"]) * 1e6) for key in ("sum", "min", "max")}
        want[r["Kernel name"]] = (n + int(r["Kernel duration (µs)_count"]), total + ps["sum"], min(least, ps["min"]),
                                  max(most, ps["max"]))
    assert kernels_by_name(KINETO / f"{trace}.json.gz") == want


def test_kernels_of_jax():
    got = kernels_by_name(JAX)
    want = {r["name"]: (int(r["Count"]), round(float(r["total_direct_kernel_time_sum"]) * 1e6))
            for r in published(JAX_CSV / "kernel_launchers_summary.csv")}
    assert {name: times[:2] for name, times in got.items()} == want
    fusions = collections.Counter()  # its summary of XLA's own: names without their number
    for name, (_, total, *_) in got.items():
        if "fusion" in name:
            fusions[name.rstrip("0123456789")] += total
    assert fusions == {r["name"]: round(float(r["total_direct_kernel_time_sum"]) * 1e6)
                       for r in published(JAX_CSV / "xla_summary.csv")}


@pytest.mark.parametrize("trace", TRACES)
def test_operators(trace):
    """The device time of each operator's kernels is what its calls launched; every call of these did."""
    stacks = tool("host_stacks", KINETO / f"{trace}.json.gz", "limit=1000000")
    functions = {r["function"]: r for r in stacks["functions"]}
    rows = report(trace, "ops_summary")
    assert len(rows) > 5
    for row in rows:
        ours = functions[row["name"]]
        launches = sum(int(r["operation_count"]) for r in report(trace, "ops_unique_args") if r["name"] == row["name"])
        want = float(row["total_subtree_kernel_time_sum"]) * 1e6
        assert ours["device_ps"] == pytest.approx(want, abs=4 * launches * LAST_BIT_PS), row["name"]
        assert ours["count"] >= int(row["Count"]) == launches


@pytest.mark.parametrize("trace", TRACES)
def test_categories_of_operators(trace):
    """Its categories (GEMM, elementwise …) add up to the same work of the device as all that was launched."""
    threads = tool("host_stacks", KINETO / f"{trace}.json.gz")["threads"]
    launched = sum(r["device_ps"] for r in threads)
    rows = report(trace, "ops_summary_by_category")
    assert launched == pytest.approx(sum(float(r["total_direct_kernel_time_ms"]) for r in rows) * 1e9, rel=1e-4)
