# SPDX-License-Identifier: Apache-2.0
"""Tools that stand on steps: what they say beside the truth of the generated profiles, not beside XProf."""
import json
import subprocess
import sys

import pytest
from test_cpu_operations import devices, dump, parts
from test_xprof_parity import CASES, SHARED, TACHO, XSPACE, needs_shared

GOLDENS = SHARED / "data" / "xprof_goldens"
GPU = [case for case in CASES if case.startswith("gpu") and case != "gpu_h100_no_steps"]
TPU = [case for case in CASES if case.startswith("tpu")]


def truth_of(case):
    return json.loads((XSPACE / case / "truth.json").read_text())


def answer(tool, case, *params, form="--xprof"):
    path = XSPACE / case if (XSPACE / case).exists() else XSPACE / f"{case}.xplane.pb"
    run = subprocess.run([TACHO, "tool", tool, path, *params, form], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def rows_of(table):
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in table["rows"]]


@needs_shared
@pytest.mark.parametrize("case", GPU + TPU)
def test_steps_have_the_programs_numbers(case):
    truth = truth_of(case)
    numbers = [step["step"] for step in truth["hosts"][0]["cores"][0]["steps"]]
    if truth["kind"] == "gpu" and len(numbers) > 5:  # the first and the last may be cut off
        numbers = numbers[1:-1]
    rows = rows_of(answer("overview_page", case)[1])
    assert [int(row["stepnum"]) for row in rows] == numbers


SHORT = ["bf16", "fp16", "nvjet_tst", "nvjet_hsh"]  # of the generator's families: bf16, half


@needs_shared
@pytest.mark.parametrize("case", GPU)
def test_kernels_of_16_bits(case):
    """Of the whole profile by the names of its kernels; the steps shown leave out the first and the last."""
    kernels = [k for host in truth_of(case)["hosts"] for core in host["cores"] for k in core["kernels"]
               if not k["kernel"].startswith("nccl")]
    short = sum(k["total_ps"] for k in kernels if any(word in k["kernel"] for word in SHORT))
    share = 100 * short / sum(k["total_ps"] for k in kernels)
    ours = float(answer("overview_page", case)[0]["p"]["device_compute_16bit_percent"].rstrip("%"))
    assert 30 < share < 70
    assert ours == pytest.approx(share, abs=1)


@needs_shared
@pytest.mark.parametrize("case", TPU)
def test_the_core_that_waits_longest_is_named(case):
    cores = truth_of(case)["hosts"][0]["cores"]
    cells = [cell["v"] for cell in answer("input_pipeline_analyzer", case)[0]["rows"][1]["c"]]
    assert cells[0] == "Core name" and len(cells) == 1 + len(cores[0]["steps"])
    for i, name in enumerate(cells[1:]):
        longest = max(core["steps"][i]["infeed_ps"] for core in cores)
        assert name in [f"host-0 {c['plane']}" for c in cores if c["steps"][i]["infeed_ps"] == longest]


def input_operations(path):
    """Count and total time of the stages of an input pipeline, by another decoder."""
    data = path.read_bytes()
    found = {}
    for plane in parts(data, (0, len(data)), 1):
        decoded = dump.plane(data, plane)
        for line in parts(data, plane, 3):
            for span in parts(data, line, 4):
                event = dump.event(data, span)
                name = decoded["names"].get(event["id"], "")
                if name.startswith("Iterator::"):
                    row = found.setdefault(name, [0, 0])
                    row[0] += 1
                    row[1] += event["duration"]
    return found


@needs_shared
@pytest.mark.parametrize("case", [case for case in CASES if case.startswith(("gpu", "tpu"))])
def test_one_host_has_its_own_input_operations(case):
    for path in (XSPACE / case).glob("plugins/profile/*/*.xplane.pb"):
        want = input_operations(path)
        host = path.name.removesuffix(".xplane.pb")
        rows = rows_of(answer("input_pipeline_analyzer", case, f"host={host}")[2])
        assert want and {r["opName"]: [r["count"], round(r["timeInMs"] * 1e9)] for r in rows} == want
        assert sum(r["selfTimeInPercent"] for r in rows) == pytest.approx(1)


