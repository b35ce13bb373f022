# SPDX-License-Identifier: Apache-2.0
"""A run whose workload recorded nothing: what tacho run knows is told, what was not measured is not zero."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))


@pytest.fixture
def env(tmp_path):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    return keep | {"TACHO_DATA": str(tmp_path / "data")}


def tacho(env, *words, status=0):
    got = subprocess.run([TACHO, *words], env=env, capture_output=True, text=True, timeout=60)
    assert got.returncode == status, got.stderr
    return got.stdout


def span_ns(path):
    """From the header to the newest record of a journal, by its boot times."""
    raw, at, times = path.read_bytes(), 0, []
    while at < len(raw):
        (length,) = struct.unpack_from("<I", raw, at + 8)
        times.append(struct.unpack_from("<Q", raw, at + 16)[0])
        at += 32 + length
    return times[0], times[-1]


def spans(env):
    return sorted(span_ns(p) for p in pathlib.Path(env["TACHO_DATA"]).glob("runs/*/journals/*.journal"))


@pytest.mark.parametrize("command,status", [(("sleep", "0.3"), 0), (("false",), 1)])
def test_one_attempt(env, command, status):
    tacho(env, "run", "--", *command, status=status)
    got = json.loads(tacho(env, "goodput", "last", "--json"))
    ((begin, end),) = spans(env)
    assert round(got["total_elapsed_s"] * 1e9) == end - begin
    assert [(row["category"], row["seconds"]) for row in got["ledger"]] == [("other", got["total_elapsed_s"])]
    assert (got["goodput_percent"], got["goodput_time_s"], got["badput_time_s"]) == (None, None, None)
    assert got["max_productive_step"] is None and [w["code"] for w in got["warnings"]] == ["workload_silent"]
    assert (got["attempts"], got["disruptions"]) == (1, status)
    for words in (("why", "last"), ("report", "last")):
        said = tacho(env, *words)
        assert f"ended with exit status {status}" in said and "tachograph.init()" in said
        assert "not measured" in said and "0.0 %" not in said and "Nothing found" not in said
    assert "is not known" in tacho(env, "goodput", "last")
    with_window = tacho(env, "goodput", "last", "--window", "1h")
    assert with_window.count("productive is not known") == 2 and "% productive" not in with_window
    metrics = {m["name"]: m["value"] for m in json.loads(tacho(env, "report", "last", "--json"))["key_metrics"]}
    assert metrics["goodput_percent"] is None and metrics["goodput_time_s"] is None and metrics["attempts"] == 1


def test_restarts_are_known(env):
    tacho(env, "run", "--name", "r", "--", "sh", "-c", "kill -9 $$", status=137)
    tacho(env, "run", "--name", "r", "--resume", "--", "true")
    got = json.loads(tacho(env, "goodput", "last", "--json"))
    first, second = spans(env)
    rows = {row["category"]: row["seconds"] for row in got["ledger"]}
    assert set(rows) == {"other", "infrastructure_recovery"} and (got["attempts"], got["disruptions"]) == (2, 1)
    assert sum(round(s * 1e9) for s in rows.values()) == round(got["total_elapsed_s"] * 1e9)
    assert round(rows["other"] * 1e9) == first[1] - first[0] + second[1] - second[0]
