# SPDX-License-Identifier: Apache-2.0
"""Traces in JSON as real programs write them, each with what a good reader makes of it."""
import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
REPORTS = SHARED / "data" / "reports"
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
OPEN = ["h01_windows_backslash.json", "h02_bare_inf.json", "h03_unclosed_array.json", "h05_many_gzip_members.json.gz",
        "h06_overlap_on_one_stream.json", "h07_wide_thread_ids.json", "h08_display_unit_ns.json"]
pytestmark = pytest.mark.skipif(not REPORTS.is_dir(), reason="the shared traces are not there (TACHO_SHARED)")


def expected(name):
    answers = json.loads((REPORTS / "expected.json").read_text())
    return answers[name]


def summary(name):
    words = [TACHO, "tool", "summary", str(REPORTS / name), "--json"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", OPEN)
def test_opens_with_the_right_numbers(name):
    want, got = expected(name), summary(name)
    assert got.returncode == 0, got.stderr
    seen = json.loads(got.stdout)
    for key in ("planes", "lines", "events", "total_busy_ps", "duration_ns"):
        if key in want:
            assert seen[key] == want[key], key
    said = [w for w in seen["warnings"] if w["code"] != "no_steps"]
    assert len(said) >= want.get("warnings_min", 0)


def test_two_writers_in_one_file_are_refused_with_the_byte():
    got = summary("h04_two_writers_one_file.json")
    assert got.returncode == 4
    assert "at byte 409" in got.stderr  # the second writer's block begins at 4,096


def test_all_trouble_inputs_are_judged_right():
    judge = [sys.executable, str(SHARED / "tools" / "check_reports.py"), "--tacho", TACHO]
    run = subprocess.run(judge, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout


def rows(name):
    """(line, event, start, end) of every event, and its target."""
    words = [TACHO, "convert", "--to", "csv", str(REPORTS / name), "-"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return list(csv.DictReader(run.stdout.splitlines()))


def test_windows_paths_keep_their_backslashes():
    names = {r["name"] for r in rows("h01_windows_backslash.json")}
    assert set(expected("h01_windows_backslash.json")["names_contain"]) <= names


def test_kernels_that_overlap_keep_their_own_time():
    seen = rows("h06_overlap_on_one_stream.json")
    assert sum(int(r["dur_ps"]) for r in seen) == expected("h06_overlap_on_one_stream.json")["sum_dur_ps"]


def test_wide_thread_ids_are_rows_of_their_own():
    want, busy = expected("h07_wide_thread_ids.json"), {}
    for r in rows("h07_wide_thread_ids.json"):
        busy[r["line"]] = busy.get(r["line"], 0) + int(r["dur_ps"])
    assert busy == want["line_busy_ps"]


def test_impossible_durations_are_kept_as_they_are_written():
    seen = rows("h09_durations_past_next_kernel.json.gz")
    assert sum(int(r["dur_ps"]) for r in seen) == expected("h09_durations_past_next_kernel.json.gz")["raw_sum_ps"]


def test_ranks_are_on_one_clock():
    want, reduces = expected("h10_ranks_own_base_time/"), {}
    for r in rows("h10_ranks_own_base_time"):
        if "AllReduce" in r["name"]:
            reduces.setdefault(r["host"], []).append(int(r["start_ps"]) // 1000)
    first, second = reduces["rank0"], reduces["rank1"]
    assert [b - a for a, b in zip(first, second)] == want["collective_start_skew_ns"]
    ahead = [b - a for a, b in zip(first, second)]
    assert {"0": sum(max(v, 0) for v in ahead), "1": sum(max(-v, 0) for v in ahead)} == want["wait_ns"]
