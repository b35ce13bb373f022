# SPDX-License-Identifier: Apache-2.0
"""collective_match and rank_compare beside schedules whose every start and end is known, and small traces by hand."""
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
sys.path.insert(0, str(SHARED / "tools"))
try:
    import gen_diagnosis as gen
except ImportError:
    gen = None

needs_shared = pytest.mark.skipif(gen is None, reason=f"no generator at {SHARED}: set TACHO_SHARED")


def tool(name, path, *words):
    """The tables of the answer by name."""
    run = subprocess.run([TACHO, "tool", name, path, *words, "--json"], capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout)
    return {t["table"]: t for t in answer["tables"]}


def rows(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, cells)) for cells in table["rows"]]


def kineto(path, rank, events, base_ns=1_767_225_600_000_000_000, world=2):
    """events: (category, name, thread, start us, duration us, arguments)."""
    document = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
                "baseTimeNanoseconds": base_ns,
                "traceEvents": [{"ph": "X", "cat": cat, "name": name, "tid": tid, "ts": ts,
                                 "pid": 0 if cat in ("kernel", "gpu_memcpy") else 900,
                                 "dur": dur, "args": args or {"stream": tid, "device": 0}}
                                for cat, name, tid, ts, dur, args in events]}
    path.write_text(json.dumps(document))


def all_reduce(ts, dur, name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL", **args):
    return ("kernel", name, 20, ts, dur, args)


def test_wait_is_duration_less_the_shortest(tmp_path):
    gemm = ("kernel", "gemm", 7, 400, 100, None)
    kineto(tmp_path / "r0.json", 0, [gemm, all_reduce(500, 200), all_reduce(1500, 200)])
    kineto(tmp_path / "r1.json", 1, [gemm, all_reduce(510, 190), all_reduce(1535, 165)])
    t = tool("collective_match", tmp_path)
    who = {r["rank"]: r for r in rows(t["ranks"])}
    assert (who[0]["wait_ps"], who[1]["wait_ps"], who[1]["last_count"]) == (45_000_000, 0, 2)
    assert who[1]["late_ps"] == 45_000_000
    assert [(r["transfer_ps"], r["wait_ps"], r["last"], r["entered_apart_ps"]) for r in rows(t["instances"])] == [
        (190_000_000, 10_000_000, "rank 1", 10_000_000), (165_000_000, 35_000_000, "rank 1", 35_000_000)]


def test_a_capture_that_began_later_is_shifted(tmp_path):
    """Rank 1 saw the last two of three. By order alone its first would be matched with rank 0's first."""
    kineto(tmp_path / "r0.json", 0, [all_reduce(500, 200), all_reduce(1500, 200), all_reduce(2500, 200)])
    kineto(tmp_path / "r1.json", 1, [all_reduce(1510, 190), all_reduce(2535, 165)])
    t = tool("collective_match", tmp_path)
    assert [(r["participants"], r["transfer_ps"], r["wait_ps"]) for r in rows(t["instances"])] == [
        (1, None, None), (2, 190_000_000, 10_000_000), (2, 165_000_000, 35_000_000)]
    assert rows(t["collective_match"])[0]["matched"] == 2


def test_sequence_numbers_and_groups_are_kept_apart(tmp_path):
    """Two groups at the same time; in one of them rank 1 saw number 8 only."""
    group = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Out msg nelems": 1000,
             "Group size": 2}
    pair, far = dict(group, **{"Process Group Ranks": "[0, 1]"}), dict(group, **{"Process Group Ranks": "[0, 2]"})
    kineto(tmp_path / "r0.json", 0, [all_reduce(500, 200, **pair, Seq=7), all_reduce(800, 100, **pair, Seq=8),
                                     all_reduce(1000, 50, **far, Seq=7)], world=3)
    kineto(tmp_path / "r1.json", 1, [all_reduce(810, 90, **pair, Seq=8)], world=3)
    kineto(tmp_path / "r2.json", 2, [all_reduce(1020, 30, **far, Seq=7)], world=3)
    t = tool("collective_match", tmp_path)
    assert sorted((r["group"], r["sequence"], r["participants"], r["wait_ps"]) for r in rows(t["instances"])
                  if r["wait_ps"] is not None) == [("[0, 1]", 8, 2, 10_000_000), ("[0, 2]", 7, 2, 20_000_000)]
    of = {r["group"]: r for r in rows(t["collective_match"])}
    # NCCL's bus bandwidth of an all-reduce of two: what each sends is the whole payload once
    assert of["[0, 1]"]["bus_bytes_per_s"] == pytest.approx(4000 / 90e-6)
    assert (of["[0, 1]"]["instances"], of["[0, 1]"]["matched"], of["[0, 1]"]["bytes"]) == (2, 1, 8000)


