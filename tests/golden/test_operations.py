# SPDX-License-Identifier: Apache-2.0
"""Tools over operations where we leave XProf's numbers: against what the generator of the profiles knows."""
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"
CASES = sorted(p.parent.name for p in XSPACE.glob("*/truth.json")) if XSPACE.is_dir() else []
TPU = [case for case in CASES if case.startswith("tpu")]
GPU = [case for case in CASES if case.startswith("gpu")]

needs_shared = pytest.mark.skipif(not CASES, reason=f"no profiles at {SHARED}: set TACHO_SHARED")


loader = importlib.machinery.SourceFileLoader("dump_xspace", str(ROOT / "tools/dump-xspace"))
spec = importlib.util.spec_from_loader("dump_xspace", loader)
dump = importlib.util.module_from_spec(spec)
loader.exec_module(dump)


def truth_of(case):
    truth = json.loads((XSPACE / case / "truth.json").read_text())
    return truth, [core for host in truth["hosts"] for core in host["cores"]]


def path_of(case):
    return XSPACE / case if (XSPACE / case).exists() else XSPACE / f"{case}.xplane.pb"


def answer(tool, case, *words):
    run = subprocess.run([TACHO, "tool", tool, path_of(case), *words], capture_output=True, text=True, check=True)
    return run.stdout


def tables(tool, case, *params):
    """Rows of every table as dictionaries, by the table's name."""
    document = json.loads(answer(tool, case, *params, "--json"))
    return {table["table"]: [dict(zip((column["name"] for column in table["columns"]), row)) for row in table["rows"]]
            for table in document.get("tables", [document])}


def amount(row, rate):
    """A rate over all cores' time, back as the amount."""
    return row[rate] * row["core_time_ps"] / 1e12


@needs_shared
@pytest.mark.parametrize("feeds", ["true", "false"])
@pytest.mark.parametrize("case", TPU)
def test_roofline_of_tpu_steps(case, feeds):
    truth, cores = truth_of(case)
    whole, *steps = tables("roofline_model", case, f"include_infeed_outfeed={feeds}")["roofline_program"]
    assert [row["step"] for row in steps] == list(range(truth["steps"]))
    waits = ("infeed_ps", "outfeed_ps") if feeds == "false" else ()
    ops = [op for core in cores for op in core["ops"]
           if feeds == "true" or op["category"] not in ("infeed", "outfeed")]
    left_out = sum(op["self_ps"] for core in cores for op in core["ops"]) - sum(op["self_ps"] for op in ops)
    assert whole["core_time_ps"] == sum(core["span_ps"] for core in cores) - left_out
    assert whole["self_time_ps"] == sum(op["self_ps"] for op in ops)
    flops, moved = (sum(op[key] for op in ops) for key in ("flops", "bytes"))
    assert amount(whole, "flops_per_s") == pytest.approx(flops, rel=1e-9)
    assert amount(whole, "bytes_per_s") == pytest.approx(moved, rel=1e-9)
    for row, *core_steps in zip(steps, *(core["steps"] for core in cores)):
        held = sum(step[key] for step in core_steps for key in waits)
        assert row["core_time_ps"] == len(cores) * max(step["duration_ps"] for step in core_steps) - held
        assert row["self_time_ps"] == sum(step["duration_ps"] - step["idle_ps"] for step in core_steps) - held
        assert amount(row, "flops_per_s") == pytest.approx(flops / truth["steps"], rel=1e-9)
        assert amount(row, "bytes_per_s") == pytest.approx(moved / truth["steps"], rel=1e-9)


@needs_shared
@pytest.mark.parametrize("case", [case for case in GPU if case != "gpu_h100_no_steps"])
def test_roofline_of_gpu_steps(case):
    """Which XProf leaves empty: every step launches every operation once on every GPU."""
    truth, cores = truth_of(case)
    whole, *steps = tables("roofline_model", case)["roofline_program"]
    assert [row["step"] for row in steps] == list(range(truth["steps"]))
    for row, *core_steps in zip(steps, *(core["steps"] for core in cores)):
        assert row["core_time_ps"] == len(cores) * max(step["duration_ps"] for step in core_steps)
        assert row["self_time_ps"] == sum(step["compute_kernel_ps"] + step["collective_kernel_ps"]
                                          for step in core_steps)
        for rate in ("flops_per_s", "bytes_per_s", "hbm_bytes_per_s"):
            assert amount(row, rate) == pytest.approx(amount(whole, rate) / truth["steps"], rel=1e-9)


