# SPDX-License-Identifier: Apache-2.0
"""Operations of CPU profiles, which XProf does not show, counted by another decoder and another method."""
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
CASES = sorted((SHARED / "data" / "xspace").glob("cpu_*"))

loader = importlib.machinery.SourceFileLoader("dump_xspace", str(ROOT / "tools/dump-xspace"))
spec = importlib.util.spec_from_loader("dump_xspace", loader)
dump = importlib.util.module_from_spec(spec)
loader.exec_module(dump)


def parts(data, span, number):
    return [v for n, kind, v in dump.fields(data, *span) if n == number and kind == 2]


def statistics(data, event, names):
    """The event's statistics by name; references (field 7) resolved."""
    out = {}
    for span in parts(data, event, 4):
        name = value = None
        for number, kind, v in dump.fields(data, *span):
            if number == 1:
                name = names.get(v)
            elif number in (3, 4):
                value = v
            elif number == 5 and kind == 2:
                value = dump.text(data, v)
            elif number == 7:
                value = names.get(v)
        out[name] = value
    return out


def operations_of_line(data, line, names):
    """(begin, end, program, operation) of each event that says which operation it was."""
    begin = sum(dump.signed(v) for n, kind, v in dump.fields(data, *line) if n == 3 and kind == 0) * 1000
    for event in parts(data, line, 4):
        numbers = {n: dump.signed(v) for n, kind, v in dump.fields(data, *event) if kind == 0}
        known = statistics(data, event, names)
        if known.get("hlo_op"):
            start = begin + numbers.get(2, 0)
            yield start, start + numbers.get(3, 0), known.get("program_id", 0), known["hlo_op"]


def add_self_times(events, total):
    """Each stretch of time between two edges belongs to the operation that began last of those running."""
    total_by_event = [0] * len(events)
    edges = sorted({t for begin, end, *_ in events for t in (begin, end)})
    order = sorted(range(len(events)), key=lambda i: (events[i][0], -events[i][1]))
    running, at = [], 0
    for here, there in zip(edges, edges[1:]):
        while at < len(order) and events[order[at]][0] <= here:
            running.append(order[at])
            at += 1
        running = [i for i in running if events[i][1] > here]
        if running:
            total_by_event[running[-1]] += there - here
    for event, self_ps in zip(events, total_by_event):
        row = total[event[2], event[3]]
        row[0] += 1
        row[1] += self_ps
        row[2] += event[1] - event[0]


def files_under(case):
    return sorted((SHARED / "data" / "xspace" / case).rglob("*.xplane.pb"))


def count(path):
    total = collections.defaultdict(lambda: [0, 0, 0])
    data = path.read_bytes()
    for plane in parts(data, (0, len(data)), 1):
        names = dict(dump.entry(data, span) for span in parts(data, plane, 5))
        if "hlo_op" not in names.values():
            continue
        for line in parts(data, plane, 3):
            add_self_times(list(operations_of_line(data, line, names)), total)
    return total


