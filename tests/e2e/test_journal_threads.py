# SPDX-License-Identifier: Apache-2.0
"""Threads in journals: both Python writers name them, a load of a prefetching thread holds nothing up, and a
journal of before there were any is read as it was."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
KEPT = ROOT / "tests" / "golden" / "compat" / "journal-1"
LOOP = """
import threading, time
import tachograph as tacho
run = tacho.init()
def load(step, seconds):
    with run.record(tacho.Event.DATA_LOADING, step):
        time.sleep(seconds)
for step in range(4):
    BLOCKING
    ahead = threading.Thread(target=load, args=(step + 1, 0.02))
    ahead.start()
    with run.record(tacho.Event.STEP, step):
        time.sleep(0.03)
    ahead.join()
run.finish()
"""
WRITERS = [pytest.param(pure, id="python" if pure else "native") for pure in (False, True)]


def reader():
    sys.path.insert(0, str(ROOT / "python"))
    from tachograph import reader
    return reader


def tacho(data, *words):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    got = subprocess.run([TACHO, *words, "--json"], env={**keep, "TACHO_DATA": str(data)}, capture_output=True,
                         text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def train(tmp_path, blocking, pure):
    if not pure and not (ROOT / "python" / "tachograph" / "_native.abi3.so").exists():
        pytest.skip("the extension is not built: no Python.h here")
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env = {**keep, "PYTHONPATH": str(ROOT / "python"), "TACHO_DATA": str(tmp_path), "TACHO_RUN_ID": "r1"}
    if pure:
        env["TACHO_PURE_PYTHON"] = "1"
    subprocess.run([sys.executable, "-c", LOOP.replace("BLOCKING", blocking)], env=env, check=True, timeout=60)
    (path,) = tmp_path.glob("runs/r1/journals/*.journal")
    return [r for r in reader().read(path) if r.name in ("BEGIN", "END")]


def spent_ns(records, phase, threads):
    """Time between the begins and the ends of these threads, read off the records."""
    sign = {"BEGIN": -1, "END": 1}
    return sum(sign[r.name] * r.boottime_ns for r in records
               if r.data["phase"] == phase and r.data["thread"] in threads)


@pytest.mark.parametrize("pure", WRITERS)
def test_prefetching_is_no_wait(tmp_path, pure):
    records = train(tmp_path, "pass", pure)
    threads = [r.data["thread"] for r in records if r.name == "BEGIN" and r.data["phase"] == 4]
    assert len(set(threads)) == 4 and {r.data["thread"] for r in records if r.data["phase"] == 5}.isdisjoint(threads)
    ledger = tacho(tmp_path, "goodput", "r1")
    assert "data_loading_sync" not in {row["category"] for row in ledger["ledger"]}
    assert [(w["code"], w["count"]) for w in ledger["warnings"]] == [("load_prefetched", 4)]
    report = tacho(tmp_path, "report", "r1")
    assert "input-bound" not in {f["id"] for f in report["findings"]}
    assert "input-bound" in {f["id"] for f in report["abstained"]}  # a prefetch says nothing about waiting


@pytest.mark.parametrize("pure", WRITERS)
def test_the_loops_own_loads_are_waits(tmp_path, pure):
    records = train(tmp_path, "load(step, 0.05)", pure)
    (own,) = {r.data["thread"] for r in records if r.data["phase"] == 5}
    ledger = tacho(tmp_path, "goodput", "r1")
    (row,) = [row for row in ledger["ledger"] if row["category"] == "data_loading_sync"]
    assert round(row["seconds"] * 1e9) == spent_ns(records, 4, {own})
    assert row["count"] == 4 and [w["code"] for w in ledger["warnings"]] == ["load_prefetched"]
    report = tacho(tmp_path, "report", "r1")
    assert report["findings"][0]["id"] == "input-bound"


def test_a_journal_of_before_threads_is_read_as_it_was(tmp_path):
    data = shutil.copytree(KEPT, tmp_path / "data")
    (path,) = data.glob("runs/kept/journals/*.journal")
    records = reader().read(path)
    pairs = [r for r in records if r.name in ("BEGIN", "END")]
    assert len(records) == 38 and {r.data["thread"] for r in pairs} == {None}
    assert [r.data["step"] for r in pairs[:4]] == [0, 0, 0, 0] and pairs[-1].data["type"] == "shard"
    ledger = tacho(data, "goodput", "kept")
    got = {row["category"]: round(row["seconds"] * 1e9) for row in ledger["ledger"]}
    assert got == {"productive_step": 12_628_153, "data_loading_sync": 18_593_316, "checkpoint_save": 801,
                   "custom:SHARD": 961, "other": 1_017_186}  # what the version that wrote it said
    assert got["data_loading_sync"] == spent_ns(pairs, 4, {None}) and ledger["warnings"] == []
