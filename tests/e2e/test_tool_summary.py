# SPDX-License-Identifier: Apache-2.0
"""tacho tool summary on real profiles, against counts that were worked out elsewhere."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", str(ROOT.parent / "shared")))
DATA = SHARED / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared profiles are not beside this clone")


def summary(path):
    return subprocess.run([TACHO, "tool", "summary", str(path), "--json"], capture_output=True, text=True,
                          timeout=60, check=False)


def profiles():
    folder = DATA / "xspace"
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if (p.is_dir() and "tracelens" not in p.name)
                  or (p.name.endswith(".pb") and "damaged" not in p.name))


@needs_data
@pytest.mark.parametrize("path", profiles(), ids=lambda p: p.name)
def test_every_profile_opens(path):
    done = summary(path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["events"] > 0


@needs_data
def test_damaged_file_is_refused_with_its_byte():
    done = summary(DATA / "xspace" / "damaged_tpu_inference.xplane.pb")
    assert done.returncode == 4
    assert "at byte " in done.stderr and len(done.stderr.strip().splitlines()) == 1


@needs_data
@pytest.mark.parametrize("name", ["h11_no_step_markers.xplane.pb", "h12_graph_kernels.xplane.pb",
                                  "h13_same_plane_ids.xplane.pb"])
def test_counts_are_the_known_ones(name):
    want = json.loads((DATA / "reports" / "expected.json").read_text())
    want = want.get("files", want)[name]
    got = json.loads(summary(DATA / "reports" / name).stdout)
    for key in ("planes", "lines", "events", "total_busy_ps", "steps"):
        if key in want:
            assert got[key] == want[key], key


def test_a_text_file_is_refused(tmp_path):
    path = tmp_path / "x.xplane.pb"
    path.write_text("this is no profile\n")
    done = summary(path)
    assert done.returncode == 4 and str(path) in done.stderr
