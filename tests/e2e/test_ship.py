# SPDX-License-Identifier: Apache-2.0
"""Journals and profiles on their way to a server: nothing lost, nothing doubled, whoever is killed."""
import hashlib
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import time

import pytest

from test_server import Server, profile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
TRIALS = int(os.environ.get("TACHO_CRASH_TRIALS", "4"))

TRAIN = """
import mmap, os, sys, time
sys.path.insert(0, sys.argv[1])
import tachograph as tacho
counter = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 8)
run = tacho.init()
print("up", flush=True)
for step in range(int(sys.argv[3])):
    with run.record(tacho.Event.STEP, step):
        run.log({"loss": float(step)}, step=step)
    counter[:8] = (step + 1).to_bytes(8, "little")
    time.sleep(0.001)
"""


@pytest.fixture
def server(tmp_path):
    s = Server(tmp_path / "server")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0


def env_of(server, tmp_path, **more):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    path = f"{pathlib.Path(BIN).parent}:{os.environ['PATH']}"
    return {**keep, "TACHO_DATA": str(tmp_path / "host"), "TACHO_SERVER": f"http://127.0.0.1:{server.port}/",
            "TACHO_TOKEN": server.token, "PATH": path, "PYTHONPATH": str(ROOT / "python"), **more}


def tacho(env, *words, **more):
    return subprocess.run([BIN, *words], env=env, capture_output=True, text=True, timeout=90, **more)


def steps_on(server, run):
    """The steps of `loss` as the server has them, over all journals."""
    series = server.get(f"runs/{run}/metrics?name=loss&points=10000")["series"]
    return sorted(p[4] for s in series for p in s["points"])


def train(tmp_path, steps, name="counter"):
    counter = tmp_path / name
    counter.write_bytes(bytes(8))
    return counter, [sys.executable, "-c", TRAIN, str(ROOT / "python"), str(counter), str(steps)]


def acknowledged(counter):
    return struct.unpack("<Q", counter.read_bytes())[0]


def test_run_ships_itself(server, tmp_path):
    _, command = train(tmp_path, 300)
    env = env_of(server, tmp_path, TACHO_RUN_ID="shipped")
    done = tacho(env, "run", "--name", "far", "--", *command)
    assert done.returncode == 0, done.stderr
    assert steps_on(server, "shipped") == list(range(300))
    run = server.get("runs/shipped")
    assert run["name"] == "far" and run["phase"] == "COMPLETED", run
    assert not list((tmp_path / "host").glob("ship/*.lock")), "the workload's own shipper was kept off"


def test_exit_status_is_the_commands_with_the_server_away(server, tmp_path):
    server.stop()
    env = env_of(server, tmp_path)
    p = subprocess.Popen([BIN, "run", "--", "sh", "-c", "echo hi; exit 9"], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "hi\n"
    while "wait here" not in p.stderr.readline():
        assert p.poll() is None
    while len(children(p.pid)) > 1:  # the command has been waited for when its shipper alone is left
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)  # a person who does not want to wait for the server
    assert p.wait(10) == 9
    p.stdout.close(), p.stderr.close()


def test_what_waited_is_sent_later(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_RUN_ID="later", TACHO_SHIP="off")
    _, command = train(tmp_path, 50)
    assert tacho(env, "run", "--", *command).returncode == 0
    assert server.ask("GET", "/api/v1/runs/later")[0] == 404
    first, second = (tacho(env, "ship", "--once") for _ in range(2))
    assert first.returncode == 0 and second.returncode == 0, first.stderr + second.stderr
    assert steps_on(server, "later") == list(range(50))
    assert "tacho: 0 records" in second.stderr, second.stderr


