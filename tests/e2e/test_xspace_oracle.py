# SPDX-License-Identifier: Apache-2.0
"""The XSpace reader against an independent decoder (tools/dump-xspace), and against damage."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", str(ROOT.parent / "shared")))

loader = importlib.machinery.SourceFileLoader("dump_xspace", str(ROOT / "tools/dump-xspace"))
spec = importlib.util.spec_from_loader("dump_xspace", loader)
dump_xspace = importlib.util.module_from_spec(spec)
loader.exec_module(dump_xspace)


def files():
    found = sorted(p for d in ("xspace", "reports") for p in (SHARED / "data" / d).rglob("*.pb"))
    return [p for p in found if "damaged" not in p.name]


def tacho(*args, **env):
    base = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    return subprocess.run([TACHO, *map(str, args)], capture_output=True, text=True, timeout=60, env={**base, **env})


@pytest.mark.skipif(not files(), reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("path", files(), ids=lambda p: "/".join(p.parts[-5:]))
def test_summary_agrees_with_the_other_decoder(path):
    want = dump_xspace.oracle(dump_xspace.decode(path.read_bytes()))
    got = json.loads(tacho("tool", "summary", path, "--json").stdout)
    assert {k: got[k] for k in want} == want


def length(n):
    out = b""
    while True:
        out += bytes([(n & 127) | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def message(number, content):
    return length(number << 3 | 2) + length(len(content)) + content


def small_space():
    events = b"".join(message(4, b"\x08\x01\x10" + length(i * 1000) + b"\x18\x64") for i in range(5))
    line = message(2, b"Stream #7") + events
    plane = message(2, b"/device:GPU:0") + message(3, line)
    return message(1, plane)


@pytest.mark.parametrize("content, words", [
    (b"", "the file is empty at byte 0"),
    (b"\x1f\x8b\x08\x00rest", "gzip"),
    (b'{"traceEvents":[]}', "JSON"),
    (small_space()[:-1], "truncated"),
    (small_space() + b"\x0b", "byte"),
])
def test_bad_file_is_one_error_with_its_byte_and_status_4(tmp_path, content, words):
    path = tmp_path / "bad.xplane.pb"
    path.write_bytes(content)
    done = tacho("tool", "summary", path)
    assert done.returncode == 4
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert words in first and "byte " in first and str(path) in first
    assert json.loads(tacho("tool", "summary", path, "--json").stdout)["error"]["code"] == "bad_input"


def test_file_is_known_by_content(tmp_path):
    path = tmp_path / "anything.bin"
    path.write_bytes(small_space())
    for at in (path, tmp_path):
        got = json.loads(tacho("tool", "summary", at, "--json").stdout)
        assert (got["events"], got["total_busy_ps"]) == (5, 500)


def test_newest_session_of_a_log_folder(tmp_path):
    for session, n in (("2026_01_02_00_00_00", 1), ("2026_01_03_00_00_00", 2)):
        folder = tmp_path / "plugins/profile" / session
        folder.mkdir(parents=True)
        for i in range(n):
            (folder / f"host-{i}.xplane.pb").write_bytes(small_space())
    got = json.loads(tacho("tool", "summary", tmp_path, "--json").stdout)
    assert got["hosts"] == ["host-0", "host-1"]


def test_parser_that_dies_fails_alone(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(small_space())
    done = tacho("tool", "summary", path, TACHO_TEST_PARSER_CRASH="1")
    assert done.returncode == 4
    assert "the parser died on" in done.stderr and str(path) in done.stderr


def test_chrome_trace_holds_every_event(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(small_space())
    events = json.loads(tacho("tool", "trace_viewer", path, "--xprof").stdout)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in slices] == [(i / 1000, 0.0001) for i in range(5)]