def test_one_rank_alone_says_nothing_about_waiting(tmp_path):
    kineto(tmp_path / "r0.json", 0, [all_reduce(500, 200)])
    t = tool("collective_match", tmp_path)
    row = rows(t["collective_match"])[0]
    assert row["time_ps"] == 200_000_000
    assert [row[c] for c in ("transfer_ps", "wait_ps", "last", "bus_bytes_per_s")] == [None] * 4
    assert rows(t["ranks"])[0]["wait_ps"] is None


@needs_shared
def test_ranks_with_their_own_base_time():
    expected = json.loads((SHARED / "data/reports/expected.json").read_text())["h10_ranks_own_base_time/"]
    t = tool("collective_match", SHARED / "data/reports/h10_ranks_own_base_time")
    apart = [1000 * ns for ns in expected["collective_start_skew_ns"]]
    assert [r["entered_apart_ps"] for r in rows(t["instances"])] == apart
    assert {str(r["rank"]): r["wait_ps"] // 1000 for r in rows(t["ranks"])} == expected["wait_ns"]
    assert {r["last"] for r in rows(t["instances"])} == {f"rank {expected['late_rank']}"}


def torch_ranks(program, arch="h100", **how):
    return gen.torch_sim(3, 4, program(dict(arch=arch, h=2048, **how))), gen.kineto_writer(arch)


def xla_ranks(kind, chip, comm, world=4, **how):
    program = gen.dense(gen.XProg(kind, chip), 2048, 2048, 8192, 2, world=world, comm=comm)
    return gen.xla_sim(5, program, world=world, **how), gen.xspace_writer()


@needs_shared
def test_devices_of_a_cpu_wait_in_a_rendezvous():
    """Each of four devices took part in each run. The program names them in collective_device_list (field 87)."""
    t = tool("collective_match", SHARED / "data/xspace/cpu_dp4", "instances=100")
    (row,) = rows(t["collective_match"])
    assert (row["collective"], row["kind"], row["participants"], row["group_size"]) == (
        "all-reduce", "all-reduce", 4, 4)
    assert row["bus_bytes_per_s"] == pytest.approx(row["bytes"] * 2 * 3 / 4 / (row["transfer_ps"] * 1e-12))
    assert row["matched"] == row["instances"] == len({r["sequence"] for r in rows(t["instances"])})
    assert row["time_ps"] == row["wait_ps"] + 4 * row["transfer_ps"]


SCHEDULES = {
    "four ranks": lambda: torch_ranks(gen.train_program, tokens=4096, layers=2, steps=5,
                                      factor=lambda n, s: 1.2 if n == 2 else 1.0),
    "pipeline": lambda: torch_ranks(gen.pipeline_program, micro=8, rows=2048, steps=4,
                                    factor=lambda n: 1.2 if n == 3 else 1.0),
    "TPU, asynchronous": lambda: xla_ranks("tpu", "v5e", "hidden", factor=lambda n, s: 1.1 if n == 2 else 1.0),
    "TPU, in line": lambda: xla_ranks("tpu", "v5e", "sync", per_host=2, factor=lambda n, s: 1.1 if n == 1 else 1.0),
    "GPU, XLA": lambda: xla_ranks("gpu", "h100", "end", world=2, per_host=2),
}


@needs_shared
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedules_collectives(name, tmp_path):
    """A collective of the schedule begins when its last rank arrives: waiting and transfer are known of each."""
    sim, write = SCHEDULES[name]()
    write(sim, str(tmp_path))
    wait, last, transfer = collections.Counter(), collections.Counter(), []
    for parts in sim.colls.values():
        took = [o.end - o.start for o in parts]
        transfer.append(min(took) * 1000)
        for o, d in zip(parts, took):
            wait[o.rank.n] += (d - min(took)) * 1000
        if took.count(min(took)) == 1:
            last[parts[took.index(min(took))].rank.n] += 1
    t = tool("collective_match", tmp_path, "instances=100000")
    ours = rows(t["ranks"])
    numbers = [r["rank"] if r["rank"] is not None else n for n, r in enumerate(ours)]
    assert {n: r["wait_ps"] for n, r in zip(numbers, ours)} == {r.n: wait[r.n] for r in sim.ranks}
    assert sorted(r["transfer_ps"] for r in rows(t["instances"])) == sorted(transfer)
    for n, r in zip(numbers, ours):  # of those that came together the clock decides
        assert r["last_count"] >= last[n]


@needs_shared
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bus_bandwidth_of_a_slow_link(seed, tmp_path):
    """The schedule's transfers run at 35 % of the link's peak; noise is in their durations."""
    sim = gen.torch_sim(seed, 4, gen.train_program(dict(
        arch="h100", h=2048, tokens=4096, layers=2, steps=5, tail_reduce=(2, 256 << 20), bw=lambda n: 0.35)))
    gen.kineto_writer("h100")(sim, str(tmp_path))
    (row,) = [r for r in rows(tool("collective_match", tmp_path)["collective_match"]) if r["collective"] == "allreduce"]
    assert row["bus_bytes_per_s"] == pytest.approx(0.35 * gen.ARCH["h100"]["link"], rel=0.05)
    assert row["group_size"] == 4 and row["kind"] == "all-reduce"


def rank_compare(path):
    tables = tool("rank_compare", path)
    parts = {(r["participant"], r["part"]): r for r in rows(tables["parts"])}
    return tables["rank_compare"]["values"], rows(tables["rank_compare"]), parts, rows(tables["windows"])


def ranks_of(folder, durations):
    """Ranks with one kernel a step, as long as said, and the same copy; five steps, by launch."""
    for rank, us in enumerate(durations):
        events = []
        for step in range(5):
            at = 1000 * step
            events += [("user_annotation", f"ProfilerStep#{step}", 1, at, 900, {}),
                       ("cuda_runtime", "cudaLaunchKernel", 1, at + 10, 5, {"correlation": 2 * step + 1}),
                       ("kernel", "gemm", 7, at + 100, us, {"stream": 7, "device": 0, "correlation": 2 * step + 1}),
                       ("cuda_runtime", "cudaMemcpyAsync", 1, at + 20, 5, {"correlation": 2 * step + 2}),
                       ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7, at + 100 + us, 10,
                        {"stream": 7, "device": 0, "correlation": 2 * step + 2, "bytes": 8})]
        kineto(folder / f"r{rank}.json", rank, events, world=len(durations))


