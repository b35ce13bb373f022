# SPDX-License-Identifier: Apache-2.0
"""host, device and steps: the parts of a profile add up to the whole, and to the generator's truth."""
import collections
import csv
import io
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"
CASES = sorted(p.parent.name for p in XSPACE.glob("*/truth.json"))
STEPPED = [case for case in CASES if case != "gpu_h100_no_steps"]


def tool(name, case, *words):
    run = subprocess.run([TACHO, "tool", name, XSPACE / case, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def truth_of(case):
    return json.loads((XSPACE / case / "truth.json").read_text())


def lines(case, *words):
    """Events and busy time of every line, by host, plane and line."""
    text = tool("summary", case, *words, "--csv")
    table = text[text.index("host,plane,line"):]
    return {(row["host"], row["plane"], row["line"]): (int(row["events"]), int(row["busy_ps"]))
            for row in csv.DictReader(io.StringIO(table))}


def operations(case, *words):
    table = json.loads(tool("hlo_stats", case, *words, "--json"))
    table = table[0] if isinstance(table, list) else table
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row)) for row in table["rows"]]
    return {row["operation"]: (row["occurrences"], row["self_time_ps"]) for row in rows}


def added(parts):
    total = collections.defaultdict(lambda: (0, 0))
    for part in parts:
        for key, (count, amount) in part.items():
            total[key] = (total[key][0] + count, total[key][1] + amount)
    return dict(total)


@pytest.mark.parametrize("case", STEPPED)
def test_steps_one_by_one_are_the_whole(case):
    """All that the generator writes lies in its steps; every line is cut without loss."""
    steps = range(truth_of(case)["steps"])
    whole = {key: value for key, value in lines(case).items() if value[0] > 0}
    parts = added(lines(case, f"steps={step}") for step in steps)
    counters = {key for key in whole if key[2] == "_counters_"}  # at the profile's start, before the first step
    assert {k: v for k, v in parts.items() if k not in counters and v[0]} == \
        {k: v for k, v in whole.items() if k not in counters}
    assert added(operations(case, f"steps={step}") for step in steps) == operations(case)


@pytest.mark.parametrize("case", STEPPED)
def test_a_range_is_its_steps(case):
    last = truth_of(case)["steps"] - 1
    parts = added(operations(case, f"steps={step}") for step in range(1, last))
    assert parts == operations(case, f"steps=1..{last - 1}")


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("cpu")])
def test_each_device_of_each_host_is_the_truth(case):
    for host in truth_of(case)["hosts"]:
        for core in host["cores"]:
            device = core["plane"].removeprefix("/device:")
            got = operations(case, f"host={host['host']['name']}", f"device={device}")
            want = {op["name"]: (op["occurrences"], op["self_ps"]) for op in core["ops"] if op["occurrences"]}
            assert got == want, (host["host"]["name"], device)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("tpu")])
def test_each_step_of_a_core_is_the_truth(case):
    for core in truth_of(case)["hosts"][0]["cores"]:
        for step in core["steps"]:
            got = lines(case, f"steps={step['step']}", f"device={core['plane']}")
            busy = {line: value[1] for (_, plane, line), value in got.items() if plane == core["plane"]}
            waits = step["infeed_ps"] + step["outfeed_ps"] + step["other_transfer_ps"]
            assert busy["XLA Ops"] == step["busy_ps"] + waits
            assert busy["Steps"] == step["duration_ps"]


@pytest.mark.parametrize("case", [case for case in STEPPED if case.startswith("gpu")])
def test_each_step_of_a_gpu_is_the_truth(case):
    """Kernels run after the host's marker has ended: the device's lines are cut by what was launched in it."""
    for host in truth_of(case)["hosts"]:
        for core in host["cores"]:
            for step in core["steps"]:
                got = lines(case, f"steps={step['step']}", f"device={core['plane']}", f"host={host['host']['name']}")
                busy = {line: value[1] for (_, plane, line), value in got.items() if plane == core["plane"]}
                assert busy["Stream #13(Compute)"] == step["compute_kernel_ps"]
                assert busy["Stream #16(Compute)"] == step["collective_kernel_ps"]
                assert busy["Stream #14(MemcpyH2D)"] == step["h2d_ps"]
                assert busy["Stream #15(MemcpyD2H)"] == step["d2h_ps"]


@pytest.mark.skipif(not CASES, reason="no profiles")
@pytest.mark.parametrize("word, hint", [("host=nobody", "hosts: host-0"), ("device=GPU:9", "devices: GPU:0, GPU:1"),
                                        ("steps=99", "steps: 0..7")])
def test_what_is_not_there_is_said_with_what_is(word, hint):
    run = subprocess.run([TACHO, "tool", "summary", XSPACE / "gpu_h100_2", word],
                         capture_output=True, text=True, check=False)
    assert run.returncode != 0 and hint in run.stderr and word.split("=")[1] in run.stderr
