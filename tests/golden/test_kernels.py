# SPDX-License-Identifier: Apache-2.0
"""Kernels, device memory and CUDA graphs beside the truth of the generated profiles."""
import collections
import csv
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"
REPORTS = sorted(SHARED.glob("data/kineto/*/*_perf_report_csvs/kernel_summary.csv"))
GPU_CASES = sorted(p.parent.name for p in XSPACE.glob("gpu_*/truth.json")) if XSPACE.is_dir() else []

needs_shared = pytest.mark.skipif(not XSPACE.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def tool(name, path, *params):
    path = path if os.path.exists(path) else XSPACE / path
    path = path if path.exists() else path.with_name(path.name + ".xplane.pb")
    run = subprocess.run([TACHO, "tool", name, path, *params, "--json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def rows_of(answer):
    names = [column["name"] for column in answer["columns"]]
    return [dict(zip(names, row)) for row in answer["rows"]]


def truth(case):
    return json.loads((XSPACE / case / "truth.json").read_text())["hosts"]


def kernel_sums(rows):
    """What truth.json has one row for: kernel, registers, shared memory, grid."""
    sums = collections.defaultdict(lambda: [0, 0, None, 0, None])
    for row in rows:
        s = sums[(row["kernel"], row["registers"], row["shmem_bytes"], row["grid"])]
        s[0] += row["occurrences"]
        s[1] += row["total_ps"]
        s[2] = row["min_ps"] if s[2] is None else min(s[2], row["min_ps"])
        s[3] = max(s[3], row["max_ps"])
        s[4] = row["really_tensor_core"]
    return dict(sums)


def our_kernels(case, *params):
    rows = rows_of(tool("kernel_stats", case, *params))
    return kernel_sums([{"kernel": r["kernel"], "registers": r["registers_per_thread"], "grid": r["grid"],
                         "shmem_bytes": r["shared_memory_bytes"], "really_tensor_core": r["matrix_units"],
                         "occurrences": r["occurrences"], "total_ps": r["total_time_ps"],
                         "min_ps": r["min_time_ps"], "max_ps": r["max_time_ps"]} for r in rows])


@needs_shared
@pytest.mark.parametrize("case", GPU_CASES)
def test_kernels_are_exact(case):
    """Count, sum, shortest and longest of every kernel, in picoseconds."""
    want = [k for host in truth(case) for core in host["cores"] for k in core["kernels"]]
    assert our_kernels(case) == kernel_sums(want)


@needs_shared
@pytest.mark.parametrize("case", GPU_CASES)
def test_matrix_units_as_truth_has_them(case):
    answer = tool("kernel_stats", case)
    want = sum(core["tensor_core_kernel_ps"] for host in truth(case) for core in host["cores"])
    assert answer["values"]["matrix_unit_time_ps"] == want > 0
    assert answer["values"]["unknown_unit_time_ps"] == 0


@needs_shared
def test_kernels_of_one_host():
    for host in truth("gpu_a100_2hosts"):
        got = our_kernels("gpu_a100_2hosts", f"host={host['host']['name']}")
        assert got == kernel_sums(k for core in host["cores"] for k in core["kernels"])


@needs_shared
def test_kernels_of_one_device():
    cores = truth("gpu_h100_2")[0]["cores"]
    for core in cores:
        assert our_kernels("gpu_h100_2", f"device={core['plane']}") == kernel_sums(core["kernels"])
    assert our_kernels("gpu_h100_2", "device=GPU:1") == kernel_sums(cores[1]["kernels"])


@needs_shared
def test_a_pointer_is_no_register_count():
    rows = rows_of(tool("kernel_stats", "mi300x_jax_conv"))
    assert len(rows) == 5
    assert sum(row["total_time_ps"] for row in rows) == 3_586_493_000  # TraceLens has 3.586493 ms
    for row in rows:
        assert (row["registers_per_thread"], row["shared_memory_bytes"], row["occupancy_percent"]) == (None, None, None)
    assert [row["matrix_units"] for row in rows if row["kernel"].startswith("Cijk_")] == [True]


@needs_shared
def test_sums_by_name_are_those_of_the_kernels():
    by_name = collections.Counter()
    for row in rows_of(tool("kernel_stats", "gpu_h100_2")):
        by_name[row["kernel"]] += row["total_time_ps"]
    rows = rows_of(tool("get_kernel_stats", "gpu_h100_2", "limit=0"))
    got = {row["kernel"]: row["total_time_ps"] for row in rows}
    assert {name: ps for name, ps in got.items() if not name.startswith("Memcpy")} == dict(by_name)
    copies = sum(core["copy_ps"] for host in truth("gpu_h100_2") for core in host["cores"])
    assert sum(ps for name, ps in got.items() if name.startswith("Memcpy")) == copies


@needs_shared
def test_a_graphs_kernels_count_under_their_graph():
    """Of 120 us 40 ran as HLO operations and 80 in two launches of a CUDA graph of four nodes."""
    report = SHARED / "data" / "reports" / "h12_graph_kernels.xplane.pb"
    answer = tool("hlo_stats", report)
    rows = {row["operation"]: row for row in rows_of(answer)}
    graph = rows.pop("CUDA graph 11")
    assert (graph["self_time_ps"], graph["occurrences"], graph["category"]) == (80_000_000, 2, "cuda graph")
    assert sum(row["self_time_ps"] for row in rows.values()) == 40_000_000
    assert (answer["values"]["busy_time_ps"], answer["values"]["unnamed_time_ps"]) == (120_000_000, 0)
    kernels = [row for row in rows_of(tool("kernel_stats", report)) if row["operation"] == "CUDA graph 11"]
    assert len(kernels) == 4 and all(row["occurrences"] == 2 for row in kernels)


@needs_shared
def test_waves_are_blocks_over_what_the_device_holds():
    """H100: 132 SMs of 2,048 threads. 64 blocks of 256 threads at 12.5 % fill 64 of 132 places."""
    rows = rows_of(tool("kernel_utilization", "gpu_h100_2"))
    gemm = next(row for row in rows if row["kernel"].startswith("nvjet_tst"))
    assert (gemm["blocks"], gemm["occupancy_percent"]) == (64, 12.5)
    assert gemm["waves"] == pytest.approx(64 / 132, rel=1e-12)
    assert gemm["idle_in_waves_percent"] == pytest.approx(100 * (1 - 64 / 132), rel=1e-12)
    copy = next(row for row in rows if row["kernel"] == "copy_1")
    assert copy["waves"] == pytest.approx(1024 / (132 * 4), rel=1e-12)  # 50 %: four blocks an SM
    assert copy["idle_in_waves_percent"] == pytest.approx(100 * (1 - 1024 / (132 * 4) / 2), rel=1e-12)
    spans = sum(core["span_ps"] for host in truth("gpu_h100_2") for core in host["cores"])
    for row in rows:
        assert row["device_share_percent"] == pytest.approx(100 * row["total_time_ps"] / spans, rel=1e-12)
        assert row["compute_percent"] is None  # no counter says it


@needs_shared
def test_what_fills_a_device_is_unknown_without_an_occupancy():
    for row in rows_of(tool("kernel_utilization", "mi300x_jax_conv")):
        assert (row["occupancy_percent"], row["waves"], row["idle_in_waves_percent"]) == (None, None, None)
        assert row["blocks"] > 0


@needs_shared
def test_custom_calls_of_a_tpu_beside_their_peaks():
    ops = collections.defaultdict(lambda: [0, 0, 0])
    for op in (op for host in truth("tpu_v6e_2core") for core in host["cores"] for op in core["ops"]):
        if op["category"] == "custom-call":
            ops[op["name"]] = [a + b for a, b in zip(ops[op["name"]], (op["total_ps"], op["flops"], op["bytes"]))]
    rows = {row["kernel"]: row for row in rows_of(tool("kernel_utilization", "tpu_v6e_2core"))}
    assert rows.keys() == ops.keys() and len(ops) == 3
    for name, (time_ps, flops, n_bytes) in ops.items():
        assert rows[name]["total_time_ps"] == time_ps
        assert rows[name]["compute_percent"] == pytest.approx(100 * flops / (time_ps / 1e12) / 918e12, rel=1e-9)
        assert rows[name]["memory_percent"] == pytest.approx(100 * n_bytes / (time_ps / 1e12) / 1638e9, rel=1e-9)


@needs_shared
@pytest.mark.parametrize("report", REPORTS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2][:8]}")
def test_kernels_of_pytorch_as_tracelens_sums_them(report):
    """Count, sum, shortest and longest of every kernel, in microseconds as the recorder wrote them."""
    want = {}
    for row in csv.DictReader(report.open()):
        n, total, least, most = (float(row[f"Kernel duration (µs)_{key}"]) for key in ("count", "sum", "min", "max"))
        was = want.get(row["Kernel name"], (0, 0, least, most))
        want[row["Kernel name"]] = (was[0] + n, was[1] + total, min(was[2], least), max(was[3], most))
    trace = report.parent.with_name(report.parent.name.replace("_perf_report_csvs", ".json.gz"))
    got = {}
    for row in rows_of(tool("kernel_stats", trace)):
        least, most = row["min_time_ps"] / 1e6, row["max_time_ps"] / 1e6
        was = got.get(row["kernel"], (0, 0, least, most))
        got[row["kernel"]] = (was[0] + row["occurrences"], was[1] + row["total_time_ps"] / 1e6,
                              min(was[2], least), max(was[3], most))
        assert row["grid"] and row["block"]  # Kineto's arguments; ROCm's say no shared memory
        assert (row["shared_memory_bytes"] is None) == ("mi300" in report.parts)
    assert len(want) > 10 and got.keys() == want.keys()
    for name, numbers in want.items():
        assert got[name] == pytest.approx(numbers, rel=1e-9)