@needs_shared
@pytest.mark.parametrize("case,host", [("gpu_a100_2hosts", "host-0"), ("gpu_a100_2hosts", "host-1"),
                                       ("cpu_two_hosts", "localhost_19998"), ("cpu_two_hosts", "localhost_19999")])
def test_one_host_has_its_own_steps(case, host):
    """XProf's pod_viewer has them by host."""
    rows = rows_of(answer("input_pipeline_analyzer", case, f"host={host}")[1])
    hosts = sorted(p.name.removesuffix(".xplane.pb") for p in (XSPACE / case).glob("plugins/profile/*/*.xplane.pb"))
    pods = json.loads((GOLDENS / case / "pod_viewer.json").read_text())["podStatsSequence"]["podStatsMap"]
    core = str(1000 * hosts.index(host) + 1)
    want = [step["podStatsPerCore"][core]["totalDurationUs"] / 1e3 for step in pods]
    ours = [row["stepTimeMs"] for row in rows]
    both = [ms for ms in ours if any(ms == pytest.approx(w, rel=1e-9) for w in want)]
    assert len(both) >= len(want) - 1 > 3  # XProf leaves out the first and the last of those that it paired


def table_rows(tool, path, *params):
    """Rows and values of our own first table."""
    run = subprocess.run([TACHO, "tool", tool, path, *params, "--json"], capture_output=True, text=True, check=True)
    table = json.loads(run.stdout)
    table = table["tables"][0] if "tables" in table else table
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]], table["values"]


@needs_shared
@pytest.mark.parametrize("case", TPU)
def test_parts_of_every_tpu_core_are_those_of_the_truth(case):
    """XProf has no core in its pods of TPUs."""
    truth = truth_of(case)
    rows, _ = table_rows("pod_viewer", XSPACE / case)
    for core in truth["hosts"][0]["cores"]:
        ours = [row for row in rows if row["core"] == f"host-0 {core['plane']}"]
        assert [row["step"] for row in ours] == [step["step"] for step in core["steps"]]
        for row, step in zip(ours, core["steps"]):
            assert row["duration_ps"] == step["duration_ps"]
            assert row["compute_ps"] + row["collective_ps"] + row["device_copy_ps"] == step["busy_ps"]
            assert row["input_ps"] + row["output_ps"] == \
                step["infeed_ps"] + step["outfeed_ps"] + step["other_transfer_ps"]
            assert row["other_ps"] == step["idle_ps"]
            assert row["launch_ps"] is None and row["compile_ps"] is None
        collectives = sum(core["categories_self_ps"].get(c, 0) for c in ("all-reduce", "all-gather", "reduce-scatter"))
        assert sum(row["collective_ps"] for row in ours) == collectives > 0
        xprof = answer("pod_viewer", case)["podStatsSequence"]["podStatsMap"]
        for row, step in zip(ours, xprof):
            stats = step["podStatsPerCore"][core["plane"].rpartition(":")[2]]
            assert step["stepNum"] == stats["stepNum"] == row["step"]
            assert stats["totalDurationUs"] * 1e6 == pytest.approx(row["duration_ps"])
            assert sum(stats["stepBreakdownUs"].values()) * 1e6 == pytest.approx(row["duration_ps"])
            assert stats["stepBreakdownUs"]["3"] * 1e6 == pytest.approx(row["collective_ps"])


