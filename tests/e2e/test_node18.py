# SPDX-License-Identifier: Apache-2.0
"""The UI built by Debian 12's own nodejs 18 and npm 9 is, byte for byte, the one built here. Where the machine
has another node (make check-long, as root): the packages (about 30 MB) are unpacked into a temporary folder and
laid over /usr in a mount namespace of their own; nothing is installed."""
import filecmp
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = os.environ.get("TACHO_LONG") == "1"
BUILD = """set -e
mount -t overlay overlay -o lowerdir="$1":/usr /usr
cd "$2"
node --version
npm --version
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
npm run build --silent >&2
"""


def out(*cmd, cwd=None):
    done = subprocess.run(cmd, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def unpack(top):
    """Debian's nodejs and npm, and all they need beyond the C library, as a /usr of their own."""
    version = re.search(r"\b18\.\S+", out("apt-cache", "madison", "nodejs"))
    if not version:
        pytest.skip("apt knows no nodejs 18: not Debian 12")
    version, packages = version.group(), top / "packages"
    packages.mkdir()
    (top / "status").touch()  # apt then counts nothing as installed and names every package needed
    lines = out("apt-get", "-y", "--print-uris", "--no-install-recommends", "-o", f"Dir::State::status={top}/status",
                "install", "npm", f"nodejs={version}", f"libnode108={version}")
    names = [line.split()[1].split("_")[0] for line in lines.splitlines() if line.startswith("'")]
    needed = [n for n in names if re.match(r"node-|npm$|libuv1|libc-ares2|libicu72|libnghttp2-14", n)]
    out("apt-get", "download", f"nodejs={version}", f"libnode108={version}", *needed, cwd=packages)
    for package in packages.glob("*.deb"):
        out("dpkg", "-x", str(package), str(top / "root"))
    return top / "root" / "usr"


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.mark.skipif(not LONG, reason="only in make check-long")
def test_ui_built_by_debian_is_the_same(tmp_path):
    if not (ROOT / "web/dist/index.html").exists() or not shutil.which("node"):
        pytest.skip("web/dist or node is not there")
    if out("node", "--version").startswith("v18."):
        pytest.skip("this machine's node is 18: the UI was built by it")
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("apt-get"):
        pytest.skip("needs root, unshare and apt-get")
    tree, dist = tmp_path / "web", ROOT / "web/dist"
    shutil.copytree(ROOT / "web", tree, ignore=shutil.ignore_patterns("node_modules", "dist"))
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(tmp_path)}
    build = subprocess.run(["unshare", "-m", "sh", "-c", BUILD, "sh", str(unpack(tmp_path)), str(tree)],
                           env=environment, capture_output=True, text=True, timeout=600)
    assert build.returncode == 0, build.stderr[-3000:]
    assert re.fullmatch(r"v18\.\S+\n9\.\S+\n", build.stdout)
    assert files(tree / "dist") == files(dist)
    different = filecmp.cmpfiles(dist, tree / "dist", files(dist), shallow=False)[1:]
    assert different == ([], []), different
