# SPDX-License-Identifier: Apache-2.0
"""The UI in a real browser on the real server (conftest.py), and the states that cannot be made for real
(a fleet of days, a report of a GPU session) on web/test/fixture.mjs."""
import os
import re
import subprocess
import sys

from conftest import BIN, ROOT, WORKLOAD, environment


def browse(script, *args, seconds=600):
    done = subprocess.run(["node", str(ROOT / "tests/web" / script), *map(str, args)], capture_output=True, text=True,
                          timeout=seconds, env=environment())
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"^\d+ passed, 0 failed$", done.stdout, re.M)


def test_pages(served):
    server, run, session = served
    browse("pages.mjs", server.url, server.token, run, session)


def test_trace_by_both_back_ends(served):
    server, run, session = served
    browse("trace.mjs", server.url, server.token, run, session)


def test_search_and_flows(served):
    server, run, session = served
    browse("find.mjs", server.url, server.token, run, session)


def test_pictures_of_tools(served):
    server, run, session = served
    browse("pictures.mjs", server.url, server.token, run, session)


def test_a_run_seen_live(served, tmp_path):
    server, run, session = served
    browse("live.mjs", server.url, server.token, run, session, BIN, "run", "--data", server.data, "--name", "seen-live",
           "--", sys.executable, WORKLOAD, tmp_path / "state", -1, 120, 0.08)
    found, = [r for r in server.get("runs")["items"] if r["name"] == "seen-live"]
    assert found["phase"] == "COMPLETED" and found["step"] == 119


def test_states_on_invented_data(served):
    """The long fleet run and a session with findings: the pages of its report only."""
    server = subprocess.Popen(["node", os.path.join(ROOT, "web/test/fixture.mjs"), "0"], stdout=subprocess.PIPE,
                              text=True)
    try:
        url, token = server.stdout.readline().strip().split("/#token=")
        browse("states.mjs", url, token, "pretrain7b01", "s1")
    finally:
        server.terminate()
        server.wait(10)