@needs_shared
@pytest.mark.parametrize("case", [case for case in TPU + GPU if case != "gpu_h100_no_steps"])
def test_average_step_is_the_mean_of_the_steps(case):
    table = json.loads(answer("roofline_model", case, "--xprof"))[0]
    names = [column["id"] for column in table["cols"]]
    rows = [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in table["rows"]]
    for feeds in (True, False):
        shown = [row for row in rows if row["operation"] == "Program" and row["include_infeed_outfeed"] is feeds]
        total, average, *steps = shown
        assert (total["step"], average["step"]) == ("Total", "Average")
        mean = sum(row["total_time"] for row in steps) / len(steps)
        assert average["total_time"] == average["avg_time"] == pytest.approx(mean, rel=1e-12)
        flops = sum(row["measured_flop_rate"] * row["total_time"] for row in steps) / len(steps)
        assert average["measured_flop_rate"] * average["total_time"] == pytest.approx(flops, rel=1e-9)


@needs_shared
@pytest.mark.parametrize("tool", ["hlo_stats", "roofline_model"])
@pytest.mark.parametrize("case", GPU)
def test_cost_of_a_library_call_is_unknown_and_not_0(case, tool):
    rows = tables(tool, case)[tool]
    calls = [row for row in rows if row["operation"].startswith("cublas-gemm")]
    assert calls
    assert all(row["flops_per_s"] is None and row["bytes_per_s"] is None and row["bound_by"] is None for row in calls)
    assert all(row["flops_per_s"] is not None for row in rows if row["category"].endswith("fusion"))


@needs_shared
def test_cost_of_a_library_call_that_is_told_by_its_shapes_is_known():
    rows = {row["operation"]: row for row in tables("roofline_model", "mi300x_jax_conv")["roofline_model"]}
    assert rows["cudnn-conv.1.0"]["category"] == "custom-call"
    assert rows["cudnn-conv.1.0"]["flops_per_s"] > 1e14


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "gpu_a100_2hosts"])
def test_limits_and_rates_are_bytes_where_xprofs_are_gibibytes(case):
    document = json.loads(answer("roofline_model", case, "--json"))["tables"][0]
    xprof = json.loads(answer("roofline_model", case, "--xprof"))[0]
    limit = document["values"]["peak_hbm_bytes_per_s"]
    assert limit / 2**30 == pytest.approx(float(xprof["p"]["peak_hbm_bw"]), rel=1e-5)
    flops = document["values"]["peak_flops_per_s"]
    assert document["values"]["hbm_ridge_flops_per_byte"] == pytest.approx(flops / limit, rel=1e-12)
    names = [column["name"] for column in document["columns"]]
    rows = [dict(zip(names, row)) for row in document["rows"]]
    bound = [row for row in rows if row["bound_by"] == "HBM"]
    assert bound
    for row in bound:
        assert row["roofline_percent"] == pytest.approx(100 * row["hbm_bytes_per_s"] / limit, rel=1e-9)


@needs_shared
@pytest.mark.parametrize("tool", ["roofline_model", "framework_op_stats", "get_top_hlo_ops", "get_hlo_op_profile",
                                  "get_profile_summary", "get_roofline_model"])
@pytest.mark.parametrize("form", ["--json", "--xprof"])
def test_the_same_question_has_the_same_answer(tool, form):
    for case in ("cpu_dp4", "gpu_a100_2hosts", "tpu_v6e_2core"):
        assert collections.Counter(answer(tool, case, form) for _ in range(2)).most_common(1)[0][1] == 2


