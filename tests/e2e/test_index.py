# SPDX-License-Identifier: Apache-2.0
"""Trace views from an index (docs/formats/index.md) on a real server: the one of an earlier release is read, not made
again, and says what the XSpace says."""
import os
import pathlib
import shutil

import pytest
from test_server import Server

COMPAT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "compat"
GOLDEN = COMPAT / "index-2"
MADE_S = 1_700_000_000  # modification time of the XSpace when its index was written
VIEWS = ["trace", "trace/tile?lines=0&level=20", "trace/event?line=0&index=0", "trace/search?q=e", "trace/select"]


@pytest.fixture
def session(tmp_path):
    folder = tmp_path / "data" / "runs" / "r1" / "plugins" / "profile" / "s1"
    folder.mkdir(parents=True)
    shutil.copy(GOLDEN / "host-0.xplane.pb", folder)
    os.utime(folder / "host-0.xplane.pb", (MADE_S, MADE_S))
    return folder


def answers(tmp_path):
    server = Server(tmp_path / "data", {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        server.wait("sessions", lambda s: s["items"])
        return [server.get(f"sessions/r1~s1/{view}") for view in VIEWS]
    finally:
        assert server.stop() == 0


def test_an_index_of_version_2_is_read(tmp_path, session):
    index = session / "host-0.tacho"
    shutil.copy(GOLDEN / "host-0.tacho", index)
    before = index.stat()
    from_index = answers(tmp_path)
    assert (index.stat().st_ino, index.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    index.unlink()
    assert answers(tmp_path) == from_index
    assert index.stat().st_size > 0
    assert sum(line["events"] for plane in from_index[0]["targets"][0]["planes"] for line in plane["lines"]) > 0


@pytest.mark.parametrize("version", [1, 99])
def test_another_version_is_made_again(tmp_path, session, version):
    index = session / "host-0.tacho"
    content = bytearray((GOLDEN / "host-0.tacho").read_bytes())
    content[-72] = version
    if version == 1:
        content = (COMPAT / "index-1" / "host-0.tacho").read_bytes()
    index.write_bytes(content)
    first = answers(tmp_path)
    assert index.read_bytes()[-72] == 2
    assert answers(tmp_path) == first


def test_another_xspace_of_that_name_is_not_taken_for_it(tmp_path, session):
    index = session / "host-0.tacho"
    shutil.copy(GOLDEN / "host-0.tacho", index)
    os.utime(session / "host-0.xplane.pb", (MADE_S, MADE_S + 1))
    before = index.stat().st_ino
    held = os.open(index, os.O_RDONLY)  # so that its number is not given out again
    answers(tmp_path)
    assert index.stat().st_ino != before
    os.close(held)