@needs_shared
@pytest.mark.parametrize("case", GPU)
def test_compute_of_every_gpu_is_that_of_its_kernels(case):
    rows, _ = table_rows("pod_viewer", XSPACE / case)
    for host in truth_of(case)["hosts"]:
        for core in host["cores"]:
            ours = [row for row in rows if row["core"] == f"{host['host']['name']} {core['plane']}"]
            assert [row["step"] for row in ours] == [step["step"] for step in core["steps"]]
            for row, step in zip(ours, core["steps"]):
                assert row["compute_ps"] == step["compute_kernel_ps"]
                assert 0 < row["collective_ps"] <= step["collective_kernel_ps"]
                assert row["output_ps"] == step["d2h_ps"]
                assert row["input_ps"] == step["h2d_ps"]
                parts_ps = [ps for name, ps in row.items() if name.endswith("_ps") and name != "duration_ps"]
                assert sum(ps or 0 for ps in parts_ps) == row["duration_ps"]


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_only_a_slow_device_is_named(case):
    values = table_rows("pod_viewer", XSPACE / case)[1]
    assert table_rows("overview_page", XSPACE / case)[1].get("straggler") == values.get("straggler")
    want = None if case in ("gpu_h100_no_steps", "gpu_v100_slow_input", "tpu_v4_counters", "cpu_synthetic") else "none"
    want = "host-0 /device:GPU:0" if "straggler" in truth_of(case)["features"] else want
    assert values.get("straggler") == want


@needs_shared
def test_the_straggler_of_two_tpu_hosts_is_named(tmp_path):
    """XProf's step trace says 0.753 ms of it and that compute binds; no tool says which core is slow."""
    subprocess.run([sys.executable, SHARED / "tools" / "gen_xspace.py", tmp_path / "run", "--kind", "tpu",
                    "--hosts", "2", "--cores", "2", "--steps", "6", "--seed", "41", "--features", "straggler"],
                   check=True, capture_output=True)
    truth = json.loads(next((tmp_path / "run").rglob("truth.json")).read_text())
    cores = {f"{host['host']['name']} {core['plane']}": core for host in truth["hosts"] for core in host["cores"]}
    slow = max(cores, key=lambda name: cores[name]["duty_busy_ps"])
    rows, values = table_rows("pod_viewer", tmp_path / "run")
    assert values["straggler"] == slow
    for name, core in cores.items():
        assert [row["duration_ps"] for row in rows if row["core"] == name] == [s["duration_ps"] for s in core["steps"]]
    longest = [max(core["steps"][i]["duration_ps"] for core in cores.values()) for i in range(truth["steps"])]
    steps, _ = table_rows("input_pipeline_analyzer", tmp_path / "run")
    assert [row["duration_ps"] for row in steps] == longest


@needs_shared
@pytest.mark.parametrize("case", GPU)
def test_the_verdict_is_that_of_the_copies(case):
    """The share of copies to the device in the steps of the device that takes longest, in five steps or more."""
    input_ps = step_ps = 0
    cores = [core["steps"] for host in truth_of(case)["hosts"] for core in host["cores"]]
    for step in list(zip(*cores))[1:-1]:  # the first and the last may be cut off
        longest = max(step, key=lambda core: core["device_end_ps"] - core["device_begin_ps"])
        step_ps += longest["device_end_ps"] - longest["device_begin_ps"]
        input_ps += longest["h2d_ps"]
    percent = 100 * input_ps / step_ps
    verdict = "host" if percent >= 20 else "both" if percent >= 5 else "device"
    assert answer("overview_page", case)[3]["p"]["bottleneck"] == verdict


PARTS = ("compute", "communication", "infeed", "outfeed", "idle")