def framework_name(row):
    """"a/b/dot_general" of "a/b/dot_general:", "a/b/dot_general:custom-call" as it is."""
    name, colon, kind = (row["framework_name"] or row["operation"]).partition(":")
    if re.fullmatch(r"[A-Z_]\w*|[a-z_][a-z0-9_]*(\[.*\])?|", kind):
        return name
    return name + colon + kind


@needs_shared
@pytest.mark.parametrize("case,params", [
    *((case, ()) for case in [*CASES, "cpu_dp4", "cpu_two_hosts", "mi300x_jax_conv"]),
    ("gpu_a100_2hosts", ("host=host-0",)), ("gpu_a100_2hosts", ("host=host-1",))])
def test_framework_operations_are_the_sums_of_the_hlo_operations(case, params):
    want = collections.defaultdict(lambda: [0, 0, 0])
    for row in tables("hlo_stats", case, *params)["hlo_stats"]:
        sums = want[framework_name(row)]
        sums[0] += row["self_time_ps"]
        sums[1] += row["total_time_ps"]
        sums[2] = max(sums[2], row["occurrences"])
    rows = [row for row in tables("framework_op_stats", case, *params)["framework_op_stats"] if row["side"] == "device"]
    assert want
    assert {row["operation"]: [row[key] for key in ("self_time_ps", "total_time_ps", "occurrences")]
            for row in rows} == want


@needs_shared
@pytest.mark.parametrize("case", [case.name for case in sorted(XSPACE.glob("cpu_*"))] if CASES else [])
def test_task_of_cpu_profiles(case):
    """Training is what has a gradient."""
    gradient = any("transpose(jvp" in (row["framework_name"] or "") for row in tables("hlo_stats", case)["hlo_stats"])
    for table in json.loads(answer("framework_op_stats", case, "--xprof")):
        assert table["p"]["task_type"] == ("Training" if gradient else "Inference")


@needs_shared
@pytest.mark.parametrize("case", GPU)
def test_time_on_tensor_cores(case):
    truth, cores = truth_of(case)
    on_tensor_cores = {kernel["kernel"]: kernel["really_tensor_core"] for core in cores for kernel in core["kernels"]}
    golden = json.loads((SHARED / "data" / "xprof_goldens" / case / "kernel_stats.json").read_text())
    golden = golden[0] if isinstance(golden, list) else golden
    names = [column["id"] for column in golden["cols"]]
    kernels = collections.defaultdict(lambda: [0, 0])
    for row in golden["rows"]:
        row = dict(zip(names, (cell["v"] for cell in row["c"])))
        sums = kernels[row["op_name"].partition(":")[0]]
        sums[0] += row["total_duration_us"] if on_tensor_cores[row["kernel_name"]] else 0
        sums[1] += row["total_duration_us"]
    rows = [row for row in tables("framework_op_stats", case)["framework_op_stats"] if row["side"] == "device"]
    assert len({row["matrix_units_percent"] > 0 for row in rows}) == 2
    for row in rows:
        used, whole = kernels[row["operation"].partition(":")[0]]
        assert row["matrix_units_percent"] == pytest.approx(100 * used / whole, rel=1e-6), row["operation"]


def fields(data, span, number, kind=2):
    return [v for n, k, v in dump.fields(data, *span) if n == number and k == kind]


def host_events(case):
    """Of each thread of a host, the (name, begin, end, tf_op) of each event."""
    path = path_of(case)
    for file in [path] if path.is_file() else sorted(path.rglob("*.xplane.pb")):
        data = file.read_bytes()
        for plane in fields(data, (0, len(data)), 1):
            if not any(dump.text(data, v).startswith("/host:CPU") for v in fields(data, plane, 2)):
                continue
            words = dict(dump.entry(data, v) for v in fields(data, plane, 5))
            names = dict(dump.entry(data, v) for v in fields(data, plane, 4))
            for line in fields(data, plane, 3):
                zero = sum(dump.signed(v) for v in fields(data, line, 3, 0)) * 1000
                yield [event_of(data, event, names, words, zero) for event in fields(data, line, 4)]


