# SPDX-License-Identifier: Apache-2.0
"""XSpaces that somebody made to hurt, on the whole program: one error that says file and byte, or a counted repair;
memory and CPU time stay bounded. Cuts and flipped bits: tests/unit/format/test_hostile.c. TACHO_LONG: larger ones."""
import json
import os
import shutil
import subprocess
import zlib

import pytest
import wire_build as pb
from test_import_formats import TACHO, cost, write

LONG = bool(os.environ.get("TACHO_LONG"))
HUGE = b"\xff\xff\xff\xff\x0f"  # 2^32 - 1
NAME = pb.chunk(2, "/device:GPU:0")
WORK = pb.chunk(4, pb.number(1, 1) + pb.chunk(2, pb.number(1, 1) + pb.chunk(2, "work")))
EVENT = pb.number(1, 1) + pb.number(2, 5) + pb.number(3, 2)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Of each test its own, gone at its end: what is imported is as large as what the gzip holds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)


def plane(*content):
    return pb.chunk(1, NAME + b"".join(content) + WORK)


def refused(path, words="", peak_mb=300, cpu_s=20):
    code, said, used_mb, used_s = cost(path)
    assert code == 4, said
    assert said.splitlines()[0].count(str(path)) == 1 and words in said and "byte " in said
    assert said.count("\n") <= 2  # the error and a hint
    assert used_mb < peak_mb and used_s < cpu_s
    return said


def opened(path, peak_mb=300, cpu_s=20):
    """The summary of what opens in spite of all."""
    code, said, used_mb, used_s = cost(path)
    assert code == 0, said
    assert used_mb < peak_mb and used_s < cpu_s, (used_mb, used_s)
    run = subprocess.run([TACHO, "tool", "summary", path, "--json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize("n", [100_000, pytest.param(10_000_000, marks=pytest.mark.skipif(not LONG, reason="long"))])
def test_planes_without_end(tmp_path, n):
    refused(write(tmp_path, "planes.xplane.pb", pb.chunk(1, b"") * n), "more than 65536 planes")


def test_as_many_planes_as_may_be(tmp_path):
    path = write(tmp_path, "planes.xplane.pb", plane(pb.chunk(3, pb.chunk(4, EVENT))) * 65536)
    got = opened(path, peak_mb=600)
    assert (got["planes"], got["lines"], got["events"]) == (65536, 65536, 65536)


def test_lines_without_end(tmp_path):
    path = write(tmp_path, "lines.xplane.pb", plane(pb.chunk(3, b"") * 1_048_577))
    refused(path, "more than 1048576 lines", peak_mb=600)


@pytest.mark.parametrize("field", [4, 5])
def test_a_million_names_of_one_id(tmp_path, field):
    names = b"".join(pb.chunk(field, pb.number(1, i % 7) + pb.chunk(2, pb.number(1, i % 7) + pb.chunk(2, f"n{i}")))
                     for i in range(1_000_000))
    got = opened(write(tmp_path, "names.xplane.pb", plane(names, pb.chunk(3, pb.chunk(4, EVENT)))), peak_mb=700)
    assert got["events"] == 1


def test_an_event_of_a_million_statistics(tmp_path):
    stats = pb.chunk(4, pb.number(1, 1) + pb.number(4, 7)) * 1_000_000
    got = opened(write(tmp_path, "stats.xplane.pb", plane(pb.chunk(3, pb.chunk(4, EVENT + stats)))))
    assert got["events"] == 1


@pytest.mark.parametrize("where", ["plane", "line", "event", "name", "statistic"])
def test_a_length_of_4_gb_is_refused_where_it_stands(tmp_path, where):
    content = {"plane": b"\x0a" + HUGE, "line": plane(b"\x1a" + HUGE), "event": plane(pb.chunk(3, b"\x22" + HUGE)),
               "name": pb.chunk(1, b"\x12" + HUGE),
               "statistic": plane(pb.chunk(3, pb.chunk(4, EVENT + b"\x22" + HUGE)))}
    said = refused(write(tmp_path, "length.xplane.pb", content[where] + b"after"), "")
    at = int(said.partition("byte ")[2].split()[0].rstrip(":,;."))
    assert at <= len(content[where]) + 5


@pytest.mark.parametrize("field,inside", [(2, "plane"), (4, "space"), (2, "line"), (99, "plane")])
def test_a_string_of_more_than_2_gb(tmp_path, field, inside):
    """In a sparse file: the length is true, the string is zeros. Unknown fields are passed over, a name is refused."""
    n = 2_200_000_000
    head = pb.varint(field << 3 | 2) + pb.varint(n)
    if inside == "line":
        head = b"\x1a" + pb.varint(len(head) + n) + head
    if inside != "space":
        head = b"\x0a" + pb.varint(len(head) + n) + head
    path = write(tmp_path, "string.xplane.pb", head)
    with path.open("r+b") as file:
        file.truncate(len(head) + n)
    if field == 99:
        assert opened(path)["planes"] == 1
    else:
        refused(path, " 2200000000 bytes")


def one_line(path, n_bytes, event):
    """gzip of a plane with one line of about n_bytes of the same event; the number of events."""
    message = pb.chunk(4, event)
    block = message * ((1 << 20) // len(message))
    times = n_bytes // len(block)
    line = pb.chunk(2, "Stream #1")
    n_line = len(line) + times * len(block)
    before = NAME + b"\x1a" + pb.varint(n_line) + line
    head = b"\x0a" + pb.varint(len(before) + times * len(block) + len(WORK)) + before
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    with path.open("wb") as out:
        out.write(packer.compress(head))
        for _ in range(times):
            out.write(packer.compress(block))
        out.write(packer.compress(WORK) + packer.flush())
    return times * (len(block) // len(message))


TEXT = pb.chunk(4, pb.number(1, 1) + pb.chunk(5, "x" * (1 << 19)))  # a statistic of 512 kB


@pytest.mark.parametrize("event,n_bytes", [
    (EVENT, 100_000_000), (EVENT + TEXT, 1_000_000_000),
    pytest.param(EVENT, 10_000_000_000, marks=pytest.mark.skipif(not LONG, reason="long")),
    pytest.param(EVENT + TEXT, 10_000_000_000, marks=pytest.mark.skipif(not LONG, reason="long"))],
    ids=["events", "texts", "10 GB of events", "10 GB of texts"])
def test_one_line_of_many_bytes(tmp_path, event, n_bytes):
    path = tmp_path / "line.xplane.pb.gz"
    n = one_line(path, n_bytes, event)
    got = opened(path, peak_mb=600, cpu_s=20 + n_bytes / 20_000_000)
    assert (got["events"], got["total_busy_ps"]) == (n, 2)
    assert [w for w in got["warnings"] if w["code"] == "too_deep"]  # all begin at once


@pytest.mark.parametrize("content,words", [(b"\0" * (1 << 20), ""), (pb.chunk(1, b"") * (1 << 18), "planes"),
                                           (b"\x0a\xff\xff\xff\xff\x07" + b"\0" * (1 << 20), "")])
def test_bombs(tmp_path, content, words):
    """Hundreds of MB behind a few hundred kB."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(content) for _ in range(300)) + packer.flush()
    refused(write(tmp_path, "bomb.xplane.pb.gz", packed), words)
