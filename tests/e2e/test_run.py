# SPDX-License-Identifier: Apache-2.0
"""tacho run from outside: exit status, signals, masking, --dry-run, --resume, output, SIGKILL."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))


@pytest.fixture
def env(tmp_path):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    return {**keep, "TACHO_DATA": str(tmp_path / "data")}


def tacho(env, *words, **more):
    return subprocess.run([TACHO, *words], env=env, capture_output=True, text=True, timeout=60, **more)


def journals(env):
    return sorted(pathlib.Path(env["TACHO_DATA"]).glob("runs/*/journals/*.journal"))


@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_status(env, script, status):
    assert tacho(env, "run", "--", "sh", "-c", script).returncode == status
    assert len(journals(env)) == 1


def test_before_start(env):
    assert tacho(env, "run", "--", "/no/such/program").returncode == 127
    assert tacho(env, "run", "--", "/etc/passwd").returncode == 126
    assert tacho(env, "run").returncode == 125
    assert journals(env) == []


def test_output_passes_and_is_kept(env):
    got = tacho(env, "run", "--", "sh", "-c", "echo to-out; echo to-err >&2")
    assert (got.stdout, got.stderr) == ("to-out\n", "to-err\n")
    kept = journals(env)[0].read_bytes()
    assert b"\x01to-out\n" in kept and b"\x02to-err\n" in kept


def test_no_output(env):
    got = tacho(env, "run", "--no-output", "--", "sh", "-c", "printf 'a%sb' -; true")
    assert got.stdout == "a-b" and b"\x01a-b" not in journals(env)[0].read_bytes()


def test_signal_is_forwarded(env):
    p = subprocess.Popen([TACHO, "run", "--", "sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done"],
                         env=env, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    p.send_signal(signal.SIGTERM)
    assert p.wait(20) == 7


def test_secrets_never_reach_the_journal(env):
    secret = "hunter2-" + "do-not-keep"
    tacho({**env, "MY_TOKEN": secret}, "run", "--", "true", "--password", secret, "--api-key=" + secret)
    assert secret.encode() not in journals(env)[0].read_bytes()


def test_dry_run(env):
    got = tacho(env, "run", "--json", "--dry-run", "--name", "n", "--", "train", "--token", "hunter22")
    plan = json.loads(got.stdout)
    assert got.returncode == 0 and plan["start"]["argv"] == ["train", "--token", "***"]
    assert journals(env) == []


def test_resume_is_the_same_run(env):
    show = ["sh", "-c", "echo $TACHO_RUN_ID"]
    first = tacho(env, "run", "--name", "a", "--", *show).stdout
    other = tacho(env, "run", "--name", "a", "--", *show).stdout
    again = tacho(env, "run", "--name", "a", "--resume", "--", *show).stdout
    assert first != other and again == other
    assert tacho(env, "run", "--name", "b", "--resume", "--", "true").returncode != 0


def test_killed_runner_leaves_the_command_alone(env, tmp_path):
    done = tmp_path / "done"
    p = subprocess.Popen([TACHO, "run", "--", "sh", "-c", f"echo up; sleep 1; echo late; echo late; echo ok > {done}"],
                         env=env, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    p.kill()
    assert p.stdout.read() == "late\nlate\n"
    for _ in range(50):
        if done.exists():
            break
        time.sleep(0.1)
    assert done.read_text() == "ok\n"
