# SPDX-License-Identifier: Apache-2.0
"""A server and the commands beside it: how they find each other, and what is said when it cannot start."""
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from test_server import BIN, Server  # noqa: E402


def tacho(*args, **kw):
    return subprocess.run([BIN, *map(str, args)], text=True, capture_output=True, timeout=60, **kw)


def serve(data, **kw):
    return tacho("serve", "--listen", "127.0.0.1:0", "--data", data, **kw)


@pytest.fixture
def data(tmp_path):
    data = tmp_path / "data"
    assert tacho("run", "--data", data, "--name", "one", "--", "true").returncode == 0
    return data


@pytest.fixture
def server(data):
    s = Server(data)
    yield s
    if s.process.poll() is None:
        s.process.send_signal(signal.SIGCONT)
        assert s.stop() == 0


def ask_socket(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(path))
        s.settimeout(10)
        answer = b""
        while block := s.recv(4096):
            answer += block
    return json.loads(answer)


def test_socket_answers_url_and_token(server):
    path = server.data / "server/socket"
    mode = path.stat().st_mode
    assert stat.S_ISSOCK(mode) and mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    wanted = {"url": f"http://127.0.0.1:{server.port}", "token": server.token, "pid": server.process.pid}
    for _ in range(50):
        assert ask_socket(path) == wanted
    idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]  # clients that never read make nobody wait
    for s in idle:
        s.connect(str(path))
    assert ask_socket(path) == wanted
    for s in idle:
        s.close()
    assert server.stop() == 0 and not path.exists()


@pytest.fixture
def public(request):
    """A folder that other users can reach."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tacho-test-", dir="/tmp"))
    folder.chmod(0o755)
    request.addfinalizer(lambda: shutil.rmtree(folder))
    return folder


SOMEBODY = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"} if os.geteuid() == 0 else {}


@pytest.mark.skipif(not SOMEBODY, reason="needs root, to be somebody else")
def test_socket_is_silent_to_another_user(public):
    server = Server(public / "data")
    path = server.data / "server/socket"
    for each, mode in ((path, 0o666), (path.parent, 0o755), (server.data, 0o755)):
        each.chmod(mode)  # as if the modes had failed us: the kernel still says who asks
    ask = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); print(s.recv(10))"
    done = subprocess.run(["/usr/bin/python3", "-c", ask], text=True, capture_output=True, timeout=20, **SOMEBODY)
    assert done.returncode == 0 and done.stdout.strip() == "b''", done.stderr
    assert ask_socket(path)["token"] == server.token
    assert server.stop() == 0


def test_second_server_names_the_first(server):
    second = serve(server.data)
    assert second.returncode == 1 and second.stdout == ""
    assert f"process {server.process.pid} at http://127.0.0.1:{server.port}" in second.stderr, second.stderr
    server.process.send_signal(signal.SIGSTOP)  # one that does not answer is still there, and hangs nobody
    second = serve(server.data)
    server.process.send_signal(signal.SIGCONT)
    assert second.returncode == 1 and "another server has the data folder" in second.stderr


def test_runs_open(server, data):
    run = json.loads(tacho("runs", "list", "--data", data, "--json").stdout)["rows"][0][0]
    address = f"http://127.0.0.1:{server.port}/runs/{run}#token={server.token}"
    for which in ([run], [run[:6]], ["last"], []):
        done = tacho("runs", "open", *which, "--data", data)
        assert done.returncode == 0 and done.stdout == address + "\n", done.stderr
    assert json.loads(tacho("runs", "open", "--data", data, "--json").stdout) == {"url": address}
    assert server.ask("GET", f"/runs/{run}", token=None)[0] == 200
    none = tacho("runs", "open", "zzz", "--data", data)
    assert none.returncode == 3 and "zzz" in none.stderr
    assert tacho("runs", "close", "--data", data).returncode == 2
    assert server.stop() == 0
    done = tacho("runs", "open", "--data", data)
    assert done.returncode == 3 and "no server runs there" in done.stderr and "tacho serve" in done.stderr


def test_socket_of_a_killed_server_is_replaced(data):
    server = Server(data)
    server.stop(signal.SIGKILL)
    assert (data / "server/socket").exists()
    assert "no server runs there" in tacho("runs", "open", "--data", data).stderr
    server.start()
    assert ask_socket(data / "server/socket")["pid"] == server.process.pid
    assert server.stop() == 0


def test_deep_data_folder(tmp_path):
    deep = tmp_path / ("d" * 120) / "data"  # longer than a socket's name may be
    assert tacho("run", "--data", deep, "--", "true").returncode == 0
    server = Server(deep)
    assert tacho("runs", "open", "--data", deep).stdout.startswith(f"http://127.0.0.1:{server.port}/runs/")
    assert server.stop() == 0


def test_open_starts_a_browser(data, tmp_path):
    fake = tmp_path / "bin/xdg-open"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened.new && mv {tmp_path}/opened.new {tmp_path}/opened\n')
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen([BIN, "serve", "--open", "--listen", "127.0.0.1:0", "--data", str(data)], text=True,
                               stdout=subprocess.PIPE, env=env)
    address = process.stdout.readline()
    subprocess.run(["sh", "-c", f"for i in $(seq 100); do [ -f {tmp_path}/opened ] && exit; sleep 0.1; done"],
                   check=True)
    assert (tmp_path / "opened").read_text() == address
    process.terminate()
    assert process.wait(30) == 0
    process.stdout.close()


def test_says_why_it_cannot_start(data, tmp_path):
    a_file = tmp_path / "file"
    a_file.write_text("x")
    done = serve(a_file)
    assert done.returncode == 1 and str(a_file) in done.stderr, done.stderr
    done = tacho("serve", "--listen", "nowhere:x", "--data", data)
    assert done.returncode == 2 and "'nowhere:x'" in done.stderr
    (data / "server").mkdir(exist_ok=True)
    with sqlite3.connect(data / "server/tacho.db") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    done = serve(data)
    assert done.returncode == 1 and "version 99" in done.stderr and "tacho.db" in done.stderr, done.stderr
    done = tacho("serve", "--listen", "127.0.0.1:0", "--data", data, "--json")
    assert json.loads(done.stdout)["error"]["code"] == "too_new"
    for left in (data / "server").glob("tacho.db*"):
        left.unlink()
    (data / "server/tacho.db").write_text("not a database, but long enough to look at\n" * 99)
    done = serve(data)
    assert done.returncode == 4 and "tacho.db" in done.stderr, done.stderr


def test_read_only_folder(public):
    data = public / "data"
    data.mkdir()
    data.chmod(0o555)
    program = shutil.copy(BIN, public / "tacho")
    done = subprocess.run([program, "serve", "--listen", "127.0.0.1:0", "--data", str(data)], text=True,
                          capture_output=True, timeout=60, env={"HOME": str(public), "PATH": "/usr/bin"}, **SOMEBODY)
    assert done.returncode == 1 and f"'{data}/server': Permission denied" in done.stderr, done.stderr
