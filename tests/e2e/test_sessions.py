# SPDX-License-Identifier: Apache-2.0
"""tacho sessions: what is imported is a session that the server, XProf's layout and the commands know."""
import gzip
import json
import os
import pathlib
import subprocess

import export_readers as readers
import pytest
from test_server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
SPACE = readers.xspace_plane(b"/host:CPU", {b"main": (1_000, [(b"a", 0, 500), (b"b", 1000, 250)])})


@pytest.fixture
def tacho(tmp_path):
    def run(*args, status=0):
        words = [TACHO, *map(str, args), "--data", str(tmp_path / "data")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == status, (args, done.stderr)
        return done.stdout if status == 0 else done.stderr
    return run


@pytest.fixture
def profile(tmp_path):
    folder = tmp_path / "in" / "2026 (one)"
    folder.mkdir(parents=True)
    for host in ("a", "b"):
        (folder / f"{host}.xplane.pb").write_bytes(SPACE)
    return folder


def test_import_copies_and_lists(tacho, profile, tmp_path):
    assert tacho("sessions", "list") == tacho("sessions")
    assert tacho("sessions", "import", profile, "--run", "r1").strip() == "r1~2026__one_"
    folder = tmp_path / "data/runs/r1/plugins/profile/2026__one_"
    assert sorted(p.name for p in folder.iterdir()) == ["a.xplane.pb", "b.xplane.pb"]
    assert all(p.read_bytes() == SPACE for p in folder.iterdir())
    rows = json.loads(tacho("sessions", "list", "--json"))["rows"]
    assert [r[:3] for r in rows] == [["r1~2026__one_", 2, 2 * len(SPACE)]]
    shown = json.loads(tacho("sessions", "show", "last", "--json"))
    assert shown["values"]["folder"] == str(folder)
    assert [r[:3] for r in shown["rows"]] == [["a", "a", len(SPACE)], ["b", "b", len(SPACE)]]
    assert tacho("sessions", "import", profile, "--name", "other").strip() == "imported~other"
    assert "already" in tacho("sessions", "import", profile, "--name", "other", status=1)
    assert profile.exists()
    assert not [p for p in (tmp_path / "data").rglob(".*")]


def test_a_foreign_profile_keeps_its_original(tacho, tmp_path):
    path = tmp_path / "my trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [
        {"ph": "X", "name": "op", "pid": 1, "tid": 2, "ts": 5, "dur": 1.25}]}).encode()))
    assert tacho("sessions", "import", path).strip() == "imported~my_trace"
    folder = tmp_path / "data/runs/imported/plugins/profile/my_trace"
    assert (folder / "my_trace.json.gz").read_bytes() == path.read_bytes()
    path.unlink()
    rows = tacho("sessions", "export", "my_trace", "--to", "csv", "--out", "-")
    assert [s[2:] for s in readers.csv_slices(rows.encode())] == [("op", 0, 1_250_000)]
    asked = json.loads(tacho("sql", "my_trace", "SELECT name, dur_ps FROM trace", "--json"))
    assert asked["rows"] == [["op", 1_250_000]]
    assert json.loads(tacho("tool", "summary", "my_trace", "--json"))["events"] == 1
    assert len(json.loads(tacho("sessions", "list", "--json"))["rows"]) == 1


def test_damage_is_refused_and_leaves_nothing(tacho, tmp_path):
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(SPACE[:-2])
    assert "at byte" in tacho("sessions", "import", path, status=4)
    assert not list((tmp_path / "data").rglob("*.pb")) and not list((tmp_path / "data").rglob(".import*"))
    assert json.loads(tacho("sessions", "list", "--json"))["rows"] == []
    tacho("sessions", "import", tmp_path / "absent", status=3)
    tacho("sessions", "import", path, "--run", "../up", status=2)
    tacho("sessions", "import", path, "--name", ".hidden", status=2)


def test_export_and_delete(tacho, profile, tmp_path):
    tacho("sessions", "import", profile, "--run", "r1", "--name", "s")
    tacho("sessions", "import", profile, "--run", "r2", "--name", "s")
    assert "2 sessions" in tacho("sessions", "show", "s", status=2)
    for word in ("r1~s", "r1/s"):
        assert tacho("sessions", "export", word, "--to", "chrome").strip() == "s.json"
    slices, *_ = readers.chrome((tmp_path / "s.json").read_bytes())
    assert sorted(s[2:] for s in slices) == sorted(2 * [("a", 0, 500), ("b", 1000, 250)])
    tacho("sessions", "export", "r1~s", "--to", "xspace", "--host", "b", "--out", "b.xplane.pb")
    assert (tmp_path / "b.xplane.pb").read_bytes() == SPACE
    assert "--yes" in tacho("sessions", "delete", "r1~s", status=2)
    assert (tmp_path / "data/runs/r1/plugins/profile/s").is_dir()
    assert tacho("sessions", "delete", "r1~s", "--yes").strip() == "r1~s"
    assert not (tmp_path / "data/runs/r1/plugins/profile/s").exists()
    assert "no session 'r1~s'" in tacho("sessions", "delete", "r1~s", "--yes", status=3)
    assert tacho("sessions", "show", "s").startswith("Targets")
    tacho("sessions", "export", "s", status=2)
    tacho("sessions", "rename", "s", status=2)


def test_an_imported_session_is_served(tacho, profile, tmp_path):
    tacho("sessions", "import", profile, "--run", "r1", "--name", "s")
    server = Server(tmp_path / "data")
    got = server.wait("sessions", lambda got: any(s["report_status"] != "pending" for s in got["items"]))
    assert [(s["session"], s["targets"]) for s in got["items"]] == [("r1~s", 2)]
    assert server.get("sessions/r1~s/tools/get_hosts")
    assert server.stop() == 0
