# SPDX-License-Identifier: Apache-2.0
"""Our figures of HolisticTraceAnalysis' own test traces beside those that it computes itself (PyPI, in a virtual
environment of its own under PEERS_CACHE).

It is asked about all work of the trace (see hta_figures.py: without step marks, by which it drops what was launched
outside of them, without waits on a stream's row, which it takes for kernels, and without its rounding to whole
microseconds). What is left between us:
- It keeps times as doubles of microseconds: of 1.7e15, as in ns_resolution_v100, the last bit is 0.25 us.
- Its times by kind cut each stretch down to whole microseconds; exact where the trace has whole ones.
- It calls a whole gap "host_wait" when its kernel was launched after the stream's previous one ended, "kernel_wait"
  when the gap is shorter than 30 ns or the launch was earlier; our step_budget parts a gap at the launch. So only the
  sum is compared, on traces of one stream: idle time of several streams is not the device's.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT, SHARED

TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
VERSION = "0.5.0"
CACHE = pathlib.Path(os.environ.get("PEERS_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "peers")
TRACES = sorted(p for p in (SHARED / "data" / "kineto" / "hta").rglob("*.json.gz") if p.parent.name != "output")


@pytest.fixture(scope="session")
def hta():
    """The Python that has it."""
    if not TRACES:
        pytest.skip(f"no traces of HTA's at {SHARED}: set TACHO_SHARED")
    folder = CACHE / f"hta-{VERSION}"
    done = folder / ".installed"
    if not done.exists():
        try:
            for command in ([sys.executable, "-m", "venv", folder],
                            [folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check",
                             f"HolisticTraceAnalysis=={VERSION}"]):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
        except (subprocess.SubprocessError, OSError) as e:
            why = (getattr(e, "stderr", None) or str(e)).strip().splitlines()[-1]
            print(f"HolisticTraceAnalysis {VERSION} is not installed: {why}")
            pytest.skip(f"HolisticTraceAnalysis {VERSION} cannot be installed: {why}")
        done.touch()
    return folder / "bin" / "python"


def tool(name, path):
    run = subprocess.run([TACHO, "tool", name, path, "--json"], capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout)
    out = {}
    for table in answer.get("tables", [answer]):
        names = [column["name"] for column in table["columns"]]
        out[table["table"]] = [dict(zip(names, cells)) for cells in table["rows"]]
    return out


def sums(rows, *columns):
    return tuple(sum(r[c] for r in rows) for c in columns)


@pytest.mark.parametrize("path", TRACES, ids=lambda p: p.parent.name + "/" + p.name.split(".")[0])
def test_figures(hta, path):
    run = subprocess.run([hta, pathlib.Path(__file__).with_name("hta_figures.py"), path], capture_output=True,
                         text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    theirs = json.loads(run.stdout)
    (ours,) = tool("rank_compare", path)["windows"]
    last_bit = 1e6 * 0.25 if "ns_resolution" in path.name else 1e6 * 2**-10  # of a time, in ps

    def same(column, us, cuts=0.0):
        assert ours[column] == pytest.approx(us * 1e6, abs=8 * last_bit + cuts * 1e6), column

    same("window_ps", theirs["kernel_us"])
    same("idle_ps", theirs["idle_us"])
    same("compute_ps", theirs["compute_us"])
    other = ours["comm_exposed_ps"] + ours["copy_exposed_ps"]
    assert other == pytest.approx(theirs["non_compute_us"] * 1e6, abs=8 * last_bit)
    if theirs["overlap_percent"] is None:
        assert ours["comm_ps"] == 0
    else:
        hidden = 100 * (1 - ours["comm_exposed_ps"] / ours["comm_ps"])
        assert round(hidden, 2) == pytest.approx(theirs["overlap_percent"], abs=0.0101)

    rows = tool("kernel_stats", path)["kernel_stats"]
    kinds = theirs["kinds"]
    whole = all(us == int(us) for _, _, us, _, _ in theirs["kernels"])
    cuts = 0 if whole else 2 * sum(r["occurrences"] for r in rows)
    same("compute_ps", sum(us for kind, us in kinds.items() if "COMPUTATION" in kind), cuts)
    same("comm_exposed_ps", sum(us for kind, us in kinds.items() if kind.startswith("COMMUNICATION")), cuts)
    same("copy_exposed_ps", kinds.get("MEMORY", 0), cuts)

    got = {}
    for r in rows:
        total, most, least = got.get(r["kernel"], (0, 0, 1 << 62))
        got[r["kernel"]] = (total + r["total_time_ps"], max(most, r["max_time_ps"]), min(least, r["min_time_ps"]))
    want = {name: (round(total * 1e6), round(most * 1e6), round(least * 1e6))
            for name, kind, total, most, least in theirs["kernels"] if kind != "MEMORY"}
    assert got == want
    memory = sum(round(total * 1e6) for _, kind, total, _, _ in theirs["kernels"] if kind == "MEMORY")
    assert sums(tool("copies", path)["copies"], "time_ps") == (memory,)

    streams = {stream for stream, _, _ in theirs["idle_of_streams"]}
    if len(streams) == 1:
        same("idle_ps", sum(us for _, _, us in theirs["idle_of_streams"]), 0.02)  # rounded to 10 ns each
