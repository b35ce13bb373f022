# SPDX-License-Identifier: Apache-2.0
"""copies beside numbers that the generators wrote, and each spelling of a copy by hand."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def copies(path, *words):
    """(values, rows of all devices together, rows by device)"""
    run = subprocess.run([TACHO, "tool", "copies", path, *words, "--json"], capture_output=True, text=True, check=True)
    answer = []
    for table in json.loads(run.stdout)["tables"]:
        names = [column["name"] for column in table["columns"]]
        answer.append([dict(zip(names, cells)) for cells in table["rows"]])
    return json.loads(run.stdout)["tables"][0]["values"], *answer


def trace(path, events):
    """events: (category, name, stream, start us, duration us, bytes or None)."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur,
         "args": {"device": 0, "stream": tid} | ({} if size is None else {"bytes": size})}
        for cat, name, tid, ts, dur, size in events]}))
    return path


def test_direction_memory_and_exposed_time(tmp_path):
    """A copy half behind a kernel is half exposed; two copies at once are each exposed, together once."""
    values, rows, by_device = copies(trace(tmp_path / "t.json", [
        ("kernel", "gemm", 7, 0, 100, None),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 14, 50, 100, 1_000_000),
        ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 15, 140, 10, 4),
        ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 7, 300, 20, 3_000),
        ("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 7, 330, 20, 5_000),
        ("gpu_memset", "Memset (Device)", 7, 400, 5, 64),
        ("gpu_memset", "Memset (Device)", 7, 410, 0, 64)]))
    got = {(r["direction"], r["from"], r["to"]): (r["count"], r["bytes"], r["time_ps"], r["exposed_ps"]) for r in rows}
    us = 1_000_000
    assert got == {("H2D", "pinned", "device"): (1, 1_000_000, 100 * us, 50 * us),
                   ("D2H", "device", "pageable"): (1, 4, 10 * us, 10 * us),
                   ("H2D", "pageable", "device"): (1, 3_000, 20 * us, 20 * us),
                   ("P2P", "device", "device"): (1, 5_000, 20 * us, 20 * us),
                   ("fill", None, "device"): (2, 128, 5 * us, 5 * us)}
    assert values["exposed_ps"] == (50 + 20 + 20 + 5) * us and values["copying_ps"] == (100 + 20 + 20 + 5) * us
    rate = {r["direction"]: r["bytes_per_s"] for r in rows if r["from"] != "pageable"}
    assert rate["H2D"] == pytest.approx(1e10) and rate["fill"] == pytest.approx(64 / 5e-6)
    assert len(by_device) == len(rows)


def test_unknown_size_is_not_zero(tmp_path):
    _, rows, _ = copies(trace(tmp_path / "t.json", [("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 0, 0, 22, None)]))
    assert [(r["direction"], r["from"], r["bytes"], r["bytes_per_s"]) for r in rows] == [("H2D", "host", None, None)]


@needs_shared
@pytest.mark.parametrize("case", ["gpu_a100_2hosts", "gpu_h100_2", "gpu_v100_slow_input", "gpu_h100_no_steps"])
def test_copies_of_generated_gpus(case):
    truth = json.loads((SHARED / "data/xspace" / case / "truth.json").read_text())
    cores = [core for host in truth["hosts"] for core in host["cores"]]
    values, rows, by_device = copies(SHARED / "data/xspace" / case)
    of = {r["direction"]: r for r in rows}
    assert sum(r["time_ps"] for r in rows) == sum(core["copy_ps"] for core in cores)
    for direction, key in (("H2D", "h2d_ps"), ("D2H", "d2h_ps")):
        if direction in of:
            assert of[direction]["time_ps"] == sum(step[key] for core in cores for step in core["steps"])
    assert of["D2H"]["bytes"] == 4 * of["D2H"]["count"] and of["D2H"]["count"] == sum(len(c["steps"]) for c in cores)
    assert values["count"] == sum(r["count"] for r in by_device)


@needs_shared
def test_amds_details_hold_bytes():
    """53 copies of 655,360 bytes, 0.889 ms: XProf reads no bytes from them."""
    _, rows, _ = copies(SHARED / "data/xspace/mi300x_jax_conv.xplane.pb")
    assert [(r["direction"], r["count"], r["bytes"], r["time_ps"]) for r in rows] == [
        ("D2D", 53, 53 * 655_360, 889_028_000)]


@needs_shared
def test_a_copy_of_no_duration_has_no_rate():
    _, rows, _ = copies(SHARED / "data/reports/h02_bare_inf.json")
    assert {r["direction"]: r["bytes_per_s"] for r in rows if r["time_ps"] == 0} == {"H2D": None, "fill": None}


@needs_shared
@pytest.mark.parametrize("case", ["tpu_v6e_2core", "tpu_v4_counters", "tpu_v5e_no_while"])
def test_transfers_of_a_core(case):
    """Those with the host are what the generator counts as infeed, outfeed, send and receive."""
    truth = json.loads((SHARED / "data/xspace" / case / "truth.json").read_text())
    cores = [core for host in truth["hosts"] for core in host["cores"]]
    _, rows, _ = copies(SHARED / "data/xspace" / case)
    assert sum(r["time_ps"] for r in rows if r["waits_for_host"]) == sum(core["off_duty_ps"] for core in cores)
    assert all(r["bytes_per_s"] is None for r in rows if r["waits_for_host"])
    own = sum(r["count"] for r in rows if not r["waits_for_host"])
    assert own == sum(core["events"].get("Async XLA Ops", 0) for core in cores)


@needs_shared
def test_a_cpu_has_no_other_memory():
    values, rows, _ = copies(SHARED / "data/xspace/cpu_dp4")
    assert rows == [] and values == {}
