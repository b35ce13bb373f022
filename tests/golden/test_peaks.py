# SPDX-License-Identifier: Apache-2.0
"""The table of peak rates as users see it."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE = SHARED / "data" / "xspace"

needs_shared = pytest.mark.skipif(not XSPACE.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def tool(*words):
    return subprocess.run([TACHO, "tool", *words], capture_output=True, text=True, check=False)


def tables(*words):
    run = tool("peaks", *words, "--json")
    assert run.returncode == 0, run.stderr
    out = {}
    for table in json.loads(run.stdout)["tables"]:
        names = [column["name"] for column in table["columns"]]
        out[table["table"]] = [dict(zip(names, row)) for row in table["rows"]]
    return out


def rate(rows, device, kind, basis):
    found = [row for row in rows if (row["device"], row["type"], row["basis"]) == (device, kind, basis)]
    assert len(found) == 1
    return found[0]


def test_without_a_profile_every_number_has_its_source():
    all_tables = tables()
    rows = all_tables["rates"]
    assert {row["basis"] for row in rows + all_tables["memory"]} == {"data sheet", "derived"}
    for row in rows + all_tables["memory"]:
        assert row["source"] and (" a clock x " in row["source"]) == (row["basis"] == "derived")
    h100 = rate(rows, "H100 SXM5", "bf16", "data sheet")
    assert (h100["flops_per_s"], h100["source"]) == (989.4e12, "H100 data sheet and whitepaper")
    assert h100["ridge_flops_per_byte"] == pytest.approx(989.4e12 / 3.35e12)
    assert rate(rows, "Instinct MI355X", "fp4", "data sheet")["flops_per_s"] == 10066.3e12
    assert rate(rows, "B200", "fp4", "derived")["flops_per_s"] == 148 * 32768 * 1830e6
    assert rate(rows, "TPU7x", "fp8", "data sheet")["flops_per_s"] == 4614e12
    assert {row["target"] for row in all_tables["per_clock"]} >= {"6.0", "9.0", "10.0", "12.0", "gfx908", "gfx950"}


def test_other_tools_need_a_profile():
    run = tool("hlo_stats")
    assert (run.returncode, "needs a PROFILE" in run.stderr) == (2, True)
    assert tool("peaks", "colour=red").returncode == 2


@needs_shared
def test_a_profiles_devices_beside_their_data_sheets():
    both = tables(XSPACE / "gpu_h100_2")
    used = [row for row in both["rates"] if row["type"] == "used"]
    assert [(row["basis"], row["flops_per_s"]) for row in used] == [("derived", 132 * 4096 * 1980e6)]
    device = used[0]["device"]
    assert rate(both["rates"], device, "bf16", "data sheet")["flops_per_s"] == 989.4e12
    tpu = tables(XSPACE / "tpu_v6e_2core")["rates"]
    assert [row["basis"] for row in tpu if row["type"] == "used"] == ["profile"]


@needs_shared
def test_half_a_memory_rate_is_said():
    run = tool("peaks", XSPACE / "mi300x_jax_conv.xplane.pb")
    assert "half of its data sheet's memory rate" in run.stdout
    memory = [row for row in tables(XSPACE / "mi300x_jax_conv.xplane.pb")["memory"] if row["memory"] == "device memory"]
    assert [(row["basis"], row["bytes_per_s"]) for row in memory] == [("profile", 2662.4e9), ("data sheet", 5300e9)]