def test_of_five_and_more_the_score_tells(tmp_path):
    """Median 105, MAD 2: z of 200 is 0.6745 * 95 / 2, and of 112 it is 2.4."""
    durations = [103, 105, 104, 112, 200, 107, 105]
    ranks_of(tmp_path, durations)
    values, ranks, parts, _ = rank_compare(tmp_path)
    middle = statistics.median(durations)
    mad = statistics.median(abs(d - middle) for d in durations)
    for rank, us in enumerate(durations):
        part = parts[f"rank {rank}", "compute"]
        assert (part["value_ps"], part["median_ps"], part["cohort_size"]) == (us * 1_000_000, middle * 1_000_000, 7)
        assert part["z"] == pytest.approx(0.6745 * (us - middle) / max(mad, middle / 100))
        assert part["outlier"] == (us == 200)
    assert (values["straggler"], values["straggler_part"]) == ("rank 4", "compute")
    assert values["straggler_excess_ps"] == 95_000_000
    assert {r["steps"] for r in ranks} == {3}


def test_of_three_the_ratio_alone(tmp_path):
    ranks_of(tmp_path, [100, 100, 111])
    values, _, parts, _ = rank_compare(tmp_path)
    assert [(parts[f"rank {i}", "compute"]["z"], parts[f"rank {i}", "compute"]["outlier"]) for i in range(3)] == [
        (None, False), (None, False), (None, True)]
    assert values["straggler"] == "rank 2"


