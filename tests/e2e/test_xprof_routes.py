# SPDX-License-Identifier: Apache-2.0
"""XProf's HTTP routes on our server: what its front end asks for, names from outside, access."""
import gzip
import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from test_server import BIN, SHARED, Server  # noqa: E402
from xspace_write import event, plane  # noqa: E402

ROOT = "/data/plugin/profile"
SECRET = "secret-beside-the-data"


def space(kind):
    host = plane("/host:CPU", {1: "work", 2: "rest"}, ("thread", 0, [event(1, 1000, 500), event(2, 2000, 100)]))
    return host + (plane("/device:GPU:0", {1: "k"}, ("Stream #1", 0, [event(1, 1200, 300)])) if kind == "gpu" else b"")


def wait_for(server, *sessions):
    """The server finds what lies in its data folder, and makes a report of it first."""
    server.wait("sessions", lambda page: {t["session"] for t in page["items"] if t["report_status"] != "pending"} >=
                set(sessions))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    base = tmp_path_factory.mktemp("xprof")
    (base / "outside").mkdir()
    (base / "outside" / "h.xplane.pb").write_bytes(space("cpu"))
    (base / SECRET).write_text(SECRET)
    for run, session, hosts in (("first", "s1", {"a": "cpu"}), ("second", "s2", {"a": "cpu", "b": "gpu"})):
        folder = base / "data" / "runs" / run / "plugins" / "profile" / session
        folder.mkdir(parents=True)
        for host, kind in hosts.items():
            (folder / f"{host}.xplane.pb").write_bytes(space(kind))
    s = Server(base / "data")
    wait_for(s, "first~s1", "second~s2")
    yield s
    assert s.stop() == 0


def ask(server, path, **headers):
    return server.ask("GET", f"{ROOT}/{path}", **headers)


def get(server, path):
    status, body, headers = ask(server, path)
    assert status == 200, (path, body)
    assert headers["Content-Type"].startswith("application/json")
    return json.loads(body)


def test_runs_are_named_by_run_and_session(server):
    assert sorted(get(server, "runs")) == ["first/s1", "second/s2"]
    assert get(server, "runs?run_path=second") == ["s2"]
    assert get(server, "runs?session_path=second/s2") == ["s2"]


def test_tools_are_those_that_the_session_has_events_for(server):
    one, two = get(server, "run_tools?run=first/s1"), get(server, "run_tools?run=second%2Fs2")
    assert "trace_viewer@" in one and "overview_page" in one and "kernel_stats" not in one
    assert "kernel_stats" in two  # its GPU is on the second host
    listed = server.get("sessions/first~s1/tools")["tools"]
    assert set(one) <= {tool["name"] for tool in listed}


def test_hosts_of_a_tool(server):
    names = {tag: [h["hostname"] for h in get(server, f"hosts?run=second/s2&tag={tag}")]
             for tag in ("trace_viewer@", "hlo_stats", "overview_page")}
    assert names == {"trace_viewer@": ["a", "b"], "hlo_stats": ["ALL_HOSTS", "a", "b"],
                     "overview_page": ["ALL_HOSTS"]}
    assert [h["hostname"] for h in get(server, "hosts?run=first/s1&tag=hlo_stats")] == ["a"]


@pytest.mark.parametrize("how", ["run=second/s2", "session_path=second/s2&run=s2", "run_path=second&run=s2"])
def test_data_is_what_the_tool_prints(server, how):
    path = server.data / "runs" / "second" / "plugins" / "profile" / "s2"
    for tool, query, params in (("overview_page", "&host=ALL_HOSTS", []),
                                ("trace_viewer@", "&hosts=b&resolution=0&full_dma=false", ["host=b", "resolution=0"]),
                                ("trace_viewer@", "&hosts=a,b&search_prefix=wo", ["search_prefix=wo"]),
                                ("kernel_stats", "&host=b&use_saved_result=true&tqx=", ["host=b"])):
        status, body, _ = ask(server, f"data?{how}&tag={tool}{query}")
        printed = subprocess.run([BIN, "tool", tool, path, *params, "--xprof"], capture_output=True, check=True).stdout
        assert status == 200 and json.loads(body) == json.loads(printed), (tool, query)


def test_a_window_of_the_trace(server):
    def names(query):
        answer = get(server, f"data?run=first/s1&tag=trace_viewer@{query}")
        return [e["name"] for e in answer["traceEvents"] if e["ph"] == "X"]
    assert names("") == ["work", "rest"]
    assert names("&start_time_ms=0&end_time_ms=0.0000016") == ["work"]
    assert names("&event_name=rest&start_time_ms=0.000002&duration_ms=1e-7") == ["rest"]


def test_tables_as_csv(server):
    for path in ("data_csv?run=second/s2&tag=kernel_stats&host=b", "data?run=second/s2&tag=kernel_stats&tqx=out:csv;"):
        status, body, headers = ask(server, path)
        assert status == 200 and headers["Content-Type"].startswith("text/csv")
        head, *rows = body.decode().splitlines()
        assert head.startswith("kernel,") and [row.split(",")[0] for row in rows] == ["k"]


def test_answers_are_compressed_when_asked_for(server):
    path = "data?run=second/s2&tag=overview_page"
    status, body, headers = ask(server, path, Accept_Encoding="gzip")
    assert status == 200 and headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == ask(server, path)[1]


