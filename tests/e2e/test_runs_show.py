# SPDX-License-Identifier: Apache-2.0
"""tacho runs show: the state of a run by how it ended, its processes and the tail of its output."""
import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))


def show(data, command, *flags):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")} | {"TACHO_DATA": str(data)}
    status = subprocess.run([TACHO, "run", "--name", "shown", *flags, "--", "sh", "-c", command], env=env, timeout=60,
                            capture_output=True).returncode
    got = subprocess.run([TACHO, "runs", "show", "last", "--json"], env=env, capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    tables = {t["table"]: t for t in json.loads(got.stdout)["tables"]}
    values = tables["run"]["values"]
    rows = {name: [dict(zip([c["name"] for c in t["columns"]], row, strict=True)) for row in t["rows"]]
            for name, t in tables.items()}
    return status, values, rows


def test_a_run_that_ends_well(tmp_path):
    status, run, rows = show(tmp_path, "echo fine; echo bad >&2")
    assert status == 0
    assert (run["phase"], run["reason"], run["name"], run["hosts"]) == ("COMPLETED", "exit", "shown", 1)
    assert [p["exit_code"] for p in rows["processes"]] == [0] and rows["sessions"] == []
    assert {(o["stream"], o["text"].strip()) for o in rows["output"]} == {("stdout", "fine"), ("stderr", "bad")}


def test_a_run_that_fails_and_is_resumed(tmp_path):
    status, run, rows = show(tmp_path, "exit 3")
    assert status == 3 and (run["phase"], run["reason"]) == ("FAILED", "exit")
    first = run["run"]
    status, run, rows = show(tmp_path, "true", "--resume")
    assert status == 0 and run["run"] == first and run["phase"] == "COMPLETED"
    assert sorted(p["exit_code"] for p in rows["processes"]) == [0, 3]


def test_each_process_is_of_its_attempt(tmp_path):
    step = ("import tachograph as t; run = t.init()\nfor n in range(3):\n"
            "    with run.record(t.Event.STEP, n): pass\nrun.finish()")
    command = f"PYTHONPATH={ROOT / 'python'} TACHO_SHIP=off {sys.executable} -c '{step}'"
    show(tmp_path, command + "; exit 3")
    _, run, rows = show(tmp_path, command, "--resume")
    assert run["attempts"] == 2
    assert [p["attempt"] for p in sorted(rows["processes"], key=lambda p: p["started"])] == [1, 1, 2, 2]


def test_attempts_of_a_workload_that_records_nothing(tmp_path):
    show(tmp_path, "exit 3")
    _, run, rows = show(tmp_path, "true", "--resume")
    assert run["attempts"] == 2 and sorted(p["attempt"] for p in rows["processes"]) == [1, 2]


def test_runs_list_says_how_a_run_went(tmp_path):
    show(tmp_path, "exit 3", "--group", "sweep")
    _, run, _ = show(tmp_path, "sleep 0.2", "--resume")
    env = os.environ | {"TACHO_DATA": str(tmp_path)}
    listed, = csv.DictReader(subprocess.run([TACHO, "runs", "list", "--csv"], env=env, capture_output=True, text=True,
                                            check=True, timeout=60).stdout.splitlines())
    assert list(listed) == ["run", "name", "group", "phase", "reason", "started", "wall_s", "attempts"]
    assert [listed[k] for k in ("run", "name", "group", "phase", "reason", "started", "attempts")] == \
        [run["run"], "shown", "sweep", "COMPLETED", "exit", run["started"], "2"]
    ends = [int(t[17:19]) + float("0" + t[19:-1]) for t in (run["started"], run["ended"])]
    assert float(listed["wall_s"]) == pytest.approx((ends[1] - ends[0]) % 60, abs=1e-6)


def metrics(data, *words):
    env = os.environ | {"TACHO_DATA": str(data)}
    return subprocess.run([TACHO, "metrics", "last", *words], env=env, capture_output=True, text=True, timeout=60)


def test_metrics_tell_attempts_apart(tmp_path):
    log = "import tachograph as t; run = t.init(); run.log({\"loss\": 1.0}); run.finish()"
    command = f"PYTHONPATH={ROOT / 'python'} TACHO_SHIP=off {sys.executable} -c '{log}'"
    show(tmp_path, command)
    _, _, rows = show(tmp_path, command, "--resume")
    listed = list(csv.DictReader(metrics(tmp_path, "--csv").stdout.splitlines()))
    assert len({(r["name"], r["process"]) for r in listed}) == len(listed)
    assert [(r["name"], r["attempt"]) for r in listed if r["name"] in ("loss", "load_1m")] == \
        [("load_1m", "1"), ("loss", "1"), ("load_1m", "2"), ("loss", "2")]
    assert {r["process"] for r in listed} <= {f"{p['host']}/{p['pid']}" for p in rows["processes"]}


def test_a_metric_that_no_process_has(tmp_path):
    show(tmp_path, "true")
    got = metrics(tmp_path, "load_1m", "nope")
    assert got.returncode == 3 and got.stdout == "" and got.stderr.count("\n") == 1
    assert "no metric 'nope'" in got.stderr and "load_1m" in got.stderr
    assert metrics(tmp_path, "load_1m").returncode == 0


def test_a_run_that_is_killed(tmp_path):
    status, run, rows = show(tmp_path, "kill -9 $$")
    assert status == 137 and (run["phase"], run["reason"]) == ("FAILED", "signal")
    assert [(p["exit_code"], p["signal"]) for p in rows["processes"]] == [(None, 9)]


def test_no_such_run(tmp_path):
    env = os.environ | {"TACHO_DATA": str(tmp_path)}
    assert subprocess.run([TACHO, "runs", "show", "nope"], env=env, capture_output=True, timeout=60).returncode == 3
