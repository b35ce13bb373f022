# SPDX-License-Identifier: Apache-2.0
"""Tools that show single events, beside another decoder of the same files and other arithmetic."""
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

import pytest
from xspace_write import event, plane

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"
GOLDENS = SHARED / "data" / "xprof_goldens"

loader = importlib.machinery.SourceFileLoader("dump_xspace", str(ROOT / "tools/dump-xspace"))
spec = importlib.util.spec_from_loader("dump_xspace", loader)
dump = importlib.util.module_from_spec(spec)
loader.exec_module(dump)

needs_shared = pytest.mark.skipif(not XSPACE.is_dir(), reason=f"no profiles at {XSPACE}: set TACHO_SHARED")


def tool(name, path, *params, flag="--json"):
    run = subprocess.run([TACHO, "tool", name, path, *params, flag], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def rows(name, path, *params):
    table = tool(name, path, *params)
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


# ---- a small profile, written here ----

@pytest.fixture
def small(tmp_path):
    """Five events of two names; one stands for four more."""
    path = tmp_path / "small.xplane.pb"
    path.write_bytes(plane("/host:CPU", {1: "load", 2: "store"},
                           ("a", 2, [event(1, 0, 100), event(1, 500, 300), event(2, 900, 7)]),
                           ("b", 5, [event(1, 4, 200), event(1, 0, 1000, occurrences=4)])))
    return path


def test_events_of_a_window_are_taken_once(small):
    """Windows side by side: each event is in the one that it begins in. Times are those of the file."""
    starts = [row["start_ps"] for row in rows("list_xplane_events", small, "event_regex=^load$", "line_regex=a")]
    assert starts == [2000, 2500]
    halves = [rows("list_xplane_events", small, "line_regex=a", f"start_time_ps={a}", f"end_time_ps={b}")
              for a, b in ((0, 2500), (2500, 2900), (2900, 9999))]
    assert [[row["start_ps"] for row in half] for half in halves] == [[2000], [2500], [2900]]


def test_pages_of_events_join(small):
    whole = rows("list_xplane_events", small)
    pages = [rows("list_xplane_events", small, f"offset={i}", "max_events=2") for i in (0, 2, 4)]
    assert sum(pages, []) == whole and len(whole) == 5
    answer = tool("list_xplane_events", small, "max_events=2", flag="--xprof")
    assert (answer["returned"], answer["total_matched"], answer["truncated"]) == (2, 5, True)


def test_an_event_of_many_occurrences_counts_as_these(small):
    """Its own durations are unknown, and so is the spread of its name."""
    load, store = rows("aggregate_xplane_events", small)
    assert (load["event"], load["count"], load["total_duration_ps"]) == ("load", 3 + 4, 100 + 300 + 200 + 1000)
    assert load["p50_duration_ps"] is None and load["min_duration_ps"] is None
    assert (store["count"], store["p99_duration_ps"], store["std_dev_ps"]) == (1, 7, 0)


@pytest.mark.parametrize("name", ["list_xplane_events", "aggregate_xplane_events", "get_xspace_proto"])
@pytest.mark.parametrize("wrong", ["event_regex=(", "start_time_ps=soon", "max_events=-1", "host=nobody"])
def test_a_wrong_parameter_is_refused_by_name(small, name, wrong):
    run = subprocess.run([TACHO, "tool", name, small, wrong], capture_output=True, text=True, check=False)
    assert run.returncode == (3 if wrong.startswith("host") else 2)
    assert wrong.partition("=")[0] in run.stderr and wrong.partition("=")[2] in run.stderr


def test_the_whole_xspace_is_printed(small):
    (only,) = tool("get_xspace_proto", small, flag="--xprof")["planes"]
    assert {m["id"]: m["name"] for m in only["event_metadata"]} == {1: "load", 2: "store"}
    assert [(line["name"], line["timestamp_ns"], line["events_matched"]) for line in only["lines"]] == \
        [("a", 2, 3), ("b", 5, 2)]
    assert [(e["metadata_id"], e["start_ps"], e["duration_ps"]) for e in only["lines"][0]["events"]] == \
        [(1, 2000, 100), (1, 2500, 300), (2, 2900, 7)]
    assert [e["num_occurrences"] for e in only["lines"][1]["events"] if "num_occurrences" in e] == [4]


def test_a_device_on_any_host_counts(tmp_path):
    """XProf looks at the first host only."""
    (tmp_path / "a.xplane.pb").write_bytes(plane("/host:CPU", {1: "x"}, ("t", 1, [event(1, 0, 5)])))
    assert "kernel_stats" not in tool("tool_names", tmp_path, flag="--xprof")
    (tmp_path / "b.xplane.pb").write_bytes(plane("/device:GPU:0", {1: "x"}, ("Stream #1", 1, [event(1, 0, 5)])))
    assert "kernel_stats" in tool("tool_names", tmp_path, flag="--xprof")


def test_several_hosts_are_asked_for(tmp_path):
    for host in "abc":
        (tmp_path / f"{host}.xplane.pb").write_bytes(plane("/host:CPU", {1: "x"}, ("t", 1, [event(1, 0, 5)])))

    def hosts(asked):
        return [row["host"] for row in rows("list_xplane_events", tmp_path, f"host={asked}")]
    assert hosts("a,c") == hosts("c,a") == ["a", "c"] and hosts("b") == ["b"] and hosts("ALL_HOSTS") == list("abc")
    for wrong, named in (("a,d", "d"), ("a,,b", "a,,b"), (",", ",")):
        run = subprocess.run([TACHO, "tool", "list_xplane_events", tmp_path, f"host={wrong}"], capture_output=True,
                             text=True, check=False)
        assert run.returncode == 3 and f"no host '{named}'" in run.stderr


def test_a_gpu_that_ran_nothing_has_no_kernels(tmp_path):
    (tmp_path / "a.xplane.pb").write_bytes(plane("/device:GPU:0", {1: "x"}))
    assert "kernel_stats" not in tool("tool_names", tmp_path, flag="--xprof")


# ---- profiles of the goldens ----

def parts(data, span, field):
    return [v for n, kind, v in dump.fields(data, *span) if n == field and kind == 2]


def first(data, span, field):
    return next((dump.signed(v) for n, kind, v in dump.fields(data, *span) if n == field and kind == 0), 0)


def words(data, span, field):
    return next((dump.text(data, v) for v in parts(data, span, field)), "")


def lines_of(path):
    """(plane, line, data, plane's span, line's span) of every line, by the developers' own reader."""
    data = path.read_bytes()
    for p in parts(data, (0, len(data)), 1):
        for line in parts(data, p, 3):
            yield words(data, p, 2), words(data, line, 2), data, p, line


def events_of(path):
    """(plane, line, name, start, duration) of every event."""
    names = {}
    for plane_name, line_name, data, p, line in lines_of(path):
        if p not in names:
            values = [value for entry in parts(data, p, 4) for value in parts(data, entry, 2)]
            names[p] = {first(data, value, 1): words(data, value, 2) for value in values}
        begin = first(data, line, 3) * 1000
        for ev in parts(data, line, 4):
            name = names[p].get(first(data, ev, 1))
            yield plane_name, line_name, name, begin + first(data, ev, 2), first(data, ev, 3)


def file_of(case):
    return next(iter((XSPACE / case).rglob("*.xplane.pb")), XSPACE / f"{case}.xplane.pb")


REAL = ["cpu_two_hosts", "gpu_v100_slow_input", "tpu_v4_counters"]


@needs_shared
@pytest.mark.parametrize("case", REAL)
def test_every_event_is_listed_to_the_picosecond(case):
    """XProf's times pass through doubles and are up to 1 ps off."""
    path = file_of(case)
    ours = tool("list_xplane_events", path, "max_events=1000000", flag="--xprof")["events"]
    keys = ("plane", "line_id", "event", "offset_ps", "duration_ps")
    assert collections.Counter(tuple(e[k] for k in keys) for e in ours) == collections.Counter(events_of(path))


@needs_shared
@pytest.mark.parametrize("case", REAL)
def test_spread_of_durations(case):
    durations = collections.defaultdict(list)
    for *_, name, _, duration in events_of(file_of(case)):
        durations[name].append(duration)
    ours = rows("aggregate_xplane_events", file_of(case))
    assert {row["event"]: (row["count"], row["total_duration_ps"]) for row in ours} == \
        {name: (len(v), sum(v)) for name, v in durations.items()}
    for row in ours:
        values = durations[row["event"]]
        assert row["p50_duration_ps"] == statistics.median(values)
        if len(values) > 1:
            assert row["p90_duration_ps"] == pytest.approx(statistics.quantiles(values, n=10, method="inclusive")[-1])
            assert row["p99_duration_ps"] == pytest.approx(statistics.quantiles(values, n=100, method="inclusive")[-1])
            assert row["std_dev_ps"] == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-6)


