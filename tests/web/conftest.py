# SPDX-License-Identifier: Apache-2.0
"""A data folder made by the real binary, and the real server on it: one run that was killed and resumed,
with a profile session of its own. The profile is a GPU one of ../shared, else the small one of the corpus."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WORKLOAD = str(ROOT / "tests/web/workload.py")
PROFILE = SHARED / "data/xspace/gpu_h100_2/plugins/profile/2026_01_01_00_00_00/host-0.xplane.pb"
SMALL = ROOT / "tests/fuzz/corpus/xspace/h12_graph_kernels.xplane.pb"


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TACHO_SAMPLE_INTERVAL": "1s"}


def record(data, name, args, resume=False):
    """One attempt under `tacho run`; the exit status."""
    cmd = [BIN, "run", "--data", str(data), "--name", name, "--group", "browser", *(["--resume"] if resume else []),
           "--", sys.executable, WORKLOAD, *map(str, args)]
    return subprocess.run(cmd, env=environment(), stdout=subprocess.DEVNULL, timeout=120).returncode


class Server:
    def __init__(self, data):
        self.data = data
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.process = subprocess.Popen([BIN, "serve", "--listen", f"127.0.0.1:{port}", "--data", str(data)],
                                        stdout=subprocess.PIPE, text=True, env=environment())
        self.url, _, self.token = self.process.stdout.readline().strip().split()[-1].partition("/#token=")
        assert self.token

    def get(self, path):
        ask = urllib.request.Request(f"{self.url}/api/v1/{path}", headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(ask, timeout=60) as answer:
            return json.load(answer)

    def until(self, path, true, seconds=60):
        """The answer once `true` of it; a run that the server has not read yet is not found."""
        end, answer = time.monotonic() + seconds, None
        while True:
            try:
                answer = self.get(path)
                if true(answer):
                    return answer
            except urllib.error.HTTPError as e:
                assert e.code == 404, e
            assert time.monotonic() < end, answer
            time.sleep(0.2)


def need_browser():
    """Skips, saying what is absent."""
    for what, there in (("node", shutil.which("node")), (CHROMIUM, os.path.exists(CHROMIUM)),
                        (BIN, os.path.exists(BIN)),
                        ("web/node_modules", (ROOT / "web/node_modules").exists()),
                        ("web/dist", (ROOT / "web/dist/index.html").exists())):
        if not there:
            pytest.skip(f"{what} is not there")


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """(server, run, session) of the recorded run."""
    need_browser()
    top = tmp_path_factory.mktemp("web")
    data, state = top / "data", top / "state"
    assert record(data, "crashed-and-resumed", [state, 24, 60, 0.02]) == 137
    assert record(data, "crashed-and-resumed", [state, -1, 60, 0.02], resume=True) == 0
    run, = os.listdir(data / "runs")
    source = PROFILE if PROFILE.exists() else SMALL
    if source is SMALL:
        print("the profiles of ../shared are not there: the small one of the corpus")
    session = data / "runs" / run / "plugins/profile/2026_01_01_00_00_00"
    session.mkdir(parents=True)
    shutil.copy(source, session / "host-0.xplane.pb")
    os.chmod(session / "host-0.xplane.pb", 0o644)
    server = Server(data)
    try:
        sessions = server.until(f"runs/{run}/sessions",
                                lambda d: d["items"] and d["items"][0]["report_status"] != "pending")
        yield server, run, sessions["items"][0]["session"]
    finally:
        server.process.terminate()
        server.process.wait(30)
