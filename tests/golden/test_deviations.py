# SPDX-License-Identifier: Apache-2.0
"""Each number in which we leave XProf's is tested against something else, and the entry names that test: here that
the tests are there, and those of them that belong to no tool's own file."""
import ast
import fnmatch
import json
import re

import pytest
from test_cpu_operations import count, dump, files_under, parts
from test_operations import GPU, TPU, tables, truth_operations, xprof_rows
from test_pipeline import answer, files_of, rows_of
from test_xprof_parity import CASES, ROOT, SHARED, XSPACE, needs_shared

DEVIATIONS = json.loads((ROOT / "tests" / "golden" / "deviations.json").read_text())
GOLDENS = SHARED / "data" / "xprof_goldens"
CPU = [folder.name for folder in sorted(XSPACE.glob("cpu_*"))]


def test_functions():
    """(file, name) of every test in Python."""
    return {(str(path.relative_to(ROOT)), node.name) for folder in ("golden", "e2e", "peers", "web")
            for path in (ROOT / "tests" / folder).glob("test_*.py")
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


test_functions.__test__ = False


@pytest.mark.parametrize("i", range(len(DEVIATIONS)))
def test_each_deviation_names_a_test(i):
    known = {name for _, name in test_functions()}
    names = re.findall(r"\btest_\w+", DEVIATIONS[i]["why"])
    assert names and set(names) <= known, DEVIATIONS[i]


@needs_shared
def test_each_deviation_is_of_an_answer_that_is_there():
    answers = {(path.parent.name, path.name.partition(".json")[0].partition(".txt")[0])
               for path in GOLDENS.glob("*/*") if not path.name.endswith(".request.json")}
    for d in DEVIATIONS:
        assert any(fnmatch.fnmatch(case, d["case"]) and fnmatch.fnmatch(name, d["golden"]) for case, name in answers), d


@needs_shared
@pytest.mark.parametrize("group,key", [("category", "byCategory"), ("program", "byProgram"),
                                       ("provenance", "byProvenance")])
@pytest.mark.parametrize("case", TPU)
def test_normalized_time_is_the_sum_of_self_times(case, group, key):
    """XProf's holds a loop and once more what runs in the loop."""
    truth, golden = truth_operations(case), json.loads((GOLDENS / case / f"op_profile.{group}.json").read_text())
    want, xprofs = (sum(sums[of] for sums in truth.values()) for of in ("self_ps", "total_ps"))
    page = answer("op_profile", case, f"group_by={group}")
    for name in (key, f"{key}ExcludeIdle"):
        assert page[name]["metrics"]["normalizedTimePs"] == want
        assert golden[name]["metrics"]["normalizedTimePs"] == xprofs >= want


def said_by_planes(case):
    """The statistics of all planes, by another decoder."""
    said = {}
    for path in files_of(case):
        data = path.read_bytes()
        for plane in parts(data, (0, len(data)), 1):
            names = dict(dump.entry(data, span) for span in parts(data, plane, 5))
            for span in parts(data, plane, 6):
                stat = {number: value for number, _, value in dump.fields(data, *span)}
                name = names.get(stat.pop(1))
                said[name] = next(iter(stat.values()), 0)
    return said


@needs_shared
@pytest.mark.parametrize("case", [*TPU, *GPU, "mi300x_jax_conv"])
def test_a_memory_that_the_device_does_not_name_is_unknown(case):
    said, program = said_by_planes(case), answer("get_roofline_model", case)["program"]
    assert len(said) > 3
    for kind, way, word in (("cmem", "read", "cmem_rd"), ("cmem", "write", "cmem_wr"),
                            ("vmem", "read", "vmem_rd"), ("vmem", "write", "vmem_wr")):
        has = f"peak_{word}_bw_gigabytes_per_second" in said and (kind != "vmem" or said.get("has_merged_vmem") == 1)
        if not case.startswith("tpu") and (kind, way) == ("vmem", "write"):
            has = True  # a GPU's shared memory, of its clock and cores
        assert (program[f"{kind}_{way}_bw_utilization_percent"] is not None) == has, (kind, way)


@needs_shared
@pytest.mark.parametrize("case", CPU)
def test_a_cpu_has_a_name_and_no_limits(case):
    said = answer("get_device_information", case)
    assert said["device_type"] == "CPU"
    assert {key: value for key, value in said.items() if "peak_" in key or "ridge" in key} == \
        dict.fromkeys((key for key in said if "peak_" in key or "ridge" in key))


@needs_shared
def test_a_line_that_nobody_knows_is_null():
    sources = {row["hlo_op_name"]: row["source_info"] for row in xprof_rows("hlo_stats", "mi300x_jax_conv")}
    items = answer("get_top_hlo_ops", "mi300x_jax_conv", "limit=-1")["top_by_time"]
    unknown = [item for item in items if item["name"] != "IDLE" and item["source_line"] is None]
    assert unknown
    for item in items:
        text = sources.get(item["name"].partition(" [")[0].rpartition("/")[2], "")
        assert item["source_line"] != -1 and (item["source_line"] is None) == (":" not in text), item["name"]


@needs_shared
@pytest.mark.parametrize("case,cores,clock_hz,flops_per_clock", [
    ("gpu_h100_2", 132, 1980e6, 4096), ("gpu_a100_2hosts", 108, 1410e6, 2048),
    ("gpu_v100_slow_input", 80, 1530e6, 1024)])
def test_shared_memory_moves_128_bytes_a_clock(case, cores, clock_hz, flops_per_clock):
    """32 banks of 4 bytes in each SM, as the whitepapers of V100, A100 and H100 say; roofline_model, peaks and
    get_device_information say the same."""
    want = cores * 128 * clock_hz
    said = answer("get_device_information", case)
    assert said["peak_vmem_write_bw_gibs"] * 2**30 == pytest.approx(want, rel=1e-9)
    assert said["vmem_write_ridge_point"] == pytest.approx(flops_per_clock / 128, rel=1e-9)
    own = json.loads(answer_text("roofline_model", case))["tables"][0]["values"]
    assert own["peak_vmem_write_bytes_per_s"] == pytest.approx(want, rel=1e-9)
    memory = [row for row in tables("peaks", case)["memory"] if row["memory"] == "shared memory"]
    assert [row["basis"] for row in memory] == ["derived"]
    assert memory[0]["bytes_per_s"] == pytest.approx(want, rel=1e-9)


def answer_text(tool, case):
    return json.dumps(answer(tool, case, form="--json"))


def counted(case):
    """(program, operation) to [occurrences, self time, total time], by the other decoder."""
    total = {}
    for path in files_under(case):
        for key, row in count(path).items():
            total[key] = [a + b for a, b in zip(total.get(key, [0, 0, 0]), row)]
    return total


@needs_shared
@pytest.mark.parametrize("case", CPU)
def test_short_lists_of_cpu_operations(case):
    want = counted(case)
    assert want
    records = answer("get_hlo_stats", case, "limit=-1")["records"]
    assert {(r["program_id"], r["op_name"]): [r["occurrences"], round(r["total_self_time_us"] * 1e6),
                                             round(r["total_time_us"] * 1e6)] for r in records} == want
    names = sorted(name for _, name in want)
    top = answer("get_top_hlo_ops", case, "limit=-1")["top_by_time"]
    listed = {}
    for item in top:
        if item["name"] != "IDLE":
            sums = listed.setdefault(item["name"].partition(" [")[0].rpartition("/")[2], [0, 0])
            sums[0] += item["occurrences"]
            sums[1] += item["total_self_time_ms"]
    leaves = {}
    for (_, name), (n, self_ps, total_ps) in want.items():
        if self_ps == total_ps:
            sums = leaves.setdefault(name, [0, 0])
            sums[0] += n
            sums[1] += self_ps / 1e9
    for name, (n, ms) in leaves.items():
        assert listed[name] == [n, pytest.approx(ms, abs=5.1e-5)], name
    roofline = answer("get_roofline_model", case, "top_n=-1")
    assert sorted(item["name"] for item in roofline["top_operations"]) == names
    summary = answer("get_profile_summary", case)["top_operations"]
    longest = sorted((self_ps for _, self_ps, _ in want.values()), reverse=True)
    assert [row["self_time_s"] for row in summary] == [pytest.approx(ps / 1e12, abs=5.1e-7) for ps in longest[:10]]
    shares = [row["selfTimePercent"] for row in rows_of(answer("overview_page", case)[0])]
    by_name = tables("framework_op_stats", case)["framework_op_stats"]
    self_ps = sorted((row["self_time_ps"] for row in by_name if row["side"] == "device"), reverse=True)
    whole = sum(row[1] for row in want.values())
    assert sum(self_ps) == whole
    assert shares == [pytest.approx(ps / whole, rel=1e-9) for ps in self_ps[:len(shares)]]


@needs_shared
@pytest.mark.parametrize("case", CPU)
def test_profile_tree_of_cpu_operations(case):
    want = sum(row[1] for row in counted(case).values())
    for group, key in (("category", "byCategory"), ("program", "byProgram"), ("provenance", "byProvenance")):
        page = answer("op_profile", case, f"group_by={group}")
        assert page[f"{key}ExcludeIdle"]["metrics"]["rawTime"] == want
        assert sum(c["metrics"]["rawTime"] for c in page[f"{key}ExcludeIdle"]["children"]) == want


@needs_shared
@pytest.mark.parametrize("case", CPU)
def test_share_of_operations_on_the_devices_of_a_cpu(case):
    """What names its hlo_op is on a device; on the host are the stages of the input pipeline alone."""
    by_name = tables("framework_op_stats", case)["framework_op_stats"]
    on_devices = sum(row["occurrences"] for row in by_name if row["side"] == "device")
    golden = json.loads((GOLDENS / case / "framework_op_stats.json").read_text())
    columns = [column["id"] for column in golden[0]["cols"]]
    rows = [dict(zip(columns, (cell["v"] for cell in row["c"]))) for row in golden[0]["rows"]]
    on_host = sum(row["occurrences"] for row in rows if row["type"] == "Dataset" and row["host_or_device"] == "Host")
    page = answer("overview_page", case)[0]["p"]
    share = 100 * on_devices / (on_devices + on_host)
    assert 0 < on_devices <= sum(row[0] for row in counted(case).values())
    assert (page["device_tf_op_percent"], page["host_tf_op_percent"]) == (f"{share:.1f}%", f"{100 - share:.1f}%")


@needs_shared
@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("cpu")])
def test_cost_of_cpu_operations_is_that_of_their_records(case):
    """The FLOP of matrix products are told from their shapes, the rest is the program's own cost."""
    told = sum(sums["flops"] for name, sums in truth_operations(case).items() if name.startswith("cublas-gemm"))
    known = sum(record["flops"] or 0 for record in answer("get_hlo_stats", case, "limit=-1")["records"])
    kpis = answer("get_kpi_metrics", case)
    assert kpis["flops_provenance"] == "mixed"
    assert kpis["derived_flops_fraction"] == pytest.approx(told / (told + known), abs=5.1e-5)
