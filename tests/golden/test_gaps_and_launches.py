# SPDX-License-Identifier: Apache-2.0
"""gaps, launch_stats and what_if beside a second calculation from the file's events."""
import bisect
import collections
import json
import statistics as stats
import subprocess

import pytest
from test_step_budget import CASES, PROFILES, TACHO, budget, gpu_class, number, read, sweep, tables

GPU = [p for p in CASES if p.name.startswith("gpu")]


def devices(profile):
    """(host, device) to its work by begin and the calls of its host by id."""
    for path in sorted(profile.glob("plugins/profile/*/*.xplane.pb")):
        planes = read(path)
        calls = {e.known["correlation_id"]: e for line in planes["/host:CPU"].values() for e in line
                 if "correlation_id" in e.known}
        for plane, lines in planes.items():
            if plane.startswith("/device:GPU"):
                work = sorted((e for line in lines.values() for e in line), key=lambda e: e.begin)
                device = plane.removeprefix("/device:").replace(":", " ")
                yield (path.name.removesuffix(".xplane.pb"), device), work, calls


@pytest.mark.parametrize("profile", GPU, ids=lambda p: p.name)
def test_gaps_of_a_gpu(profile):
    want = collections.Counter()
    n = idle = 0
    for key, work, _ in devices(profile):
        until, last = work[0].end, {work[0].name}
        for e in work[1:]:
            if e.begin > until:
                n, idle = n + 1, idle + e.begin - until
                if e.begin - until >= 20_000_000:
                    want[(*key, e.begin - until, tuple(sorted(last)), e.name)] += 1
            if e.end >= until:
                last = {e.name} | (last if e.end == until else set())
            until = max(until, e.end)
    rows = tables("gaps", profile, "min_gap_us=20", "limit=100000")[-1]
    got = collections.Counter()
    for row in rows:
        key = next(k for k in want if k[:3] == (row["host"], row["device"], int(row["duration_ps"])) and
                   row["last_op"] in k[3] and row["next_op"] == k[4])
        got[key] += 1
        assert sum(number(row[p]) for p in ("launch_starved_ps", "blocked_ps", "launch_latency_ps", "unknown_ps")) == \
            int(row["duration_ps"])
        assert number(row[row["part"] + "_ps"]) * 4 >= int(row["duration_ps"])
    assert got == want
    lengths = [int(row["duration_ps"]) for row in rows]
    assert lengths == sorted(lengths, reverse=True)
    run = subprocess.run([TACHO, "tool", "gaps", profile, "--json"], capture_output=True, text=True, check=True)
    values = json.loads(run.stdout)["values"]
    assert (values["gaps"], values["idle_ps"]) == (n, idle)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
def test_gaps_are_in_their_order_and_no_more_than_asked_for(profile):
    rows = tables("gaps", profile, "limit=5", "min_gap_us=0")
    rows = rows[-1] if rows else []
    lengths = [int(row["duration_ps"]) for row in rows if "duration_ps" in row]
    assert len(lengths) <= 5 and lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize("profile", GPU, ids=lambda p: p.name)
def test_launches(profile):
    by_call = collections.defaultdict(list)
    for _, work, calls in devices(profile):
        launched = collections.defaultdict(list)
        for e in work:
            launched[e.known["correlation_id"]].append(e)
        done = [(calls[c], min(e.begin for e in events), sum(e.end - e.begin for e in events), len(events))
                for c, events in launched.items()]
        issued = sorted(call.end for call, *_ in done)
        begun = sorted(begin for _, begin, *_ in done)
        for call, begin, length, n in done:
            depth = bisect.bisect_right(issued, call.end) - bisect.bisect_right(begun, call.end)
            by_call[call.name].append((call.end - call.begin, begin - call.end, depth, length, n))
    rows = {row["call"]: row for row in tables("launch_stats", profile)[-1]}
    assert set(rows) == set(by_call)
    for name, launches in by_call.items():
        row = rows[name]
        assert int(row["count"]) == len(launches) and int(row["works"]) == sum(x[4] for x in launches)
        assert int(row["call_time_ps"]) == sum(x[0] for x in launches)
        assert int(row["work_time_ps"]) == sum(x[3] for x in launches)
        assert int(row["median_queue_delay_ps"]) == stats.median_low(x[1] for x in launches)
        assert int(row["max_queue_delay_ps"]) == max(x[1] for x in launches)
        assert int(row["median_queue_depth"]) == stats.median_low(x[2] for x in launches)
        assert int(row["max_queue_depth"]) == max(x[2] for x in launches)
        short = sum(x[3] < x[0] for x in launches)
        assert float(row["short_percent"]) == pytest.approx(100 * short / len(launches))


