# SPDX-License-Identifier: Apache-2.0
"""collective_match and rank_compare beside schedules whose every start and end is known, and small traces by hand."""
import collections
import json
import os
import pathlib
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
