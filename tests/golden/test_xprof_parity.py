# SPDX-License-Identifier: Apache-2.0
"""Our answers beside XProf's for the same profiles, and beside the truth of the generated ones."""
import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
JUDGE = SHARED / "tools" / "compare_xprof.py"
XSPACE = SHARED / "data" / "xspace"
CASES = sorted(p.parent.name for p in XSPACE.glob("*/truth.json")) if XSPACE.is_dir() else []

needs_shared = pytest.mark.skipif(not JUDGE.is_file(), reason=f"no XProf answers at {SHARED}: set TACHO_SHARED")


@needs_shared
@pytest.mark.parametrize("tool", ["hlo_stats*",
                                  "op_profile*",
                                  "overview_page",
                                  "cli.get_hosts",
                                  "input_pipeline_analyzer*",
                                  "pod_viewer",
                                  "cli.get_overview",
                                  "cli.get_kpi_metrics",
                                  "cli.check_host_boundness",
                                  "cli.get_step_trace",
                                  "cli.analyze_async_overlap",
                                  "roofline_model*",
                                  "kernel_stats*",
                                  "cli.get_kernel_stats",
                                  "kernel_utilization*",
                                  "cli.get_kernel_utilization",
                                  "framework_op_stats*",
                                  "memory_profile*",
                                  "cli.get_memory_profile",
                                  "cli.get_device_information",
                                  "cli.get_hlo_op_profile",
                                  "cli.get_hlo_stats",
                                  "cli.get_profile_summary",
                                  "cli.get_roofline_model",
                                  "cli.get_top_hlo_ops",
                                  "cli.inspect_capture",
                                  "cli.list_xplane_events",
                                  "cli.aggregate_xplane_events",
                                  "trace_viewer*",
                                  "tool_names"])
def test_answers_as_xprof_does(tool):
    answers = len([path for path in (SHARED / "data" / "xprof_goldens").glob(f"*/{tool}.json*")
                   if not path.name.endswith(".request.json")])
    run = subprocess.run([sys.executable, JUDGE, "--tacho", TACHO, "--tool", tool,
                          "--deviations", ROOT / "tests" / "golden" / "deviations.json"],
                         capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, f"{answers} passed, 0 failed"), run.stdout


def overview_xprof(case, *params):
    path = XSPACE / case if (XSPACE / case).exists() else XSPACE / f"{case}.xplane.pb"
    run = subprocess.run([TACHO, "tool", "overview_page", path, *params, "--xprof"], capture_output=True, text=True,
                         check=True)
    return json.loads(run.stdout)


def golden_rows(case, name, table):
    answer = json.loads((SHARED / "data" / "xprof_goldens" / case / f"{name}.json").read_text())
    answer = answer[table] if isinstance(answer, list) else answer
    return [dict(zip((column["id"] for column in answer["cols"]), (cell["v"] for cell in row["c"])))
            for row in answer["rows"]]


@needs_shared
@pytest.mark.parametrize("case", ["gpu_a100_2hosts", "gpu_h100_2", "gpu_v100_slow_input"])
def test_gpu_steps_split_xprofs_compute(case):
    """XProf's compute holds the copies. Ours apart add up to it, and the copies are there in the truth."""
    steps = overview_xprof(case)[1]
    names = [column["id"] for column in steps["cols"]]
    rows = [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in steps["rows"]]
    golden = golden_rows(case, "overview_page", 1)
    cores = json.loads((XSPACE / case / "truth.json").read_text())["hosts"][0]["cores"]
    assert len(rows) == len(golden)
    for i, (row, want) in enumerate(zip(rows, golden), 1):  # the first step may be cut off and is left out
        parts = [row[key] for key in ("deviceComputeTimeMs", "kernelLaunchTimeMs", "infeedTimeMs", "outfeedTimeMs")]
        assert sum(parts) == pytest.approx(want["deviceComputeTimeMs"], rel=1e-9)
        step = [core["steps"][i] for core in cores]
        assert row["kernelLaunchTimeMs"] + row["infeedTimeMs"] <= max(s["h2d_ps"] for s in step) * 1.02 / 1e9
        if len(cores) == 1:
            assert row["deviceComputeTimeMs"] == pytest.approx(step[0]["compute_kernel_ps"] / 1e9, rel=1e-9)
            assert row["outfeedTimeMs"] == pytest.approx(step[0]["d2h_ps"] / 1e9, rel=1e-9)


