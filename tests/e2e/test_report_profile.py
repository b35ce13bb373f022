# SPDX-License-Identifier: Apache-2.0
"""tacho report and tacho why of profiles: the numbers against what the generator planted, trouble inputs, judges."""
import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
PS = 1e12

needs_shared = pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="no shared data beside the checkout")


def tacho(*words, status=0):
    got = subprocess.run([TACHO, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert got.returncode == status, got.stderr
    return got


def report(path):
    return json.loads(tacho("report", path, "--json").stdout)


def metrics(document):
    return {m["name"]: m["value"] for m in document["key_metrics"]}


def truth_of(case):
    return json.loads((SHARED / "data/xspace" / case / "truth.json").read_text())


def findings(document):
    return {f["id"]: f for f in document["findings"]}


@needs_shared
@pytest.mark.parametrize("case", ["gpu_h100_2", "gpu_v100_slow_input", "gpu_a100_2hosts"])
def test_gpu_steps_and_operations_are_those_planted(case):
    truth, document = truth_of(case), report(SHARED / "data/xspace" / case)
    cores = [core for host in truth["hosts"] for core in host["cores"]]
    spans = [max(core["span_ps"] for core in host["cores"]) for host in truth["hosts"]]
    middle = sorted(s["duration_ps"] for host in truth["hosts"] for s in host["cores"][0]["steps"][1:-1])
    got = metrics(document)
    assert got["devices"] == len(cores)
    assert abs(got["profile_window_s"] - max(spans) / PS) <= 2e-6
    assert middle[0] / PS <= got["profile_step_time_s"] <= middle[-1] / PS
    assert got["profile_step_time_s"] == pytest.approx(middle[len(middle) // 2] / PS, rel=1e-9)
    planted = collections.Counter()
    for core in cores:
        for op in core["ops"]:
            planted[op["name"]] += op["self_ps"]
    rows = document["sections"]["op_profile"]["rows"]
    assert [(row[0], row[2]) for row in rows[:3]] == planted.most_common(3)


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "tpu_v5e_no_while"])
def test_tpu_idle_is_what_no_operation_of_the_core_fills(case):
    """Busy of the truth is self time on duty; a loop's own self time is waiting among its operations to us."""
    truth, document = truth_of(case), report(SHARED / "data/xspace" / case)
    loops = ("while", "conditional", "call")
    busy = sum(core["duty_busy_ps"] - sum(core["categories_self_ps"].get(c, 0) for c in loops)
               for host in truth["hosts"] for core in host["cores"])
    whole = 0
    for host in truth["hosts"]:
        whole += len(host["cores"]) * max(core["span_ps"] for core in host["cores"])
    idle = 100 * (1 - busy / whole)
    assert metrics(document)["device_idle_percent"] == pytest.approx(idle, abs=1.0)


@needs_shared
def test_no_steps_is_said_and_the_rest_is_measured():
    want = json.loads((SHARED / "data/reports/expected.json").read_text())
    entry = next(v for k, v in want.items() if "h11" in k) if isinstance(want, dict) else \
        next(v for v in want if "h11" in json.dumps(v))
    document = report(SHARED / "data/reports/h11_no_step_markers.xplane.pb")
    got = metrics(document)
    window, busy = 748e-6, 609e-6
    assert entry["total_busy_ps"] == 609_000_000
    assert got["profile_window_s"] == pytest.approx(window, rel=1e-9)
    assert got["device_idle_percent"] == pytest.approx(100 * (1 - busy / window), rel=1e-9)
    assert got["profile_step_time_s"] is None
    assert "no steps" in findings(document)["profile-incomplete"]["what"]


@needs_shared
def test_input_bound_is_found_where_it_was_planted_and_not_where_it_was_not():
    assert "input-bound" in findings(report(SHARED / "data/xspace/gpu_v100_slow_input"))
    first = report(SHARED / "data/xspace/gpu_v100_slow_input")["findings"][0]
    waited = sum(s["h2d_ps"] for s in truth_of("gpu_v100_slow_input")["hosts"][0]["cores"][0]["steps"])
    whole = sum(s["duration_ps"] for s in truth_of("gpu_v100_slow_input")["hosts"][0]["cores"][0]["steps"])
    assert first["id"] == "input-bound"
    assert first["evidence"][0]["value"] == pytest.approx(100 * waited / whole, abs=0.1)


@needs_shared
@pytest.mark.parametrize("name", ["data/xspace/damaged_tpu_inference.xplane.pb"])
def test_a_damaged_profile_is_one_sentence_with_its_byte(name):
    for command in ("report", "why"):
        got = tacho(command, SHARED / name, status=4)
        assert got.stdout == "" and got.stderr.count("\n") == 1 and "at byte 8" in got.stderr


@needs_shared
def test_why_and_page_of_a_profile(tmp_path):
    path = SHARED / "data/xspace/gpu_v100_slow_input"
    why = json.loads(tacho("why", path, "--json").stdout)
    assert why["sentence"].startswith("Each step waits for its input") and len(why["numbers"]) == 3
    assert why["next"].startswith("tacho report ")
    tacho("report", path, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "The loop waits for its input" in page and "http://" not in page and "https://" not in page


@needs_shared
def test_trouble_inputs_that_are_xspaces():
    wanted = ["h11_no_step_markers.xplane.pb", "h12_graph_kernels.xplane.pb", "h13_same_plane_ids.xplane.pb",
              "h14_no_plugins_dir"]
    got = subprocess.run([sys.executable, SHARED / "tools/check_reports.py", "--tacho", TACHO, "-v"],
                         capture_output=True, text=True, timeout=120)
    failed = [line for line in got.stdout.splitlines() if line.startswith("FAIL") and any(w in line for w in wanted)]
    assert not failed, failed
    for name in wanted:
        assert report(SHARED / "data/reports" / name)["summary"]


@needs_shared
def test_no_false_alarm_on_clean_profiles():
    cases = json.loads((SHARED / "data/diagnosis/cases.json").read_text())
    cases = cases["cases"] if isinstance(cases, dict) else cases
    clean = [c for c in cases if c["kind"] == "xspace" and c["dose"] in ("clean", "healthy", "sub")]
    assert len(clean) >= 10
    for case in clean:
        document = report(SHARED / "data/diagnosis" / case["open"])
        assert [f["id"] for f in document["findings"] if f["priority"] in ("P0", "P1")] == [], case["id"]
        if case["status"] is not None:
            assert document["status"] == case["status"], case["id"]


@needs_shared
def test_profile_without_hlo_says_so():
    document = report(SHARED / "data/diagnosis/Q04/fixed/host-0.xplane.pb")
    assert document["findings"][0]["id"] == "profile-incomplete" and "no HLO" in document["findings"][0]["what"]
