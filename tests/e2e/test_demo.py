# SPDX-License-Identifier: Apache-2.0
"""The demo's C example, to its planted crash and on: the ledger sums and the slow loader costs most."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")} | {"TACHO_DATA": str(folder / "data")}
    demo = subprocess.run([TACHO, "demo", "--no-serve", "--example", "c"], env=env, timeout=120, capture_output=True,
                          text=True)
    assert demo.returncode == 0, demo.stderr
    assert "crashed as planted" in demo.stdout and (folder / "data" / "summary.html").is_file()
    return env


def document(env, *words):
    got = subprocess.run([TACHO, *words, "--json"], env=env, capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def test_ledger_sums_exactly_and_names_wasted_steps(env):
    ledger = document(env, "goodput", "last")
    seconds = {row["category"]: row["seconds"] for row in ledger["ledger"]}
    assert round(sum(seconds.values()) * 1e9) == round(ledger["total_elapsed_s"] * 1e9)
    assert seconds["wasted_progress"] > 0
    lost = {k: v for k, v in seconds.items() if k != "productive_step"}
    assert max(lost, key=lost.get) == "data_loading_sync"


def test_first_finding_is_the_slow_loader(env):
    report = document(env, "report", "last")
    first = report["findings"][0]
    assert first["id"] == "input-bound" and first["priority"] == "P0"
    assert "steps 12 to 39" in first["what"]
    assert {f["id"] for f in report["findings"]} <= {"input-bound", "checkpoint-blocking", "restart-wasted"}


def test_a_taken_port_is_no_end(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")} | {"TACHO_DATA": str(tmp_path)}
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 7480))
            taken.listen()
        except OSError:
            pass  # taken by another program: as good
        demo = subprocess.Popen([TACHO, "demo", "--example", "c"], env=env, stdout=subprocess.PIPE, text=True)
        try:
            said = []
            for line in demo.stdout:
                said.append(line)
                if line.startswith("http://"):
                    break
            assert any("127.0.0.1:7480 is in use" in line for line in said), said
            url = said[-1].split("/#")[0]
            with urllib.request.urlopen(url + "/healthz", timeout=20) as answer:
                assert answer.status == 200
        finally:
            demo.send_signal(signal.SIGINT)
            assert demo.wait(timeout=60) == 0


def test_installed_and_removed(tmp_path, env):
    build = str(pathlib.Path(TACHO).parent)
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", str(tmp_path)], check=True,
                   timeout=120)
    tacho = next(tmp_path.rglob("bin/tacho"))
    lib = next(tmp_path.rglob("libtachograph.so")).parent
    installed = env | {"TACHO_DATA": str(tmp_path / "data"), "LD_LIBRARY_PATH": str(lib)}
    said = {"env": installed, "timeout": 120, "capture_output": True, "text": True}
    demo = subprocess.run([tacho, "demo", "--no-serve", "--example", "c"], **said)
    assert demo.returncode == 0, demo.stderr
    assert str(tacho.parent) in demo.stdout
    assert list(tmp_path.rglob("man1/tacho-run.1"))
    refused = subprocess.run([tacho, "demo", "--example", "fortran"], **said)
    assert refused.returncode == 3 and "fortran" in refused.stderr


def test_jax_demo_with_its_profile(tmp_path):
    python = ROOT / ".venv/bin/python3"
    if subprocess.run([python, "-c", "import jax"], capture_output=True).returncode != 0 if python.exists() else True:
        pytest.skip("no JAX in .venv")
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env |= {"TACHO_DATA": str(tmp_path), "TACHO_BIN": TACHO, "DEMO_SERVE": "0", "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([ROOT / "tools/demo"], env=env, check=True, timeout=240, stdout=subprocess.DEVNULL)
    report = document(env, "report", "last")
    first = report["findings"][0]
    assert first["id"] == "input-bound" and first["priority"] == "P0"
    slow = {e["metric"]: e["value"] for e in first["evidence"]}
    assert slow["slow_loads"] == 64 and 25.6 <= slow["slow_loads_total"] < 1.2 * 25.6  # 64 planted loads of 0.4 s
    assert {f["id"] for f in report["findings"]} <= {"input-bound", "checkpoint-blocking", "restart-wasted"}
    metrics = {m["name"]: m["value"] for m in report["key_metrics"]}
    assert metrics["devices"] == 4 and 0 < metrics["profile_step_time_s"] < 0.4  # without the load of 0.4 s before it
    assert report["sections"]["op_profile"]["rows"][0][0] and report["warnings"] == []
