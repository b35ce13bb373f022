# SPDX-License-Identifier: Apache-2.0
"""Clients that die while they wait, that never read, and more of them than the server takes at once."""
import re
import resource
import signal
import socket
import sys
import time

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from test_server import ROOT, Server, header, metric  # noqa: E402

LIMIT = int(re.search(r"X\(HTTP_CONNECTIONS, (\d+),", (ROOT / "src/base/limits.def").read_text())[1])
JOURNAL = bytes(range(16))


@pytest.fixture
def server(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * LIMIT)), hard))
    s = Server(tmp_path / "data")
    yield s
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if s.process.poll() is None:
        assert s.stop() == 0


def dial(server, receive_bytes=None):
    s = socket.socket()
    if receive_bytes:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.settimeout(30)
    s.connect(("127.0.0.1", server.port))
    return s


def ask(server, s, path, headers=""):
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
              f"{headers}\r\n".encode())


def answer(s):
    """The head and, by its length, the body."""
    text = b""
    while b"\r\n\r\n" not in text:
        block = s.recv(65536)
        assert block, text
        text += block
    head, body = text.split(b"\r\n\r\n", 1)
    length = re.search(rb"Content-Length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += s.recv(65536)
    return head.decode(), body.decode()


def gauge(server, s, name):
    ask(server, s, "/metrics")
    return int(re.search(rf"^tacho_{name} (\d+)$", answer(s)[1], re.M)[1])


def wait_until(condition, seconds=40):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def feed(server, first, n):
    body = header(JOURNAL, "live") + b"".join(metric(i, float(i)) for i in range(first, first + n))
    assert server.ask("POST", "/api/v1/journal", body)[0] == 200


def streams(server, n, **kw):
    out = [dial(server, **kw) for _ in range(n)]
    for s in out:
        ask(server, s, "/api/v1/runs/live/stream")
    return out


def test_dead_streams_are_forgotten(server):
    feed(server, 1, 5)
    watch = dial(server)
    for how in ("close", "reset"):
        clients = streams(server, 60)
        for s in clients:
            assert "text/event-stream" in answer(s)[0]
        assert gauge(server, watch, "streams_open") == 60 and gauge(server, watch, "requests_waiting") <= 1
        for s in clients:
            if how == "reset":
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        # the keep-alive finds them in time; new records sooner
        seq = iter(range(6 if how == "close" else 5000, 10000, 1))

        def gone(seq=seq):
            feed(server, next(seq), 1)
            return gauge(server, watch, "streams_open") == 0
        assert wait_until(gone), gauge(server, watch, "streams_open")
        assert wait_until(lambda: gauge(server, watch, "connections_open") <= 3)
    watch.close()


def test_one_that_never_reads_holds_up_nobody(server):
    feed(server, 1, 5)
    deaf = streams(server, 4, receive_bytes=4096)
    live = streams(server, 1)[0]
    assert "text/event-stream" in answer(live)[0]
    for i in range(12):
        feed(server, 6 + i * 4000, 4000)
    seen = b""
    while not re.search(rb'"step":48005\b', seen):  # the newest record comes to who reads
        block = live.recv(1 << 16)
        assert block
        seen = seen[-200:] + block
    assert server.ask("GET", "/healthz", token=None)[0] == 200
    for s in (*deaf, live):
        s.close()
    assert server.stop() == 0


def test_more_connections_than_are_taken(server):
    feed(server, 1, 5)
    watch = dial(server)
    assert gauge(server, watch, "connections_open") == 1
    idle = [dial(server) for _ in range(LIMIT - 1)]
    assert wait_until(lambda: gauge(server, watch, "connections_open") == LIMIT)
    late = [dial(server) for _ in range(30)]  # the kernel keeps them
    for s in late:
        ask(server, s, "/healthz")
    assert gauge(server, watch, "connections_open") <= LIMIT  # who is in is served
    for s in idle[:40]:
        s.close()
    for s in late:
        assert answer(s)[0].startswith("HTTP/1.1 200")
    assert gauge(server, watch, "connections_open") <= LIMIT
    for s in (*idle, *late):
        s.close()
    assert wait_until(lambda: gauge(server, watch, "connections_open") == 1)
    watch.close()


def test_ends_with_everything_open(server):
    feed(server, 1, 5)
    clients = streams(server, 100)
    idle = [dial(server) for _ in range(100)]
    half = [dial(server) for _ in range(20)]
    for s in half:
        s.sendall(b"POST /api/v1/journal HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
    for s in clients:
        answer(s)
    assert server.stop(signal.SIGTERM) == 0
    for s in (*clients, *idle, *half):
        s.close()