@needs_shared
@pytest.mark.parametrize("case", GPU + TPU)
def test_a_traced_step_is_that_of_its_slowest_core(case):
    truth = truth_of(case)
    doc = answer("get_step_trace", case)
    steps = doc["step_breakdown"]
    cores = {f"{host['host']['name']} {core['plane']}": core["steps"]
             for host in truth["hosts"] for core in host["cores"]}
    lasts = "duration_ps" if truth["kind"] == "tpu" else "span_ps"
    for core in cores.values():
        for step in core:
            if lasts == "span_ps":
                step["span_ps"] = step["device_end_ps"] - step["device_begin_ps"]
    assert [step["step_num"] for step in steps] == list(range(truth["steps"]))
    for i, step in enumerate(steps):
        longest = max(core[i][lasts] for core in cores.values())
        assert step["step_time_ms"] == pytest.approx(longest / 1e9, abs=5.1e-5)
        assert sum(step[f"{part}_time_ms"] for part in PARTS) == pytest.approx(longest / 1e9, abs=3e-4)
        assert sum(step[f"{part}_percent"] for part in PARTS) == pytest.approx(100, abs=0.03)
        if truth["kind"] == "tpu":
            core = cores[step["longest_on"]][i]
            assert core["duration_ps"] == longest
            both = step["compute_time_ms"] + step["communication_time_ms"]
            assert both == pytest.approx(core["busy_ps"] / 1e9, abs=2e-4)
            assert step["communication_time_ms"] > 0.05
            waits = core["infeed_ps"] + core["outfeed_ps"] + core["other_transfer_ps"]
            assert step["infeed_time_ms"] + step["outfeed_time_ms"] == pytest.approx(waits / 1e9, abs=2e-4)
        elif len(cores) == 1:
            core = next(iter(cores.values()))[i]
            assert step["infeed_time_ms"] == pytest.approx(core["h2d_ps"] / 1e9, abs=5.1e-5)
            assert step["compute_time_ms"] == pytest.approx(core["compute_kernel_ps"] / 1e9, abs=5.1e-5)
            slow = core["h2d_ps"] > core["compute_kernel_ps"]
            assert step["bottleneck"] == ("Infeed" if slow else "Compute")
    mean = sum(max(core[i][lasts] for core in cores.values()) for i in range(truth["steps"])) / truth["steps"]
    assert doc["summary"]["step_time_ms_average"] == pytest.approx(mean / 1e9, abs=5.1e-5)
    slow = doc["summary"]["straggler"]
    assert (slow or {}).get("core") == ("host-0 /device:GPU:0" if "straggler" in truth["features"] else None)


@needs_shared
def test_a_step_trace_can_be_short():
    doc = answer("get_step_trace", "tpu_v5e_no_while", "limit=3")
    assert [step["step_num"] for step in doc["step_breakdown"]] == [0, 1, 2]
    assert (doc["truncated"], doc["total_records"], doc["returned_records"]) == (True, 10, 3)
    assert doc["summary"]["total_steps"] == 10


@needs_shared
@pytest.mark.parametrize("case", ["gpu_h100_2", "gpu_v100_slow_input"])
def test_shares_of_a_step_are_rounded_once(case):
    pods = json.loads((GOLDENS / case / "pod_viewer.json").read_text())["podStatsSequence"]["podStatsMap"]
    ours = {step["step_num"]: step for step in answer("get_step_trace", case)["step_breakdown"]}
    for pod in pods:
        core, step = pod["podStatsPerCore"]["1"], ours[pod["stepNum"]]
        collective, total = core["stepBreakdownUs"]["3"], core["totalDurationUs"]
        assert step["communication_time_ms"] == pytest.approx(collective / 1e3, abs=5.1e-5)
        assert step["communication_percent"] == pytest.approx(100 * collective / total, abs=5.1e-3)


def line_events(path):
    """(begin, end, name) of the events of each line of each plane, by another decoder."""
    data = path.read_bytes()
    for plane in parts(data, (0, len(data)), 1):
        decoded = dump.plane(data, plane)
        lines = {}
        for line in parts(data, plane, 3):
            head = dump.line(data, line)
            events = (dump.event(data, span) for span in parts(data, line, 4))
            lines[head["name"]] = [(head["timestamp_ns"] * 1000 + e["offset"],
                                    head["timestamp_ns"] * 1000 + e["offset"] + e["duration"],
                                    decoded["names"].get(e["id"], "")) for e in events]
        yield decoded["name"], lines


def first_word(name):
    return name.removeprefix("%").split(" ")[0].split(".")[0]