def test_only_what_is_missing_goes_again(server, tmp_path):
    """The server holds a hole in the middle: that is what is sent."""
    env = env_of(server, tmp_path, TACHO_RUN_ID="hole", TACHO_SHIP="off")
    _, command = train(tmp_path, 40)
    assert tacho(env, "run", "--", *command).returncode == 0
    journal, = [p for p in (tmp_path / "host/runs/hole/journals").iterdir() if "-run-" not in p.name]
    raw, records, at = journal.read_bytes(), [], 0
    while at < len(raw):
        length = struct.unpack_from("<I", raw, at + 8)[0]
        records.append(raw[at:at + 32 + length])
        at += 32 + length
    sent = records[:20] + records[30:]
    assert server.ask("POST", "/api/v1/journal", b"".join(sent))[0] == 200
    runner = sum(1 for _ in (tmp_path / "host/runs/hole/journals").iterdir())
    assert runner == 2
    done = tacho(env, "ship", "--once", "--run", "hole")
    assert done.returncode == 0 and steps_on(server, "hole") == list(range(40))
    n = int(done.stderr.split(" records")[0].rsplit(" ", 1)[1])
    whole = tacho(env, "goodput", "hole", "--json").returncode
    assert whole == 0 and 10 < n < len(records), "ten of this journal and the runner's"


def test_token_and_address(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_SHIP="off")
    assert tacho(env, "run", "--", "true").returncode == 0
    wrong = tacho({**env, "TACHO_TOKEN": "0" * 64}, "ship", "--once")
    assert wrong.returncode == 5 and "token" in wrong.stderr, wrong.stderr
    none = tacho({k: v for k, v in env.items() if k != "TACHO_SERVER"}, "ship")
    assert none.returncode == 2 and "TACHO_SERVER" in none.stderr


def test_a_run_that_is_not_there(server, tmp_path):
    for name in ("nope", "../server", ""):
        done = tacho(env_of(server, tmp_path), "ship", "--once", "--run", name)
        assert done.returncode == 3 and "no run" in done.stderr, (name, done.stderr)


def test_a_bad_journal_holds_nothing_up(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_RUN_ID="mixed", TACHO_SHIP="off")
    _, command = train(tmp_path, 20)
    assert tacho(env, "run", "--", *command).returncode == 0
    folder = tmp_path / "host/runs/mixed/journals"
    (folder / "a-0-1-1.journal").write_bytes(b"no journal at all" * 10)
    (folder / "a-0-2-1.journal").write_bytes(b"")  # made just now: its writer is at it
    done = tacho(env, "ship", "--once")
    assert done.returncode == 4 and "a-0-1-1.journal" in done.stderr and "a-0-2-1" not in done.stderr
    assert steps_on(server, "mixed") == list(range(20))


def test_profiles_are_sent_once(server, tmp_path):
    content = profile()
    env = env_of(server, tmp_path, TACHO_RUN_ID="prof", TACHO_SHIP="off")
    assert tacho(env, "run", "--", "true").returncode == 0
    folder = tmp_path / "host/runs/prof/plugins/profile/s1"
    folder.mkdir(parents=True)
    (folder / "host-0.xplane.pb").write_bytes(content)
    first, second = (tacho(env, "ship", "--once") for _ in range(2))
    assert first.returncode == 0 and "1 profiles" in first.stderr, first.stderr
    assert second.returncode == 0 and "0 profiles" in second.stderr, second.stderr
    session = server.wait("sessions/prof~s1", lambda s: s["report_status"] != "pending")
    assert session["report_status"] == "done" and session["run"] == "prof"
    got = server.ask("GET", "/api/v1/sessions/prof~s1/targets/host-0")[1]
    assert hashlib.sha256(got).digest() == hashlib.sha256(content).digest()


def test_ingest_token_of_a_group_may_send(server, tmp_path):
    body = '{"role":"ingest","name":"hosts","run_group":"a"}'
    status, answer, _ = server.ask("POST", "/api/v1/tokens", body)
    assert status == 201
    token = json.loads(answer)["secret"]
    content = profile()
    for group, wanted in (("a", 0), ("b", 1)):
        env = env_of(server, tmp_path / group, TACHO_RUN_ID=f"run-{group}", TACHO_SHIP="off")
        assert tacho(env, "run", "--group", group, "--", "true").returncode == 0
        assert tacho(env, "ship", "--once").returncode == 0  # by an administrator: the group is known
        folder = tmp_path / group / f"host/runs/run-{group}/plugins/profile/s1"
        folder.mkdir(parents=True)
        (folder / "h.xplane.pb").write_bytes(content)
        done = tacho({**env, "TACHO_TOKEN": token}, "ship", "--once")
        assert done.returncode == wanted, done.stderr
        assert server.ask("GET", f"/api/v1/sessions/run-{group}~s1")[0] == (200 if wanted == 0 else 404)