def event_of(data, event, names, words, zero):
    numbers = {n: dump.signed(v) for n, kind, v in dump.fields(data, *event) if kind == 0}
    operation = None
    for stat in fields(data, event, 4):
        found = {n: (kind, v) for n, kind, v in dump.fields(data, *stat)}
        if words.get(found[1][1]) == "tf_op":
            operation = dump.text(data, found[5][1]) if 5 in found else words.get(found[7][1])
    begin = zero + numbers.get(2, 0)
    return names.get(numbers.get(1)), begin, begin + numbers.get(3, 0), operation


def span(events):
    return max(end for _, _, end, _ in events) - min(begin for _, begin, _, _ in events) if events else 0


@needs_shared
@pytest.mark.parametrize("case", GPU + ["mi300x_jax_conv"])
def test_host_rows_of_xprof_without_time_are_allocations(case):
    golden = json.loads((SHARED / "data" / "xprof_goldens" / case / "framework_op_stats.json").read_text())[0]
    names = [column["id"] for column in golden["cols"]]
    rows = [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in golden["rows"]]
    rows = [row for row in rows if row["host_or_device"] == "Host"]
    allocations, theirs_ps, ours_ps = collections.Counter(), 0, 0
    for events in host_events(case):
        allocated = [event for event in events if event[3]]
        assert {name for name, *_ in allocated} <= {"MemoryAllocation", "MemoryDeallocation"}
        allocations.update(operation.partition(":")[0] for *_, operation in allocated)
        operations = [event for event in events if (event[0] or "").startswith("Iterator::")]
        theirs_ps += span(allocated + operations)
        ours_ps += span(operations)
    busy_us = sum(row["total_self_time"] for row in rows if row["type"] == "Dataset")
    assert {row["operation"]: row["occurrences"] for row in rows if row["type"] == ""} == allocations
    idle_us = [row["total_time"] for row in rows if row["type"] == "IDLE"]
    assert idle_us == pytest.approx([theirs_ps / 1e6 - busy_us], abs=1e-6)
    values = json.loads(answer("framework_op_stats", case, "--json"))["values"]
    if ours_ps == 0:
        assert values["host_idle_time_ps"] is None
    else:
        assert values["host_total_time_ps"] == ours_ps
        assert values["host_idle_time_ps"] == pytest.approx(ours_ps - busy_us * 1e6, abs=1)


def truth_operations(case):
    """Of every operation the sums over all cores and hosts."""
    truth, cores = truth_of(case)
    total = collections.defaultdict(collections.Counter)
    lists = [core["ops"] for core in cores] + [host["host"].get("cpu_ops", []) for host in truth["hosts"]]
    for op in (op for ops in lists for op in ops):
        total[op["name"]].update({key: op[key] for key in ("self_ps", "total_ps", "occurrences", "flops", "bytes")})
    return total


def moved_bytes(name, sums):
    """A copy from one memory to another is read there and written here."""
    return sums["bytes"] * (2 if name.startswith("copy-start") else 1)


