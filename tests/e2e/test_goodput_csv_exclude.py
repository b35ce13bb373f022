# SPDX-License-Identifier: Apache-2.0
"""tacho goodput --exclude and --csv, tacho report --csv, on entries whose answer is worked out by hand."""
import csv
import datetime
import gzip
import json
import os
import pathlib
import subprocess
from decimal import Decimal

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
T0 = 1760000000


def at(second):
    return datetime.datetime.fromtimestamp(T0 + second, datetime.timezone.utc).isoformat()


@pytest.fixture
def entries(tmp_path):
    """0-10 initialization, 10-30 preparation, steps of 10 s from 30 to 130 (the first takes 20), end at 140."""
    rows = [{"job_start_time": T0}, {"tpu_init_start_time": T0}, {"tpu_init_end_time": T0 + 10},
            {"training_prep_start_time": T0 + 10}, {"training_prep_end_time": T0 + 30}]
    rows += [{"step_count": n, "step_start_time": T0 + 30 + (10 * n + 10 if n else 0)} for n in range(10)]
    rows += [{"job_end_time": T0 + 140}]
    path = tmp_path / "entries.jsonl"
    path.write_text("".join(json.dumps({"job_name": "j", **row}) + "\n" for row in rows))
    return path


def tacho(*words, status=0):
    got = subprocess.run([TACHO, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert got.returncode == status, got.stderr
    return got


def excluding(entries, *intervals):
    path = entries.parent / "exclude.json"
    path.write_text(json.dumps([{"start_time_utc": a, "end_time_utc": b} for a, b in intervals]))
    return path


def seconds(rows):
    return {row["category"]: float(row["seconds"]) for row in rows}


WHOLE = {"initialization": 10, "training_prep": 20, "program_startup": 10, "productive_step": 100}


def test_excluded_time_is_in_no_sum(entries):
    assert seconds(json.loads(tacho("goodput", entries, "--json").stdout)["ledger"]) == WHOLE
    # half of the preparation, a cut through two steps given twice and out of order, and time before the run
    file = excluding(entries, (at(95), at(105)), (at(20), at(30)), (at(90), at(100)), (at(-50), at(-40)))
    document = json.loads(tacho("goodput", entries, "--exclude", file, "--json", "--steps").stdout)
    assert seconds(document["ledger"]) == WHOLE | {"training_prep": 10, "productive_step": 85}
    assert document["total_elapsed_s"] == 115 and document["excluded_s"] == 25
    assert [x["from"] for x in document["excluded"]] == [at(20).replace("+00:00", "Z"), at(90).replace("+00:00", "Z")]
    assert document["goodput_percent"] == pytest.approx(100 * 85 / 115) and document["badput_time_s"] == 30
    assert document["max_productive_step"] == 9
    assert [s["step"] for s in document["steps"]] == [0, 1, 2, 3, 4, 7, 8, 9][:len(document["steps"])]
    text = tacho("goodput", entries, "--exclude", file).stdout
    assert "excluded" in text and "25.00 s" in text


def test_a_slow_step_that_is_excluded_is_in_no_step_time(entries):
    lines = [json.loads(line) for line in entries.read_text().splitlines()]
    for row in lines[8:]:  # step 3 and what follows comes 90 s later: step 2 takes 100 s
        for key in row.keys() & {"step_start_time", "job_end_time"}:
            row[key] += 90
    entries.write_text("".join(json.dumps(row) + "\n" for row in lines))
    slow = json.loads(tacho("goodput", entries, "--json").stdout)
    kept = json.loads(tacho("goodput", entries, "--json", "--exclude", excluding(entries, (at(65), at(150)))).stdout)
    assert slow["step_time"]["mean_s"] > 15 and kept["step_time"]["mean_s"] == 10


def test_all_excluded(entries):
    file = excluding(entries, (at(-1), at(1000)))
    document = json.loads(tacho("goodput", entries, "--exclude", file, "--json").stdout)
    assert document["ledger"] == [] and document["total_elapsed_s"] == 0 and document["goodput_percent"] == 0


@pytest.mark.parametrize("body,said", [
    ("{}", "not a JSON array"), ("[1]", "interval 1 has no text 'start_time_utc'"), ("[", "byte"),
    (json.dumps([{"start_time_utc": "2026-01-01T00:00:00", "end_time_utc": at(1)}]), "with a time zone"),
    (json.dumps([{"start_time_utc": at(1), "end_time_utc": at(2)}, {"start_time_utc": at(2), "end_time_utc": at(2)}]),
     "interval 2 does not end after it starts")])
def test_bad_files_say_why(entries, body, said):
    path = entries.parent / "bad.json"
    path.write_text(body)
    got = tacho("goodput", entries, "--exclude", path, status=4)
    assert said in got.stderr and str(path) in got.stderr and got.stderr.count("\n") == 1


XSPACE = ROOT.parent / "shared/data/xspace/mi300x_jax_conv.xplane.pb"


@pytest.mark.skipif(not XSPACE.is_file(), reason=f"no {XSPACE}")
def test_a_profile_is_named_and_who_takes_it(tmp_path):
    content = XSPACE.read_bytes()
    for name, body, words in (("cut", content[:1000], "is an XSpace profile, not a run"),
                              ("packed", gzip.compress(content), "compressed by gzip, not a run (gunzip it")):
        (tmp_path / name).write_bytes(body)
        got = tacho("goodput", tmp_path / name, status=4)
        assert words in got.stderr and "tacho report" in got.stderr and got.stderr.count("\n") == 1
        assert "profile" in tacho("metrics", tmp_path / name, status=4).stderr
    session = tmp_path / "session"
    session.mkdir()
    (session / "host.xplane.pb").write_bytes(content)
    assert "holds profiles, not a run" in tacho("goodput", session, status=4).stderr


def test_a_json_trace_is_named(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "name": "a"}]}))
    assert "is a JSON trace, not a run (tacho report" in tacho("goodput", path, status=4).stderr


