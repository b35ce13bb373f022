# SPDX-License-Identifier: Apache-2.0
"""trace_viewer@: windows, search, single events, what is left out at a resolution, derived lines."""
import collections
import json
import os
import pathlib
import subprocess

import pytest
from xspace_write import event, plane, stats

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"

needs_shared = pytest.mark.skipif(not XSPACE.is_dir(), reason=f"no profiles at {XSPACE}: set TACHO_SHARED")


def ask(name, path, *params):
    return subprocess.run([TACHO, "tool", name, path, *params, "--xprof"], capture_output=True, check=True).stdout


def events(path, *params, tool="trace_viewer@", ph="X"):
    return [e for e in json.loads(ask(tool, path, *params))["traceEvents"] if e["ph"] == ph]


def row_names(path, *params, tool="trace_viewer@"):
    document = json.loads(ask(tool, path, *params))["traceEvents"]
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in document if e["name"] == "thread_name"}


# ---- small profiles, written here ----

STATS = {"kernel_details": 1, "hlo_op": 2, "hlo_module": 3, "tf_op": 4, "correlation_id": 5, "step_num": 6, "_r": 7}


def kernel(start, duration, **values):
    return event(1, start, duration, stat=stats({"kernel_details": "regs:1", **values}, STATS))


@pytest.fixture
def gpu(tmp_path):
    """Four kernels of two operations: the first two are of one, the others of another, all in one program."""
    ops = [("a", "jit(f)/x/add:"), ("a", "jit(f)/x/add:"), ("b", "jit(f)/x/mul:"), ("b", "jit(f)/y/mul:")]
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(plane(
        "/device:GPU:0", {1: "k"},
        ("Stream #7(Kernel)", 0, [kernel(1000000 * i, 600000, hlo_op=op, hlo_module="m", tf_op=tf)
                                  for i, (op, tf) in enumerate(ops)]), stat_names=STATS))
    return path


def test_lines_derived_from_a_stream(gpu):
    names = row_names(gpu)
    drawn = collections.defaultdict(list)
    for e in events(gpu):
        drawn[names[e["pid"], e["tid"]]].append((e["name"], e["ts"], e["dur"]))
    assert drawn["Stream #7(Kernel)"] == [("k", 0, 0.6), ("k", 1, 0.6), ("k", 2, 0.6), ("k", 3, 0.6)]
    assert drawn["XLA Modules - from #7"] == [("m", 0, 3.6)]
    assert drawn["XLA Ops - from #7"] == [("a", 0, 1.6), ("b", 2, 1.6)]
    assert "Framework Ops - from #7" not in drawn  # they are the program's to say, and it is not here


def test_scopes_of_framework_operations(tmp_path):
    """Kernels that name a framework operation and no HLO operation."""
    ops = ["f/x/add:", "f/x/add:", "f/y/mul:", "g/y/mul:"]
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(plane("/device:GPU:0", {1: "k"}, ("Stream #7", 0, [
        kernel(1000000 * i, 600000, tf_op=op) for i, op in enumerate(ops)]), stat_names=STATS))
    names = row_names(path)
    scopes = [(e["name"], e["ts"], e["dur"]) for e in events(path)
              if names[e["pid"], e["tid"]] == "Framework Name Scope - from #7"]
    assert sorted(scopes) == [("f", 0, 2.6), ("g", 3, 0.6), ("x", 0, 1.6), ("y", 2, 0.6), ("y", 3, 0.6)]
    ops = [(e["name"], e["ts"], e["dur"]) for e in events(path)
           if names[e["pid"], e["tid"]] == "Framework Ops - from #7"]
    assert ops == [("add", 0, 1.6), ("mul", 2, 0.6), ("mul", 3, 0.6)]


def test_scopes_that_cover_the_same_are_told_apart(tmp_path):
    """The inner one is a nanosecond shorter, so that a viewer that sorts by duration puts it inside."""
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(plane("/device:GPU:0", {1: "k"}, ("Stream #7", 0, [
        kernel(0, 600000, tf_op="f/x/z/add:"), kernel(1000000, 600000, tf_op="g/add:")]), stat_names=STATS))
    names = row_names(path)
    scopes = {e["name"]: e["dur"] for e in events(path) if "Scope" in names[e["pid"], e["tid"]]}
    assert scopes == {"f": 0.6, "x": 0.599, "z": 0.598, "g": 0.6}


