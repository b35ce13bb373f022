# SPDX-License-Identifier: Apache-2.0
"""The faults that XProf 2.24.2 was found to have (xprof_faults.json), one by one, each with the tests that show ours
right; and those of these tests that have no other home."""
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time

import pytest
from test_cpu_operations import dump, parts
from test_deviations import test_functions
from test_every_tool import TOOLS
from test_pipeline import answer, table_rows
from test_xprof_parity import ROOT, SHARED, TACHO, XSPACE, needs_shared

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from test_server import Server  # noqa: E402

FAULTS = json.loads((ROOT / "tests" / "golden" / "xprof_faults.json").read_text())
test_functions.__test__ = False


def tool(name, path, *words):
    return subprocess.run([TACHO, "tool", name, path, *words], capture_output=True, text=True, check=False)


def test_every_fault_has_its_tests():
    assert [fault["fault"] for fault in FAULTS] == list(range(1, 32))
    known = {"::".join(of) for of in test_functions()}
    for fault in FAULTS:
        assert fault["tests"] and set(fault["tests"]) <= known, fault


@needs_shared
@pytest.mark.parametrize("name", ["memory_viewer", "graph_viewer", "get_peak_allocations", "smart_suggestion",
                                  "get_snapshot", "utilization_viewer"])
def test_a_tool_that_is_not_here_is_refused_by_name(name):
    run = tool(name, XSPACE / "tpu_v6e_2core", "--json")
    assert run.returncode != 0 and f"there is no tool '{name}'" in run.stderr and "tacho tools" in run.stderr
    assert json.loads(run.stdout)["error"]["code"]


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "tpu_v4_counters", "gpu_h100_2", "cpu_single"])
def test_what_is_offered_can_be_asked(case):
    rows, _ = table_rows("tool_names", XSPACE / case)
    assert len(rows) >= 8
    for row in rows:
        run = tool(row["tool"], XSPACE / case, "--json" if "@" not in row["tool"] else "--xprof")
        assert run.returncode == 0 and json.loads(run.stdout), (row["tool"], run.stderr)
    listed = {row["tool"] for row in rows}
    note = " ".join(n["message"] for n in json.loads(tool("tool_names", XSPACE / case, "--json").stdout)["notes"])
    for name in set(answer("tool_names", case)) - listed:
        assert name in note


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "gpu_h100_2", "gpu_v100_slow_input", "cpu_dp4"])
def test_all_our_tools_have_the_same_steps(case):
    """Of each device; XProf leaves the first and the last out in one tool and keeps them in another."""
    truth = XSPACE / case / "truth.json"
    numbers = set(range(json.loads(truth.read_text())["steps"])) if truth.is_file() else None
    for name in ("steps", "overview_page", "input_pipeline_analyzer", "pod_viewer", "step_budget", "get_step_trace"):
        document = json.loads(tool(name, XSPACE / case, "--json").stdout)
        found = set()
        for table in document.get("tables", [document]):
            names = [column["name"] for column in table["columns"]]
            if "step" in names:
                found |= {row[names.index("step")] for row in table["rows"]}
        found -= {None}
        numbers = found if numbers is None else numbers
        assert found == numbers, name


@needs_shared
@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_refuses_damage_with_its_byte(name):
    run = tool(name, XSPACE / "damaged_tpu_inference.xplane.pb")
    assert run.returncode == 4 and run.stdout == "" and "at byte 8" in run.stderr


@needs_shared
@pytest.mark.parametrize("kind", ["tpu", "gpu"])
def test_a_profile_of_20_mb_opens_in_little_memory(tmp_path, kind):
    """XProf takes 1,438 MB for such a TPU profile and 391 MB for a GPU's. bench/load_bench.py has the larger ones."""
    words = "--cores 4 --ops-per-step 400 --target-mb 20 --seed 7 --truth-steps 10"
    subprocess.run([sys.executable, SHARED / "tools" / "gen_xspace.py", tmp_path / "run", "--kind", kind,
                    *words.split()], check=True, capture_output=True)
    measure = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    run = subprocess.run([sys.executable, "-c", measure, TACHO, "--cache", tmp_path / "cache", "tool", "overview_page",
                          tmp_path / "run"], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 120 * 1024


def state(folder):
    return {path.relative_to(folder): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in folder.rglob("*") if path.is_file()}


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "gpu_h100_2"])
def test_nothing_is_written_beside_the_input(tmp_path, case):
    """Each tool is asked first, on a copy that nobody opened and without anything kept."""
    shutil.copytree(XSPACE / case, tmp_path / "profile")
    before = state(tmp_path / "profile")
    for i, name in enumerate(TOOLS):
        run = tool(name, tmp_path / "profile", "--cache", tmp_path / f"cache{i}")
        kept = tool(name, XSPACE / case)
        assert (run.returncode, run.stdout) == (0, kept.stdout) or "profile" in run.stdout, name
    assert state(tmp_path / "profile") == before


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def rebuilt(data, span, number, change):
    """The message with each field of that number (a message itself) put through change, which gets its span. None of
    the messages down to events has fixed numbers."""
    out = b""
    for n, kind, v in dump.fields(data, *span):
        assert kind in (0, 2)
        body = None if kind == 0 else change(v) if n == number else data[slice(*v)]
        out += varint(n << 3 | kind) + (varint(v % (1 << 64)) if body is None else varint(len(body)) + body)
    return out


