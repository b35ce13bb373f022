# SPDX-License-Identifier: Apache-2.0
"""`tacho run` asks a real gRPC server (C core, local credentials, as libtpu's runtime has them) for the
metrics of TPUs. The server is run by the Python of the TensorBoard peer, which brings grpcio."""
import csv
import os
import pathlib
import subprocess

import pytest
from conftest import PEERS, ROOT

TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SERVER = pathlib.Path(__file__).with_name("tpu_runtime_server.py")
TOTAL = 16911433728


@pytest.fixture
def runtime():
    if not PEERS.exists():
        pytest.skip(f"no real peers here: {PEERS.name} is not beside this clone (TACHO_SHARED)")
    subprocess.run([PEERS, "install", "tensorboard"], check=True, timeout=900)
    cache = os.environ.get("PEERS_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "peers")
    server = subprocess.Popen([os.path.join(cache, "venv-tensorboard/bin/python3"), SERVER], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield server
    server.stdin.close()
    server.wait(30)


def test_metrics_of_a_real_server(runtime, tmp_path):
    port = int(runtime.stdout.readline())
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    # A dead port beside the good one, and a proxy that must not be asked.
    env |= {"TACHO_DATA": str(tmp_path), "TPU_RUNTIME_METRICS_PORTS": f"1,{port}", "http_proxy": "http://127.0.0.1:1"}
    subprocess.run([TACHO, "run", "--", "sleep", "3"], env=env, check=True, timeout=60)
    listed = subprocess.run([TACHO, "metrics", "last", "--csv"], env=env, check=True, capture_output=True, text=True)
    rows = {row["name"]: row for row in csv.DictReader(listed.stdout.splitlines()) if row["name"].startswith("tpu_")}
    last = {name: float(row["last"]) for name, row in rows.items()}
    assert last == {
        **{f'tpu_duty_cycle_percent{{device="{i}"}}': v for i, v in enumerate([0.0, 12.5, 99.9, 100.0])},
        **{f'tpu_memory_used_bytes{{device="{i}"}}': v for i, v in enumerate([0, 1, 2**31, TOTAL])},
        **{f'tpu_memory_total_bytes{{device="{i}"}}': TOTAL for i in range(4)},
    }
    assert all(int(row["count"]) == 1 for name, row in rows.items() if "total" in name)
    runtime.stdin.close()
    asked = runtime.stdout.read().split()
    assert set(asked) == {"tpu.runtime.tensorcore.dutycycle.percent", "tpu.runtime.hbm.memory.usage.bytes",
                          "tpu.runtime.hbm.memory.total.bytes"}
    assert asked.count("tpu.runtime.hbm.memory.total.bytes") == 1