@needs_shared
@pytest.mark.parametrize("case", TPU)
def test_exposed_is_what_no_other_operation_covers(case):
    doc = answer("analyze_async_overlap", case)
    path = next((XSPACE / case).glob("plugins/profile/*/*.xplane.pb"))
    for plane, lines in line_events(path):
        windows = lines.get("Async XLA Ops", [])
        if not windows:
            continue
        other = [(begin, end) for begin, end, name in lines["XLA Ops"]
                 if not first_word(name).endswith(("-start", "-done")) and first_word(name) != "while"]
        exposed = 0
        for begin, end, _ in windows:
            inside = [(max(begin, b), min(end, e)) for b, e in other if b < end and e > begin]
            exposed += end - begin - dump.union_ps(inside)
        ours = doc["by_plane"][plane]
        assert (ours["count"], ours["span_ps"]) == (len(windows), sum(end - begin for begin, end, _ in windows))
        assert ours["exposed_ps"] == exposed


ALL = [*CASES, *(f.stem.removesuffix(".xplane") for f in XSPACE.glob("mi300x*.pb"))] if CASES else []
CPU = [folder.name for folder in XSPACE.glob("cpu_*")]


def files_of(case):
    flat = XSPACE / f"{case}.xplane.pb"
    return [flat] if flat.is_file() else sorted((XSPACE / case).glob("plugins/profile/*/*.xplane.pb"))


@needs_shared
@pytest.mark.parametrize("case", sorted({*ALL, *CPU}))
def test_what_is_absent_is_unknown(case):
    """A number is null where the file does not even have the name of what would tell it."""
    data = b"".join(path.read_bytes() for path in files_of(case))
    summary = answer("get_overview", case)["performance_summary"]
    kpis = answer("get_kpi_metrics", case)
    page = answer("overview_page", case)[0]["p"]
    has_counter = b"matrix_unit_utilization_percent" in data
    assert (summary["mxu_utilization_percent"] is not None) == has_counter
    assert (kpis["mxu_utilization_percent"] is not None) == has_counter
    assert (page["mxu_utilization_percent"] != "N/A") == (page["hbm_utilization_percent"] != "N/A") == has_counter
    assert (kpis["peak_hbm_gib"] is not None) == (b"MemoryAllocation" in data)
    has_steps = "no_steps" not in case and not case.startswith("mi300x")
    assert (kpis["step_time_ms"] is not None) == (summary["steptime_ms_average"] is not None) == has_steps
    has_limits = not case.startswith("cpu_")
    assert (kpis["roofline_utilization"] is not None) == has_limits
    assert (summary["flop_rate_utilization_relative_to_roofline"] is not None) == has_limits
    assert (summary["host_idle_time_percent"] is not None) == (b"Iterator::" in data)


@needs_shared
@pytest.mark.parametrize("case", ALL)
def test_use_of_the_limits_is_the_same_everywhere(case):
    program = answer("get_roofline_model", case)["program"]
    summary = answer("get_overview", case)["performance_summary"]
    kpis = answer("get_kpi_metrics", case)
    for key in ("roofline_efficiency_percent", "compute_efficiency_percent", "max_mem_bw_utilization_percent",
                "operational_intensity_flop_per_byte"):
        assert program[key] == summary[key]
    assert summary["roofline_efficiency_percent"] == kpis["roofline_utilization"]
    assert program["flops_provenance"] == kpis["flops_provenance"]
    assert program["derived_flops_fraction"] == kpis["derived_flops_fraction"]
    if case.startswith("tpu"):
        page = answer("overview_page", case)[0]["p"]
        assert page["flop_rate_utilization_relative_to_roofline"] == f"{kpis['roofline_utilization']:.1f}%"
        golden = json.loads((GOLDENS / case / "cli.get_overview.json").read_text())["performance_summary"]
        assert golden["roofline_efficiency_percent"] == f"{kpis['roofline_utilization']:.2f}%"