def test_a_launch_and_its_kernel_are_joined(tmp_path):
    path = tmp_path / "a.xplane.pb"
    names = {**STATS}
    path.write_bytes(
        plane("/host:CPU", {1: "launch"}, ("t", 0, [event(1, 10, 5, stat=stats({"correlation_id": 9}, names)),
                                                    event(1, 30, 5, stat=stats({"correlation_id": 8}, names))]),
              stat_names=names) +
        plane("/device:GPU:0", {1: "k"}, ("Stream #1", 0, [event(1, 100, 5, stat=stats({"correlation_id": 9}, names))]),
              stat_names=names))
    ends = {(e["name"], e["ts"]): e for e in events(path)}
    assert ends["launch", 0.00001]["flow_out"] and ends["k", 0.0001]["flow_in"]
    assert ends["launch", 0.00001]["bind_id"] == ends["k", 0.0001]["bind_id"]
    assert "bind_id" not in ends["launch", 0.00003]


def test_regions_of_a_thread_pool(tmp_path):
    """From each start to its stop, also when the stop is behind the window."""
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(plane("/host:CPU", {1: "ThreadpoolListener::StartRegion", 2: "ThreadpoolListener::StopRegion"},
                           ("pool", 0, [event(1, 1000000, 0), event(2, 5000000, 0), event(2, 6000000, 0),
                                        event(1, 8000000, 0), event(2, 9000000, 0)])))
    regions = [(e["ts"], e["dur"]) for e in events(path) if e["name"] == "ThreadpoolListener::Region"]
    assert regions == [(1, 4), (8, 1)]
    cut = events(path, "start_time_ms=0.002", "end_time_ms=0.003")
    assert [(e["name"], e["ts"], e["dur"]) for e in cut] == [("ThreadpoolListener::Region", 1, 4)]


def test_planes_of_one_id_are_told_apart(tmp_path):
    """Some writers give no ids: two devices must not share a process, nor two lines a thread."""
    path = tmp_path / "a.xplane.pb"
    lines = [("a", 0, [event(1, 0, 5)]), ("b", 0, [event(1, 0, 5)])]
    path.write_bytes(b"".join(plane(f"/device:CUSTOM:{i}", {1: "x"}, *lines) for i in range(3)))
    assert len(row_names(path)) == 6


def test_processes_of_many_planes_are_told_apart(tmp_path):
    """More planes than XProf has numbers for on one host."""
    for host in "ab":
        (tmp_path / f"{host}.xplane.pb").write_bytes(b"".join(
            plane(f"/device:CUSTOM:{i}", {1: "x"}, ("a", 0, [event(1, 0, 5)])) for i in range(600)))
    assert len({pid for pid, _ in row_names(tmp_path)}) == 1200


def dropped(spans, resolution_ps):
    """The rule for one row without nesting, written a second time."""
    last = None
    for i, (start, duration) in enumerate(spans):
        if duration >= resolution_ps or last is None or start - last >= resolution_ps:
            last = start + duration
        else:
            yield i


def test_what_is_less_than_a_pixel_away_is_left_out(tmp_path):
    """Above 500,000 events; below, everything is sent."""
    n = 510000
    spans = [(i * 1000, 1 + (i * 7919) % 900) for i in range(n)]
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(plane("/host:CPU", {1: "x"}, ("t", 0, [event(1, start, duration) for start, duration in spans])))
    end = spans[-1][0] + spans[-1][1]
    for pixels in (100, 400000):
        gone = set(dropped(spans, round(end / pixels)))
        answer = json.loads(ask("trace_viewer@", path, f"resolution={pixels}"))
        assert answer["filteredByVisibility"] and 0 < len(gone) < n
        shown = [e["uid"] for e in (e["args"] for e in answer["traceEvents"] if e["ph"] == "X")]
        assert shown == [i for i in range(n) if i not in gone]
        assert answer["returnedEventsSize"] == len(shown)
    whole = ask("trace_viewer@", path, "resolution=0", "end_time_ms=0.1")
    assert json.loads(whole)["returnedEventsSize"] == 100001


@pytest.mark.parametrize("wrong", ["resolution=-1", "start_time_ms=now", "event_name=x", "unique_id=a",
                                   "start_time_ms=1e99"])
def test_a_wrong_parameter_is_refused(gpu, wrong):
    run = subprocess.run([TACHO, "tool", "trace_viewer@", gpu, wrong, "--xprof"], capture_output=True, text=True,
                         check=False)
    assert run.returncode == 2 and wrong.partition("=")[0] in run.stderr


# ---- profiles of the goldens ----