def test_large_payload_goes_first(server, tmp_path):
    config = {"lr": 0.1, "eps": 1e-8, "deep": [{"é": [None, True, -3, 2**60, 0.30000000000000004]}],
              "words": [f"word {i}" for i in range(20000)]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    env = env_of(server, tmp_path, TACHO_RUN_ID="large")
    assert tacho(env, "run", "--config", str(tmp_path / "config.json"), "--", "true").returncode == 0
    assert server.get("runs/large")["configs"] == config
    assert b'"lr":0.1,' in server.ask("GET", "/api/v1/runs/large")[1]  # the shortest number that reads back


def background(data):
    """Pids of the shippers of that data folder."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        try:
            words = (p / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if b"ship" in words and str(data).encode() in words:
            found.append(int(p.name))
    return found


def test_python_starts_one_in_the_background(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_RUN_ID="sdk")
    jobs = [subprocess.Popen(train(tmp_path, 2500, f"c{rank}")[1], env={**env, "RANK": str(rank)},
                             stdout=subprocess.PIPE, text=True) for rank in range(2)]
    for j in jobs:
        assert j.stdout.readline() == "up\n"
    shippers = background(tmp_path / "host")
    assert len(shippers) == 1, shippers
    for j in jobs:
        assert j.wait(60) == 0
        j.stdout.close()
    end = time.monotonic() + 40
    while background(tmp_path / "host") and time.monotonic() < end:
        time.sleep(0.2)
    assert not background(tmp_path / "host"), "it ends with those that it ships for"
    assert steps_on(server, "sdk") == sorted(2 * list(range(2500)))


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in text] + [q for p in text for q in children(p)]


def strike(runner, server):
    """Kills one of those that take part; the server is started again."""
    family = children(runner.pid)
    victim = random.choice(["training", "runner", "server", "shipper"])
    if victim == "server":
        server.stop(signal.SIGKILL)
        server.start()
    elif victim == "runner":
        runner.kill()
    else:
        for pid in family:
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if (b"ship" in words) == (victim == "shipper") and (victim == "shipper" or TRAIN.encode() in words):
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it ended by itself
    return victim, family


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="needs /proc")
def test_kill_anyone_at_any_moment(server, tmp_path):
    struck = {}
    for trial in range(TRIALS):
        run = f"kill{trial}"
        counter, command = train(tmp_path, 600)
        env = env_of(server, tmp_path, TACHO_RUN_ID=run)
        runner = subprocess.Popen([BIN, "run", "--", *command], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        assert runner.stdout.readline() == "up\n"
        time.sleep(random.uniform(0, 0.7))
        victim, family = strike(runner, server)
        struck[victim] = struck.get(victim, 0) + 1
        runner.wait(60)
        for pid in family:  # what outlives the runner
            while pathlib.Path(f"/proc/{pid}").exists() and acknowledged(counter) < 600 and victim == "runner":
                time.sleep(0.05)
        runner.stdout.close()
        last = tacho(env, "ship", "--once", "--run", run)
        assert last.returncode == 0, last.stderr
        got, least = steps_on(server, run), acknowledged(counter)
        assert got == list(range(len(got))), f"{victim}: doubled or lost"
        assert least <= len(got) <= least + 1, f"{victim}: {least} acknowledged, {len(got)} there"
        assert server.get(f"runs/{run}/ledger")["total_elapsed_s"] > 0
    print(f"{TRIALS} trials, killed: {struck}")