@needs_shared
@pytest.mark.parametrize("case", ["gpu_a100_2hosts", "gpu_h100_2", "gpu_v100_slow_input", "mi300x_jax_conv"])
def test_share_of_host_operations(case):
    """XProf's own table of operations, without those of the host that took no time."""
    rows = [row for row in golden_rows(case, "framework_op_stats", 0) if row["type"] != "IDLE"]
    count = {where: sum(row["occurrences"] for row in rows if row["host_or_device"] == where and row["total_time"] > 0)
             for where in ("Host", "Device")}
    ours = overview_xprof(case)[0]["p"]["host_tf_op_percent"]
    assert ours == f"{100 * count['Host'] / (count['Host'] + count['Device']):.1f}%"


@needs_shared
@pytest.mark.parametrize("case", ["gpu_a100_2hosts", "gpu_h100_2", "gpu_h100_no_steps", "gpu_v100_slow_input"])
def test_operations_use_tensor_cores_where_their_kernels_do(case):
    truth = json.loads((XSPACE / case / "truth.json").read_text())
    on_tensor_cores = {kernel["kernel"]: kernel["really_tensor_core"] for host in truth["hosts"]
                       for core in host["cores"] for kernel in core["kernels"]}
    kernels = golden_rows(case, "kernel_stats", 0)
    for cells in ([cell["v"] for cell in row["c"]] for row in overview_xprof(case)[0]["rows"]):
        names = [kernel["kernel_name"] for kernel in kernels if kernel["op_name"] == cells[3]]
        assert names and cells[6] == any(on_tensor_cores[name] for name in names), cells


@needs_shared
def test_idle_of_the_host():
    rows = [row for row in golden_rows("cpu_synthetic", "framework_op_stats", 0) if row["host_or_device"] == "Host"]
    idle = sum(row["total_self_time"] for row in rows if row["type"] == "IDLE")
    share = 100 * idle / sum(row["total_self_time"] for row in rows)
    assert overview_xprof("cpu_synthetic")[0]["p"]["host_idle_time_percent"] == f"{share:.1f}%"


@needs_shared
@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("tpu")])
def test_compute_of_a_tpu_step_is_that_of_the_core_that_computes_least(case):
    """The generator's own sums, not XProf's."""
    truth = json.loads((XSPACE / case / "truth.json").read_text())
    rows = [[cell["v"] for cell in row["c"]] for row in overview_xprof(case)[1]["rows"]]
    cores = [core["steps"] for host in truth["hosts"] for core in host["cores"]]
    assert len(rows) == truth["steps"]
    for row, *steps in zip(rows, *cores):
        assert row[1] == pytest.approx(min(step["busy_ps"] for step in steps) / 1e9, rel=1e-12)
        assert row[4] == pytest.approx(max(step["infeed_ps"] for step in steps) / 1e9, rel=1e-12)
        assert row[7] == pytest.approx(max(step["other_transfer_ps"] for step in steps) / 1e9, abs=1e-12)


def truth_of(case, only=None):
    """Self time and occurrences of every operation, over all cores and hosts, or those of one host."""
    total = {}
    for host in json.loads((XSPACE / case / "truth.json").read_text())["hosts"]:
        if only not in (None, host["host"]["name"]):
            continue
        ops = [op for core in host["cores"] for op in core["ops"]] + host.get("host", {}).get("cpu_ops", [])
        for op in ops:
            sums = total.setdefault(op["name"], [0, 0])
            sums[0] += op["self_ps"]
            sums[1] += op["occurrences"]
    return total