def xprof_rows(tool, case, table=None):
    answered = json.loads(answer(tool, case, "--xprof"))
    answered = answered if table is None else answered[table]
    names = [column["id"] for column in answered["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in answered["rows"]]


def cli(tool, case, *params):
    return json.loads(answer(tool, case, *params, "--xprof"))


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_profile_summary_ranks_operations(case):
    operations = sorted(truth_operations(case).items(), key=lambda item: -item[1]["self_ps"])
    got = cli("get_profile_summary", case)
    total = tables("op_profile", case)["op_profile"][0]["self_time_ps"] if case.startswith("cpu") else \
        sum(core["span_ps"] for core in truth_of(case)[1])
    if not case.startswith("cpu"):  # its span is not in the truth, its operations are
        assert got["total_time_s"] == pytest.approx(total / 1e12, abs=5.1e-7)
    assert [row["name"] for row in got["top_operations"]] == [name for name, _ in operations[:10]]
    for row, (_, sums) in zip(got["top_operations"], operations):
        assert row["self_time_s"] == pytest.approx(sums["self_ps"] / 1e12, abs=5.1e-7)
        assert row["fraction"] == pytest.approx(row["self_time_s"] / got["total_time_s"], rel=2e-2)
    assert got["truncated"] is True
    assert answer("export_json", case, "--xprof") == answer("get_profile_summary", case, "--xprof")


@needs_shared
@pytest.mark.parametrize("case", TPU + GPU + ["mi300x_jax_conv"])
def test_records_of_get_hlo_stats(case):
    rows = xprof_rows("hlo_stats", case)
    ours = {row["operation"]: row for row in tables("hlo_stats", case)["hlo_stats"]}
    truth = truth_operations(case) if case in TPU else {}
    records = cli("get_hlo_stats", case, "limit=-1")["records"]
    assert [record["op_name"] for record in records] == [row["hlo_op_name"] for row in rows]
    for record, row in zip(records, rows):
        own = ours[record["op_name"]]
        assert (own["source"] or ":0") == f'{record["source_file"]}:{record["source_line"]}'
        if record["category"] == "custom-call" and own["flops_per_s"] is None:
            assert record["flops"] is None and record["measured_memory_bw_gbs"] is None
            continue
        assert record["flops"] == pytest.approx(row["model_flop_rate"] * row["total_time"] * 1e3, rel=1e-9)
        assert record["measured_memory_bw_gbs"] == pytest.approx(row["measured_memory_bw"] * 2**30 / 1e9, rel=1e-9)
        if truth:
            assert record["flops"] == truth[record["op_name"]]["flops"]
    assert len(cli("get_hlo_stats", case, "limit=3")["records"]) == 3


def brief_name(item):
    return item["name"].partition(" [")[0].rpartition("/")[2]


@needs_shared
@pytest.mark.parametrize("case", TPU + GPU)
def test_top_operations(case):
    truth = truth_operations(case)
    ours = {row["hlo_op_name"]: row for row in xprof_rows("hlo_stats", case)}
    got = cli("get_top_hlo_ops", case, "limit=-1")
    listed = {brief_name(item): item for item in got["top_by_time"]}
    assert listed.keys() - {"IDLE"} == {name for name, sums in truth.items() if sums["total_ps"] == sums["self_ps"]}
    for name, item in listed.items():
        if name == "IDLE":
            continue
        assert item["total_self_time_ms"] == pytest.approx(truth[name]["self_ps"] / 1e9, rel=1e-12)
        assert item["occurrences"] == truth[name]["occurrences"]
        if case in TPU or item["flops_provenance"] == "derived_from_shapes":
            assert (item["flops"], item["bytes_accessed"]) == \
                (truth[name]["flops"], moved_bytes(name, truth[name])), name
        elif item["flops_provenance"] == "opaque_custom_call":
            assert item["flops"] is None and item["bytes_accessed"] is None
        else:
            assert item["flops"] == pytest.approx(ours[name]["model_flop_rate"] * ours[name]["total_time"] * 1e3)
    sources = {name: item["flops_provenance"] for name, item in listed.items()}
    assert {name for name, source in sources.items() if source == "derived_from_shapes"} == \
        {name for name in listed if name.startswith("cublas-gemm")}
    for key, field in (("top_by_flops", "flops"), ("top_by_bytes_accessed", "bytes_accessed")):
        known = [item for item in got["top_by_time"] if item[field] is not None]
        best = sorted(known, key=lambda item, f=field: (-item[f], -item["total_self_time_ms"]))
        assert [item["name"] for item in got[key]] == [item["name"] for item in best]


@needs_shared
def test_top_operations_of_a_category():
    assert len(cli("get_top_hlo_ops", "tpu_v6e_2core")["top_by_time"]) == 10
    got = cli("get_top_hlo_ops", "tpu_v6e_2core", "category_filter=all-Reduce", "limit=2")
    assert [brief_name(item) for item in got["top_by_time"]] == ["all-reduce.3", "all-reduce.2"]
    assert (got["total_matched"], got["returned_records"], got["truncated"]) == (3, 2, True)
    got = cli("get_top_hlo_ops", "tpu_v6e_2core", "category_filter=nothing of the kind")
    assert got["top_by_time"] == got["top_by_flops"] == got["top_by_bytes_accessed"] == []
    assert (got["total_matched"], got["truncated"]) == (0, False)


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_categories_of_operations(case):
    truth = truth_operations(case)
    want = collections.defaultdict(lambda: [0, 0, 0])
    self_ps = collections.defaultdict(dict)
    for row in tables("hlo_stats", case)["hlo_stats"]:
        if row["self_time_ps"] == row["total_time_ps"]:
            sums = want[row["category"]]
            sums[0] += 1
            sums[1] += row["self_time_ps"]
            sums[2] += truth[row["operation"]]["flops"]
            self_ps[row["category"]][row["operation"]] = row["self_time_ps"]
    got = cli("get_hlo_op_profile", case)
    summary = {row["category"]: row for row in got["category_summary"] if row["category"] != "IDLE"}
    assert {name: row["op_count"] for name, row in summary.items()} == {name: sums[0] for name, sums in want.items()}
    for name, (_, total_ps, flops) in want.items():
        assert summary[name]["total_self_time_ms"] == pytest.approx(total_ps / 1e9, abs=5.1e-5)
        assert summary[name]["fraction_of_total_time"] == pytest.approx(
            total_ps / 1e9 / got["total_profile_time_ms"], abs=6e-5)
        if case in TPU:
            assert summary[name]["total_flops"] == flops
        for item in got["grouped_operations"][name]:
            operation = item["name"].rpartition("/")[2]
            assert item["category_fraction"] == pytest.approx(self_ps[name][operation] / total_ps, abs=5.1e-5)
            if case in TPU or operation.startswith("cublas-gemm"):
                assert (item["flops"], item["bytes_accessed"]) == \
                    (truth[operation]["flops"], moved_bytes(operation, truth[operation]))


def derived(case):
    """FLOP and bytes of the matrix products of libraries, which only the generator knows."""
    calls = [sums for name, sums in truth_operations(case).items() if name.startswith("cublas-gemm")] \
        if case in GPU else []
    return sum(sums["flops"] for sums in calls), sum(sums["bytes"] for sums in calls)


@needs_shared
@pytest.mark.parametrize("case", TPU + GPU + ["mi300x_jax_conv"])
def test_program_of_get_roofline_model(case):
    row = xprof_rows("roofline_model", case, 0)[0]
    limits = json.loads(answer("roofline_model", case, "--xprof"))[0]["p"]
    program = cli("get_roofline_model", case)["program"]
    flops, moved = derived(case)
    measured = row["measured_flop_rate"] + flops / row["total_time"] / 1e3
    hbm = row["hbm_bw"] + moved / row["total_time"] * 1e6 / 2**30
    memory = row["measured_memory_bw"] + moved / row["total_time"] * 1e6 / 2**30
    assert program["measured_flop_rate_gflops"] == pytest.approx(measured, abs=0.0051)
    assert program["model_flop_rate_gflops"] == pytest.approx(row["model_flop_rate"], abs=0.0051)
    assert program["hbm_bw_gibs"] == pytest.approx(hbm, abs=0.0051)
    assert program["measured_memory_bw_gibs"] == pytest.approx(memory, abs=0.0051)
    assert program["bound_by"] == "HBM"
    use = 100 * hbm / float(limits["peak_hbm_bw"])
    for key in ("roofline_efficiency_percent", "max_mem_bw_utilization_percent", "hbm_bw_utilization_percent"):
        assert program[key] == pytest.approx(use, abs=0.0051)
    assert program["compute_efficiency_percent"] == pytest.approx(100 * measured / float(limits["peak_flop_rate"]),
                                                                  abs=0.0051)
    assert program["operational_intensity_flop_per_byte"] == pytest.approx(measured * 1e9 / memory / 2**30, rel=1e-4)
    assert program["bottleneck_operational_intensity_flop_per_byte"] == pytest.approx(measured * 1e9 / hbm / 2**30,
                                                                                     rel=1e-4)
    assert program["optimal_flop_rate_gflops"] == pytest.approx(100 * measured / use, rel=1e-5)
    opaque = {row["operation"] for row in tables("hlo_stats", case)["hlo_stats"]
              if row["category"] == "custom-call" and row["flops_per_s"] is None and "gemm" not in row["operation"]}
    assert program["has_opaque_custom_calls"] is bool(opaque)
    assert program["flops_provenance"] == ("mixed" if opaque or flops else "xla_cost_model")
    assert program["derived_flops_fraction"] == pytest.approx(flops / (measured * row["total_time"] * 1e3), abs=5.1e-5)


@needs_shared
@pytest.mark.parametrize("case", TPU + GPU + ["mi300x_jax_conv"])
def test_operations_of_get_roofline_model(case):
    whole, *rows = [row for row in xprof_rows("roofline_model", case, 0)
                    if row["step"] == "Total" and row["include_infeed_outfeed"]]
    limits = json.loads(answer("roofline_model", case, "--xprof"))[0]["p"]
    got = cli("get_roofline_model", case, "top_n=-1")
    assert [item["name"] for item in got["top_operations"]] == [row["operation"] for row in rows]
    assert got["total_operations_analyzed"] == len(rows)
    calls = sum(row["total_self_time"] for row in rows if row["category"] == "custom-call")
    assert got["custom_call_share_pct"] == pytest.approx(100 * calls / whole["total_time"], abs=0.0051)
    truth = truth_operations(case) if case in GPU else {}
    for item, row in zip(got["top_operations"], rows):
        if item["flops_provenance"] == "opaque_custom_call":
            assert item["compute_efficiency_percent"] is None and item["bound_by"] == "CustomCall (opaque)"
            continue
        if item["flops_provenance"] == "derived_from_shapes":
            sums = truth[item["name"]]
            compute = sums["flops"] / sums["total_ps"] * 1e5 / float(limits["peak_flop_rate"])
            memory = sums["bytes"] / sums["total_ps"] * 1e12 / 2**30 * 100 / float(limits["peak_hbm_bw"])
            assert item["bound_by"] == ("HBM" if memory > compute else "Compute")
        else:
            compute, memory = 100 * row["compute_efficiency"], 100 * row["max_mem_bw_utilization"]
            assert item["bound_by"] == row["bound_by"]
        assert item["compute_efficiency_percent"] == pytest.approx(compute, abs=0.0051)
        if item["bound_by"] == "Unknown":
            assert compute == memory == 0 and item["roofline_efficiency_percent"] in (0, None)
            continue
        assert item["max_mem_bw_utilization_percent"] == pytest.approx(memory, abs=0.0051)
        assert item["roofline_efficiency_percent"] == pytest.approx(max(compute, memory), abs=0.0051)


@needs_shared
def test_one_category_is_listed_whole():
    got = cli("get_hlo_op_profile", "tpu_v6e_2core", "category=loop fusion")
    operations = {row["operation"] for row in tables("hlo_stats", "tpu_v6e_2core")["hlo_stats"]
                  if row["category"] == "loop fusion"}
    assert list(got["grouped_operations"]) == ["loop fusion"]
    assert {item["name"].rpartition("/")[2] for item in got["grouped_operations"]["loop fusion"]} == operations
    rows = tables("get_hlo_op_profile", "tpu_v6e_2core", "category=loop fusion")["operations"]
    assert {row["operation"] for row in rows} == operations
    assert sum(row["category_share_percent"] for row in rows) == pytest.approx(100)


@needs_shared
@pytest.mark.parametrize("tool,param,status,says", [
    ("get_top_hlo_ops", "limit=many", 2, "limit is 'many'"),
    ("get_roofline_model", "top_n=-2", 2, "top_n is '-2'"),
    ("roofline_model", "include_infeed_outfeed=maybe", 2, "it may be true or false"),
    ("get_hlo_op_profile", "category=none of these", 3, "no category 'none of these'"),
])
def test_what_cannot_be_asked_is_said(tool, param, status, says):
    run = subprocess.run([TACHO, "tool", tool, path_of("tpu_v6e_2core"), param, "--json"], capture_output=True,
                         text=True, check=False)
    assert run.returncode == status and says in run.stderr
    assert says in json.loads(run.stdout)["error"]["message"]
