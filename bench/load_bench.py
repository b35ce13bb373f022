#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to open an XSpace, beside XProf and xprof-rs on the same file in the same run, and what an idle server
costs. xprof-rs 0.1.3 is optional: cargo install xprof-rs --version 0.1.3 --locked --root ~/.cache/peers/xprof-rs

    BENCH_MB=20,200,1000    sizes of the generated profiles, TPU-like and GPU-like
    BENCH_PEER_MB=200       largest one that XProf is given: it needs 70 times the file in memory
    BENCH_RUST_MB=1000      largest one that xprof-rs is given: it needs 4 times the file
    BENCH_TIMES=3           the largest TPU-like profile so many times over, in 1.5 GB of address space; 0: not
    BENCH_FOLDER=…          where the profiles are made (a temporary folder otherwise)

"first" makes the index with its levels; "again" is another process. CPU seconds are user and system time of the process
and its children; wall time is only shown.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
PEERS = pathlib.Path(os.environ.get("PEERS_CACHE", pathlib.Path.home() / ".cache" / "peers"))
PEER = PEERS / "venv-tensorboard"
SEED = "-1234000"  # the generator makes program id 567 of it: xprof-rs refuses files in which ids are large
XPROF_RS = PEERS / "xprof-rs" / "bin" / "xprof-rs"
XPROF = """import sys
from xprof.convert import raw_to_tool_data
raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], sys.argv[2], {})"""


def cost(words, env=None, address_space=None):
    """(wall s, CPU s, peak resident MB) of one command; None when it failed."""
    def limit():
        if address_space:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    start = time.monotonic()
    child = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env,
                             preexec_fn=limit)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.stderr.write(said.decode(errors="replace")[-300:])
        return None
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(what, mb, measured, best):
    if measured is None:
        print(f"{what:<50}{'failed':>10}")
        return
    wall, cpu, peak = measured
    ratio = "" if best is None else f"{cpu / best:>9.1f} x"
    print(f"{what:<50}{wall:>9.2f} s{cpu:>9.2f} s{mb / max(cpu, 0.001):>9.0f} MB/s{peak:>9.0f} MB{ratio}", flush=True)


def sizes():
    return [int(mb) for mb in os.environ.get("BENCH_MB", "20,200,1000").split(",")]