def test_about(server):
    assert get(server, "config") == {"hideCaptureProfileButton": True, "srcPathPrefix": ""}
    status, body, headers = ask(server, "version")
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    assert body.decode() == server.get("server")["version"]


HOSTILE = ["..", "../..", "/", "//", "/etc", "first", "first/", "/s1", "first/s1/", "first/../first/s1", "first/s1/..",
           "%2e%2e", "%2e%2e%2f%2e%2e", "..%2Foutside", "%252e%252e/x", "first%00/s1", "first/s1%00", ".", "./s1",
           "first/.s1", "first\\s1", "~root/s1", "first~s1", "x" * 5000, "%ff/%fe", "first/s1%0d%0aX-A:%20b",
           "second/s1", "file:///etc"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_from_outside_is_a_path(server, name):
    outside = server.data.parent
    for route in ("run_tools", "hosts", "module_list", "data", "data_csv"):
        for parameter in ("run", "session_path", "run_path"):
            status, body, headers = ask(server, f"{route}?{parameter}={name}&tag=overview_page&host=a")
            assert status in (400, 404), (route, parameter, status, body[:200])
            assert headers["Content-Type"] == "application/problem+json"
            assert "X-A" not in headers
            for word in (SECRET, str(outside), "root:"):
                assert word not in body.decode(errors="replace")
    for query in (f"session_path={name}", f"run_path={name}"):
        status, body, _ = ask(server, f"runs?{query}")
        assert status in (200, 404) and (status == 404 or json.loads(body) in ([], ["s1"])), (query, body)


def test_an_absolute_path_lists_nothing(server):
    """XProf's server lists any folder of its machine so."""
    outside = server.data.parent / "outside"
    for query in (f"session_path={outside}", f"run_path={outside.parent}"):
        assert ask(server, f"runs?{query}")[0] == 404
    assert ask(server, f"data?session_path={outside}&run=outside&tag=overview_page")[0] == 404


def test_what_is_not_there_is_said(server):
    assert ask(server, "data?run=first/s1&tag=no_tool")[0] == 404
    assert ask(server, "data?run=first/s1")[0] == 404
    assert ask(server, "data?tag=overview_page")[0] == 400
    assert ask(server, "data?run=first/s1&tag=trace_viewer@&host=nobody")[0] == 404
    assert ask(server, "data?run=second/s2&tag=trace_viewer@&hosts=a,b,c")[0] == 404
    assert ask(server, "data?run=first/s1&tag=trace_viewer@&format=pb")[0] == 400
    assert ask(server, "data?run=first/s1&tag=trace_viewer@&resolution=many")[0] == 400
    for path in ("capture_profile?service_addr=localhost:1", "generate_cache", "nothing", "data/../data"):
        status, body, headers = ask(server, path)
        assert status == 404 and headers["Content-Type"] == "application/problem+json", (path, status, body[:80])
    assert server.ask("POST", f"{ROOT}/capture_profile", "{}")[0] == 404
    assert server.ask("POST", f"{ROOT}/runs", "{}")[0] == 405


@pytest.mark.parametrize("path", ["runs", "run_tools?run=first/s1", "hosts?run=first/s1", "module_list?run=first/s1",
                                  "data?run=first/s1&tag=overview_page", "data_csv?run=first/s1&tag=overview_page",
                                  "config", "version"])
def test_a_token_is_needed(server, path):
    assert server.ask("GET", f"{ROOT}/{path}", token=None)[0] == 401
    assert server.ask("GET", f"{ROOT}/{path}", token="wrong")[0] == 401
    ingest = json.loads(server.ask("POST", "/api/v1/tokens", '{"name":"w","role":"ingest"}')[1])["secret"]
    assert server.ask("GET", f"{ROOT}/{path}", token=ingest)[0] == 403
    viewer = json.loads(server.ask("POST", "/api/v1/tokens", '{"name":"v","role":"viewer"}')[1])["secret"]
    assert server.ask("GET", f"{ROOT}/{path}", token=viewer)[0] == 200
    assert server.ask("GET", f"{ROOT}/{path}", Host="elsewhere.example")[0] in (400, 403, 421)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no real profile")
def test_a_real_profile(tmp_path):
    """Every tool that is offered answers, as XProf's front end asks for it."""
    content = (SHARED / "data/xspace/tpu_v6e_2core/plugins/profile/2026_01_01_00_00_00/host-0.xplane.pb").read_bytes()
    folder = tmp_path / "data" / "runs" / "r" / "plugins" / "profile" / "s"
    folder.mkdir(parents=True)
    (folder / "host-0.xplane.pb").write_bytes(content)
    server = Server(tmp_path / "data")
    wait_for(server, "r~s")
    assert ask(server, "module_list?run=r/s")[1] == b"jit_train_step(1234578)"
    tools = get(server, "run_tools?run=r/s")
    assert {"trace_viewer@", "overview_page", "hlo_stats", "op_profile"} <= set(tools)
    for tool in tools:
        for host in get(server, f"hosts?run=r/s&tag={tool}"):
            status, body, _ = ask(server, f"data?run=r/s&tag={tool}&host={host['hostname']}"
                                  "&module_name=jit_train_step(1234578)&memory_space=0&group_by=program")
            assert status == 200 and json.loads(body), (tool, host, body[:200])
    assert server.stop() == 0

