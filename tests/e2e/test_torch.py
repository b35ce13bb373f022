# SPDX-License-Identifier: Apache-2.0
"""The PyTorch example, to its planted crash and on: same story as the demo's, and its capture opens
with the steps and the slices that PyTorch wrote."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
PYTHON = str(ROOT / ".venv" / "bin" / "python3")
has_torch = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
pytestmark = pytest.mark.skipif(not has_torch, reason="no PyTorch here (Debian: python3-torch)")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch")
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env |= {"TACHO_DATA": str(folder / "data"), "PYTHONPATH": str(ROOT / "python")}
    words = [PYTHON, str(ROOT / "examples" / "torch_train.py"), str(folder)]
    run = [TACHO, "run", "--name", "torch"]
    assert subprocess.run([*run, "--", *words], env=env, timeout=120).returncode == 1
    assert subprocess.run([*run, "--resume", "--", *words], env=env, timeout=120).returncode == 0
    return folder / "data"


def document(data, *words):
    got = subprocess.run([TACHO, *words, "--json"], env=os.environ | {"TACHO_DATA": str(data)}, capture_output=True,
                         text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def test_ledger_and_first_finding(data):
    ledger = document(data, "goodput", "last")
    seconds = {row["category"]: row["seconds"] for row in ledger["ledger"]}
    assert round(sum(seconds.values()) * 1e9) == round(ledger["total_elapsed_s"] * 1e9)
    assert seconds["wasted_progress"] > 0
    first = document(data, "report", "last")["findings"][0]
    assert (first["priority"], first["id"]) == ("P0", "input-bound")


def test_its_capture_opens(data):
    written = list(data.glob("runs/*/plugins/profile/*/*.json"))
    assert len(written) == 1
    slices = [e for e in json.loads(written[0].read_text()) if e.get("ph") == "X"]
    summary = document(data, "tool", "summary", str(written[0].parent))
    assert summary["events"] == len(slices)
    assert summary["steps"] == list(range(60, 65))
    assert summary["duration_ns"] == 1000 * (max(e["ts"] + e["dur"] for e in slices) - min(e["ts"] for e in slices))
