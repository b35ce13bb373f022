# SPDX-License-Identifier: Apache-2.0
"""truth.json of a generated profile, written again from nothing but tacho's answers.

again(profile, asked) asks the tools and answers a document of the same form: the two are compared key by key, so that
nothing in truth.json goes without a comparison. adapted(truth) says what a reader of the file must see differently,
each with its reason; what no answer can hold is named in NOT_ASKED and nowhere else.
"""
import functools
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
COUNTS = pathlib.Path(TACHO).parent / "tests" / "unit" / "hlo_counts"
NOT_ASKED = {
    "generator": "who wrote the profile", "seed": "what the generator was asked for", "features": "the same",
    "module.memory": "no tool reads a program's buffer assignment yet: memory_viewer does, once it is there"}
ORIGIN_PS = {"tpu": 0}  # the earliest timestamp of a line, which our own tools count from; lines of hosts begin at 1 us


class Answers:
    """What the tools say of one profile; the same question is asked once."""

    def __init__(self, profile):
        self.profile = profile
        self.json = functools.cache(self._json)

    def _json(self, tool, *words):
        run = subprocess.run([TACHO, "tool", tool, self.profile, *words], capture_output=True, text=True, check=False)
        assert run.returncode == 0, (tool, words, run.stderr)
        return json.loads(run.stdout)

    def table(self, tool, *words, name=None):
        """(rows as dictionaries, values) of a table, the first where no name is given."""
        document = self.json(tool, *words, "--json")
        tables = document.get("tables", [document])
        table = next(t for t in tables if name in (None, t["table"]))
        names = [column["name"] for column in table["columns"]]
        return [dict(zip(names, row)) for row in table["rows"]], table["values"]

    def events(self, host, plane, line, *words):
        rows, values = self.table("list_xplane_events", f"host={host}", f"plane_regex=^{plane}$",
                                  f"line_regex=^{line}$", "max_events=1000000", *words)
        assert values["total_matched"] == len(rows)
        return rows


def spread(rows):
    """How often, how long, shortest and longest, by the operation in the name of an event or of a kernel."""
    out = {}
    for name, row in rows:
        least, most, n, total = row
        was = out.get(name, (least, most, 0, 0))
        out[name] = (min(was[0], least), max(was[1], most), was[2] + n, was[3] + total)
    return out


def operation(name):
    return re.sub(r"^%?([^ ]+).*", r"\1", name)


def sorted_ops(rows):
    return sorted(rows, key=lambda row: (-row["self_ps"], row["name"]))


def rated(name, kind):
    """Of the bytes at the device's memories, the share that hlo_stats' rate is made of, as XProf's: a copy's once; of a
    GPU's all-gather and reduce-scatter also what passes by on its way around four ranks."""
    if kind == "tpu":
        return 0.5 if name.startswith("copy-start") else 1
    return 11 / 5 if name.startswith(("all-gather", "reduce-scatter")) else 1


def op_rows(ask, where, kind, spreads):
    """Rows of `ops`: two tools that list operations must agree, and so must the events by themselves."""
    costs = {row["operation"]: row for row in ask.table("get_top_hlo_ops", *where, "limit=-1", name="top_by_time")[0]}
    ops, values = ask.table("hlo_stats", *where)
    assert costs.keys() == {op["operation"] for op in ops}
    out = []
    for op in ops:
        cost = costs[op["operation"]]
        least, most, n, total = spreads[op["operation"]]
        assert (cost["self_time_ps"], cost["occurrences"], cost["category"]) == \
            (op["self_time_ps"], op["occurrences"], op["category"])
        assert (n, total) == (op["occurrences"], op["total_time_ps"])
        for amount, rate in (("flops", "flops_per_s"), ("bytes", "bytes_per_s")):
            if cost["cost_source"] != "derived_from_shapes" and cost[amount]:
                want = cost[amount] * (rated(op["operation"], kind) if amount == "bytes" else 1)
                assert abs(op[rate] * op["total_time_ps"] / 1e12 - want) <= 1e-9 * want, op
        out.append({"name": op["operation"], "category": op["category"], "occurrences": op["occurrences"],
                    "total_ps": op["total_time_ps"], "self_ps": op["self_time_ps"], "min_ps": least, "max_ps": most,
                    "flops": cost["flops"], "bytes": cost["bytes"]})
    assert kind != "tpu" or values["busy_time_ps"] == sum(op["self_ps"] for op in out)
    return sorted_ops(out)


