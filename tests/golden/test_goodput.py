# SPDX-License-Identifier: Apache-2.0
"""tacho goodput on journals whose truth is known: the eight cases of the shared data, fresh seeds of
their simulator, and the same entries in every shape a file may have."""
import gzip
import importlib.util
import datetime
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
DATA = SHARED / "data" / "goodput"
CASES = ["clean", "one-restart", "restart-from-zero", "custom-edges", "job-end-restart", "elastic", "hang",
         "straggler-skew"]

if not DATA.is_dir():
    pytest.skip(f"no shared data at {DATA} (TACHO_SHARED)", allow_module_level=True)


def goodput(*words, status=0):
    got = subprocess.run([TACHO, "goodput", *map(str, words), "--json"], capture_output=True, text=True, timeout=60)
    assert got.returncode == status, got.stderr
    return json.loads(got.stdout)


def nanoseconds(row):
    return round(row["seconds"] * 1e9)


def check_ledger(document, truth, slack=0.0):
    assert sum(map(nanoseconds, document["ledger"])) == round(document["total_elapsed_s"] * 1e9)
    assert document["total_elapsed_s"] == pytest.approx(truth["wall_s"], abs=1e-3)
    got = {row["category"]: row["seconds"] for row in document["ledger"]}
    want = truth["ledger_entries_only"]
    wrong = {c: (got.get(c, 0), want.get(c, 0)) for c in set(got) | set(want)
             if abs(got.get(c, 0) - want.get(c, 0)) > truth["tolerance_s"].get(c, 0.001) + slack}
    assert wrong == {}
    assert document["attempts"] == truth["attempts"]
    assert document["disruptions"] == len(truth["disruptions"])
    assert document["max_productive_step"] == truth["max_productive_step"]