@pytest.mark.skipif(not CASES, reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("tool", ["hlo_stats", "roofline_model"])
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_cpu_operations_agree_with_the_other_decoder(case, tool):
    want = collections.defaultdict(lambda: [0, 0, 0])
    for path in case.rglob("*.xplane.pb"):
        for key, row in count(path).items():
            want[key] = [a + b for a, b in zip(want[key], row)]
    run = subprocess.run([TACHO, "tool", tool, case, "--json"], capture_output=True, text=True, check=True)
    table = json.loads(run.stdout)
    table = table.get("tables", [table])[0]
    columns = [column["name"] for column in table["columns"]]
    rows = [dict(zip(columns, row)) for row in table["rows"]]
    got = {(r["program_id"], r["operation"]): [r["occurrences"], r["self_time_ps"], r["total_time_ps"]] for r in rows}
    assert want
    assert got == want


def steps_of_file(data):
    """(begin, end, number) of each marker that numbers a step."""
    for plane in parts(data, (0, len(data)), 1):
        names = dict(dump.entry(data, span) for span in parts(data, plane, 5))
        for line in parts(data, plane, 3) if "step_num" in names.values() else []:
            begin = sum(dump.signed(v) for n, kind, v in dump.fields(data, *line) if n == 3 and kind == 0) * 1000
            for event in parts(data, line, 4):
                known = statistics(data, event, names)
                if "step_num" in known:
                    numbers = {n: dump.signed(v) for n, kind, v in dump.fields(data, *event) if kind == 0}
                    start = begin + numbers.get(2, 0)
                    yield start, start + numbers.get(3, 0), known["step_num"]


@pytest.mark.skipif(not CASES, reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_cpu_steps_hold_the_operations_that_begin_in_them(case):
    want, longest = collections.Counter(), collections.Counter()
    for path in case.rglob("*.xplane.pb"):
        data = path.read_bytes()
        steps = sorted(steps_of_file(data))
        for begin, end, number in steps:
            longest[number] = max(longest[number], end - begin)
        for plane in parts(data, (0, len(data)), 1):
            names = dict(dump.entry(data, span) for span in parts(data, plane, 5))
            for line in parts(data, plane, 3) if "hlo_op" in names.values() else []:
                events = [(begin, end, next((n for b, e, n in steps if b <= begin < e), None), "")
                          for begin, end, *_ in operations_of_line(data, line, names)]
                total = collections.defaultdict(lambda: [0, 0, 0])
                add_self_times(events, total)
                want.update({step: row[1] for (step, _), row in total.items()})
    want.pop(None, None)
    run = subprocess.run([TACHO, "tool", "roofline_model", case, "--json"], capture_output=True, text=True, check=True)
    first, table = json.loads(run.stdout)["tables"]
    columns = [column["name"] for column in table["columns"]]
    _, *rows = (dict(zip(columns, row)) for row in table["rows"])
    assert longest
    assert {row["step"]: row["self_time_ps"] for row in rows} == {step: want[step] for step in longest}
    devices = first["values"]["devices"]
    assert {row["step"]: row["core_time_ps"] for row in rows} == {n: ps * devices for n, ps in longest.items()}


def union(events):
    total = reached = 0
    for begin, end in sorted(events):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def devices(path):
    """Busy time by device_ordinal, and the time from the first operation of any to the last."""
    events = collections.defaultdict(list)
    data = path.read_bytes()
    for plane in parts(data, (0, len(data)), 1):
        names = dict(dump.entry(data, span) for span in parts(data, plane, 5))
        for line in parts(data, plane, 3) if "hlo_op" in names.values() else []:
            begin = sum(dump.signed(v) for n, kind, v in dump.fields(data, *line) if n == 3 and kind == 0) * 1000
            for event in parts(data, line, 4):
                known = statistics(data, event, names)
                if known.get("hlo_op"):
                    numbers = {n: dump.signed(v) for n, kind, v in dump.fields(data, *event) if kind == 0}
                    start = begin + numbers.get(2, 0)
                    events[known["device_ordinal"]].append((start, start + numbers.get(3, 0)))
    edges = [t for of_device in events.values() for event in of_device for t in event]
    return {f"CPU {n}": union(of_device) for n, of_device in events.items()}, max(edges) - min(edges)


@pytest.mark.skipif(not CASES, reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_all_tools_count_the_devices_that_operations_name(case):
    busy, whole = collections.Counter(), 0
    for path in case.rglob("*.xplane.pb"):
        of_host, window = devices(path)
        busy.update({(path.name.split(".")[0], name): ps for name, ps in of_host.items()})
        whole += len(of_host) * window
    assert busy

    def document(*words):
        return json.loads(subprocess.run([TACHO, *words, case, "--json"], capture_output=True, text=True,
                                         check=True).stdout)

    for tool in ("hlo_stats", "op_profile"):
        got = document("tool", tool)["values"]
        assert got["total_time_ps"] == whole and got["busy_time_ps"] == sum(busy.values())
        assert got["idle_time_ps"] == whole - sum(busy.values()) and got["unnamed_time_ps"] == 0
    report = document("report")
    metrics = {m["name"]: m["value"] for m in report["key_metrics"]}
    assert metrics["devices"] == len(busy)
    assert metrics["device_idle_percent"] == pytest.approx(100 - 100 * sum(busy.values()) / whole, rel=1e-9)
    rows = report["sections"]["environment"]["rows"]
    assert {(row[0], row[1]): row[3] for row in rows} == pytest.approx({k: v / 1e12 for k, v in busy.items()})
    overview = document("tool", "overview_page")["tables"][0]["values"]
    assert overview["devices"] == len(busy)
