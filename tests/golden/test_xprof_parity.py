# SPDX-License-Identifier: Apache-2.0
"""Our answers beside XProf's for the same profiles, and beside the truth of the generated ones."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
JUDGE = SHARED / "tools" / "compare_xprof.py"
XSPACE = SHARED / "data" / "xspace"
CASES = sorted(p.parent.name for p in XSPACE.glob("*/truth.json")) if XSPACE.is_dir() else []

needs_shared = pytest.mark.skipif(not JUDGE.is_file(), reason=f"no XProf answers at {SHARED}: set TACHO_SHARED")


@needs_shared
@pytest.mark.parametrize("tool", ["hlo_stats*"])
def test_answers_as_xprof_does(tool):
    run = subprocess.run([sys.executable, JUDGE, "--tacho", TACHO, "--tool", tool,
                          "--deviations", ROOT / "tests" / "golden" / "deviations.json"],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def truth_of(case):
    """Self time and occurrences of every operation, over all cores and hosts."""
    total = {}
    for host in json.loads((XSPACE / case / "truth.json").read_text())["hosts"]:
        ops = [op for core in host["cores"] for op in core["ops"]] + host.get("host", {}).get("cpu_ops", [])
        for op in ops:
            sums = total.setdefault(op["name"], [0, 0])
            sums[0] += op["self_ps"]
            sums[1] += op["occurrences"]
    return total


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_self_times_equal_the_truth_to_the_picosecond(case):
    run = subprocess.run([TACHO, "tool", "hlo_stats", XSPACE / case, "--json"], capture_output=True, text=True,
                         check=True)
    table = json.loads(run.stdout)
    names = [column["name"] for column in table["columns"]]
    rows = [row if isinstance(row, dict) else dict(zip(names, row)) for row in table["rows"]]
    assert {row["operation"]: [row["self_time_ps"], row["occurrences"]] for row in rows} == truth_of(case)
