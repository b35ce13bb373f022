# SPDX-License-Identifier: Apache-2.0
"""Traces that Perfetto's own package writes are read as they were meant."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

TACHO = os.environ.get("TACHO_BIN", str(pathlib.Path(ROOT) / "build" / "tacho"))
WRITER = pathlib.Path(__file__).with_name("perfetto_trace.py")


@pytest.fixture(scope="module")
def python():
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    venv = pathlib.Path(os.environ.get("PEERS_CACHE") or home / "peers") / "venv-perfetto"
    if not (venv / "bin" / "python3").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    done = subprocess.run([venv / "bin" / "pip", "install", "-q", "perfetto==0.59.1"], capture_output=True, timeout=300)
    if done.returncode:
        pytest.skip(f"perfetto does not install here: {done.stderr.decode()[-200:]}")
    return venv / "bin" / "python3"


@pytest.mark.parametrize("seed", range(5))
def test_slices_and_counters_are_as_they_were_meant(python, tmp_path, seed):
    trace, truth = tmp_path / "t.pftrace", tmp_path / "truth.json"
    subprocess.run([python, WRITER, str(seed), trace, truth], check=True, timeout=120)
    want = json.loads(truth.read_text())
    words = [TACHO, "tool", "trace_viewer", trace, "--xprof"]
    run = subprocess.run(words, capture_output=True, timeout=60, check=True)
    entries = json.loads(run.stdout)["traceEvents"]
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in entries if e["name"] == "thread_name"}
    events = [e for e in entries if e["ph"] in "Xi"]
    origin = min(round(e["ts"] * 1000) for e in events)
    first = min([s[2] for s in want["slices"]] + [c[0] for c in want["counters"]])
    got = sorted([lines[e["pid"], e["tid"]], e["name"], round(e["ts"] * 1000) - origin + first, round(e["dur"] * 1000),
                  int(e["args"]["value"])] for e in events if "value" in e["args"])
    assert got == want["slices"]
    counted = [[round(e["ts"] * 1000) - origin + first, float(e["args"]["counter_value"])] for e in events
               if e["name"] == "load (%)"]
    assert sorted(counted) == want["counters"]