@needs_shared
@pytest.mark.parametrize("case", sorted(p.name for p in GOLDENS.glob("*") if (p / "cli.inspect_capture.json").is_file())
                         if GOLDENS.is_dir() else [])
def test_a_capture_with_kernels_can_be_analysed(case):
    names = {(plane_name, line) for plane_name, line, *_ in lines_of(file_of(case))}
    kernels = any(re.match(r"/device:GPU:\d+$", p) and line.startswith("Stream") for p, line in names)
    ops = any(re.match(r"/device:TPU:\d+$", p) and line == "XLA Ops" for p, line in names)
    answer = tool("inspect_capture", file_of(case), flag="--xprof")
    assert answer["capture_valid_for_device_analysis"] == (kernels or ops)


@needs_shared
def test_a_session_is_named_not_located(tmp_path):
    session = tmp_path / "plugins" / "profile" / "evening"
    session.mkdir(parents=True)
    shutil.copy(file_of("cpu_synthetic"), session / "host-0.xplane.pb")
    for name in ("inspect_capture", "get_profile_summary"):
        assert tool(name, tmp_path, flag="--xprof")["session_id"] == "evening"


@needs_shared
def test_a_tool_without_rows_is_not_offered():
    """Counters and transfers are in the file; XProf's own answers say which of its tools knows none of them."""
    offered = tool("tool_names", XSPACE / "tpu_v4_counters", flag="--xprof")
    lines = collections.Counter(line for _, line, *_ in events_of(file_of("tpu_v4_counters")))
    golden = GOLDENS / "tpu_v4_counters"
    assert lines["_counters_"] > 0 and "perf_counters" in offered
    assert lines["megascale"] > 0 and "megascale_stats" in offered
    assert json.loads((golden / "utilization_viewer.json").read_text())["rows"] == []
    assert json.loads((golden / "kernel_utilization.json").read_text())["devices"] == []
    assert not {"utilization_viewer", "kernel_utilization"} & set(offered)