def test_of_two_nobody_stands_out(tmp_path):
    ranks_of(tmp_path, [100, 300])
    values, _, parts, _ = rank_compare(tmp_path)
    assert (values["straggler"], parts["rank 1", "compute"]["outlier"]) == (None, None)
    assert parts["rank 1", "compute"]["ratio"] == 1.5


def test_only_equal_work_is_compared(tmp_path):
    """Three ranks run another kernel: the long one of them is no straggler among the others."""
    ranks_of(tmp_path, [100, 100, 100, 300, 300, 300])
    for rank in range(3, 6):
        path = tmp_path / f"r{rank}.json"
        path.write_text(path.read_text().replace("gemm", "conv"))
    values, ranks, _, _ = rank_compare(tmp_path)
    assert [r["cohort"] for r in ranks] == [0, 0, 0, 1, 1, 1]
    assert (values["cohorts"], values["straggler"]) == (2, None)


@needs_shared
def test_the_generators_straggler_is_named():
    truth = json.loads((SHARED / "data/xspace/gpu_a100_2hosts/truth.json").read_text())
    values, ranks, parts, windows = rank_compare(SHARED / "data/xspace/gpu_a100_2hosts")
    assert (values["straggler"], values["straggler_part"]) == ("host-0 GPU 0", "compute")
    assert parts["host-0 GPU 0", "compute"]["ratio"] == pytest.approx(1.3, abs=0.02)
    cores = [core for host in truth["hosts"] for core in host["cores"]]
    for core, window in zip(cores, windows):
        assert window["window_ps"] == core["span_ps"]
        assert (window["copy_ps"], window["comm_ps"]) == (core["copy_ps"], core["collective_ps"])


@needs_shared
@pytest.mark.parametrize("kind", ["gpu", "tpu"])
@pytest.mark.parametrize("seed", [101, 102, 103])
@pytest.mark.parametrize("straggler", [True, False])
def test_of_eight_generated_cores_the_slow_one_is_named(kind, seed, straggler, tmp_path):
    features = ["--features", "straggler"] if straggler else []
    subprocess.run([sys.executable, SHARED / "tools/gen_xspace.py", tmp_path, "--kind", kind, "--hosts", "4",
                    "--cores", "2", "--steps", "6", "--seed", str(seed), *features], check=True, capture_output=True)
    values, _, parts, windows = rank_compare(tmp_path)
    name = "host-0 " + kind.upper() + " 0"
    assert values["straggler"] == (name if straggler else None)
    truth = json.loads((tmp_path / "truth.json").read_text())
    cores = [core for host in truth["hosts"] for core in host["cores"]]
    if kind == "gpu":
        for core, window in zip(cores, windows):
            part = parts[window["participant"], "compute"]
            steps = core["steps"][1:-1]  # complete ones
            assert part["value_ps"] == pytest.approx(sum(s["compute_kernel_ps"] for s in steps) / len(steps), abs=1)
            assert window["window_ps"] == core["span_ps"] and window["idle_ps"] == core["span_ps"] - window["busy_ps"]


