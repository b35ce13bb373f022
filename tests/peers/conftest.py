# SPDX-License-Identifier: Apache-2.0
"""What the tests beside real servers share: each peer is installed and started by the shared tool, in
a folder of its own on loopback, and ended by it."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
PEERS = SHARED / "tools" / "peers.sh"


@pytest.fixture
def peer(tmp_path):
    """peer(NAME, *arguments) starts one and returns what its env file says."""
    if not PEERS.exists():
        pytest.skip(f"no real peers here: {PEERS.name} is not beside this clone (TACHO_SHARED)")
    folders = []

    def start(name, *arguments):
        folder = tmp_path / f"peer-{name}"
        subprocess.run([PEERS, "install", name], check=True, timeout=900)
        folders.append(folder)
        subprocess.run([PEERS, "start", name, folder, *arguments], check=True, timeout=180)
        said = subprocess.run(["bash", "-c", 'set -a; . "$1"/env; env', "-", str(folder)], capture_output=True,
                              text=True, check=True).stdout
        return dict(line.split("=", 1) for line in said.splitlines() if line.startswith("PEER_"))

    yield start
    for folder in folders:
        subprocess.run([PEERS, "stop", folder], timeout=60)
