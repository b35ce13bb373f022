# SPDX-License-Identifier: Apache-2.0
"""A run is lost as soon as its processes are gone on this host; of another host, boot, namespace or an older
journal only its silence tells."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import pytest
from test_server import Server, header, record

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SDK = "import sys, tachograph as t; r = t.init(name='s'); print('up', flush=True); sys.stdin.readline(); {end}"


@pytest.fixture
def env(tmp_path):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    return keep | {"TACHO_DATA": str(tmp_path / "data"), "PYTHONPATH": str(ROOT / "python")}


def state(env):
    got = subprocess.run([TACHO, "runs", "show", "last", "--json"], env=env, capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    values = next(t for t in json.loads(got.stdout)["tables"] if t["table"] == "run")["values"]
    return values["phase"], values["reason"]


def start(env, *words):
    p = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while (line := p.stdout.readline()) != "up\n":
        assert line, "it ended"
    return p


def journals(env):
    return sorted(pathlib.Path(env["TACHO_DATA"]).glob("runs/*/journals/*.journal"))


def forge(path, at, content):
    """Writes `content` into the header at its byte `at`, with a right checksum."""
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<I", raw, 8)
    payload = bytearray(raw[32:32 + length])
    payload[at:at + len(content)] = content
    (boottime,) = struct.unpack_from("<Q", raw, 16)
    path.write_bytes(record(1, 0, bytes(payload), boottime) + raw[32 + length:])


def test_killed_recorder(env):
    p = start(env, TACHO, "run", "--", "sh", "-c", "echo up; read x")
    assert state(env) == ("ACTIVE", None)
    p.kill()
    assert state(env) == ("FAILED", "lost")  # a zombie records nothing
    p.communicate()
    assert state(env) == ("FAILED", "lost")


def test_killed_recorder_of_a_workload_that_goes_on(env):
    script = SDK.format(end="r.finish()")
    p = start(env, TACHO, "run", "--", sys.executable, "-c", script)
    p.kill()
    assert state(env) == ("ACTIVE", None)
    p.communicate("\n")
    for _ in range(100):
        if state(env)[0] != "ACTIVE":
            break
        time.sleep(0.1)
    assert state(env)[0] == "COMPLETED", "the workload said its end itself"


def test_killed_workload_without_tacho_run(env):
    p = start(env, sys.executable, "-c", SDK.format(end="r.finish()"))
    assert state(env) == ("ACTIVE", None)
    p.kill()
    p.communicate()
    assert state(env) == ("FAILED", "lost")


@pytest.mark.parametrize("at,content", [(24, bytes(16)), (24, b"b" * 16), (-8, bytes(8)), (-8, b"n" * 8)])
def test_of_another_boot_or_namespace_only_time_tells(env, at, content):
    p = start(env, TACHO, "run", "--", "sh", "-c", "echo up; read x")
    p.kill()
    p.communicate()
    path = journals(env)[0]
    (length,) = struct.unpack_from("<I", path.read_bytes(), 8)
    forge(path, at % length, content)
    assert state(env) == ("ACTIVE", None)


def tick():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def test_a_pid_that_is_given_again_is_another_process(env):
    p = start(env, TACHO, "run", "--", "sh", "-c", "echo up; read x")
    p.kill()
    p.communicate()
    ended = tick()
    while tick() == ended:  # the kernel counts starts in ticks: in the same one nobody can tell the two apart
        time.sleep(0.001)
    other = subprocess.Popen(["sleep", "60"])
    try:
        forge(journals(env)[0], 72, struct.pack("<I", other.pid))
        assert state(env) == ("FAILED", "lost")
        forge(journals(env)[0], 72, struct.pack("<I", 1))  # it was there before the journal
        assert state(env) == ("ACTIVE", None)
    finally:
        other.kill()
        other.wait()


def test_the_server_sees_it_too(env):
    server = Server(env["TACHO_DATA"])
    try:
        p = start(env, TACHO, "run", "--", "sh", "-c", "echo up; read x")
        server.wait("runs", lambda a: [r["phase"] for r in a["items"]] == ["ACTIVE"])
        p.kill()
        p.communicate()
        run = server.wait("runs", lambda a: a["items"][0]["phase"] == "FAILED", seconds=40)["items"][0]
        assert (run["reason"], run["live"]) == ("lost", False)
        assert server.ask("POST", "/api/v1/journal", header(b"f" * 16, "far", time.time_ns()))[0] == 200
        far = server.wait("runs", lambda a: len(a["items"]) == 2)["items"]
        assert next(r["phase"] for r in far if r["run"] == "far") == "ACTIVE"
    finally:
        server.stop(signal.SIGTERM)
