# SPDX-License-Identifier: Apache-2.0
"""Where the time of each step went, beside the generator's truth and a second calculation: another decoder, and a
sweep over edges in place of unions."""
import collections
import csv
import io
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest
from test_cpu_operations import dump, parts, statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE, KINETO = SHARED / "data" / "xspace", SHARED / "data" / "kineto"
GENERATOR = SHARED / "tools" / "gen_xspace.py"
CASES = sorted(p.parent for p in XSPACE.glob("*/truth.json"))
PROFILES = sorted(p.parent for p in XSPACE.glob("*/plugins")) + sorted(XSPACE.glob("mi300x*.pb")) + \
    sorted(KINETO.glob("*.json.gz")) + sorted(KINETO.glob("*/*.json.gz"))
PARTS = ["compute_ps", "comm_exposed_ps", "copy_exposed_ps", "launch_starved_ps", "blocked_ps", "launch_latency_ps",
         "unknown_ps"]


def tables(name, profile, *words):
    """Each table of a tool's answer as rows of texts; unknown is ''."""
    run = subprocess.run([TACHO, "tool", name, profile, *words, "--csv"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [list(csv.DictReader(io.StringIO(table))) for table in run.stdout.split("\n\n") if table.strip()]


def budget(profile, *words):
    return tables("step_budget", profile, *words)[-1]


def number(text):
    return int(text) if text else 0


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
def test_parts_are_the_step(profile):
    rows = budget(profile)
    for row in rows:
        assert sum(number(row[part]) for part in PARTS) == int(row["duration_ps"]), row
        assert sum(number(row[part]) for part in PARTS[3:]) == int(row["idle_ps"])
    assert rows or "tpu" not in profile.name and "gpu" not in profile.name


# ---- a second calculation ----

class Event:
    def __init__(self, name, begin, end, known):
        self.name, self.begin, self.end, self.known = name, begin, end, known


def read(path):
    """{plane: {line: [event]}} of a file, times in picoseconds."""
    data = path.read_bytes()
    out = {}
    for plane in parts(data, (0, len(data)), 1):
        decoded = dump.plane(data, plane)
        lines = out.setdefault(decoded["name"], {})
        for line in parts(data, plane, 3):
            about = dump.line(data, line)
            events = lines.setdefault(about["name"], [])
            for span in parts(data, line, 4):
                raw = dump.event(data, span)
                begin = about["timestamp_ns"] * 1000 + raw["offset"]
                events.append(Event(decoded["names"].get(raw["id"], ""), begin, begin + raw["duration"],
                                    statistics(data, span, decoded["stat_names"])))
    return out


def sweep(spans, begin, end):
    """How long, within [begin, end), the best of the classes running was each: {class: ps}; none is None."""
    edges = collections.defaultdict(list)
    for class_, from_, to in spans:
        if from_ < to:
            edges[max(from_, begin)].append((class_, 1))
            edges[min(max(to, begin), end)].append((class_, -1))
    edges[begin], edges[end] = edges.get(begin, []), edges.get(end, [])
    running, total, times = collections.Counter(), collections.Counter(), sorted(edges)
    for at, until in zip(times, times[1:]):
        for class_, step in edges[at]:
            running[class_] += step
        if begin <= at < end:
            total[min((c for c in running if running[c] > 0), default=None, key=lambda c: c)] += min(until, end) - at
    return total


COMPUTE, COMM, COPY = range(3)


def gpu_class(name):
    return COMM if name.startswith("nccl") else COPY if name.startswith("Mem") else COMPUTE


def check_gpu(profile, truth):
    files = sorted(profile.glob("plugins/profile/*/*.xplane.pb"))
    rows = collections.defaultdict(list)
    for row in budget(profile):
        rows[row["host"], row["device"]].append(row)
    for host, path in zip(truth["hosts"], files):
        planes = read(path)
        calls = {e.known["correlation_id"]: e for line in planes["/host:CPU"].values() for e in line
                 if "correlation_id" in e.known}
        for core in host["cores"]:
            got = rows.pop((host["host"]["name"], core["plane"].removeprefix("/device:").replace(":", " ")))
            work = sorted((e for line in planes[core["plane"]].values() for e in line), key=lambda e: e.begin)
            begins = [step["device_begin_ps"] for step in core["steps"]]
            ends = begins[1:] + [core["steps"][-1]["device_end_ps"]]
            assert [int(row["step"]) for row in got] == [step["step"] for step in core["steps"]]
            assert [int(row["duration_ps"]) for row in got] == [e - b for b, e in zip(begins, ends)]
            idle, busy_until = [], work[0].begin
            for e in work:
                if e.begin > busy_until:
                    issued = min((calls[n.known["correlation_id"]].end for n in work if n.begin == e.begin))
                    idle.append((busy_until, min(max(issued, busy_until), e.begin), e.begin))
                busy_until = max(busy_until, e.end)
            for row, begin, end in zip(got, begins, ends):
                want = sweep([(gpu_class(e.name), e.begin, e.end) for e in work], begin, end)
                assert int(row["compute_ps"]) == want[COMPUTE] and int(row["comm_exposed_ps"]) == want[COMM]
                assert int(row["copy_exposed_ps"]) == want[COPY] and int(row["idle_ps"]) == want[None]
                within = [(a, b, c) for a, b, c in idle if begin <= a < end]
                assert int(row["launch_starved_ps"]) == sum(b - a for a, b, c in within)
                assert int(row["launch_latency_ps"]) == sum(c - b for a, b, c in within)
                assert row["blocked_ps"] == "" and row["unknown_ps"] == "0"
    assert not rows


def tpu_class(event, is_async):
    name = event.name.partition(" ")[0].lstrip("%")
    if any(name.startswith(word) for word in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")):
        return COMM
    if is_async or name.startswith("copy-start") or name.startswith("copy-done"):
        return COPY
    return COMPUTE


def check_tpu(profile, truth):
    files = sorted(profile.glob("plugins/profile/*/*.xplane.pb"))
    rows = collections.defaultdict(list)
    for row in budget(profile):
        rows[row["host"], row["device"]].append(row)
    for host, path in zip(truth["hosts"], files):
        planes = read(path)
        for core in host["cores"]:
            got = rows.pop((host["host"]["name"], core["plane"].removeprefix("/device:").replace(":", " ")))
            begins = [step["begin_ps"] for step in core["steps"]]
            ends = begins[1:] + [core["steps"][-1]["begin_ps"] + core["steps"][-1]["duration_ps"]]
            assert [int(row["duration_ps"]) for row in got] == [e - b for b, e in zip(begins, ends)]
            waits = {op["name"] for op in core["ops"] if op["category"].startswith(("infeed", "outfeed", "host "))}
            loops = {op["name"] for op in core["ops"] if op["category"] == "while"}
            transfers = planes[core["plane"]].get("Async XLA Ops", [])
            spans, blocked = [(tpu_class(e, True), e.begin, e.end) for e in transfers], []
            for e in planes[core["plane"]]["XLA Ops"]:
                name = e.name.partition(" ")[0].lstrip("%")
                if name in waits:
                    blocked.append((1000, e.begin, e.end))
                elif name not in loops and not ("-done" in name and tpu_class(e, False) != COMPUTE and transfers):
                    spans.append((tpu_class(e, False), e.begin, e.end))
            for row, begin, end, step in zip(got, begins, ends, core["steps"]):
                want = sweep(spans + blocked, begin, end)
                assert int(row["compute_ps"]) == want[COMPUTE] and int(row["comm_exposed_ps"]) == want[COMM]
                assert int(row["copy_exposed_ps"]) == want[COPY] and int(row["blocked_ps"]) == want[1000]
                assert int(row["idle_ps"]) == want[None] + want[1000]
                assert want[1000] <= step["infeed_ps"] + step["outfeed_ps"] + step["other_transfer_ps"]


def check_cpu(profile, truth):
    files = sorted(profile.glob("plugins/profile/*/*.xplane.pb"))
    rows = collections.defaultdict(list)
    for row in budget(profile):
        rows[row["host"], row["device"]].append(row)
    for host, path in zip(truth["hosts"], files):
        lines = read(path)["/host:CPU"]
        marks = sorted((e.begin, e.end) for line in lines.values() for e in line if "_r" in e.known)
        windows = [(b, marks[i + 1][0] if i + 1 < len(marks) else e) for i, (b, e) in enumerate(marks)]
        work = collections.defaultdict(list)
        for line in lines.values():
            for e in line:
                if "hlo_op" in e.known:
                    work[e.known["device_ordinal"]].append(e)
        for ordinal, events in work.items():
            got = rows.pop((host["host"]["name"], f"CPU {ordinal}"))
            for row, (begin, end) in zip(got, windows, strict=True):
                spans = [(COMM if tpu_class(e, False) == COMM else COMPUTE, e.begin, e.end) for e in events]
                want = sweep(spans, begin, end)
                assert int(row["duration_ps"]) == end - begin
                assert int(row["compute_ps"]) == want[COMPUTE] and number(row["comm_exposed_ps"]) == want[COMM]
                assert row["copy_exposed_ps"] == "" and row["blocked_ps"] == ""
    assert not rows


CHECKS = {"gpu": check_gpu, "tpu": check_tpu, "cpu": check_cpu}


@pytest.mark.parametrize("profile", CASES, ids=lambda p: p.name)
def test_as_a_second_calculation(profile):
    truth = json.loads((profile / "truth.json").read_text())
    CHECKS[truth["kind"]](profile, truth)


@pytest.mark.skipif(not GENERATOR.is_file(), reason="no generator: set TACHO_SHARED")
@pytest.mark.parametrize("kind", ["gpu", "tpu", "cpu"])
@pytest.mark.parametrize("seed", [3, 17, 123])
def test_generated(tmp_path, kind, seed):
    rng = random.Random(seed)
    features = [f for f in ("straggler", "slowinput", "loop", "hostxfer") if rng.random() < 0.5
                and (kind == "tpu" or f in ("straggler", "slowinput"))]
    subprocess.run([sys.executable, GENERATOR, tmp_path, "--kind", kind, "--seed", str(seed), "--steps",
                    str(rng.randrange(3, 9)), "--cores", str(rng.randrange(1, 4)), "--hosts", str(rng.randrange(1, 3)),
                    "--features", ",".join(features)], check=True, capture_output=True)
    CHECKS[kind](tmp_path, json.loads((tmp_path / "truth.json").read_text()))
    test_parts_are_the_step(tmp_path)