@needs_shared
@pytest.mark.parametrize("case", [*GPU, "gpu_h100_no_steps", *CPU])
def test_duty_of_devices_is_what_their_work_covers(case):
    busy = whole = 0
    for path in files_of(case):
        if case.startswith("cpu"):
            of_host, window = devices(path)
            busy += sum(of_host.values())
            whole += len(of_host) * window
            continue
        for plane, lines in line_events(path):
            if not plane.startswith("/device:GPU:"):
                continue
            work = [(begin, end) for name, events in lines.items() if name.startswith("Stream")
                    for begin, end, _ in events]
            busy += dump.union_ps(work)
            whole += max(end for _, end in work) - min(begin for begin, _ in work)
    summary = answer("get_overview", case)["performance_summary"]
    assert summary["device_duty_cycle_percent"] == pytest.approx(100 * busy / whole, abs=0.0051)
    assert summary["device_idle_time_percent"] == pytest.approx(100 - 100 * busy / whole, abs=0.0051)
    assert answer("get_kpi_metrics", case)["duty_cycle_percent"] == summary["device_duty_cycle_percent"]


@needs_shared
def test_the_peak_is_that_of_the_fullest_host():
    peaks = [answer("get_memory_profile", "gpu_a100_2hosts", f"host={host}")["peak_memory_usage_gib"]
             for host in ("host-0", "host-1")]
    assert peaks[0] != peaks[1]
    assert answer("get_kpi_metrics", "gpu_a100_2hosts")["peak_hbm_gib"] == round(max(peaks), 2)


@needs_shared
def test_each_host_has_its_own_step_time():
    truth = truth_of("gpu_a100_2hosts")
    hosts = answer("get_overview", "gpu_a100_2hosts")["performance_summary"]["per_host_step_time_ms"]
    kpis = answer("get_kpi_metrics", "gpu_a100_2hosts")
    for host in truth["hosts"]:
        spans = [max(step["device_end_ps"] - step["device_begin_ps"] for step in steps)
                 for steps in zip(*(core["steps"] for core in host["cores"]))][1:-1]  # the ends may be cut off
        name = host["host"]["name"]
        assert hosts[name]["steptime_ms_average"] == pytest.approx(sum(spans) / len(spans) / 1e9, abs=5.1e-5)
        assert hosts[name]["steptime_ms_maximum"] == pytest.approx(max(spans) / 1e9, abs=5.1e-5)
        assert kpis["per_host_step_time_ms"][name] == pytest.approx(sum(spans) / len(spans) / 1e9, rel=1e-9)
    assert kpis["straggler"] == "host-0 /device:GPU:0"


DIVIDED = ("compute_ps", "copy_ps", "collective_ps", "host_wait_ps", "idle_ps")


@needs_shared
@pytest.mark.parametrize("case", [*TPU, *GPU, *CPU])
def test_time_of_devices_divides_as_the_truth_says(case):
    rows, _ = table_rows("check_host_boundness", XSPACE / case)
    assert rows and all(sum(row[part] or 0 for part in DIVIDED) == row["span_ps"] for row in rows)
    kind = case[:3]  # only a TPU says that it waits for its host, and a CPU is not copied to
    assert {part for row in rows for part in DIVIDED if row[part] is None} == {
        "tpu": set(), "gpu": {"host_wait_ps"}, "cpu": {"copy_ps", "host_wait_ps"}}[kind]
    rows = iter(rows)  # by host, then device
    if case.startswith("tpu"):
        for core, row in zip(truth_of(case)["hosts"][0]["cores"], rows, strict=True):
            of = core["categories_self_ps"]
            assert row["span_ps"] == core["span_ps"]
            assert row["collective_ps"] == of["all-reduce"] + of["all-gather"] + of["reduce-scatter"]
            assert row["host_wait_ps"] == core["off_duty_ps"]
            busy = row["compute_ps"] + row["copy_ps"] + row["collective_ps"]
            assert busy == core["duty_busy_ps"] - of.get("while", 0)  # a loop's own time is idle between its parts
        return
    for path in files_of(case):
        if case.startswith("cpu"):
            for _, busy in sorted(devices(path)[0].items()):
                row = next(rows)
                assert row["compute_ps"] + row["collective_ps"] == busy
            continue
        for plane, lines in line_events(path):
            if not plane.startswith("/device:GPU:"):
                continue
            work = [event for name, events in lines.items() if name.startswith("Stream") for event in events]
            kernels = [(b, e) for b, e, name in work if not name.startswith(("nccl", "Memcpy", "Memset"))]
            row = next(rows)
            assert row["span_ps"] == max(e for _, e, _ in work) - min(b for b, _, _ in work)
            assert row["compute_ps"] == dump.union_ps(kernels)
            assert row["idle_ps"] == row["span_ps"] - dump.union_ps([(b, e) for b, e, _ in work])
    assert next(rows, None) is None