def event_spread(ask, *words):
    rows, _ = ask.table("aggregate_xplane_events", *words, "max_events=1000000")
    return spread((operation(row["event"]), (round(row["min_duration_ps"]), round(row["max_duration_ps"]),
                                             row["count"], row["total_duration_ps"])) for row in rows)


def mean_step_ps(ask, where, steps):
    mean = sum(step["duration_ps"] for step in steps) / len(steps)
    assert ask.table("overview_page", *where)[1]["step_mean_ps"] == int(mean)
    return mean


def device_of(ask, host, plane):
    """As tables over all hosts name it."""
    name = plane.removeprefix("/device:").replace(":", " ")
    return f"{host} {name}" if len(ask.table("get_hosts")[0]) > 1 else name


def lines_of(ask, host, plane):
    return {row["line"]: row for row in ask.table("inspect_capture")[0]
            if (row["host"], row["plane"]) == (host, plane)}


# ---- TPU ----

def tpu_steps(ask, host, plane, where, modules, origin_ps):
    device = plane.removeprefix("/device:").replace(":", " ")
    marked = {row["step"]: row for row in ask.table("steps", f"host={host}")[0] if row["device"] == device}
    pods = {row["step"]: row for row in ask.table("pod_viewer", *where)[0]}
    waits = {row["step"]: row for row in ask.table("overview_page", *where)[0]}
    out = []
    feeds = {name: ask.events(host, plane, "XLA Ops", f"event_regex=^%{name}") for name in ("infeed", "outfeed")}
    for number, module in enumerate(modules):
        begin, end = module["start_ps"], module["start_ps"] + module["duration_ps"]
        pod, wait = pods[number], waits[number]
        held = {name: sum(e["duration_ps"] for e in events if begin <= e["start_ps"] < end)
                for name, events in feeds.items()}
        busy = pod["compute_ps"] + pod["collective_ps"] + pod["device_copy_ps"]
        assert marked[number]["start_ps"] + origin_ps == begin == wait["start_ps"] + origin_ps
        assert marked[number]["marked_ps"] == pod["duration_ps"] == wait["duration_ps"] == end - begin
        assert (wait["input_wait_ps"] or 0) == held["infeed"]
        out.append({"step": number, "begin_ps": begin, "duration_ps": pod["duration_ps"], "busy_ps": busy,
                    "infeed_ps": held["infeed"], "outfeed_ps": held["outfeed"], "idle_ps": pod["other_ps"],
                    "other_transfer_ps": (pod["input_ps"] or 0) + (pod["output_ps"] or 0) - sum(held.values())})
    assert marked.keys() == pods.keys() == waits.keys() == set(range(len(modules)))
    return out


def counters_of(ask, host, plane):
    document = ask.json("get_xspace_proto", f"host={host}", f"plane_regex=^{plane}$", "line_regex=^_counters_$",
                        "--xprof")
    for found in document["planes"]:
        names = {m["id"]: m["name"] for m in found["event_metadata"]}
        for line in found["lines"]:
            return [{"name": names[e["metadata_id"]], "value": e["stats"]["counter_value"],
                     "set": e["stats"]["performance_counter_sets"]} for e in line["events"]]
    return None