@needs_shared
@pytest.mark.parametrize("case", ["gpu_h100_2", "tpu_v6e_2core", "cpu_single"])
def test_one_event_with_its_arguments(case):
    """Asked for as XProf's front end does, by what the window said of it. uid tells equal ones apart."""
    for e in events(XSPACE / case)[::997]:
        (single,) = events(XSPACE / case, f"event_name={e['name']}", f"start_time_ms={e['ts'] / 1000!r}",
                           f"duration_ms={e['dur'] / 1000!r}", f"unique_id={e['args']['uid']}")
        assert all(single[key] == e[key] for key in e if key != "args")
        assert single["args"].items() >= e["args"].items()


@needs_shared
def test_arguments_of_a_kernel():
    kernels = [e for e in events(XSPACE / "gpu_h100_2") if e["name"].startswith("loop_add_fusion_1")]
    (single,) = events(XSPACE / "gpu_h100_2", "event_name=loop_add_fusion_1",
                       f"start_time_ms={kernels[0]['ts'] / 1000!r}", f"unique_id={kernels[0]['args']['uid']}")
    assert single["args"]["kernel_details"].startswith("regs:32 ")
    assert single["args"]["hlo_op"] == "loop_add_fusion.1"


@needs_shared
@pytest.mark.parametrize("case,prefix", [("gpu_h100_2", "loop_"), ("tpu_v6e_2core", "jit(")])
def test_search_finds_what_begins_so(case, prefix):
    every = [e for e in events(XSPACE / case) if e["name"].startswith(prefix)]
    assert events(XSPACE / case, f"search_prefix={prefix}") == every != []


@needs_shared
@pytest.mark.parametrize("case", ["gpu_h100_2", "tpu_v6e_2core", "cpu_two_hosts", "mi300x_jax_conv.xplane.pb"])
@pytest.mark.parametrize("window", [[], ["start_time_ms=6", "end_time_ms=7.5"]])
def test_the_table_counts_what_is_drawn(case, window):
    run = subprocess.run([TACHO, "tool", "trace_viewer@", XSPACE / case, *window, "--json"], capture_output=True,
                         check=True)
    document = json.loads(ask("trace_viewer@", XSPACE / case, *window))["traceEvents"]
    rows = [(e["pid"], e["tid"]) for e in document if e["name"] == "thread_name"]
    drawn = collections.Counter((e["pid"], e["tid"]) for e in document if e["ph"] == "X")
    table = json.loads(run.stdout)
    shown = [row[[c["name"] for c in table["columns"]].index("shown")] for row in table["rows"]]
    assert shown == [drawn[row] for row in rows] and sum(shown) > 0


@needs_shared
@pytest.mark.parametrize("tool", ["trace_viewer", "trace_viewer@", "list_xplane_events", "aggregate_xplane_events",
                                  "get_xspace_proto", "inspect_capture", "tool_names"])
@pytest.mark.parametrize("case", ["gpu_a100_2hosts", "tpu_v6e_2core"])
def test_two_passes_give_the_same_bytes(tool, case):
    assert ask(tool, XSPACE / case) == ask(tool, XSPACE / case)


@needs_shared
def test_hosts_side_by_side():
    """All hosts in one answer: each has processes of its own, and all are on one clock."""
    both = events(XSPACE / "cpu_two_hosts")
    assert {e["pid"] // 1000 for e in both} == {1, 2}
    starts = {}
    for number, host in ((1, "localhost_19998"), (2, "localhost_19999")):
        alone = events(XSPACE / "cpu_two_hosts", f"host={host}")
        mine = [e for e in both if e["pid"] // 1000 == number]
        apart = {round(a["ts"] - b["ts"], 6) for a, b in zip(mine, alone)}
        assert len(mine) == len(alone) and len(apart) == 1
        starts[host] = apart.pop()
    environment = {}
    for host in starts:
        space = json.loads(ask("get_xspace_proto", XSPACE / "cpu_two_hosts", f"host={host}", "max_events=0"))
        for p in space["planes"]:
            if p["name"] == "Task Environment":
                environment[host] = p["stats"]["profile_start_time"]
    (a, b) = environment
    assert (starts[a] - starts[b]) * 1000 == pytest.approx(environment[a] - environment[b], abs=1e-3)


@needs_shared
def test_counters_are_counters():
    counters = events(XSPACE / "tpu_v4_counters", ph="C")
    listed = json.loads(ask("get_xspace_proto", XSPACE / "tpu_v4_counters", "line_regex=_counters_", "plane_regex=TPU"))
    (line,) = listed["planes"][0]["lines"]
    assert [e["args"]["counter_value"] for e in counters] == [e["stats"]["counter_value"] for e in line["events"]]
    assert len(counters) == 6
