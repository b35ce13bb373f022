# SPDX-License-Identifier: Apache-2.0
"""What enters a workload, built for arm64 and run under qemu-user: its journal reads as one from here."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
CC, QEMU = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
pytestmark = pytest.mark.skipif(not (CC and QEMU), reason="no arm64 compiler and qemu-user (make check-long has both)")


def test_c_example_on_arm64(tmp_path):
    program = str(tmp_path / "c_train")
    sources = [ROOT / "src" / "journal" / n for n in ("run_identity.c", "sdk.c", "writer.c")]
    sources += [ROOT / "src" / "base" / n for n in ("clock.c", "crc32c.c", "sha256.c")]
    subprocess.run([CC, "-std=gnu17", "-O2", "-static", "-D_GNU_SOURCE", "-DTACHO_GUEST", '-DTACHO_VERSION="0.1.0"',
                    "-include", ROOT / "src" / "base" / "banned.h", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", "-o",
                    program, ROOT / "examples" / "c_train.c", *sources, "-lm", "-lpthread"], check=True, timeout=120)
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")} | {"TACHO_DATA": str(tmp_path / "data")}
    run = [TACHO, "run", "--name", "arm64"]
    assert subprocess.run([*run, "--", QEMU, program, str(tmp_path)], env=env, timeout=120).returncode == 1
    assert subprocess.run([*run, "--resume", "--", QEMU, program, str(tmp_path)], env=env, timeout=120).returncode == 0
    got = subprocess.run([TACHO, "goodput", "last", "--json"], env=env, capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    ledger = json.loads(got.stdout)
    seconds = {row["category"]: row["seconds"] for row in ledger["ledger"]}
    counts = {row["category"]: row["count"] for row in ledger["ledger"]}
    assert round(sum(seconds.values()) * 1e9) == round(ledger["total_elapsed_s"] * 1e9)
    assert counts["productive_step"] == 60 and counts["wasted_progress"] > 0
    assert ledger["disruptions"] == 1 and not ledger["warnings"]