def tpu_core(ask, host, plane, origin_ps):
    where = (f"host={host}", f"device={plane}")
    lines = lines_of(ask, host, plane)
    modules = ask.events(host, plane, "XLA Modules")
    ops = op_rows(ask, where, "tpu", event_spread(ask, *where, "line_regex=^XLA Ops$"))
    values = ask.table("hlo_stats", *where)[1]
    device = device_of(ask, host, plane)
    divided = next(row for row in ask.table("check_host_boundness")[0] if row["device"] == device)
    steps = tpu_steps(ask, host, plane, where, modules, origin_ps)
    works, modules_line = lines["XLA Ops"], lines["XLA Modules"]
    marked = [lines[name] for name in ("Steps", "XLA Ops") if name in lines]
    assert divided["span_ps"] == works["end_ps"] - works["start_ps"]
    assert values["total_time_ps"] == max(line["end_ps"] for line in marked) - min(line["start_ps"] for line in marked)
    span_ps = modules_line["end_ps"] - modules_line["start_ps"]  # the generator's; where nothing trails the same
    duty_busy_ps = sum(step["busy_ps"] for step in steps)
    assert duty_busy_ps + divided["host_wait_ps"] == values["busy_time_ps"]
    told = ask.table("overview_page", *where)[1]["duty_cycle_percent"]
    assert abs(told - 100 * duty_busy_ps / span_ps) < 1e-9
    groups = ask.table("op_profile", *where, "group_by=category")[0]
    core = {"plane": plane, "span_ps": span_ps, "total_self_ps": values["busy_time_ps"],
            "idle_ps": values["idle_time_ps"] + span_ps - values["total_time_ps"], "duty_busy_ps": duty_busy_ps,
            "duty_idle_ps": span_ps - duty_busy_ps, "duty_cycle_percent": 100.0 * duty_busy_ps / span_ps,
            "off_duty_ps": divided["host_wait_ps"], "module_ps": lines["XLA Modules"]["busy_ps"],
            "step_count": ask.table("overview_page", *where)[1]["steps"], "steps": steps,
            "mean_step_ps": mean_step_ps(ask, where, steps), "top_op": ops[0]["name"],
            "categories_self_ps": {row["name"]: row["self_time_ps"] for row in groups if row["kind"] == "category"},
            "ops": ops, "events": {name: line["events"] for name, line in lines.items() if name != "_counters_"}}
    counters = counters_of(ask, host, plane)
    return core if counters is None else {**core, "counters": counters}


# ---- GPU ----

STREAMS = ["Stream #13(Compute)", "Stream #14(MemcpyH2D)", "Stream #15(MemcpyD2H)", "Stream #16(Compute)"]


def stream(ask, host, plane, number):
    return ask.events(host, plane, f"Stream #{number}.*")


def gpu_steps(ask, host, plane, where, origin_ps):
    """A step ends with its copy to the host. The tools that know steps by their markers must say the same."""
    kernels, h2d, d2h, nccl = (stream(ask, host, plane, n) for n in (13, 14, 15, 16))
    device = plane.removeprefix("/device:").replace(":", " ")
    marked = [row for row in ask.table("steps", *where)[0] if row["device"] == device]
    hosts = ask.table("overview_page", *where)[0]
    pods = ask.table("pod_viewer", *where)[0]
    out, before = [], 0
    for number, last in enumerate(d2h):
        end = last["start_ps"] + last["duration_ps"]
        of = [[e for e in events if before <= e["start_ps"] < end] for events in (kernels, h2d, nccl)]
        sums = [sum(e["duration_ps"] for e in events) for events in of]
        before = end
        first = min(events[0]["start_ps"] for events in of if events)
        step = {"step": number, "device_begin_ps": first, "device_end_ps": end, "h2d_ps": sums[1],
                "first_kernel_ps": min(events[0]["start_ps"] for events in (of[0], of[2]) if events),
                "d2h_ps": last["duration_ps"], "compute_kernel_ps": sums[0], "collective_kernel_ps": sums[2]}
        if hosts:
            row, pod = marked[number], pods[number]
            assert (row["step"], row["start_ps"] + origin_ps, row["marked_ps"]) == (number, first, end - first)
            assert (pod["step"], pod["duration_ps"], pod["compute_ps"]) == (number, end - first, sums[0])
            assert (pod["input_ps"] or 0, pod["output_ps"]) == (sums[1], last["duration_ps"])
            assert row["compute_ps"] == sums[0] and row["copy_exposed_ps"] == sums[1] + last["duration_ps"]
            assert row["comm_exposed_ps"] == pod["collective_ps"] <= sums[2]
            assert (hosts[number]["input_wait_ps"] or 0) == sums[1]
            step.update(begin_ps=hosts[number]["start_ps"] + origin_ps, duration_ps=hosts[number]["duration_ps"])
        out.append(step)
    assert not hosts or len(hosts) == len(marked) == len(pods) == len(d2h)
    return out


