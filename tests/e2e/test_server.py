# SPDX-License-Identifier: Apache-2.0
"""The server from outside: access, ingest that is acknowledged once and kept once (also through kill -9),
paging, streams, uploads, a parser that crashes, hostile bodies. TACHO_TRIALS: kills of the server."""
import atexit
import hashlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
TRIALS = int(os.environ.get("TACHO_CRASH_TRIALS", "5"))

TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    TABLE.append(_byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def record(kind, seq, payload, boottime_ns=2000):
    head, tail = struct.pack("<HHI", kind, 0, len(payload)), struct.pack("<QQ", boottime_ns, seq)
    return struct.pack("<I", 0x1FC34AA7) + head + struct.pack("<I", crc32c(head + tail + payload)) + tail + payload


def text(s):
    return struct.pack("<H", len(s)) + s.encode()


def header(journal, run, wall_ns=1_790_000_000_000_000_000):
    fixed = struct.pack("<II16s16sQQqiIII", 1, 0, journal, bytes(16), 1000, 1000, wall_ns, 0, 1, 42, 0xFFFFFFFF)
    return record(1, 0, fixed + text(run) + text("host-9") + text("test/1"), 1000)


def metric(seq, value):
    return record(5, seq, struct.pack("<qHd", seq, 1, value) + text("loss"), 2000 + seq * 1_000_000_000)


class Server:
    def __init__(self, data, env=None):
        self.data, self.env = data, env or {}
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.start()
        atexit.register(self.end)

    def end(self):  # of a test that failed before it came to stop()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start(self):
        self.process = subprocess.Popen(
            [BIN, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", str(self.data)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **self.env})
        line = self.process.stdout.readline()
        assert "#token=" in line, line
        self.token = line.strip().split("#token=")[1]

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        return code

    def ask(self, method, path, body=None, token=True, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        if token is not None:
            headers.setdefault("Authorization", "Bearer " + (self.token if token is True else token))
        c.request(method, path, body=body, headers=headers)
        answer = c.getresponse()
        out = answer.status, answer.read(), answer.headers
        c.close()
        return out

    def get(self, path):
        status, body, _ = self.ask("GET", "/api/v1/" + path)
        assert status == 200, body
        return json.loads(body)

    def wait(self, path, wanted, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = self.get(path)
            if wanted(answer):
                return answer
            time.sleep(0.2)
        raise AssertionError(f"{path} never became what was waited for: {answer}")


@pytest.fixture
def server(tmp_path):
    s = Server(tmp_path / "data")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0


def test_nothing_without_a_token(server):
    routes = json.loads(server.ask("GET", "/api/v1/openapi.json")[1])["paths"]
    assert len(routes) > 25
    for path, methods in routes.items():
        for method, operation in methods.items():
            if operation.get("security") == []:
                continue
            status, body, _ = server.ask(method.upper(), path.replace("{", "").replace("}", ""), token=None)
            assert status == 401 and json.loads(body)["code"] == "unauthorized", (method, path, status)
    assert server.ask("GET", "/api/v1/nothing", token=None)[0] == 401
    assert server.ask("GET", "/api/v1/runs", token="0" * 64)[0] == 401
    for path in ("/healthz", "/readyz", "/", "/runs/x?tab=overview"):
        assert server.ask("GET", path, token=None)[0] == 200, path
    folder = server.data / "server"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "token").stat().st_mode & 0o777 == 0o600


def test_host_and_origin(server):
    here = f"127.0.0.1:{server.port}"
    assert server.ask("GET", "/api/v1/runs", Host="evil.example")[0] == 403
    assert server.ask("GET", "/", token=None, Host="evil.example")[0] == 403
    assert server.ask("GET", "/api/v1/runs", Host="localhost:1")[0] == 200
    assert server.ask("GET", "/api/v1/runs", Origin="http://evil.example")[0] == 403
    assert server.ask("GET", "/api/v1/runs", Origin="null")[0] == 403
    assert server.ask("GET", "/api/v1/runs", Origin=f"http://{here}")[0] == 200


def test_login_cookie_and_roles(server):
    here = f"http://127.0.0.1:{server.port}"
    assert server.ask("POST", "/api/v1/login", '{"token":"x"}', token=None)[0] == 401
    status, _, head = server.ask("POST", "/api/v1/login", json.dumps({"token": server.token}), token=None)
    cookie = head["Set-Cookie"]
    assert status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and server.token not in cookie
    cookie = cookie.split(";")[0]
    assert server.ask("GET", "/api/v1/runs", token=None, Cookie=cookie)[0] == 200
    body = '{"role":"viewer","name":"v"}'
    assert server.ask("POST", "/api/v1/tokens", body, token=None, Cookie=cookie)[0] == 403  # no Origin
    status, answer, _ = server.ask("POST", "/api/v1/tokens", body, token=None, Cookie=cookie, Origin=here)
    viewer = json.loads(answer)["secret"]
    assert status == 201
    assert server.ask("GET", "/api/v1/runs", token=viewer)[0] == 200
    assert server.ask("POST", "/api/v1/journal", header(bytes(16), "r"), token=viewer)[0] == 403
    assert server.ask("GET", "/api/v1/tokens", token=viewer)[0] == 403
    ingest = json.loads(server.ask("POST", "/api/v1/tokens", '{"role":"ingest"}')[1])["secret"]
    assert server.ask("GET", "/api/v1/runs", token=ingest)[0] == 403
    assert server.ask("POST", "/api/v1/journal", header(bytes(16), "r"), token=ingest)[0] == 200
    assert server.ask("DELETE", "/api/v1/login", token=None, Cookie=cookie, Origin=here)[0] == 204
    assert server.ask("GET", "/api/v1/runs", token=None, Cookie=cookie)[0] == 401


def test_a_key_makes_one_token(tmp_path):
    server = Server(tmp_path / "data")
    want = {"role": "viewer", "name": "once"}

    def make(key, body=want, token=True):
        status, text, _ = server.ask("POST", "/api/v1/tokens", json.dumps(body), token, Idempotency_Key=key)
        return status, json.loads(text)
    status, first = make("k-1")
    assert status == 201 and make("k-1") == (201, first)
    assert server.ask("GET", "/api/v1/runs", token=first["secret"])[0] == 200
    assert sum(t["name"] == "once" for t in server.get("tokens")["items"]) == 1
    assert make("k-1", want | {"role": "admin"})[0] == 409 and make("k-1", want | {"name": "other"})[0] == 409
    assert make("k" * 257)[0] == 400
    admin = json.loads(server.ask("POST", "/api/v1/tokens", '{"role":"admin","name":"other"}')[1])["secret"]
    others = [make("k-2")[1]["secret"], make("k-1", token=admin)[1]["secret"]]  # another key, another who asks
    assert len({first["secret"], *others}) == 3
    assert server.stop() == 0
    files = [p for p in (tmp_path / "data/server").iterdir() if p.is_file() and p.name != "token"]
    database = b"".join(p.read_bytes() for p in files)
    assert database
    assert first["secret"].encode() not in database and bytes.fromhex(first["secret"]) not in database
    server = Server(tmp_path / "data")
    assert make("k-1") == (201, first)
    mine = [t["token"] for t in server.get("tokens")["items"] if t["name"] == "once"]
    assert len(mine) == 3
    for token in mine:
        assert server.ask("DELETE", f"/api/v1/tokens/{token}")[0] == 204
    assert make("k-1")[0] == 409  # revoked: the same secret never comes back
    assert server.ask("GET", "/api/v1/runs", token=first["secret"])[0] == 401
    assert server.stop() == 0


def test_security_headers(server):
    head = server.ask("GET", "/", token=None)[2]
    assert head["X-Content-Type-Options"] == "nosniff" and head["Tachograph-Protocol"] == "1"
    for word in ("default-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "object-src 'none'"):
        assert word in head["Content-Security-Policy"]


def test_ingest_takes_each_record_once(server):
    journal = os.urandom(16)
    body = header(journal, "run1") + metric(1, 1.0) + metric(3, 3.0)
    first = json.loads(server.ask("POST", "/api/v1/journal", body)[1])
    assert first.pop("server_started") == server.get("server")["started"]
    assert first == {"journal": journal.hex(), "next_seq": 4, "new_records": 3, "missing": [[2, 3]]}
    assert json.loads(server.ask("POST", "/api/v1/journal", body)[1])["new_records"] == 0
    late = json.loads(server.ask("POST", "/api/v1/journal", header(journal, "run1") + metric(2, 2.0))[1])
    assert late["new_records"] == 1 and late["missing"] == []
    points = server.get("runs/run1/metrics?name=loss&points=100")["series"][0]["points"]
    assert [p[2] for p in points] == [1.0, 2.0, 3.0]
    assert [p[0] for p in points] == [str(1_790_000_000_000_001_000 + n * 1_000_000_000) for n in (1, 2, 3)]
    rank = {"rank": 0, "host": "host-9", "pid": 42, "attempt": 1, "journal": journal.hex()}
    assert rank.items() <= server.get("runs/run1/metrics")["metrics"][0].items()
    assert rank.items() <= server.get("runs/run1/metrics?name=loss&points=9")["series"][0].items()
    assert server.ask("POST", "/api/v1/journal", header(journal, "other"))[0] == 409


def test_downsampling_keeps_extremes(server):
    values = [float(i % 7) for i in range(5000)]
    values[1234], values[4321] = 999.0, -999.0
    body = header(b"d" * 16, "long") + b"".join(metric(i + 1, v) for i, v in enumerate(values))
    assert server.ask("POST", "/api/v1/journal", body)[0] == 200
    for _ in range(2):
        points = server.get("runs/long/metrics?name=loss&points=50")["series"][0]["points"]
        assert len(points) <= 50 and sum(p[5] for p in points) == 5000
        assert max(p[3] for p in points) == 999.0 and min(p[1] for p in points) == -999.0
        time.sleep(3)  # an ended run is compacted meanwhile: the same again, from blocks


def test_hostile_bodies(server):
    good = header(b"h" * 16, "hostile") + metric(1, 1.0)
    for bad in (b"", b"x", good[:-1], good[:40], good + b"\0", good + good, metric(1, 1.0), os.urandom(5000),
                good[:60] + b"\xff" + good[61:], header(b"i" * 16, "../etc")):
        status, body, _ = server.ask("POST", "/api/v1/journal", bad)
        assert status == 422 and "byte" in json.loads(body)["detail"], (bad[:50], status, body)
    assert server.ask("POST", "/api/v1/journal", b"not zstd", Content_Encoding="zstd")[0] == 422
    assert server.get("runs?q=hostile")["items"] == []  # refused as a whole
    for bad in (b"", b"[]", b"{", b'{"token":1}', b'{"a":1,"a":2}'):
        assert server.ask("POST", "/api/v1/login", bad, token=None)[0] in (401, 422), bad
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall(f"POST /api/v1/journal HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
                  "Content-Length: 99999999999\r\n\r\n".encode())
        assert b" 413 " in s.recv(4096)
    assert server.ask("GET", "/healthz", token=None)[0] == 200


def test_paging(server):
    for i in range(7):
        assert server.ask("POST", "/api/v1/journal",
                          header(bytes([i + 1]) * 16, f"page{i}", (1_790_000_000 + i) * 10**9))[0] == 200
    seen, token = [], ""
    while token is not None:
        page = server.get(f"runs?page_size=3&page_token={token}")
        seen += [r["run"] for r in page["items"]]
        token = page["next_page_token"]
    assert seen == [f"page{i}" for i in reversed(range(7))]
    assert server.ask("GET", "/api/v1/runs?page_token=zz")[0] == 400
    assert [r["run"] for r in server.get("runs?q=page3")["items"]] == ["page3"]


def read_stream(server, run, last_id, events, stop):
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    c.request("GET", f"/api/v1/runs/{run}/stream", headers={"Authorization": "Bearer " + server.token, **last_id})
    answer = c.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    event = {}
    while not stop(events):
        line = answer.readline().decode().rstrip("\n")
        if not line and "event" in event:
            events.append(event)
            event = {}
        elif ": " in line and not line.startswith(":"):
            key, value = line.split(": ", 1)
            event[key] = value
    c.close()


def test_stream(server):
    journal = b"s" * 16
    server.ask("POST", "/api/v1/journal", header(journal, "live") + metric(1, 1.0))
    events = []
    values = lambda found: [json.loads(e["data"])["value"] for e in found if e["event"] == "metric"]  # noqa: E731
    reader = threading.Thread(target=read_stream, args=(server, "live", {}, events, lambda f: 2.0 in values(f)))
    reader.start()
    time.sleep(1)
    server.ask("POST", "/api/v1/journal", header(journal, "live") + metric(2, 2.0))
    reader.join(timeout=20)
    assert not reader.is_alive() and values(events) == [1.0, 2.0]
    assert any(e["event"] == "run" for e in events)
    first = next(e["id"] for e in events if e["event"] == "metric")
    again = []
    read_stream(server, "live", {"Last-Event-ID": first}, again, lambda f: bool(values(f)))
    assert values(again)[0] == 2.0


def send_until_killed(server, journal, run, acknowledged):
    seq = 1
    while True:
        n = random.randint(1, 20)
        body = header(journal, run) + b"".join(metric(i, float(i)) for i in range(seq, seq + n))
        try:
            status, answer, _ = server.ask("POST", "/api/v1/journal", body)
        except (OSError, http.client.HTTPException):
            return
        assert status == 200 and json.loads(answer)["next_seq"] == seq + n
        seq += n
        acknowledged[journal] = seq


def test_killed_server_loses_and_doubles_nothing(tmp_path):
    server = Server(tmp_path / "data")
    for trial in range(TRIALS):
        acknowledged = {}
        journals = [os.urandom(16) for _ in range(4)]
        senders = [threading.Thread(target=send_until_killed, args=(server, j, f"kill{trial}", acknowledged))
                   for j in journals]
        for s in senders:
            s.start()
        time.sleep(random.uniform(0.05, 0.6))
        server.stop(signal.SIGKILL)
        for s in senders:
            s.join()
        server.start()
        for journal, next_seq in acknowledged.items():
            everything = header(journal, f"kill{trial}") + b"".join(metric(i, float(i)) for i in range(1, next_seq))
            answer = json.loads(server.ask("POST", "/api/v1/journal", everything)[1])
            assert answer["new_records"] == 0 and answer["next_seq"] >= next_seq, "lost what it acknowledged"
        if acknowledged:
            for series in server.get(f"runs/kill{trial}/metrics?name=loss&points=10000")["series"]:
                steps = [p[4] for p in series["points"]]
                assert steps == list(range(1, len(steps) + 1)), "doubled or lost"
    assert server.stop() == 0


def test_port_in_use_and_second_server(server, tmp_path):
    taken = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{server.port}", "--data", str(tmp_path / "other")],
                           capture_output=True, text=True, timeout=20)
    assert taken.returncode == 1 and f"port {server.port}" in taken.stderr and "in use" in taken.stderr
    second = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--data", str(server.data)],
                            capture_output=True, text=True, timeout=20)
    assert second.returncode == 1 and "another server" in second.stderr


def profile():
    found = sorted(SHARED.glob("data/xspace/cpu_single/**/*.xplane.pb"))
    if not found:
        pytest.skip(f"no profile in {SHARED}/data/xspace")
    return found[0].read_bytes()


def upload(server, content):
    server.ask("POST", "/api/v1/sessions", '{"run":"up","session":"s1","kind":"programmatic"}')
    where = "/api/v1/sessions/up~s1/targets/host-0/upload"
    parts = [content[i:i + 100_000] for i in range(0, len(content), 100_000)]
    assert server.ask("PUT", where + "?part=0", parts[0], X_Checksum_SHA256="0" * 64)[0] == 422
    for i, part in enumerate(parts):
        digest = hashlib.sha256(part).hexdigest()
        assert server.ask("PUT", f"{where}?part={i}", part, X_Checksum_SHA256=digest)[0] == 204
    done = {"parts": len(parts), "sha256": "0" * 64}
    assert server.ask("POST", where + "/complete", json.dumps(done))[0] == 422
    done["sha256"] = hashlib.sha256(content).hexdigest()
    assert server.ask("POST", where + "/complete", json.dumps(done))[0] == 200


def test_upload_tools_and_trace(server):
    content = profile()
    upload(server, content)
    session = server.wait("sessions/up~s1", lambda s: s["report_status"] != "pending")
    assert session["report_status"] == "done", session
    assert session["targets"][0]["events"] > 0 and session["size_bytes"] == len(content)
    assert server.ask("GET", "/api/v1/sessions/up~s1/targets/host-0")[1] == content
    assert server.get("sessions/up~s1/tools/summary")["events"] == session["targets"][0]["events"]
    trace = server.get("sessions/up~s1/trace")
    assert trace["targets"][0]["planes"] and isinstance(trace["origin_ns"], str) and int(trace["origin_ns"]) >= 0
    for bad in ("up~s1%2f..%2f..", "..~..", "up~nothing", "up"):
        assert server.ask("GET", f"/api/v1/sessions/{bad}")[0] == 404, bad
    assert server.ask("GET", "/api/v1/sessions/up~s1/tools/nothing")[0] == 404
    assert server.ask("GET", "/api/v1/sessions/up~s1/tools/summary?host=/etc/passwd")[0] == 404


def test_a_parser_that_crashes_fails_its_job_alone(tmp_path):
    content = profile()
    server = Server(tmp_path / "data", {"TACHO_TEST_PARSER_CRASH": "1"})
    upload(server, content)
    session = server.wait("sessions/up~s1", lambda s: s["report_status"] != "pending")
    assert session["report_status"] == "failed" and session["report_error"]
    assert server.get("jobs/1")["state"] == "failed"
    assert server.ask("GET", "/api/v1/sessions/up~s1/tools/summary")[0] == 500
    assert server.ask("POST", "/api/v1/journal", header(b"c" * 16, "other") + metric(1, 1.0))[0] == 200
    assert server.get("runs/other/metrics")["metrics"]
    assert server.stop() == 0


def numbers(value):
    """All of a document's numbers, with the keys above them."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [(f"{key}.{path}", n) for key, below in items for path, n in numbers(below)]
    return [("", value)] if isinstance(value, int | float) else []


def test_every_number_is_one_that_javascript_holds(server):
    subprocess.run([BIN, "run", "--name", "exact", "--data", str(server.data), "--", sys.executable, "-c", (
        "import tachograph as t\nr = t.init()\nfor n in range(3):\n    with r.record(t.Event.STEP, n): pass\n"
        "    r.log({'loss': 1.0}, step=n)\nr.finish()")], check=True, timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "TACHO_SHIP": "off"})
    run = server.wait("runs?q=exact", lambda a: a["items"] and a["items"][0]["phase"] == "COMPLETED")["items"][0]["run"]
    upload(server, profile())
    server.wait("sessions/up~s1", lambda s: s["report_status"] != "pending")
    pages = [f"runs/{run}{p}" for p in ("", "/ledger", "/steps", "/metrics", "/metrics?name=loss", "/hosts", "/events",
                                        "/sessions", "/report", "/output")]
    for page in [*pages, "runs", "sessions/up~s1", "sessions/up~s1/trace", "sessions/up~s1/report", "server", "tokens"]:
        document = server.get(page)
        assert [(where, n) for where, n in numbers(document) if abs(n) >= 2**53] == [], page


def test_follows_its_own_folder(server):
    subprocess.run([BIN, "run", "--name", "local", "--data", str(server.data), "--", "true"], check=True, timeout=60)
    runs = server.wait("runs?q=local", lambda a: a["items"] and a["items"][0]["phase"] == "COMPLETED")["items"]
    assert runs[0]["name"] == "local" and runs[0]["reason"] == "exit"
    hosts = server.get(f"runs/{runs[0]['run']}/hosts")["hosts"]
    assert hosts[0]["processes"][0]["lost_records"] == 0


def test_report_and_ledger_are_those_of_the_command_line(server):
    code = ("import time, tachograph as t\nr = t.init(name='rep')\n"
            "for i in range(20):\n"
            "    with r.record(t.Event.DATA_LOADING): time.sleep(.02)\n"
            "    with r.record(t.Event.STEP, i): time.sleep(.01)\n"
            "r.finish()\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([BIN, "run", "--name", "rep", "--data", str(server.data), "--", "python3", "-c", code], check=True,
                   timeout=60, env=env)
    run = server.wait("runs?q=rep", lambda a: a["items"] and a["items"][0]["phase"] == "COMPLETED")["items"][0]["run"]

    def local(command):
        out = subprocess.run([BIN, command, run, "--json", "--data", str(server.data)], capture_output=True, text=True,
                             check=True, timeout=30)
        return json.loads(out.stdout)

    ledger = server.get(f"runs/{run}/ledger")
    assert ledger["segments"] and ledger["attempts_list"]
    assert ledger["ledger"] == local("goodput")["ledger"]
    spans = sum(int(s["to_ns"]) - int(s["from_ns"]) for s in ledger["segments"])
    assert spans == round(ledger["total_elapsed_s"] * 1e9)
    report = server.get(f"runs/{run}/report")
    assert report["findings"] == local("report")["findings"]
