# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators: without a GPU they stand for the device, with one they are what launched its work.
Counted again from Kineto's own JSON, and beside what TraceLens published for the same traces."""
import collections
import csv
import decimal
import gzip
import json
import os
import pathlib
import subprocess

import pytest
from test_cpu_operations import add_self_times, union

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
CASES = sorted((SHARED / "data" / "kineto").glob("torch_cpu_*.json.gz"))

pytestmark = pytest.mark.skipif(not CASES, reason=f"no traces at {SHARED}: set TACHO_SHARED")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda path: path.name.split(".")[0])


def slices(case, category):
    """(begin, end, thread, event) of each slice of that category, picoseconds."""
    document = json.loads(gzip.decompress(case.read_bytes()), parse_float=decimal.Decimal)
    for event in document["traceEvents"]:
        if event["ph"] == "X" and event.get("cat") == category:
            begin, length = (int(decimal.Decimal(event[key]) * 10**6) for key in ("ts", "dur"))
            yield begin, begin + length, (event["pid"], event["tid"]), event


def self_times(events):
    """Occurrences, self time and total time by name; of events on any threads."""
    total = collections.defaultdict(lambda: [0, 0, 0])
    threads = collections.defaultdict(list)
    for begin, end, thread, event in events:
        threads[thread].append((begin, end, "", event["name"]))
    for of_thread in threads.values():
        add_self_times(of_thread, total)
    return {name: row for (_, name), row in total.items()}


def document(case, *words):
    return json.loads(subprocess.run([TACHO, *words, case, "--json"], capture_output=True, text=True,
                                     check=True).stdout)


def rows_of(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


@each_case
@pytest.mark.parametrize("tool", ["hlo_stats", "framework_op_stats", "roofline_model"])
def test_operators_stand_for_the_device(case, tool):
    want = self_times(slices(case, "cpu_op"))
    answered = document(case, "tool", tool)
    table = answered.get("tables", [answered])[0]
    rows = {row["operation"]: row for row in rows_of(table)}
    assert want and rows.keys() == want.keys()
    for name, (count, self_ps, total_ps) in want.items():
        assert rows[name]["occurrences"] == count
        assert rows[name]["self_time_ps"] == pytest.approx(self_ps, abs=1000 * count)
        assert rows[name]["total_time_ps"] == pytest.approx(total_ps, abs=1000 * count)
    if tool == "framework_op_stats":
        assert {row["side"] for row in rows.values()} == {"device"}
        assert all(row["type"] == name.removeprefix("aten::") for name, row in rows.items()
                   if name.startswith("aten::"))


@each_case
def test_busy_and_idle_time_of_the_device(case):
    events = [(begin, end) for begin, end, *_ in slices(case, "cpu_op")]
    window = max(end for _, end in events) - min(begin for begin, _ in events)
    values = document(case, "tool", "op_profile")["values"]
    assert values["total_time_ps"] == pytest.approx(window, abs=2000)
    assert values["busy_time_ps"] == pytest.approx(union(events), abs=1000 * len(events))
    assert values["idle_time_ps"] == values["total_time_ps"] - values["busy_time_ps"]
    metrics = {metric["name"]: metric["value"] for metric in document(case, "report")["key_metrics"]}
    assert metrics["devices"] == 1
    assert metrics["device_idle_percent"] == pytest.approx(100 - 100 * union(events) / window, abs=0.1)


def product(event):
    """FLOP and bytes of a matrix product, by the shapes beside it."""
    dims, types = (event["args"][key] for key in ("Input Dims", "Input type"))
    at = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}[event["name"]]
    *batch, m, k = dims[at]
    n = dims[at + 1][-1]
    size = {"float": 4, "double": 8, "c10::BFloat16": 2, "c10::Half": 2}[types[at]]
    times = batch[0] if batch else 1
    return 2 * times * m * n * k, times * size * (m * k + k * n + m * n)


PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


@each_case
def test_matrix_products_cost_what_their_shapes_say(case):
    flops, moved = collections.Counter(), collections.Counter()
    for *_, event in slices(case, "cpu_op"):
        if event["name"] in PRODUCTS:
            cost = product(event)
            flops[event["name"]] += cost[0]
            moved[event["name"]] += cost[1]
    operations, program = document(case, "tool", "roofline_model")["tables"]
    for row in rows_of(operations):
        if row["operation"] not in PRODUCTS:
            assert row["flops_per_s"] is None and row["bytes_per_s"] is None
            continue
        assert row["flops_per_s"] * row["total_time_ps"] / 1e12 == pytest.approx(flops[row["operation"]], rel=1e-9)
        assert row["bytes_per_s"] * row["total_time_ps"] / 1e12 == pytest.approx(moved[row["operation"]], rel=1e-9)
    assert flops
    whole = rows_of(program)[0]
    assert whole["flops_per_s"] * whole["core_time_ps"] / 1e12 == pytest.approx(sum(flops.values()), rel=1e-9)