def times_of(kernel):
    return kernel["min_time_ps"], kernel["max_time_ps"], kernel["occurrences"], kernel["total_time_ps"]


def kernel_rows(rows):
    sums = spread(((r["kernel"], r["registers_per_thread"], r["shared_memory_bytes"], r["grid"], r["matrix_units"]),
                   times_of(r)) for r in rows)
    out = [{"kernel": k[0], "registers": k[1], "shmem_bytes": k[2], "grid": k[3], "really_tensor_core": k[4],
            "occurrences": n, "total_ps": total, "min_ps": least, "max_ps": most}
           for k, (least, most, n, total) in sums.items()]
    return sorted(out, key=lambda row: (-row["total_ps"], row["kernel"]))


def operation_of(kernel, ops):
    """kernel_stats knows what the framework calls a kernel's operation; those of one layer have kernels of their own
    name. Without HLO the operation does not know its framework's name: then it is the one of that time."""
    times = [op["operation"] for op in ops
             if op["framework_name"] is None and op["total_time_ps"] == kernel["total_time_ps"]]
    named = times or [op["operation"] for op in ops if (op["framework_name"] or "").partition(":")[0] ==
                      kernel["operation"].partition(":")[0]]
    own = [name for name in named if kernel["kernel"].removesuffix("_kernel") == name.replace(".", "_")]
    found = own or named
    assert len(found) == 1, (kernel, found)
    return found[0]


def gpu_core(ask, host, plane, origin_ps):
    where = (f"host={host}", f"device={plane}")
    lines = lines_of(ask, host, plane)
    rows, values = ask.table("kernel_stats", *where)
    device = device_of(ask, host, plane)
    copies = [row for row in ask.table("copies", name="devices")[0] if row["device"] == device]
    listed, _ = ask.table("hlo_stats", *where)
    ops = op_rows(ask, where, "gpu", spread((operation_of(r, listed), times_of(r)) for r in rows))
    kernels = kernel_rows(rows)
    steps = gpu_steps(ask, host, plane, where, origin_ps)
    copy_ps = sum(row["time_ps"] for row in copies)
    span_ps = ask.table("hlo_stats", *where)[1]["total_time_ps"]
    assert span_ps == max(line["end_ps"] for line in lines.values() if line["events"]) - \
        min(line["start_ps"] for line in lines.values() if line["events"])
    assert [row["span_ps"] for row in ask.table("check_host_boundness")[0] if row["device"] == device] == [span_ps]
    assert ask.table("hlo_stats", *where)[1]["unnamed_time_ps"] == copy_ps
    core = {"plane": plane, "span_ps": span_ps, "kernel_ps": values["kernel_time_ps"], "copy_ps": copy_ps,
            "collective_ps": sum(r["total_time_ps"] for r in rows if r["kernel"].startswith("nccl")),
            "tensor_core_kernel_ps": values["matrix_unit_time_ps"], "steps": steps, "top_op": ops[0]["name"],
            "top_kernel": kernels[0]["kernel"], "ops": ops, "kernels": kernels,
            "events": [lines.get(name, {"events": 0})["events"] for name in STREAMS]}
    if "begin_ps" in steps[0]:
        core["mean_step_ps"] = mean_step_ps(ask, where, steps)
    return core


# ---- hosts ----

def allocator_facts(ask, where, row):
    """The generator has the first moment of the peak, tacho as XProf the last one."""
    rows, _ = ask.table("memory_profile", *where, name="timeline")
    timeline = [r for r in rows if r["allocator"] == row["allocator"]]
    peaks = [r["time_ps"] for r in timeline if r["stack_bytes"] + r["heap_bytes"] == row["peak_bytes"]]
    assert max(peaks) == row["peak_time_ps"]
    return {**{key: row[key] for key in ("peak_bytes", "stack_bytes", "capacity_bytes")}, "peak_time_ps": min(peaks),
            "events": row["allocations"] + row["releases"]}