def without_order(data):
    """The events of every line of every plane in the reverse order."""
    def line(span):
        events = iter(reversed([data[slice(*v)] for v in parts(data, span, 4)]))
        return rebuilt(data, span, 4, lambda _: next(events))
    return rebuilt(data, (0, len(data)), 1, lambda plane: rebuilt(data, plane, 3, line))


@needs_shared
@pytest.mark.parametrize("case", ["gpu_v100_slow_input", "tpu_v6e_2core"])
def test_a_line_in_no_order_keeps_its_steps(tmp_path, case):
    """XProf loses the nesting of such a line, and with it steps and flows."""
    path = next((XSPACE / case).rglob("*.xplane.pb"))
    for folder in ("sorted", "reversed"):
        (tmp_path / folder / "plugins" / "profile" / "run").mkdir(parents=True)
    shutil.copy(path, tmp_path / "sorted" / "plugins" / "profile" / "run" / path.name)
    (tmp_path / "reversed" / "plugins" / "profile" / "run" / path.name).write_bytes(without_order(path.read_bytes()))
    for name in ("steps", "step_budget", "overview_page", "hlo_stats"):
        kept, turned = (json.loads(tool(name, tmp_path / folder, "--json").stdout) for folder in ("sorted", "reversed"))
        for a, b in zip(kept.get("tables", [kept]), turned.get("tables", [turned]), strict=True):
            assert a["rows"] == b["rows"] and a["rows"], name


def numbers_as_text(node, path="$"):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers_as_text(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from numbers_as_text(value, f"{path}[{i}]")
    elif isinstance(node, str) and re.fullmatch(r"-?\d+(\.\d+)?\s*%|-1(\.0)?", node):
        yield path


@needs_shared
@pytest.mark.parametrize("name", ["get_overview", "get_kpi_metrics", "get_step_trace", "get_memory_profile",
                                  "get_roofline_model", "check_host_boundness", "get_device_information"])
def test_numbers_are_numbers_and_two_hosts_are_no_error(name):
    for case in ("gpu_a100_2hosts", "cpu_two_hosts", "tpu_v6e_2core"):
        document = answer(name, case)
        document.pop("capture", None)
        assert list(numbers_as_text(document)) == []


@needs_shared
def test_the_slow_loader_between_steps_is_named():
    """cpu_single reads its data for 50 ms once between two steps."""
    rows, _ = table_rows("host_stacks", XSPACE / "cpu_single")
    slow = [row for row in rows if row["stack"].endswith("slow_disk_read")]
    assert slow and sum(row["self_ps"] for row in slow) > 50e9
    gaps, _ = table_rows("gaps", XSPACE / "cpu_single", "limit=1")
    assert gaps[0]["duration_ps"] > 50e9
    text = subprocess.run([TACHO, "report", XSPACE / "gpu_v100_slow_input"], capture_output=True, text=True,
                          check=True).stdout
    assert "tensorflow.org" not in text and "DataLoader or Grain" in text


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "gpu_h100_2", "mi300x_jax_conv.xplane.pb"])
@pytest.mark.parametrize("name", ["hlo_stats", "roofline_model", "get_hlo_stats", "get_top_hlo_ops",
                                  "framework_op_stats"])
@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_our_rows_hold_no_html(name, case, form):
    out = tool(name, XSPACE / case, form).stdout
    assert out and not re.search(r"<(div|span|a|br|p)\b", out)


def test_the_pages_need_no_other_server():
    """No page or script that is served names another server to load from."""
    folder = ROOT / "web" / "dist"
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".js", ".css")]
    if not files:
        pytest.skip("web/dist is not built: make web")
    loads = re.compile(r"""(src|href)=["']?(https?:)?//|@import\s+["']?http|url\(["']?https?:|import\(["']http""")
    assert loads.search('<script src="https://www.gstatic.com/charts/loader.js">')
    for path in files:
        assert not loads.search(path.read_text(errors="replace")), path


def test_a_server_answers_soon_and_is_small(tmp_path):
    start = time.monotonic()
    server = Server(tmp_path / "data")
    try:
        assert server.get("server")["version"]
        took = time.monotonic() - start
        status = open(f"/proc/{server.process.pid}/status").read()
        resident_kb = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
    finally:
        assert server.stop() == 0
    assert took < 3 and resident_kb < 64 * 1024