def rows_of(tool, case, *params):
    run = subprocess.run([TACHO, "tool", tool, XSPACE / case, *params, "--json"], capture_output=True, text=True,
                         check=True)
    table = json.loads(run.stdout)
    names = [column["name"] for column in table["columns"]]
    return [row if isinstance(row, dict) else dict(zip(names, row)) for row in table["rows"]]


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_self_times_equal_the_truth_to_the_picosecond(case):
    rows = rows_of("hlo_stats", case)
    assert {row["operation"]: [row["self_time_ps"], row["occurrences"]] for row in rows} == truth_of(case)


@needs_shared
@pytest.mark.parametrize("host", ["host-0", "host-1"])
def test_one_host_is_asked_for_and_answered(host):
    """Where XProf answers with all hosts and our numbers deviate."""
    rows = rows_of("hlo_stats", "gpu_a100_2hosts", f"host={host}")
    ours = {row["operation"]: [row["self_time_ps"], row["occurrences"]] for row in rows}
    assert ours == truth_of("gpu_a100_2hosts", host) != truth_of("gpu_a100_2hosts")


def overview_steps(case):
    run = subprocess.run([TACHO, "tool", "overview_page", XSPACE / case, "--json"], capture_output=True, text=True,
                         check=True)
    table = json.loads(run.stdout)["tables"][0]
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


@needs_shared
@pytest.mark.parametrize("case", [c for c in CASES if not c.startswith("cpu_")])
def test_steps_equal_the_truth_to_the_picosecond(case):
    """A step lasts as its longest marker and waits as long as the core that waits longest."""
    truth = json.loads((XSPACE / case / "truth.json").read_text())
    rows = overview_steps(case)
    if "steps" not in truth["features"]:
        assert rows == []
        return
    for host in truth["hosts"]:
        ours = [row for row in rows if row["host"] == host["host"]["name"]]
        assert [row["step"] for row in ours] == list(range(truth["steps"]))
        for row, *cores in zip(ours, *(core["steps"] for core in host["cores"])):
            assert row["duration_ps"] == max(core["duration_ps"] for core in cores)
            assert row["device_busy_ps"] <= row["duration_ps"]
            if truth["kind"] == "tpu":
                assert row["input_wait_ps"] == max(core["infeed_ps"] for core in cores)
            elif truth["cores"] == 1:
                assert row["input_wait_ps"] == cores[0]["h2d_ps"]


@needs_shared
@pytest.mark.parametrize("group", ["program", "category", "provenance"])
@pytest.mark.parametrize("case", CASES)
def test_profile_tree_holds_each_operation_once_and_adds_up(case, group):
    rows = rows_of("op_profile", case, f"group_by={group}")
    operations = {row["name"]: [row["self_time_ps"], row["occurrences"]] for row in rows if row["kind"] == "operation"}
    assert operations == truth_of(case)
    for i, row in enumerate(rows):
        below = itertools.takewhile(lambda r, d=row["depth"]: r["depth"] > d, rows[i + 1:])
        children = [r["self_time_ps"] for r in below if r["depth"] == row["depth"] + 1]
        assert not children or sum(children) == row["self_time_ps"], row["name"]


def leaves(node):
    children = [c for c in node["children"] if c["metrics"]["rawTime"]]
    return [leaf for child in children for leaf in leaves(child)] or [node]


@needs_shared
@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("tpu")])
@pytest.mark.parametrize("key", ["byCategory", "byCategoryExcludeIdle"])
def test_flop_use_of_the_whole_is_that_of_the_operations(case, key):
    """Where we deviate from XProf's number for the whole: its own numbers for the operations, summed."""
    golden = json.loads((SHARED / "data" / "xprof_goldens" / case / "op_profile.category.json").read_text())
    run = subprocess.run([TACHO, "tool", "op_profile", XSPACE / case, "group_by=category", "--xprof"],
                         capture_output=True, text=True, check=True)
    ours = json.loads(run.stdout)[key]["metrics"]
    operations = [leaf["metrics"]["uncappedFlops"] for leaf in leaves(golden[key])]
    assert ours["uncappedFlops"] == pytest.approx(sum(operations), rel=1e-9)
