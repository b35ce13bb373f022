# SPDX-License-Identifier: Apache-2.0
"""A damaged journal: which bytes and how many records are lost is said, and the rest counts."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
LOOP = """
import tachograph as tacho
run = tacho.init()
for step in range(200):
    with run.record(tacho.Event.STEP, step): pass
run.finish()
"""


@pytest.fixture
def journal(tmp_path):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("TACHO_")},
           "TACHO_DATA": str(tmp_path), "TACHO_RUN_ID": "torn", "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", LOOP], env=env, check=True, stderr=subprocess.DEVNULL)
    path, = (tmp_path / "runs/torn/journals").iterdir()
    return path


def records(raw):
    """(offset, length) of each, by the lengths that they say."""
    found, at = [], 0
    while at < len(raw):
        length = 32 + struct.unpack_from("<I", raw, at + 8)[0]
        found.append((at, length))
        at += length
    return found


def warnings(path):
    got = subprocess.run([TACHO, "goodput", str(path), "--json"], capture_output=True, text=True, timeout=30)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    assert sum(round(r["seconds"] * 1e9) for r in document["ledger"]) == round(document["total_elapsed_s"] * 1e9)
    return {w["code"]: w for w in document["warnings"]}


@pytest.mark.parametrize("first,width", [(30, 50), (60, 4), (100, 700)])
def test_overwritten_bytes_are_named(journal, first, width):
    raw = bytearray(journal.read_bytes())
    all_records = records(raw)
    begin = all_records[first][0] + 5
    raw[begin:begin + width] = b"\xa5" * width
    journal.write_bytes(raw)
    hit = [(at, n) for at, n in all_records if at < begin + width and at + n > begin]
    w = warnings(journal)["journal_damaged"]
    said = re.search(r": (\d+) bytes, the first at byte (\d+); (\d+) rec", w["message"])
    bytes_lost, at, n_lost = map(int, said.groups())
    assert (at, n_lost, bytes_lost) == (hit[0][0], len(hit), sum(n for _, n in hit))


def test_cut_inside_a_record(journal):
    raw = journal.read_bytes()
    at, length = records(raw)[150]
    journal.write_bytes(raw[:at + length - 3])
    w = warnings(journal)
    assert f"last {length - 3} bytes" in w["journal_cut"]["message"] and "journal_damaged" not in w
    journal.write_bytes(raw[:at + length])
    assert "journal_cut" not in warnings(journal)