@each_case
def test_steps_hold_the_operators_that_begin_in_them(case):
    steps = {int(event["name"].partition("#")[2]): (begin, end)
             for begin, end, _, event in slices(case, "user_annotation") if event["name"].startswith("ProfilerStep#")}
    _, *rows = rows_of(document(case, "tool", "roofline_model")["tables"][1])
    overview = {row["step"]: row for row in rows_of(document(case, "tool", "overview_page")["tables"][0])}
    assert steps and [row["step"] for row in rows] == sorted(steps)
    for row in rows:
        begin, end = steps[row["step"]]
        inside = [event for event in slices(case, "cpu_op") if begin <= event[0] < end]
        total = self_times(inside)
        n = len(inside)
        assert row["self_time_ps"] == pytest.approx(sum(self_ps for _, self_ps, _ in total.values()), abs=1000 * n)
        assert row["core_time_ps"] == pytest.approx(end - begin, abs=1000)
        busy = union([(max(b, begin), min(e, end)) for b, e, *_ in inside])
        assert overview[row["step"]]["device_busy_ps"] == pytest.approx(busy, abs=1000 * n)


GPU_CASES = sorted(path for name in ("h100", "mi300") for path in (SHARED / "data" / "kineto" / name).glob("*.json.gz"))
each_gpu_case = pytest.mark.parametrize("case", GPU_CASES, ids=lambda path: f"{path.parent.name}-{path.name[:9]}")


@each_gpu_case
def test_operators_have_the_time_of_what_they_launched(case):
    """TraceLens: total_direct_kernel_time, microseconds."""
    reports = case.with_name(case.name.removesuffix(".json.gz") + "_perf_report_csvs")
    want = {row["name"]: row for row in csv.DictReader((reports / "ops_summary.csv").open())}
    table = document(case, "tool", "framework_op_stats")
    device = {row["operation"]: row for row in rows_of(table) if row["side"] == "device"}
    assert want and device.keys() == want.keys()
    for name, row in want.items():
        assert device[name]["occurrences"] == int(row["Count"])
        assert device[name]["total_time_ps"] == pytest.approx(float(row["total_direct_kernel_time_sum"]) * 1e6,
                                                              abs=2e3 * int(row["Count"])), name
        assert device[name]["eager"] is None  # Kineto does not say it
    assert table["values"]["unnamed_time_ps"] == 0


@each_gpu_case
def test_matrix_products_on_a_gpu(case):
    flops = collections.Counter()
    for *_, event in slices(case, "cpu_op"):
        if event["name"] in PRODUCTS:
            flops[event["name"]] += product(event)[0]
    rows = {row["operation"]: row for row in rows_of(document(case, "tool", "roofline_model")["tables"][0])}
    assert flops
    for name, amount in flops.items():
        assert rows[name]["flops_per_s"] * rows[name]["total_time_ps"] / 1e12 == pytest.approx(amount, rel=1e-9)


@each_gpu_case
def test_operators_on_the_host_beside_a_gpu(case):
    want = {name: row for name, row in self_times(slices(case, "cpu_op")).items() if name.startswith("aten::")}
    rows = {row["operation"]: row for row in rows_of(document(case, "tool", "framework_op_stats"))
            if row["side"] == "host"}
    assert want and rows.keys() == want.keys()
    for name, (count, _, total_ps) in want.items():
        assert rows[name]["occurrences"] == count
        assert rows[name]["total_time_ps"] == pytest.approx(total_ps, abs=1000 * count)


@each_gpu_case
def test_kernels_by_the_operator_that_launched_them(case):
    """TraceLens' kernel_summary: a row for each operator, kernel and stream."""
    reports = case.with_name(case.name.removesuffix(".json.gz") + "_perf_report_csvs")
    want = collections.defaultdict(lambda: [0, 0.0])
    for row in csv.DictReader((reports / "kernel_summary.csv").open()):
        sums = want[row["Parent cpu_op"], row["Kernel name"]]
        sums[0] += int(float(row["Kernel duration (µs)_count"]))
        sums[1] += float(row["Kernel duration (µs)_sum"]) * 1e6
    got = collections.defaultdict(lambda: [0, 0])
    table = document(case, "tool", "kernel_stats")
    for row in rows_of(table.get("tables", [table])[0]):
        sums = got[row["operation"], row["kernel"]]
        sums[0] += row["occurrences"]
        sums[1] += row["total_time_ps"]
    copies = {key for key in want if key[1].startswith(("Memcpy", "Memset"))}  # ours are in the tool of copies
    assert got.keys() == want.keys() - copies
    for key, (count, total_ps) in got.items():
        assert count == want[key][0]
        assert total_ps == pytest.approx(want[key][1], abs=2000 * count), key