def host_facts(ask, host, kind):
    out = {"name": host}
    where = (f"host={host}",)
    cpu = (*where, "plane_regex=^/host:CPU$")
    waits = event_spread(ask, *cpu, "event_regex=^IteratorGetNextOp::DoCompute$")
    if waits:
        out["input_wait_ps"] = waits["IteratorGetNextOp::DoCompute"][3]
    rows, _ = ask.table("memory_profile", *where, name="allocators")
    if rows:
        out["memory"] = {row["allocator"]: allocator_facts(ask, where, row) for row in rows}
    if kind == "cpu":
        out["cpu_ops"] = op_rows(ask, where, "cpu", event_spread(ask, *cpu, "line_regex=^tf_XLA"))
    elif kind == "mixed":  # beside a GPU they are the host's work, which no tool of operations lists
        found = event_spread(ask, *cpu, "line_regex=^tf_XLA")
        out["cpu_ops"] = sorted_ops({"name": name, "occurrences": n, "total_ps": total, "self_ps": total,
                                     "min_ps": least, "max_ps": most}
                                    for name, (least, most, n, total) in found.items())
    elif kind == "tpu":
        metrics = ask.json("check_host_boundness", *where, "--xprof").get("metrics")
        if metrics is not None:
            out["matrix_unit_utilization_percent"] = 100 - metrics["mxu_idleness_percent"]
            out["hbm_utilization_percent"] = metrics["hbm_bandwidth_utilization_percent"]
    return out


def peaks_of(ask, host, plane, kind, keys):
    """What the plane says of its device, and what the tools make of it."""
    document = ask.json("get_xspace_proto", f"host={host}", f"plane_regex=^{plane}$", "line_regex=^none$", "--xprof")
    stats = document["planes"][0]["stats"]
    rows, values = ask.table("get_device_information", f"host={host}")
    rates = {row["resource"]: row for row in rows}
    if kind == "tpu":
        assert values["device"] == stats["device_type_string"]
        assert rates["Compute"]["peak_flops_per_s"] == stats["peak_teraflops_per_second"] * 1e12
        assert rates["HBM"]["peak_bytes_per_s"] == stats["peak_hbm_bw_gigabytes_per_second"] * 1e9
    else:
        assert rates["HBM"]["peak_bytes_per_s"] == stats["memory_bandwidth"]
    return {key: stats[key] for key in keys}


def module_of(files):
    found = set()
    for file in files:
        run = subprocess.run([COUNTS, file], capture_output=True, text=True, check=True)
        found.update(run.stdout.splitlines())
    assert len(found) == 1, found
    return json.loads(found.pop())


def again(profile, kind, features, peak_keys):
    """truth.json as tacho would write it."""
    ask = Answers(profile)
    files = sorted(pathlib.Path(profile).glob("plugins/profile/*/*.xplane.pb"))
    origin_ps = ORIGIN_PS.get(kind, 1_000_000)
    out = {"kind": kind, "hosts": []}
    for file, row in zip(files, ask.table("get_hosts")[0], strict=True):
        host = row["host"]
        planes = sorted({r["plane"] for r in ask.table("inspect_capture")[0]
                         if r["host"] == host and r["plane"].startswith("/device:")})
        cores = [tpu_core(ask, host, plane, origin_ps) if kind == "tpu" else
                 gpu_core(ask, host, plane, origin_ps) for plane in planes]
        assert row["devices"] == (len(planes) if planes else row["devices"])
        out["hosts"].append({"host": host_facts(ask, host, kind), "cores": cores, "events": row["events"],
                             "bytes": file.stat().st_size})
        if planes:
            peaks = peaks_of(ask, host, planes[0], kind, peak_keys)
            assert out.setdefault("peaks", peaks) == peaks
    cores = {len(host["cores"]) for host in out["hosts"]}
    assert len(cores) == 1
    if kind != "cpu":
        out["cores"] = cores.pop()
    out["hosts_count"] = len(out["hosts"])
    summary = ask.json("summary", "--json")
    out["events"], out["bytes"] = summary["events"], sum(host["bytes"] for host in out["hosts"])
    steps = {len(core["steps"]) for host in out["hosts"] for core in host["cores"]} or {len(summary["steps"])}
    assert len(steps) == 1 and summary["steps"] in ([], list(range(max(steps))))
    if summary["steps"] or kind != "cpu":
        out["steps"] = steps.pop()
    if "hlo" in features:
        out["module"] = module_of(files)
    return out


