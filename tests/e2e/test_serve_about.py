# SPDX-License-Identifier: Apache-2.0
"""What the server says about itself: its description, metrics and probes, against the tables and the formats."""
import json
import os
import pathlib
import re
import sys
import time

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from test_server import ROOT, Server, header, metric  # noqa: E402

SOURCES = ROOT / "src/server"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp("about") / "data")
    yield s
    assert s.stop() == 0


def rows(table):
    text = (SOURCES / table).read_text()
    return re.findall(r"^X\((.*)\)$", text, re.M)


def routes():
    for row in rows("routes.def"):
        method, path, role, _, handler, summary = re.match(
            r'(\w+), "([^"]+)", (\w+), (\w+), (\w+), "(.*)"$', row).groups()
        yield method.lower(), path, role.lower(), handler, summary


def test_openapi_is_the_table_and_nothing_else(server):
    document = json.loads(server.ask("GET", "/api/v1/openapi.json")[1])
    assert document["openapi"].startswith("3.1") and document["security"] == [{"token": []}]
    said = {(method, path): operation for path, methods in document["paths"].items()
            for method, operation in methods.items()}
    table = {(method, path): rest for method, path, *rest in routes()}
    assert len(table) > 30 and set(said) == set(table)
    asked = {}
    for row in rows("params.def"):
        handler, name, kind, meaning = re.match(r'(\w+), "(\w+)", (string|integer), "(.+)"$', row).groups()
        asked.setdefault(handler, []).append((name, kind))
    assert set(asked) <= {handler for _, handler, _ in table.values()}
    for where, (role, handler, summary) in table.items():
        operation = said[where]
        assert operation["summary"] == summary
        assert operation["x-role"] == ("none" if role == "public" else role), where
        assert (operation.get("security") == []) == (role == "public"), where
        parameters = {(p["name"], p["in"]): p for p in operation["parameters"]}
        assert len(parameters) == len(operation["parameters"])
        wanted = {(name, "path") for name in re.findall(r"{(\w+)}", where[1])}
        assert {key for key in parameters if key[1] == "path"} == wanted
        assert {(p["name"], p["schema"]["type"]) for p in parameters.values() if p["in"] == "query"} == \
            set(asked.get(handler, []))
        assert all(p["required"] == (p["in"] == "path") for p in parameters.values())


def test_every_parameter_that_a_handler_reads_is_in_the_table():
    listed = {tuple(re.match(r'(\w+), "(\w+)"', row).groups()) for row in rows("params.def")}
    handlers = {handler for _, _, _, handler, _ in routes()}
    n = 0
    for source in SOURCES.glob("routes_*.c"):
        for function in re.split(r"\n}\n", source.read_text()):
            name = re.findall(r"^bool (route_\w+)\(", function, re.M)
            if not name or name[0] not in handlers:
                continue
            read = set(re.findall(r'(?:http_query|query_time)\(req, "(\w+)"', function))
            read |= {"page_size"} if "page_size(req" in function else set()
            for parameter in read:
                n += 1
                assert (name[0], parameter) in listed, f"{source.name}: {name[0]} reads {parameter}"
    assert n >= 10


SAMPLE = re.compile(r"(tacho_[a-z0-9_]+)(\{[^}]*\})? (\d+(?:\.\d+)?)")
UNITS = {"seconds", "bytes", "total", "open", "waiting"}  # a base unit, a count, or things that are counted
NO_BASE_UNITS = re.compile(r"_(ms|us|ns|milliseconds|kb|mb|kib|mib|kilobytes|minutes|percent)(_|$)")


def scrape(server):
    status, body, headers = server.ask("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = body.decode()
    assert text.endswith("\n") and "\r" not in text
    values, kinds, order = {}, {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, said = line[7:].split(" ", 1)
            assert name not in order and said.strip() == said and said, line
            order.append(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == order[-1] and name not in kinds and kind in ("counter", "gauge"), line
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == order[-1] and match[1] in kinds and match[1] not in values, line
            values[match[1]] = float(match[3])
    assert set(order) == set(kinds) == set(values)
    return values, kinds


def test_metrics_are_prometheus_text(server):
    values, kinds = scrape(server)
    assert len(values) >= 10
    for name, kind in kinds.items():
        assert (kind == "counter") == name.endswith("_total"), name
        assert name.rsplit("_", 1)[1] in UNITS and not NO_BASE_UNITS.search(name), name
    for _ in range(7):
        assert server.ask("GET", "/healthz", token=None)[0] == 200
    after, _ = scrape(server)
    assert after["tacho_requests_total"] == values["tacho_requests_total"] + 8
    assert after["tacho_connections_total"] == values["tacho_connections_total"] + 8
    assert all(after[name] >= values[name] for name, kind in kinds.items() if kind == "counter")
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    assert values["tacho_process_max_resident_bytes"] <= int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024
    ticks = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    used = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    assert abs(scrape(server)[0]["tacho_process_cpu_seconds_total"] - used) < 1


def test_probes(tmp_path):
    server = Server(tmp_path / "data")
    try:
        for path in ("/healthz", "/readyz"):
            assert server.ask("GET", path, token=None, Host="10.1.2.3")[0] == 200  # a probe knows no name
        assert server.ask("POST", "/api/v1/journal", header(bytes(16), "r") + metric(1, 1.0))[0] == 200
        for name in ("tacho.db-wal", "tacho.db-shm", "tacho.db"):  # no commit goes to a file that is not there
            left = server.data / "server" / name
            if left.exists():
                left.unlink()
        end = time.monotonic() + 20
        while (answer := server.ask("GET", "/readyz", token=None))[0] == 200 and time.monotonic() < end:
            time.sleep(0.2)
        problem = json.loads(answer[1])
        assert answer[0] == 503 and answer[2]["Retry-After"], answer
        assert problem["code"] == "unavailable" and "the database" in problem["detail"]
        assert str(tmp_path) not in problem["detail"]
        lost = server.ask("POST", "/api/v1/journal", header(bytes(16), "r") + metric(2, 1.0))
        assert lost[0] == 503 and lost[2]["Retry-After"]  # nothing is acknowledged that would be lost
        assert server.ask("GET", "/healthz", token=None)[0] == 200  # alive, and not ready
    finally:
        server.stop()