def test_a_cpu_has_no_launches():
    profile = next((p for p in PROFILES if p.name == "cpu_single"), None)
    if profile is None:
        pytest.skip("no profiles")
    run = subprocess.run([TACHO, "tool", "launch_stats", profile, "--json"], capture_output=True, text=True, check=True)
    assert '"median_queue_depth":null' in run.stdout.replace(" ", "")


def rows_by_step(profile):
    steps = collections.defaultdict(list)
    for row in budget(profile):
        if row["complete"] in ("true", "yes", "1"):
            steps[int(row["step"])].append(row)
    return steps


@pytest.mark.parametrize("part", ["compute", "copy_exposed", "comm_exposed"])
@pytest.mark.parametrize("profile", [p for p in GPU if p.name.endswith(("2hosts", "h100_2"))], ids=lambda p: p.name)
def test_what_if_a_part_were_the_median(profile, part):
    """All devices of these profiles compute the same."""
    got = {int(row["step"]): row for row in tables("what_if", profile, f"part={part}")[-2]}
    steps = rows_by_step(profile)
    assert set(got) == set(steps) and steps
    for step, rows in steps.items():
        took = [number(row[f"{part}_ps"]) for row in rows]
        waits = [number(row["idle_ps"]) + number(row["comm_exposed_ps"]) for row in rows]
        low, high = sorted(took)[(len(took) - 1) // 2], sorted(took)[len(took) // 2]
        median = low + (high - low) // 2
        waited = [0 if part == "comm_exposed" else w - min(waits) for w in waits]
        then = [int(row["duration_ps"]) - w - t + median for row, w, t in zip(rows, waited, took)]
        assert int(got[step]["step_ps"]) == max(int(row["duration_ps"]) for row in rows)
        assert int(got[step]["then_ps"]) == max(then)


def test_what_if_operations_were_the_median():
    """Of the straggler's profile: kernels whose names begin alike, where they ran alone."""
    profile = next((p for p in GPU if p.name == "gpu_a100_2hosts"), None)
    if profile is None:
        pytest.skip("no profiles")
    names = sorted({e.name for _, work, _ in devices(profile) for e in work if gpu_class(e.name) == 0})
    prefix = names[0][:12]
    answer = tables("what_if", profile, f"op={prefix}")[-1]
    rows = {(row["host"], row["device"], int(row["step"])): row for row in answer}
    steps = collections.defaultdict(list)
    for row in budget(profile):
        steps[row["host"], row["device"]].append(row)
    checked = 0
    for key, work, _ in devices(profile):
        shift = min(e.begin for e in work) - int(steps[key][0]["start_ps"])  # the first step begins with the first work
        for step in steps[key]:
            if (*key, int(step["step"])) not in rows:
                continue
            begin = int(step["start_ps"]) + shift
            spans = [(1 if e.name.startswith(prefix) else 0, e.begin, e.end) for e in work]
            want = sweep(spans, begin, begin + int(step["duration_ps"]))
            assert int(rows[*key, int(step["step"])]["took_ps"]) == want[1]
            checked += 1
    assert checked == len(rows) > 0