@needs_shared
@pytest.mark.parametrize("dose", ["clean", "sub", "p2", "p1", "p0"])
def test_one_slow_host_of_32(dose):
    """The step grows by less than the host's compute: a part of it was hidden."""
    values, _, parts, _ = rank_compare(SHARED / "data/diagnosis/C16" / dose)
    if dose in ("clean", "sub"):
        assert values["straggler"] is None
        return
    truth = {c["id"]: c for c in json.loads((SHARED / "data/diagnosis/cases.json").read_text())["cases"]}[f"C16-{dose}"]
    assert (values["straggler"], values["straggler_part"]) == ("w-17 TPU 0", "compute")
    assert values["straggler_excess_ps"] / 1e12 == pytest.approx(truth["truth_impact"]["amount"], rel=0.16)
    assert parts["w-17 TPU 0", "comm_wait"]["value_ps"] == 0


@needs_shared
@pytest.mark.parametrize("name", [n for n in SCHEDULES if n != "pipeline"])
def test_windows_of_a_schedule(name, tmp_path):
    """The whole window of each rank cut as the schedule cuts it, by its own method."""
    sim, write = SCHEDULES[name]()
    write(sim, str(tmp_path))
    values, ranks, _, windows = rank_compare(tmp_path)
    for rank, window in zip(sim.ranks, windows):
        budget = {k: v * 1000 for k, v in gen.budget(rank).items()}
        assert window["window_ps"] == budget["window"]
        if "TPU" not in name:  # there a start counts as communication here, as compute in the schedule
            assert (window["compute_ps"], window["comm_exposed_ps"], window["copy_exposed_ps"], window["idle_ps"]) == (
                budget["compute"], budget["comm_exposed"], budget["copy_exposed"], budget["idle"])
    if name == "four ranks":
        assert (values["straggler"], values["straggler_part"]) == ("rank 2", "compute")
        for row, window in zip(ranks, windows):  # though batches are copied ahead on a stream of their own
            assert row["step_ps"] == pytest.approx(window["window_ps"] / 5, rel=0.05)


ONE_IN_EIGHT = {  # how each rank's compute is stretched, and who is to be named
    "all alike": (lambda n, s: 1.0, None),
    "one 3 % slower": (lambda n, s: 1.03 if n == 5 else 1.0, 5),
    "all differ, the slowest by 0.2 % from the next": (lambda n, s: 1 + (0, 3, 9, 4, 10, 28, 26, 14)[n] / 1000, None),
    "of them one 4 % slower": (lambda n, s: 1 + (0, 3, 9, 4, 10, 68, 26, 14)[n] / 1000, 5),
    "one step of one is half longer": (lambda n, s: 1.5 if (n, s) == (5, 3) else 1.0, None),
}


@needs_shared
@pytest.mark.parametrize("name", ONE_IN_EIGHT)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_slow_rank_is_not_the_slowest_of_many_that_differ(name, seed, tmp_path):
    """The others wait for the slowest in any case: what counts is what the step would gain without it."""
    factor, slow = ONE_IN_EIGHT[name]
    program = gen.XProg("tpu", "v5e")
    program.link = 3e12
    gen.dense(program, 1024, 2048, 8192, 1, world=8, comm="hidden", opt=True, after=lambda p, g: p.reduce_all(
        g[0][0], "metrics", 8, shape=gen.Shape(gen.F32, (1024,)), latency=30000))
    sim = gen.xla_sim(seed, program, world=8, hosts=lambda n: f"w-{n}", factor=factor)
    gen.xspace_writer()(sim, str(tmp_path))
    values, _, _, _ = rank_compare(tmp_path)
    assert values["straggler"] == (None if slow is None else f"w-{slow} TPU 0")