@needs_shared
@pytest.mark.parametrize("case", sorted({*ALL, *CPU}))
def test_the_host_binds_where_even_the_busiest_device_waits(case):
    doc = answer("check_host_boundness", case)
    rows, _ = table_rows("check_host_boundness", XSPACE / case if (XSPACE / case).exists() else files_of(case)[0])
    if "no_steps" in case or case.startswith("mi300x"):
        assert doc["status"] == "INSUFFICIENT_DATA" and "metrics" not in doc
        return
    least = min(((row["host_wait_ps"] or 0) + row["idle_ps"]) / row["span_ps"] for row in rows)
    assert doc["status"] == ("HOST_BOUND" if least > 0.1 else "NOT_HOST_BOUND")
    metrics = doc["metrics"]
    assert metrics["least_idle_time_ratio_percent"] == pytest.approx(100 * least, abs=0.0051)
    assert metrics["core_count"] == len(rows)
    host = truth_of(case)["hosts"][0]["host"] if case in CASES else {}
    mxu, hbm = host.get("matrix_unit_utilization_percent"), host.get("hbm_utilization_percent")
    assert metrics["mxu_idleness_percent"] == (None if mxu is None else 100 - mxu)
    assert metrics["hbm_bandwidth_utilization_percent"] == hbm


@needs_shared
@pytest.mark.parametrize("case", [*TPU, *GPU])
def test_device_time_is_what_the_lines_of_each_device_cover(case):
    lines_ps, total, custom, kernels = {}, 0, 0, 0
    for path in files_of(case):
        for plane, lines in line_events(path):
            if not plane.startswith("/device:"):
                continue
            work = []
            for name, events in lines.items():
                spans = [(begin, end) for begin, end, _ in events]
                if not name.startswith("_"):
                    lines_ps[name] = lines_ps.get(name, 0) + dump.union_ps(spans)
                if name == "XLA Ops" or name.startswith("Stream"):
                    work += spans
                    kernels += sum(end - begin for begin, end in spans) if "GPU" in plane else dump.union_ps(spans)
            total += dump.union_ps(work)
    custom = sum(op["self_ps"] for host in truth_of(case)["hosts"] for core in host["cores"] for op in core["ops"]
                 if op["category"] == "custom-call")
    doc = answer("get_device_time_attribution", case, "limit=-1")
    assert doc["total_device_duration_ns"] == round(total / 1e3)
    assert doc["by_line_duration_ns"] == {name: round(ps / 1e3) for name, ps in lines_ps.items()}
    assert doc["total_duration_us_all_records"] == pytest.approx(kernels / 1e6, abs=5.1e-5)
    if case.startswith("tpu"):
        assert doc["custom_call_duration_us"] == pytest.approx(custom / 1e6, abs=5.1e-4)
    assert len(doc["kernel_records"]) == doc["total_records"] == doc["returned_records"] and not doc["truncated"]
    values = table_rows("get_device_time_attribution", XSPACE / case)[1]
    assert values["device_time_ps"] == total


@needs_shared
@pytest.mark.parametrize("tool", ["overview_page", "input_pipeline_analyzer", "pod_viewer", "get_overview",
                                  "get_kpi_metrics", "get_step_trace", "get_hosts", "check_host_boundness",
                                  "get_device_time_attribution", "analyze_async_overlap"])
@pytest.mark.parametrize("case", ["tpu_v5e_no_while", "gpu_a100_2hosts", "cpu_two_hosts"])
def test_two_passes_give_the_same_bytes(tool, case):
    for form in ("--xprof", "--json", "--csv"):
        command = [TACHO, "tool", tool, XSPACE / case, form]
        first, second = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
        assert first and first == second
