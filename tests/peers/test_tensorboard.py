# SPDX-License-Identifier: Apache-2.0
"""Stock TensorBoard with XProf opens the profile that the demo's training wrote, from our run folder,
and counts the steps that we count."""
import gzip
import json
import os
import subprocess
import time
import urllib.request

import pytest

from conftest import ROOT

TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
PYTHON = str(ROOT / ".venv" / "bin" / "python3")
WAIT_S = 60


def get(url):
    with urllib.request.urlopen(url, timeout=120) as reply:
        body = reply.read()
    return json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env |= {"TACHO_DATA": str(folder / "data"), "TACHO_BIN": TACHO, "DEMO_SERVE": "0",
            "PATH": f"{ROOT}/.venv/bin:{env['PATH']}"}
    demo = subprocess.run([str(ROOT / "tools" / "demo")], env=env, capture_output=True, text=True, timeout=300)
    assert demo.returncode == 0, demo.stderr
    return folder / "data"


@pytest.fixture
def profile_url(peer, data):
    url = peer("tensorboard", str(data / "runs"))["PEER_TENSORBOARD_URL"] + "/data/plugin/profile"
    until = time.monotonic() + WAIT_S  # TensorBoard looks for runs in a thread of its own
    while not get(f"{url}/runs") and time.monotonic() < until:
        time.sleep(0.5)
    return url


def test_xprof_opens_the_demos_profile(profile_url, data):
    written = sorted(data.glob("runs/*/plugins/profile/*/*.xplane.pb"))
    assert len(written) == 1
    session, host = written[0].parent, written[0].name.removesuffix(".xplane.pb")
    name = f"{session.parents[2].name}/{session.name}"
    assert name in get(f"{profile_url}/runs")
    tools = get(f"{profile_url}/run_tools?run={name}")
    assert any(t.startswith("trace_viewer") for t in tools) and any(t.startswith("overview_page") for t in tools)
    assert host in {h["hostname"] for h in get(f"{profile_url}/hosts?run={name}&tag=overview_page")}
    assert get(f"{profile_url}/data?run={name}&tag=overview_page&host=ALL_HOSTS")


def test_xprof_sees_the_events_that_we_see(profile_url, data):
    session = next(data.glob("runs/*/plugins/profile/*"))
    name, host = f"{session.parents[2].name}/{session.name}", next(session.glob("*.xplane.pb")).name
    trace = get(f"{profile_url}/data?run={name}&tag=trace_viewer&host={host.removesuffix('.xplane.pb')}")
    theirs = {e["name"] for e in trace["traceEvents"] if e.get("ph") == "X"}
    ours = json.loads(subprocess.run([TACHO, "tool", "trace_viewer", str(session), "--json"], capture_output=True,
                                     text=True, check=True, timeout=60).stdout)
    ours = {e["name"] for e in ours["traceEvents"] if e.get("ph") == "X"}
    assert len(theirs) > 20  # XProf shows a part of a large trace
    derived = {f"train {step}" for step in range(60, 65)}  # it puts the number behind the name, and pairs marks
    assert derived <= theirs
    assert not theirs - ours - derived - {"ThreadpoolListener::Region"}
