# SPDX-License-Identifier: Apache-2.0
"""tacho report and tacho why on runs of flat entries and on journals of a small Python program."""
import html.parser
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
KEYS = {"status", "summary", "key_metrics", "findings", "abstained", "sections"}
SECTIONS = {"steps", "roofline", "memory", "op_profile", "kernel_stats", "custom_kernels", "environment",
            "not_measured"}
T0 = 1760000000


def tacho(*words, status=0, **more):
    got = subprocess.run([TACHO, *map(str, words)], capture_output=True, text=True, timeout=60, **more)
    assert got.returncode == status, got.stderr
    return got.stdout


def entries(path, steps=200, step_s=2.0, save_every=0, save_s=0.0, slow=lambda i: 0.0, crash_at=None, back_to=0,
            name="job"):
    out, t = [{"job_start_time": T0}], float(T0 + 10)
    order = list(range(steps)) if crash_at is None else [*range(crash_at), *range(back_to, steps)]
    for n, i in enumerate(order):
        if n == crash_at:
            t += 5
            out.append({"job_start_time": t})
            t += 5
        out.append({"step_count": i, "step_start_time": t})
        t += step_s * (1 + 0.002 * (i % 3)) + slow(i)
        if save_every and i and i % save_every == 0:
            out.append({"step": i, "event_type": "save", "checkpoint_manager_blocking_start_time": t,
                        "checkpoint_manager_blocking_duration_secs": save_s})
            t += save_s
    out.append({"job_end_time": t + 1})
    path.write_text("".join(json.dumps({"job_name": name, **e}) + "\n" for e in out))
    return path


def report(*words):
    document = json.loads(tacho("report", *words, "--json"))
    assert KEYS <= set(document) and SECTIONS <= set(document["sections"])
    for f in document["findings"]:
        assert f["priority"] in ("P0", "P1", "P2") and f["evidence"] and f["fix"] and f["what"]
        assert set(f["impact"]) == {"metric", "amount", "unit", "percent", "bound"}
    return document


def ids(document):
    return [f["id"] for f in document["findings"]]


def test_healthy_run_has_no_finding(tmp_path):
    document = report(entries(tmp_path / "e"))
    assert ids(document) == [] and document["status"] == "OPTIMAL"
    assert {"input-bound", "gpu-gaps", "checkpoint-blocking"} <= {a["id"] for a in document["abstained"]}


@pytest.mark.parametrize("save_s,want", [(0.1, None), (0.35, "P2"), (2.0, "P1"), (8.0, "P0")])
def test_blocking_saves_by_dose(tmp_path, save_s, want):
    document = report(entries(tmp_path / "e", save_every=10, save_s=save_s))
    assert [(f["id"], f["priority"]) for f in document["findings"]] == ([("checkpoint-blocking", want)] if want else [])


def test_lost_work(tmp_path):
    document = report(entries(tmp_path / "e", crash_at=120, back_to=60))
    finding = document["findings"][0]
    assert (finding["id"], finding["priority"]) == ("restart-wasted", "P0")
    assert finding["impact"]["amount"] == pytest.approx(59 * 2.004, abs=3)
    assert finding["impact"]["bound"] == "exact"


def test_jitter_names_its_period(tmp_path):
    document = report(entries(tmp_path / "e", slow=lambda i: 2.0 if i % 10 == 5 else 0.0))
    assert ids(document) == ["step-jitter"]
    assert "every 10 steps" in document["findings"][0]["what"]


PROGRAM = """
import sys, time
import tachograph as tacho
run = tacho.init()
with run.record(tacho.Event.TRAINING_PREP): time.sleep(0.02)
for step in range(30):
    with run.record(tacho.Event.DATA_LOADING, step): time.sleep(0.05 if 10 <= step < 20 else 0.001)
    with run.record(tacho.Event.STEP, step): time.sleep(0.02)
    if step == 15 and sys.argv[1] == "compile":
        with run.record(tacho.Event.COMPILE, step): time.sleep(0.5)
run.finish()
"""


def record(tmp_path, word):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env.update(TACHO_DATA=str(tmp_path / "data"), PYTHONPATH=str(ROOT / "python"))
    tacho("run", "--name", "x", "--", sys.executable, "-c", PROGRAM, word, env=env)
    return env


def test_slow_loader_is_named_with_its_steps(tmp_path):
    env = record(tmp_path, "plain")
    document = json.loads(tacho("report", "last", "--json", env=env))
    first = document["findings"][0]
    assert (first["id"], first["priority"], document["status"]) == ("input-bound", "P0", "NEEDS_ATTENTION")
    assert "steps 10 to 19" in first["what"] and 0.4 < first["impact"]["amount"] < 2
    assert ids(document) == ["input-bound"]
    why = json.loads(tacho("why", "--json", env=env))
    assert why["sentence"] == first["what"] and len(why["numbers"]) == 3 and why["next"] == "tacho report last"
    assert tacho("why", env=env).count("\n") == 5


def test_compilation_after_warm_up(tmp_path):
    document = json.loads(tacho("report", "last", "--json", env=record(tmp_path, "compile")))
    assert "recompilation" in ids(document)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "action") or k.startswith("on")]


