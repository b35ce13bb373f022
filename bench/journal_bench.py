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
    words = subprocess.run([out], check=True, capture_output=True, text=True).stdout.split()
    return int(words[1]), int(words[2])


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TACHO_DATA"] = folder
        rows = [("journal, C", from_c(folder))]
        import tachograph
        run = tachograph.init(name="bench")
        step = tachograph.Event.STEP
        module = tachograph._writer.__name__
        phase, writer = tachograph._writer.phase, run._writer
        rows.append((f"journal, {module}, one record", measure(lambda i: phase(writer, 3, 5, i, None))))

        def pair(i):
            with run.record(step, i):
                pass

        rows.append((f"journal, {module}, with record(): two records", measure(pair)))
        log = logging.getLogger("bench")
        log.propagate = False
        log.setLevel(logging.INFO)
        log.addHandler(logging.FileHandler(os.path.join(folder, "log")))
        rows.append(("logging to a file", measure(lambda i: log.info("step %d loss %f", i, 0.5))))
        try:
            from tensorboard.summary import Writer
            board = Writer(os.path.join(folder, "tb"))
            rows.append(("TensorBoard's writer", measure(lambda i: board.add_scalar("loss", 0.5, i))))
            board.close()
        except ImportError:
            print("TensorBoard is not installed: left out", file=sys.stderr)
        run.finish()
    for name, (p50, p99) in rows:
        print(f"{name:52} p50 {p50:7} ns   p99 {p99:7} ns")


if __name__ == "__main__":
    main()