# ---- what a reader of the file must see differently ----

GPU_CATEGORY = {"convolution fusion": "output fusion", "copy": "data formatting"}  # XLA's words on a GPU and a CPU


def gpu_flops(op, elements):
    """The generator counts an addition as one FLOP, and no conversion; XLA's table has 3 and 190 for a tanh."""
    n = op["occurrences"] * elements
    if op["name"].startswith("gemm_fusion_dot"):
        return op["flops"] + 6 * n
    if op["name"].startswith("loop_multiply_fusion"):
        return 193 * n
    return 3 * n if op["name"].startswith(("loop_add_fusion", "all-reduce")) else op["flops"]


def adapt_cost(op, kind, elements, has_hlo):
    if kind == "tpu":  # no statistic says a cost of 0; a copy is read in one memory and written in another
        op["bytes"] *= 2 if op["name"].startswith("copy-start") else 1
        op["flops"], op["bytes"] = op["flops"] or None, op["bytes"] or None
    elif op["category"] == "custom-call" and not op["name"].startswith("cublas") or not has_hlo:
        op["flops"] = op["bytes"] = None  # nothing in the file tells
    else:
        op["flops"] = gpu_flops(op, elements)
    if kind != "tpu" and not has_hlo:
        op["category"] = "unknown"
    elif kind != "tpu":
        op["category"] = GPU_CATEGORY.get(op["category"], op["category"])
        if op["name"].startswith("cublas-gemm"):
            op["category"] = "custom-call"


def adapted(truth, dim):
    """truth.json without what no answer can hold, and with what the file says where the generator says otherwise."""
    kind, features = truth["kind"], truth["features"]
    for path in NOT_ASKED:
        *above, key = path.split(".")
        (truth[above[0]] if above else truth).pop(key)
    if "hlo" not in features:
        del truth["module"]
    if kind == "cpu":
        del truth["cores"]  # threads of the host: cpu_ops are of all of them
        if "steps" not in features and "infeed" not in features:
            del truth["steps"]  # nothing in the file says that there are any
    for host in truth["hosts"]:
        for op in [op for core in host["cores"] for op in core["ops"]] + host["host"].get("cpu_ops", []):
            adapt_cost(op, kind, dim * dim, "hlo" in features)
        for op in host["host"].get("cpu_ops", []) if kind == "mixed" else []:
            del op["category"], op["flops"], op["bytes"]  # of the host's work beside a GPU: as no tool lists them
        for core in host["cores"] if kind in ("gpu", "mixed") and "steps" not in features else []:
            del core["mean_step_ps"]  # no marker, no step of the host
            for step in core["steps"]:
                del step["begin_ps"], step["duration_ps"]
    return truth


def differences(want, got, path=""):
    """Where two documents differ; a key of either that the other lacks is a difference."""
    if isinstance(want, dict) and isinstance(got, dict):
        out = [f"{path}.{key}: {'not asked' if key in want else 'not in truth.json'}"
               for key in want.keys() ^ got.keys()]
        return out + [d for key in want.keys() & got.keys() for d in differences(want[key], got[key], f"{path}.{key}")]
    if isinstance(want, list) and isinstance(got, list):
        out = [] if len(want) == len(got) else [f"{path}: {len(want)} expected, {len(got)} found"]
        return out + [d for i, (a, b) in enumerate(zip(want, got)) for d in differences(a, b, f"{path}[{i}]")]
    if isinstance(want, float) and isinstance(got, (int, float)):
        return [] if abs(want - got) <= 1e-12 * abs(want) else [f"{path}: {want!r} expected, {got!r} found"]
    return [] if want == got and isinstance(want, type(got)) else [f"{path}: {want!r} expected, {got!r} found"]
