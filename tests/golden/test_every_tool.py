# SPDX-License-Identifier: Apache-2.0
"""Every tool on captures of every kind, as a doubter reads them: what is empty says why, CSV and JSON hold the same
rows, a share is at most the whole, and what such a device cannot tell is unknown, not 0."""
import csv
import io
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
DATA = SHARED / "data"
CAPTURES = {
    "TPU": "xspace/tpu_v6e_2core", "GPU": "xspace/gpu_h100_2", "AMD": "xspace/mi300x_jax_conv.xplane.pb",
    "CPU, JAX": "xspace/cpu_dp4", "CPU, JAX, one": "xspace/cpu_single",
    "PyTorch": "kineto/hta/nccl_data.json.gz",
    "PyTorch, H100": "kineto/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "CPU, PyTorch": "kineto/torch_cpu_mlp.json.gz",
}
TOOLS = """overview_page input_pipeline_analyzer framework_op_stats kernel_stats kernel_utilization memory_profile
op_profile hlo_stats roofline_model pod_viewer tool_names get_overview get_kpi_metrics get_step_trace
get_device_information get_hosts get_roofline_model get_top_hlo_ops get_hlo_stats get_hlo_op_profile get_kernel_stats
get_kernel_utilization get_memory_profile get_profile_summary get_device_time_attribution check_host_boundness
analyze_async_overlap inspect_capture list_xplane_events aggregate_xplane_events get_xspace_proto steps step_budget
collective_match rank_compare launch_stats sync_points copies host_stacks gaps what_if""".split()
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no captures at {DATA}: set TACHO_SHARED")


def run(name, capture, *words):
    done = subprocess.run([TACHO, "tool", name, DATA / CAPTURES[capture], *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables(name, capture, *words):
    answer = json.loads(run(name, capture, *words, "--json"))
    return answer["tables"] if "tables" in answer else [answer]


def rows(table):
    names = [c["name"] for c in table["columns"]]
    return [dict(zip(names, cells)) for cells in table["rows"]]


def is_share_of_a_whole(column):
    return column["unit"] == "%" and ("share" in column["name"] or column["name"].startswith(("idle", "last_"))
                                      or column["name"] in ("time_percent", "of_devices_percent"))


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", TOOLS)
def test_forms_agree_and_say_why_they_are_empty(name, capture):
    found = tables(name, capture)
    notes = [n for t in found for n in t.get("notes", [])]
    for t in found:
        assert t["rows"] or notes, f"{t['table']} is empty without a word"
        for row in t["rows"]:
            for column, cell in zip(t["columns"], row):
                if isinstance(cell, (int, float)) and is_share_of_a_whole(column):
                    assert -1e-6 <= cell <= 100 + 1e-6, (column["name"], cell)
    blocks = [list(csv.reader(io.StringIO(b))) for b in split_blocks(run(name, capture, "--csv"))]
    assert [len(b) - 1 for b in blocks] == [len(t["rows"]) for t in found]
    assert [b[0] for b in blocks] == [[c["name"] for c in t["columns"]] for t in found]
    text = run(name, capture)
    assert text.strip() and "nan" not in text.split() and "inf" not in text.split()


def split_blocks(text):
    """Tables of CSV are apart by an empty line; text in quotes may hold one."""
    out, inside = [""], False
    for line in text.splitlines(keepends=True):
        if line.strip() == "" and not inside:
            out.append("")
            continue
        out[-1] += line
        inside ^= line.count('"') % 2 == 1
    return [b for b in out if b]


@pytest.mark.parametrize("capture", [c for c in CAPTURES if c.startswith("CPU")])
def test_a_cpu_is_neither_launched_on_nor_copied_to(capture):
    assert {r["launch_ps"] for r in rows(tables("get_step_trace", capture)[0])} == {None}
    for r in rows(tables("check_host_boundness", capture)[0]):
        assert (r["copy_ps"], r["host_wait_ps"]) == (None, None) and r["compute_ps"] > 0
    (overview,) = tables("get_overview", capture)
    assert {r["metric"]: r["value"] for r in rows(overview)}["input"] is None


@pytest.mark.parametrize("capture", [c for c in CAPTURES if "PyTorch" in c])
@pytest.mark.parametrize("name", ["hlo_stats", "roofline_model", "get_top_hlo_ops"])
def test_pytorch_has_no_programs(name, capture):
    found = [r["program_id"] for t in tables(name, capture) for r in rows(t) if "program_id" in r]
    assert found and set(found) == {None}


@pytest.mark.parametrize("capture", ["TPU", "GPU", "CPU, JAX", "PyTorch"])
def test_parts_of_each_step_sum_to_it(capture):
    by_step = [t for t in tables("step_budget", capture) if t["table"] == "steps"][0]
    parts = ("compute_ps", "comm_exposed_ps", "copy_exposed_ps", "idle_ps")
    assert by_step["rows"]
    for r in rows(by_step):
        assert sum(r[p] or 0 for p in parts) == r["duration_ps"]
        why = ("launch_starved_ps", "blocked_ps", "launch_latency_ps", "unknown_ps")
        assert sum(r[p] or 0 for p in why) == r["idle_ps"]


@pytest.mark.parametrize("capture", ["TPU", "GPU", "CPU, JAX", "PyTorch"])
@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_takes_a_step_and_a_host(name, capture):
    step = rows(tables("steps", capture)[0])[1]["step"]
    for t in tables(name, capture, f"steps={step}"):
        if "step" in (c["name"] for c in t["columns"]) and name not in ("tool_names",):
            assert {r["step"] for r in rows(t)} <= {step, None}, t["table"]
    host = rows(tables("get_hosts", capture)[0])[0]["host"]
    tables(name, capture, f"host={host}")


def test_what_costs_nothing_known_has_no_flop():
    """The capture has no shapes of inputs: a category without one known cost moved an unknown amount, not 0."""
    (categories,) = tables("get_hlo_op_profile", "PyTorch")
    assert {(r["flops"], r["bytes"]) for r in rows(categories)} == {(None, None)}
    (known,) = tables("get_hlo_op_profile", "PyTorch, H100")
    assert all(r["flops"] > 0 for r in rows(known))


@pytest.mark.parametrize("name", ["roofline_model", "op_profile", "hlo_stats", "framework_op_stats", "get_overview",
                                  "get_kpi_metrics", "get_roofline_model", "peaks"])
def test_a_peak_that_cannot_be_true_is_said(name):
    """ROCm tells half of an MI300X's memory rate, and an operation then reaches 110 % of the roofline."""
    def notes(capture):
        return [n["code"] for t in tables(name, capture) for n in t.get("notes", [])]
    assert "memory_rate_too_low" in notes("AMD")
    assert "memory_rate_too_low" not in notes("TPU") + notes("GPU")