def test_page_stands_alone(tmp_path):
    run = entries(tmp_path / "e", save_every=10, save_s=3.0, name='<script>alert("x")</script>')
    tacho("report", run, "--html", tmp_path / "summary.html")
    text = (tmp_path / "summary.html").read_text()
    page = Page()
    page.feed(text)
    assert page.links == [] and not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "svg" in page.tags and "prefers-color-scheme" in text and "&lt;script&gt;" in text


def test_hostile_names_cannot_steer_a_terminal(tmp_path):
    run = entries(tmp_path / "e", name="x\x1b[2J\x9b")
    with open(run, "a") as out:
        for key, t in (("start", T0 + 20), ("end", T0 + 40)):
            out.write(json.dumps({"job_name": "x\x1b[2J\x9b", "custom_badput_event_type": "\x1b]0;owned\x07",
                                  f"custom_badput_event_{key}_time": t}) + "\n")
    for command in ("goodput", "report", "why"):
        text = tacho(command, run)
        assert not {"\x1b", "\x07", "\x9b"} & set(text)
    assert "custom:" in tacho("goodput", run)


def test_errors(tmp_path):
    (tmp_path / "x").write_text("no entries")
    tacho("report", tmp_path / "x", status=4)
    tacho("report", tmp_path / "absent", status=3)
    tacho("report", "--nonsense", status=2)
    tacho("why", "a", "b", status=2)
    tacho("report", entries(tmp_path / "e"), "--html", tmp_path / "no" / "page.html", status=3)


def test_one_stalled_step_is_found_in_a_short_run(tmp_path):
    """40 steps are too few to judge jitter, yet one that stood for 60 s is no healthy run."""
    path = entries(tmp_path / "e", steps=40, slow=lambda i: 60.0 if i == 17 else 0.0)
    document = report(path)
    assert ids(document) == ["step-jitter"] and document["status"] == "NEEDS_ATTENTION"
    finding = document["findings"][0]
    assert finding["what"].startswith("1 of ") and finding["what"].endswith(": step 17.")
    assert finding["impact"]["amount"] == pytest.approx(60, abs=0.02) and finding["priority"] == "P0"
    evidence = {e["metric"]: e["value"] for e in finding["evidence"]}
    assert evidence["longest_step"] == pytest.approx(62.004, abs=0.02) and evidence["slow_steps"] == 1


def test_short_run_without_a_stall_is_not_judged(tmp_path):
    document = report(entries(tmp_path / "e", steps=40, slow=lambda i: 2.0 if i == 17 else 0.0))
    assert ids(document) == [] and "step-jitter" in {a["id"] for a in document["abstained"]}
    said = tacho("why", tmp_path / "e")
    assert said.startswith("No finding. ") and "productive" in said and "Nothing" not in said


def test_downtime_longer_than_lost_work_is_said(tmp_path):
    path = tmp_path / "e"
    out, t = [{"job_start_time": T0}], float(T0 + 10)
    for attempt in (range(50), range(40, 100)):
        for i in attempt:
            out.append({"step_count": i, "step_start_time": t})
            t += 2.0
        out.append({"job_end_time": t})
        t += 900.0
        if attempt.start == 0:
            out.append({"job_start_time": t})
    path.write_text("".join(json.dumps({"job_name": "job", **e}) + "\n" for e in out))
    finding = report(path)["findings"][0]
    assert finding["id"] == "restart-wasted"
    evidence = {e["metric"]: e["value"] for e in finding["evidence"]}
    assert evidence["infrastructure_recovery"] == pytest.approx(900, abs=0.01)
    assert "Another 15 m 00 s (" in finding["what"]
    assert finding["impact"]["amount"] == pytest.approx(18, abs=2.1)  # the work alone


def test_a_cut_profile_is_not_told_as_a_whole_one(tmp_path):
    path = ROOT.parent / "shared" / "data" / "reports" / "h03_unclosed_array.json"
    if not path.exists():
        pytest.skip("no shared data")
    document = report(path)
    assert [n["count"] for n in document["warnings"] if n["code"] == "profile_warnings"] == [1]
    assert "–" not in document["summary"] and "with no step time" in document["summary"]
    assert "note: warnings about the profile's files: tacho tool summary lists them (1)" in tacho("report", path)


STANDS = """
import os, time
import tachograph as tacho
run = tacho.init()
for step in range(31):
    with run.record(tacho.Event.STEP, step):
        time.sleep(0.01 if step < 30 else 2.0)
        if step == 30:
            os.kill(os.getpid(), 9)
"""


def test_a_step_that_stood_until_it_was_killed_is_named(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env.update(TACHO_DATA=str(tmp_path / "data"), PYTHONPATH=str(ROOT / "python"))
    tacho("run", "--name", "x", "--", sys.executable, "-c", STANDS, status=128 + 9, env=env)
    finding = json.loads(tacho("report", "last", "--json", env=env))["findings"][0]
    assert finding["id"] == "restart-wasted" and "are step 30 alone" in finding["what"]
    stood = {e["metric"]: e["value"] for e in finding["evidence"]}["longest_lost_step"]
    assert 2.0 <= stood <= finding["impact"]["amount"] + 1e-9
