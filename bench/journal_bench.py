#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one journal record (p50, p99) from C and Python, beside logging and TensorBoard's writer.

Budgets: 600 ns from C, 1 us from Python. Build the extension first (python/build-native).
"""

import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
N = 50000


def measure(call):
    taken = []
    clock = time.perf_counter_ns
    for i in range(N):
        start = clock()
        call(i)
        taken.append(clock() - start)
    taken.sort()
    return taken[N // 2], taken[N * 99 // 100]


def from_c(folder):
    out = Path(folder) / "journal_bench"
    src = ROOT / "src"
    files = [src / "journal" / n for n in ("run_identity.c", "sdk.c", "writer.c")]
    files += [src / "base" / n for n in ("clock.c", "crc32c.c", "sha256.c")]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-DTACHO_GUEST",
                    '-DTACHO_VERSION="0.1.0"', "-include", src / "base" / "banned.h", f"-I{src}",
                    f"-I{ROOT / 'include'}", "-o", out, ROOT / "bench" / "journal_bench.c", *files], check=True)
    lines = subprocess.run([out], check=True, capture_output=True, text=True).stdout.splitlines()
    return [[int(word) for word in line.split()[1:]] for line in lines]


def python_calls(tachograph, run):
    """Every call that a loop makes: (name, records that it writes, function of the step)."""
    step, load = tachograph.Event.STEP, tachograph.Event.DATA_LOADING

    def record_step(i):
        with run.record(step, i):
            pass

    def record_typed(i):
        with run.record(load, step=i, type="shard"):
            pass

    return [("with record(STEP, i)", 2, record_step),
            ("with record(DATA_LOADING, step=i, type=...)", 2, record_typed),
            ("log of one metric", 1, lambda i: run.log({"loss": 0.5}, step=i)),
            ("log of four metrics", 4, lambda i: run.log({"loss": 0.5, "lr": 1e-3, "norm": 2.0, "rate": 3}, step=i)),
            ("heartbeat", 1, lambda i: run.heartbeat())]


def tensorboard(folder):
    """Figures of its writer, by a Python that has it: (p50, p99), or None."""
    cache = Path(os.environ.get("PEERS_CACHE", Path.home() / ".cache" / "peers"))
    for python in (sys.executable, cache / "venv-tensorboard" / "bin" / "python3"):
        if not Path(python).exists():
            continue
        done = subprocess.run([python, __file__, "--tensorboard", os.path.join(folder, "tb")], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return [int(word) for word in done.stdout.split()]
    return None


def measure_tensorboard(folder):
    from tensorboard.summary import Writer
    board = Writer(folder)
    print(*measure(lambda i: board.add_scalar("loss", 0.5, i)))
    board.close()


def main():
    if sys.argv[1:2] == ["--tensorboard"]:
        return measure_tensorboard(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TACHO_DATA"] = folder
        record, bare = from_c(folder)
        rows = [("write(2) alone, which is in each of ours", bare), ("libtachograph, tacho_event_begin", record)]
        import tachograph
        run = tachograph.init(name="bench")
        module = tachograph._writer.__name__
        for name, n_records, call in python_calls(tachograph, run):
            rows.append((f"{module}, {name}", [t / n_records for t in measure(call)]))
        log = logging.getLogger("bench")
        log.propagate = False
        log.setLevel(logging.INFO)
        log.addHandler(logging.FileHandler(os.path.join(folder, "log")))
        rows.append(("logging to a file", measure(lambda i: log.info("step %d loss %f", i, 0.5))))
        board = tensorboard(folder)
        if board is None:
            print("TensorBoard is not installed (peers.sh install tensorboard): left out", file=sys.stderr)
        else:
            rows.append(("TensorBoard's writer", board))
        run.finish()
    print("Time of one record:")
    for name, (p50, p99) in rows:
        print(f"{name:66} p50 {p50:7.0f} ns   p99 {p99:7.0f} ns")


if __name__ == "__main__":
    main()
