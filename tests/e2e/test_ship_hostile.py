# SPDX-License-Identifier: Apache-2.0
"""Shipping to servers that hang, lie and refuse, and from data folders that are large, old or broken."""
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from test_server import Server, header, profile, record
from test_ship import BIN, env_of, steps_on, tacho, train


class Liar:
    """Answers each request as told, by method and path; None = never."""

    def __init__(self, answer):
        liar = self
        self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                liar.seen.append((self.command, self.path, len(body)))
                said = answer(self.command, self.path, body)
                if said is None:
                    liar.never.wait(60)
                    self.close_connection = True
                    return
                status, content, more = (*said, {})[:3]
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for name, value in more.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_GET = do

            def log_message(self, *_):
                pass

        self.never = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port, self.token = self.server.server_address[1], "secret-of-the-test"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.never.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server(tmp_path):
    honest = Server(tmp_path / "server")
    yield honest
    assert honest.stop() == 0


@pytest.fixture
def liar():
    made = []

    def make(answer):
        made.append(Liar(answer))
        return made[-1]

    yield make
    for m in made:
        m.end()


def recorded(tmp_path, n=1):
    """A data folder of that many runs of one journal each, and their names."""
    names = [f"run{i:05d}" for i in range(n)]
    for i, name in enumerate(names):
        folder = tmp_path / "host/runs" / name / "journals"
        folder.mkdir(parents=True)
        content = header(i.to_bytes(16, "little"), name) + record(5, 1, bytes(8) + b"\0\0", 2000)
        (folder / "host-9-0-42-1.journal").write_bytes(content)
    return names


def has(next_seq, missing=()):
    return 200, json.dumps({"journal": "", "next_seq": next_seq, "new_records": 0, "missing": missing}).encode()


def add_profile(tmp_path, run, content):
    folder = tmp_path / "host/runs" / run / "plugins/profile/s1"
    folder.mkdir(parents=True)
    (folder / "host-0.xplane.pb").write_bytes(content)


@pytest.mark.parametrize("answer", [(302, b"", {"Location": "https://login.example/"}), (200, b"<html>Log in</html>"),
                                    (204, b""), (200, b"[]"), (200, b'{"next_seq":-1}'), (200, b"\xff\0{"),
                                    (200, b'{"next_seq":"many"}'), (200, b"{}")])
def test_what_is_no_server_of_ours_takes_nothing(liar, tmp_path, answer):
    recorded(tmp_path)
    far = liar(lambda *_: answer)
    p = subprocess.Popen([BIN, "ship"], env=env_of(far, tmp_path), stderr=subprocess.PIPE, text=True)
    line = p.stderr.readline()
    p.send_signal(signal.SIGKILL)
    p.wait(), p.stderr.close()
    assert "does not answer as a tachograph server" in line, line


def test_a_profile_is_sent_only_when_the_server_says_so(liar, tmp_path):
    """A proxy that redirects uploads to a page for logging in does not count as a server that took them."""
    run, = recorded(tmp_path)
    add_profile(tmp_path, run, b"x" * 1000)
    far = liar(lambda method, path, _: has(2) if path.endswith("/journal") else
               (200, b"{}") if path.endswith("/sessions") else (302, b"", {"Location": "https://login.example/"}))
    p = subprocess.Popen([BIN, "ship"], env=env_of(far, tmp_path), stderr=subprocess.PIPE, text=True)
    assert "does not answer as" in p.stderr.readline()
    p.send_signal(signal.SIGKILL)
    p.wait(), p.stderr.close()


