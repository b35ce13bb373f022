# SPDX-License-Identifier: Apache-2.0
"""200 zooms and pans in a real browser over a million events, whose starts are known, and with TACHO_LONG=1 over a
profile of 4 GB: the one of 1 GB that bench/load_bench.py makes, four times over."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import SHARED, Server, need_browser, record
from many_events import write
from test_pages import browse

GENERATOR = SHARED / "tools/gen_xspace.py"


@pytest.fixture
def place(tmp_path):
    """(a data folder with a run, its id, the folder of a session of it)"""
    need_browser()
    data = tmp_path / "data"
    assert record(data, "zoomed", [tmp_path / "state", -1, 5, 0.02]) == 0
    run, = os.listdir(data / "runs")
    session = data / "runs" / run / "plugins/profile/large"
    session.mkdir(parents=True)
    return data, run, session


def zoom(place, starts, events, is_large=False):
    data, run, _ = place
    server = Server(data)
    try:
        # While its report is made, a large profile is shown in part.
        found = server.until(f"runs/{run}/sessions", lambda d: d["items"] and (
            is_large or d["items"][0]["report_status"] != "pending"), 60)
        browse("zooms.mjs", server.url, server.token, run, found["items"][0]["session"], starts, events,
               seconds=2400)
    finally:
        server.process.terminate()
        server.process.wait(60)


def test_a_million_events(place, tmp_path):
    n = write(place[2] / "host-0.xplane.pb", tmp_path / "starts.bin")
    zoom(place, tmp_path / "starts.bin", n)


@pytest.mark.skipif(os.environ.get("TACHO_LONG") != "1", reason="only in the long check: 4 GB, some minutes")
@pytest.mark.skipif(not GENERATOR.exists(), reason="the generator of ../shared is not there")
def test_a_hundred_million_events(place, tmp_path):
    made = tmp_path / "made"
    subprocess.run([sys.executable, GENERATOR, made, "--kind", "tpu", "--target-mb", "1000", "--cores", "4",
                    "--ops-per-step", "400", "--seed", "7", "--truth-steps", "10"], check=True,
                   stdout=subprocess.DEVNULL)
    events = 4 * json.loads(next(made.rglob("truth.json")).read_text())["events"]
    one = next(made.rglob("*.xplane.pb"))
    with open(place[2] / "host-0.xplane.pb", "wb") as out:
        for _ in range(4):
            with open(one, "rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
    shutil.rmtree(made)
    try:
        zoom(place, "-", events, is_large=True)
    finally:
        shutil.rmtree(place[0])