def truth_of(folder):
    return json.loads((folder / "truth.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    check_ledger(goodput(DATA / case / "entries.jsonl"), truth_of(DATA / case))


def test_hung_rank():
    document, truth = goodput(DATA / "hang"), truth_of(DATA / "hang")
    hung = [(r["rank"], r["hung_step"]) for r in document["ranks"] if r["hung_step"] is not None]
    assert hung == [(h["rank"], h["step"]) for h in truth["hangs"]]
    assert [r for r in document["ranks"] if r["straggler"]] == []
    got = {row["category"]: row["seconds"] for row in document["ledger"]}
    # Nobody logs the kill: hang and the recovery after it are one, and the cut step is known.
    want = truth["ledger"]
    assert got["hang"] == pytest.approx(want["hang"] + want["infrastructure_recovery"], abs=1.5)
    assert got["productive_step"] == pytest.approx(want["productive_step"], abs=truth["tolerance_s"]["productive_step"])


def test_stragglers_but_not_skewed_clocks():
    document, truth = goodput(DATA / "straggler-skew"), truth_of(DATA / "straggler-skew")
    got = {r["rank"]: r for r in document["ranks"] if r["straggler"]}
    assert sorted(got) == sorted(s["rank"] for s in truth["stragglers"])
    for s in truth["stragglers"]:
        row = got[s["rank"]]
        assert (row["host"], row["first_slow_step"], row["last_slow_step"]) == (s["host"], s["from_step"], s["to_step"])
        assert row["cost_s"] == pytest.approx(s["cost_s"], rel=0.05)
    check_ledger(document, truth)


def simulator():
    path = SHARED / "tools" / "gen_journal.py"
    spec = importlib.util.spec_from_file_location("gen_journal", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [101, 102, 103])
def test_fresh_seed(tmp_path, case, seed):
    spec = json.loads((DATA / case / "spec.json").read_text())
    spec["seed"] = seed
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    simulator().one(str(tmp_path / "spec.json"), str(tmp_path))
    check_ledger(goodput(tmp_path / "entries.jsonl"), truth_of(tmp_path))


@pytest.mark.parametrize("seed", range(4))
def test_out_of_order_and_repeated(tmp_path, seed):
    spec = json.loads((DATA / "one-restart" / "spec.json").read_text())
    spec.update(seed=seed, shuffle_s=3.0, duplicates=12)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    simulator().one(str(tmp_path / "spec.json"), str(tmp_path))
    document = goodput(tmp_path / "entries.jsonl")
    check_ledger(document, truth_of(tmp_path))
    assert "repeated_entry" in {w["code"] for w in document["warnings"]}


def test_dead_attempts_and_running(tmp_path):
    spec = {"job": "dead", "seed": 7, "steps": 120, "job_end": False, "running_frac": 0.5,
            "checkpoint": {"every": 20, "save": 1.0},
            "disruptions": [{"at": 70, "frac": 0.4, "down": 50.0, "resume": "checkpoint",
                             "failed": [{"init": 9.0, "gap": 20.0}, {"init": 5.0, "gap": 30.0, "die_in_init": True}]}]}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    simulator().one(str(tmp_path / "spec.json"), str(tmp_path))
    truth = truth_of(tmp_path)
    check_ledger(goodput(tmp_path / "entries.jsonl", "--to", truth["t_end"]), truth)


@pytest.fixture(scope="module")
def entries():
    return [json.loads(line) for line in (DATA / "elastic" / "entries.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("shape", ["array", "pretty", "gzip", "export_lines", "export_array", "export_object"])
def test_shapes(tmp_path, entries, shape):
    path = tmp_path / "what.bin"
    wrapped = [{"insertId": str(i), "severity": "INFO", "jsonPayload": e} for i, e in enumerate(entries)]
    text = {"array": json.dumps(entries), "pretty": json.dumps(entries, indent=2),
            "gzip": "\n".join(map(json.dumps, entries)), "export_lines": "\n".join(map(json.dumps, wrapped)),
            "export_array": json.dumps(wrapped), "export_object": json.dumps({"entries": wrapped}, indent=1)}[shape]
    path.write_bytes(gzip.compress(text.encode()) if shape == "gzip" else text.encode())
    check_ledger(goodput(path), truth_of(DATA / "elastic"))


def test_bad_lines_are_counted(tmp_path, entries):
    lines = list(map(json.dumps, entries))
    lines[5:5] = ["{broken", "[1]", '{"job_name":"elastic","step_start_time":"soon","step_count":1}']
    path = tmp_path / "entries.jsonl"
    path.write_text("\n".join(lines))
    document = goodput(path)
    check_ledger(document, truth_of(DATA / "elastic"))
    bad = [w for w in document["warnings"] if w["code"] == "bad_line"]
    assert bad[0]["count"] == 3 and "line 6" in bad[0]["message"]


@pytest.mark.parametrize("content", [b"", b"hello\n", b"{}\n{}\n", b'{"traceEvents":[]}', b"\x1f\x8b\x08\x00garbage",
                                     b"[1,2", b"\x00\x01\x02", b'[{"job_start_time":1e300}]'])
def test_wrong_file(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    got = subprocess.run([TACHO, "goodput", str(path)], capture_output=True, text=True, timeout=30)
    assert got.returncode == 4 and got.stdout == ""
    assert got.stderr.count("\n") == 1 and got.stderr.count(str(path)) == 1
    assert " at byte " in got.stderr or "is a JSON trace" in got.stderr


def test_window_and_span():
    path, truth = DATA / "clean" / "entries.jsonl", truth_of(DATA / "clean")
    document = goodput(path, "--window", "100s", "--window=10h", "--steps")
    short, whole = document["windows"]
    assert short["seconds"] == 100 and sum(map(nanoseconds, short["ledger"])) == 100 * 10**9
    assert whole["ledger"] == document["ledger"]
    assert len(document["steps"]) == truth["steps_executed"] - 1  # the end of the last is not logged
    part = goodput(path, "--from", truth["t_start"] + 10, "--to", truth["t_start"] + 70)
    assert part["total_elapsed_s"] == 60 and sum(map(nanoseconds, part["ledger"])) == 60 * 10**9
    goodput(path, "--from", truth["t_end"] + 10, status=2)


def test_a_part_counts_only_what_is_in_it():
    """Before the restart and after it: attempts, disruptions, step times and the last kept step are of the part."""
    path = DATA / "one-restart" / "entries.jsonl"
    instant = datetime.timedelta(microseconds=1)
    whole = goodput(path, "--steps")
    assert whole["attempts"] == 2 and whole["disruptions"] == 1
    again = min(datetime.datetime.fromisoformat(s["from"]) for s in whole["steps"] if s["attempt"] == 2)
    late = goodput(path, "--from", (again + instant).isoformat(), "--steps")
    early = goodput(path, "--to", (again - instant).isoformat(), "--steps")
    assert (late["attempts"], late["disruptions"], early["disruptions"]) == (1, 0, 0)
    for part in (late, early):
        kept = [s["step"] for s in part["steps"] if not s["wasted"]]
        assert part["max_productive_step"] in (max(kept), max(kept) + 1)  # the last one's end is not logged
        warm = sorted(s["seconds"] for s in part["steps"] if not s["startup"])
        middle = warm[len(warm) // 2] if len(warm) % 2 else (warm[len(warm) // 2 - 1] + warm[len(warm) // 2]) / 2
        assert part["step_time"]["p50_s"] == pytest.approx(middle, abs=1e-8)
    assert len(late["steps"]) + len(early["steps"]) == len(whole["steps"]) - 1