def test_one_journal_that_the_server_fails_at_holds_no_other_up(liar, tmp_path):
    names = recorded(tmp_path, 12)
    for name in names:
        add_profile(tmp_path, name, b"x")
    bad = names[0].encode()
    far = liar(lambda method, path, body: (500, b"{}") if bad in body or bad.decode() in path else
               has(2) if path.endswith("/journal") else (204, b"") if method == "PUT" else (200, b"{}"))
    p = subprocess.Popen([BIN, "ship"], env=env_of(far, tmp_path), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while sum(path.endswith("/complete") for _, path, _ in far.seen) < 11 and time.monotonic() < end:
        time.sleep(0.1)
    p.send_signal(signal.SIGKILL)
    p.wait(), p.stderr.close()
    assert sum(path.endswith("/complete") for _, path, _ in far.seen) == 11


def test_a_proxy_that_takes_only_a_little_at_once(liar, server, tmp_path):
    """As nginx with its client_max_body_size of 1 MB before the server."""
    env = env_of(server, tmp_path, TACHO_RUN_ID="wide", TACHO_SHIP="off")
    _, command = train(tmp_path, 5)
    assert tacho(env, "run", "--", *command).returncode == 0
    folder = tmp_path / "host/runs/wide/journals"
    journal, = [p for p in folder.iterdir() if "-run-" not in p.name]
    with journal.open("ab") as f:
        f.write(b"".join(record(6, 100000 + i, b"\1" + b"y" * 60000) for i in range(60)))
    add_profile(tmp_path, "wide", profile())
    most = 1 << 20

    def pass_on(method, path, body):
        if len(body) > most:
            return 413, b"<html>413</html>"
        return server.ask(method, path, body, X_Checksum_SHA256=hashlib.sha256(body).hexdigest(),
                          Content_Type="application/vnd.tachograph.journal")[:2]

    proxy = liar(pass_on)
    proxy.token = server.token
    done = tacho(env_of(proxy, tmp_path), "ship", "--once")
    assert done.returncode == 0, done.stderr
    assert steps_on(server, "wide") == list(range(5))
    assert any(n > most for _, _, n in proxy.seen), "the first batch was too large"
    again = tacho(env, "ship", "--once")
    assert again.returncode == 0 and "tacho: 0 records" in again.stderr, again.stderr


def test_once_takes_as_long_as_it_takes(liar, tmp_path):
    """More than 20 s of sending is no reason to stop, nor to leave the profiles out."""
    names = recorded(tmp_path, 12)
    add_profile(tmp_path, names[-1], b"x")

    def slow(method, path, _):
        time.sleep(1 if path.endswith("/journal") else 0)
        return has(1) if path.endswith("/journal") else (204, b"") if method == "PUT" else (200, b"{}")

    done = tacho(env_of(liar(slow), tmp_path), "ship", "--once")
    assert done.returncode == 0 and "12 records and 1 profiles" in done.stderr, done.stderr


def test_a_server_that_hangs_is_left_after_20_s(liar, tmp_path):
    far = liar(lambda *_: None)
    begin = time.monotonic()
    done = tacho(env_of(far, tmp_path), "run", "--", "sh", "-c", "exit 9")
    assert done.returncode == 9, done.stderr
    assert 15 < time.monotonic() - begin < 60, "CMD's end plus 20 s; the machine may be busy"
    assert "secret-of-the-test" not in done.stderr


def test_a_second_signal_ends_the_wait(liar, tmp_path):
    far = liar(lambda *_: None)
    p = subprocess.Popen([BIN, "run", "--", "sh", "-c", "echo hi; exit 9"], env=env_of(far, tmp_path),
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert p.stdout.read() == "hi\n"
    time.sleep(1)
    begin = time.monotonic()
    p.send_signal(signal.SIGINT)
    assert p.wait(60) == 9 and time.monotonic() - begin < 10
    p.stdout.close()


def ship_pids(data):
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words, env = ((p / name).read_bytes() for name in ("cmdline", "environ"))
            if b"ship" in words.split(b"\0") and str(data).encode() in env:
                found.append(int(p.name))
        except OSError:
            pass
    return found


def test_the_token_stands_in_no_command_line_and_no_file(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_RUN_ID="secret")
    p = subprocess.Popen([BIN, "run", "--", "sh", "-c", "echo up; sleep 2"], env=env, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    time.sleep(0.5)
    pids = ship_pids(tmp_path / "host")
    assert pids, "a shipper runs"
    for pid in (*pids, p.pid):
        assert server.token.encode() not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    assert p.wait(60) == 0
    p.stdout.close()
    for path in (tmp_path / "host").rglob("*"):
        if path.is_file():
            assert server.token.encode() not in path.read_bytes(), path
    end = time.monotonic() + 30
    while ship_pids(tmp_path / "host") and time.monotonic() < end:
        time.sleep(0.1)
    assert not ship_pids(tmp_path / "host"), "nothing is left behind"


def test_thousands_of_quiet_runs_cost_next_to_nothing(liar, tmp_path):
    n = 3000
    recorded(tmp_path, n)
    long_ago = time.time() - 3600
    for path in (tmp_path / "host/runs").rglob("*.journal"):
        os.utime(path, (long_ago, long_ago))
    far = liar(lambda *_: has(2))
    p = subprocess.Popen([BIN, "ship"], env=env_of(far, tmp_path), stderr=subprocess.DEVNULL,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    end = time.monotonic() + 120
    while len(far.seen) < n and time.monotonic() < end:
        time.sleep(0.2)
    assert len(far.seen) == n, "each journal is asked for, though only 64 files may be open"
    time.sleep(2)
    cpu_s, seen = [], len(far.seen)
    for _ in range(2):
        words = pathlib.Path(f"/proc/{p.pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu_s.append((int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"))
        time.sleep(10)
    assert cpu_s[1] - cpu_s[0] < 1, "at most a tenth of a processor, on any machine"
    assert len(far.seen) == seen, "and the server is not asked again"
    resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{p.pid}/status").read_text())[1])
    assert resident < 64 * 1024, "KiB"
    p.send_signal(signal.SIGTERM)
    assert p.wait(60) == 0


def test_a_server_put_back_to_a_backup_gets_again_what_it_lost(server, tmp_path):
    """While the shipper runs: what it has sent and acknowledged, of a run that goes on and of one that is over."""
    env = env_of(server, tmp_path, TACHO_RUN_ID="over", TACHO_SHIP="off")
    _, command = train(tmp_path, 30)
    assert server.stop() == 0
    shutil.copytree(server.data, tmp_path / "backup")
    server.start()
    assert tacho(env, "run", "--", *command).returncode == 0
    long_ago = time.time() - 3600
    for path in (tmp_path / "host/runs/over").rglob("*.journal"):
        os.utime(path, (long_ago, long_ago))
    shipper = subprocess.Popen([BIN, "ship"], env=env, stderr=subprocess.DEVNULL)
    _, command = train(tmp_path, 4000)
    live = subprocess.Popen(command, env={**env, "TACHO_RUN_ID": "live"}, stdout=subprocess.PIPE, text=True)
    assert live.stdout.readline() == "up\n"
    server.wait("runs?page_size=10", lambda a: len(a["items"]) == 2)
    time.sleep(2)
    assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    shutil.rmtree(server.data)
    shutil.copytree(tmp_path / "backup", server.data)
    server.start()
    assert live.wait(90) == 0
    live.stdout.close()
    shipper.send_signal(signal.SIGTERM)
    assert shipper.wait(60) == 0
    assert steps_on(server, "live") == list(range(4000))
    assert steps_on(server, "over") == list(range(30))


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422])
def test_a_proxy_without_a_server_behind_it_is_a_server_that_is_away(liar, tmp_path, status):
    names = recorded(tmp_path, 2)
    back = threading.Event()
    far = liar(lambda *_: has(1) if back.is_set() else (status, b"default backend"))
    p = subprocess.Popen([BIN, "ship", "--once"], env=env_of(far, tmp_path), stderr=subprocess.PIPE, text=True)
    assert f"status {status}" in p.stderr.readline()
    back.set()
    assert p.wait(60) == 0, "nothing was set aside"
    assert f"{len(names)} records" in p.stderr.read()
    p.stderr.close()


def test_the_last_word_says_why(tmp_path):
    recorded(tmp_path)

    class Nowhere:
        port, token = 9, "t"  # discard: nobody listens

    done = tacho(env_of(Nowhere, tmp_path), "ship", "--once")
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 5 and "cannot reach" in last, done.stderr


def test_what_is_no_journal_holds_none_up(server, tmp_path):
    """Odd files under a journal's name."""
    names = recorded(tmp_path, 3)
    folder = tmp_path / "host/runs" / names[0] / "journals"
    (folder / "folder.journal").mkdir()
    os.mkfifo(folder / "fifo.journal")
    os.symlink("/dev/zero", folder / "zero.journal")
    os.symlink("loop.journal", folder / "loop.journal")
    (folder / os.fsdecode(b"odd\xff\n.journal")).write_bytes(header(b"q" * 16, names[0]))
    os.mkdir(os.fsencode(tmp_path / "host/runs") + b"/\xff\xfe")
    begin = time.monotonic()
    done = tacho(env_of(server, tmp_path), "ship", "--once")
    assert time.monotonic() - begin < 15, "none of them is worth waiting for"
    assert done.returncode != 0 and "folder.journal' was passed over" in done.stderr, done.stderr
    assert {r["run"] for r in server.get("runs")["items"]} == set(names)


def test_two_shippers_at_once_double_nothing(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_RUN_ID="two", TACHO_SHIP="off")
    _, command = train(tmp_path, 500)
    both = [subprocess.Popen([BIN, "ship"], env=env, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert tacho(env, "run", "--", *command).returncode == 0
    for p in both:
        p.send_signal(signal.SIGTERM)
    assert [p.wait(60) for p in both] == [0, 0]
    assert steps_on(server, "two") == list(range(500))


def test_a_key_of_the_terminal_does_not_reach_the_shipper(server, tmp_path):
    env = env_of(server, tmp_path, TACHO_RUN_ID="key")
    script = 'trap "sleep 0.5; exit 77" INT; echo up; while :; do sleep 0.1; done'
    pid, terminal = os.forkpty()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests that run in the background have it ignored
        os.execve(BIN, ["tacho", "run", "--", "sh", "-c", script], env)
    said = b""
    while b"up" not in said:
        said += os.read(terminal, 1000)
    time.sleep(1)
    os.write(terminal, b"\x03")
    try:
        while True:
            said += os.read(terminal, 1000)
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 77
    os.close(terminal)
    assert b"records and 0 profiles sent" in said, said
    assert server.get("runs/key")["phase"] != "RUNNING", "the end was sent too"


def test_one_that_begins_as_the_shipper_ends_is_shipped(server, tmp_path):
    """One process after the other, as a loop of a shell starts them: each finds the last one's shipper, or none."""
    env = env_of(server, tmp_path)
    rng = random.Random(7)
    runs = [f"next{i:02d}" for i in range(8)]
    for run in runs:
        _, command = train(tmp_path, 5)
        done = subprocess.run(command, env={**env, "TACHO_RUN_ID": run}, stdout=subprocess.DEVNULL, timeout=60)
        assert done.returncode == 0
        time.sleep(rng.uniform(0.2, 1.2) if run != runs[0] else 11)
    end = time.monotonic() + 60
    while ship_pids(tmp_path / "host") and time.monotonic() < end:
        time.sleep(0.2)
    assert {r["run"] for r in server.get("runs?page_size=50")["items"]} == set(runs)
    for run in runs:
        assert steps_on(server, run) == list(range(5))


def test_who_speaks_no_http_is_a_server_that_is_away(tmp_path):
    recorded(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        class Far:
            port, token = listening.getsockname()[1], "t"

        p = subprocess.Popen([BIN, "ship"], env=env_of(Far, tmp_path), stderr=subprocess.PIPE, text=True)
        with listening.accept()[0] as connection:
            connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46 no HTTP\r\n")
        line = p.stderr.readline()
    p.kill()
    p.wait(), p.stderr.close()
    assert "cannot reach" in line and "journals wait here" in line, line