def profile(folder, kind, mb):
    out = pathlib.Path(folder) / f"{kind}{mb}"
    if not out.exists():
        print(f"making an XSpace of {mb} MB ({kind})", file=sys.stderr)
        make = [sys.executable, SHARED / "tools" / "gen_xspace.py", out, "--kind", kind, "--target-mb", str(mb),
                "--cores", "4", "--ops-per-step", "400", "--seed", SEED, "--truth-steps", "10"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    return next(out.rglob("*.xplane.pb"))


def opened(folder, name, path, address_space=None):
    """First open to overview, and the same from another process."""
    cache = pathlib.Path(folder) / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    env = os.environ | {"XDG_CACHE_HOME": str(cache), "TACHO_DATA": str(pathlib.Path(folder) / "none")}
    mb = path.stat().st_size / 1e6
    first = cost([TACHO, "tool", "overview_page", path, "--json"], env, address_space)
    row(f"{name} {mb:.0f} MB: tacho overview_page, first", mb, first, None)
    again = cost([TACHO, "tool", "overview_page", path, "--json"], env, address_space)
    row(f"{name} {mb:.0f} MB: again", mb, again, None)
    shutil.rmtree(cache, ignore_errors=True)
    return first


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask_overview(url):
    """The overview page of the only session; waits until the server listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            run = json.load(urllib.request.urlopen(f"{url}/runs", timeout=20))[0]
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    query = urllib.parse.urlencode({"run": run, "tag": "overview_page", "host": "ALL_HOSTS"})
    with urllib.request.urlopen(f"{url}/data?{query}", timeout=600) as answer:
        tables = json.load(answer)
    if not any(t.get("rows") for t in tables):  # an empty page is no measurement
        raise ValueError("an overview page without rows")


def xprof_rs(folder, path):
    """(wall s, CPU s, peak resident MB) of its server from start to the first overview page; None when it failed."""
    log = pathlib.Path(folder) / "xprof-rs"
    session = log / "plugins" / "profile" / "s1"
    shutil.rmtree(log, ignore_errors=True)
    session.mkdir(parents=True)
    shutil.copyfile(path, session / path.name)  # a new file: it reads older ones ahead of requests
    port, start = free_port(), time.monotonic()
    with open(log / "said", "wb+") as said:
        child = subprocess.Popen([XPROF_RS, "--logdir", log, "--host", "127.0.0.1", "--port", str(port)],
                                 stdout=said, stderr=said)
        wall = None
        try:
            ask_overview(f"http://127.0.0.1:{port}/data/plugin/profile")
            wall = time.monotonic() - start
        except (OSError, ValueError, LookupError, AttributeError) as e:
            said.seek(0)
            sys.stderr.write(f"xprof-rs: {e}: {said.read().decode(errors='replace')[-300:]}\n")
        finally:
            child.terminate()
            _, child.returncode, used = os.wait4(child.pid, 0)
            shutil.rmtree(log)
    return wall and (wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def load(folder):
    peer_mb = int(os.environ.get("BENCH_PEER_MB", "200"))
    rust_mb = int(os.environ.get("BENCH_RUST_MB", "1000"))
    python = PEER / "bin" / "python3"
    if not python.exists():
        print("XProf is not here: no figures of it (peers.sh install tensorboard)")
    if not XPROF_RS.exists():
        print(f"xprof-rs is not at {XPROF_RS}: no figures of it (cargo install, see the head of this file)")
    print(f"\n{'':<50}{'wall':>11}{'CPU':>11}{'per CPU s':>14}{'peak':>12}{'CPU ratio':>11}")
    for size in sizes():
        for kind in ("tpu", "gpu"):
            path = profile(folder, kind, size)
            mb = path.stat().st_size / 1e6
            measured = opened(folder, kind, path)
            if python.exists() and size <= peer_mb:
                alone = pathlib.Path(folder) / f"xprof-{size}"
                shutil.rmtree(alone, ignore_errors=True)  # it keeps results beside its input
                shutil.copytree(path.parent, alone)
                env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
                row(f"{kind} {mb:.0f} MB: XProf overview_page", mb,
                    cost([python, "-c", XPROF, alone / path.name, "overview_page"], env), measured and measured[1])
                shutil.rmtree(alone)
            if XPROF_RS.exists() and size <= rust_mb:
                row(f"{kind} {mb:.0f} MB: xprof-rs overview_page", mb, xprof_rs(folder, path), measured and measured[1])
    times = int(os.environ.get("BENCH_TIMES", "3"))
    if times:
        many = pathlib.Path(folder) / "many.xplane.pb"
        with open(many, "wb") as out:
            for _ in range(times):
                with open(profile(folder, "tpu", max(sizes())), "rb") as part:
                    shutil.copyfileobj(part, out, 1 << 24)
        opened(folder, "tpu", many, 1_500_000 * 1024)
        many.unlink()


def serve(data):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")} | {"TACHO_DATA": str(data)}
    return subprocess.Popen([TACHO, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=env)


def tile(folder):
    """CPU of the server and its parsers for the first view of a trace, and for a tile of its whole span after it."""
    for size in sizes():
        path = profile(folder, "tpu", size)
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

    def ticks(process, n):
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:11 + n]))

    def cpu_s():  # of the server, of parsers that have ended, and of those that stay
        listing = ["ps", "-o", "pid=", "--ppid", str(pid)]
        stay = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
        return (ticks(pid, 4) + sum(ticks(child, 2) for child in stay.split())) / os.sysconf("SC_CLK_TCK")

    items = get("")["items"]
    while not items:
        time.sleep(0.1)
        items = get("")["items"]
    session, start = "/" + items[0]["session"], cpu_s()
    trace = get(session + "/trace")
    lines = ",".join(str(n["line"]) for p in trace["targets"][0]["planes"] for n in p["lines"] if n["events"])
    level = max(0, trace["end_ps"].bit_length() - 10)
    get(f"{session}/trace/tile?lines={lines}&level={level}&position=0")
    first = cpu_s() - start
    while trace["partial"] or items[0]["report_status"] == "pending":  # its report would be counted too
        time.sleep(0.5)
        trace, items = get(session + "/trace"), get("")["items"]
    deep = max(0, level - 12)
    for what, at, n in (("of its whole span", level, 10), ("at a fine zoom", deep, 100)):
        start = cpu_s()
        for i in range(n):
            get(f"{session}/trace/tile?lines={lines}&level={at}&position={i * ((trace['end_ps'] >> at) // 1024) // n}")
        print(f"{mb:.0f} MB: " + (f"first tile {first:.2f} s CPU after the start; " if at == level else "") +
              f"a tile {what} {1000 * (cpu_s() - start) / n:.1f} ms CPU, request and answer included", flush=True)


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
