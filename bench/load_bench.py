#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to open an XSpace, beside XProf on the same file in the same run, and what an idle server costs.

    BENCH_MB=20,200,1000    sizes of the generated profiles (TPU, 2 steps of truth kept)
    BENCH_PEER_MB=200       largest one that XProf is given: it needs 70 times the file in memory
    BENCH_FOLDER=…          where the profiles are made (a temporary folder otherwise)

CPU seconds are user and system time of the process and its children; wall time is only shown.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
PEER = pathlib.Path(os.environ.get("PEERS_CACHE", pathlib.Path.home() / ".cache" / "peers")) / "venv-tensorboard"
XPROF = """import sys
from xprof.convert import raw_to_tool_data
raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], sys.argv[2], {})"""


def cost(words, env=None):
    """(wall s, CPU s, peak resident MB) of one command; None when it failed."""
    start = time.monotonic()
    child = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.stderr.write(said.decode(errors="replace")[-300:])
        return None
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(what, mb, measured, best):
    if measured is None:
        print(f"{what:<42}{'failed':>10}")
        return
    wall, cpu, peak = measured
    ratio = "" if best is None else f"{cpu / best:>9.1f} x"
    print(f"{what:<42}{wall:>9.2f} s{cpu:>9.2f} s{mb / cpu:>9.0f} MB/s{peak:>9.0f} MB{ratio}", flush=True)


def profile(folder, mb):
    out = pathlib.Path(folder) / str(mb)
    if not out.exists():
        print(f"making an XSpace of {mb} MB", file=sys.stderr)
        make = [sys.executable, SHARED / "tools" / "gen_xspace.py", out, "--kind", "tpu", "--target-mb", str(mb)]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    return next(out.rglob("*.xplane.pb"))


def load(folder):
    sizes = [int(mb) for mb in os.environ.get("BENCH_MB", "20,200,1000").split(",")]
    peer_mb = int(os.environ.get("BENCH_PEER_MB", "200"))
    python = PEER / "bin" / "python3"
    if not python.exists():
        print("XProf is not here: no figures of it (peers.sh install tensorboard)")
    print(f"\n{'':<42}{'wall':>11}{'CPU':>11}{'per CPU s':>14}{'peak':>12}{'CPU ratio':>11}")
    for size in sizes:
        path = profile(folder, size)
        mb = path.stat().st_size / 1e6
        best = None
        for tool in ("summary", "overview_page"):
            measured = cost([TACHO, "tool", tool, path, "--json"])
            best = best or (measured and measured[1])
            row(f"{mb:.0f} MB: tacho tool {tool}", mb, measured, None)
        if python.exists() and size <= peer_mb:
            alone = pathlib.Path(folder) / f"xprof-{size}"
            shutil.rmtree(alone, ignore_errors=True)  # it keeps results beside its input
            shutil.copytree(path.parent, alone)
            env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
            row(f"{mb:.0f} MB: XProf overview_page", mb,
                cost([python, "-c", XPROF, alone / path.name, "overview_page"], env), measured and measured[1])
            shutil.rmtree(alone)


def serve(data):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")} | {"TACHO_DATA": str(data)}
    return subprocess.Popen([TACHO, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=env)


def tile(folder):
    """CPU of the server and its parsers for the first view of a trace, and for a tile of its whole span after it."""
    sizes = [int(mb) for mb in os.environ.get("BENCH_MB", "20,200,1000").split(",")]
    for size in sizes:
        path = profile(folder, size)
        data = pathlib.Path(folder) / "tiles"
        session = data / "runs" / "bench" / "plugins" / "profile" / "s1"
        session.mkdir(parents=True)
        os.link(path, session / "host-0.xplane.pb")
        child = serve(data)
        try:
            url, token = re.match(r"(http://[^/]+)/#token=(\S+)", child.stdout.readline()).groups()
            views(child.pid, f"{url}/api/v1/sessions", token, path.stat().st_size / 1e6)
            index = session / "host-0.tacho"
            print(f"    index {index.stat().st_size / 1e6:.1f} MB" if index.exists() else "    no index")
        finally:
            child.terminate()
            child.wait(60)
            shutil.rmtree(data, ignore_errors=True)


def views(pid, url, token, mb):
    def get(path):
        request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})
        return json.load(urllib.request.urlopen(request, timeout=600))

    def cpu_s():
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    items = get("")["items"]
    while not items or items[0]["report_status"] == "pending":  # its report would be counted too
        time.sleep(0.5)
        items = get("")["items"]
    session, start = "/" + items[0]["session"], cpu_s()
    trace = get(session + "/trace")
    first, start = cpu_s() - start, cpu_s()
    line = max((n for p in trace["targets"][0]["planes"] for n in p["lines"]), key=lambda n: n["events"])
    level = max(0, trace["end_ps"].bit_length() - 10)
    for _ in range(5):
        get(f"{session}/trace/tile?lines={line['line']}&level={level}&position=0")
    print(f"{mb:.0f} MB: first view {first:.2f} s CPU; then a tile over all {line['events']} events of a line "
          f"{1000 * (cpu_s() - start) / 5:.0f} ms CPU", flush=True)


def server(folder):
    data = pathlib.Path(folder) / "data"
    start = time.monotonic()
    child = serve(data)
    try:
        url = re.match(r"(http://[^/]+)", child.stdout.readline())[1]
        with urllib.request.urlopen(f"{url}/healthz", timeout=10):
            ready = time.monotonic() - start
        time.sleep(2)
        status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        before = sum(map(int, pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        time.sleep(5)
        after = sum(map(int, pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        ticks = os.sysconf("SC_CLK_TCK")
        rss = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024
        print(f"\nserver: {1000 * ready:.0f} ms from start to its first answer, {rss:.1f} MB resident when idle, "
              f"{100 * (after - before) / ticks / 5:.2f} % of a core")
    finally:
        child.terminate()
        child.wait(20)


def main():
    if not (SHARED / "tools" / "gen_xspace.py").exists():
        print("load bench: the generator of profiles is not beside this clone (TACHO_SHARED): skipped")
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = os.environ.get("BENCH_FOLDER")
    folder = given or tempfile.mkdtemp(prefix="tacho-bench-")
    try:
        load(folder)
        print()
        tile(folder)
        server(folder)
    finally:
        if not given:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