def test_entries_behind_an_empty_line_are_no_profile(entries):
    entries.write_text("\n" + entries.read_text())
    assert seconds(json.loads(tacho("goodput", entries, "--json").stdout)["ledger"]) == WHOLE


def test_ledger_as_csv(entries):
    rows = list(csv.DictReader(tacho("goodput", entries, "--csv", "--window", "40").stdout.splitlines()))
    whole = [row for row in rows if row["from"] == at(0).replace("+00:00", "Z")]
    window = [row for row in rows if row["from"] == at(100).replace("+00:00", "Z")]
    assert len(whole) + len(window) == len(rows)
    assert seconds(whole) == WHOLE and seconds(window) == {"productive_step": 40}
    assert sum(Decimal(row["seconds"]) for row in whole) == 140
    assert sum(float(row["percent"]) for row in whole) == pytest.approx(100)


def test_findings_as_csv(entries):
    again = [{"job_start_time": T0 + 240}, {"tpu_init_start_time": T0 + 240}, {"tpu_init_end_time": T0 + 250}]
    again += [{"step_count": n, "step_start_time": T0 + 250 + 10 * n} for n in range(10)]
    lines = entries.read_text().splitlines()[:-1] + [json.dumps({"job_name": "j", **row}) for row in again]
    entries.write_text("\n".join(lines) + "\n")
    findings = json.loads(tacho("report", entries, "--json").stdout)["findings"]
    rows = list(csv.DictReader(tacho("report", entries, "--csv").stdout.splitlines()))
    assert findings and [(r["priority"], r["id"], r["what"]) for r in rows] == \
        [(f["priority"], f["id"], f["what"]) for f in findings]
    assert [float(r["impact_amount"]) for r in rows] == [f["impact"]["amount"] for f in findings]
