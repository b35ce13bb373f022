# SPDX-License-Identifier: Apache-2.0
"""A writer that is killed at a random moment loses no record whose call had returned."""

import os
import random
import resource
import struct
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from tachograph import _journal, reader  # noqa: E402

TRIALS = int(os.environ.get("TACHO_CRASH_TRIALS", "6"))
THREADS = 4


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """The writer program, built from the sources of libtachograph."""
    out = tmp_path_factory.mktemp("writer") / "writer"
    src = ROOT / "src"
    files = [src / "journal" / name for name in ("run_identity.c", "sdk.c", "writer.c")]
    files += [src / "base" / name for name in ("clock.c", "crc32c.c", "sha256.c")]
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-DTACHO_GUEST",
                    '-DTACHO_VERSION="0.1.0"', "-include", src / "base" / "banned.h", f"-I{src}",
                    f"-I{ROOT / 'include'}", "-pthread", "-o", out,
                    ROOT / "tests" / "e2e" / "journal_crash_writer.c", *files], check=True)
    return out


def start(writer, folder, name):
    counters = folder / f"{name}.ack"
    counters.write_bytes(bytes(4096))
    process = subprocess.Popen([writer, counters], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TACHO_DATA": str(folder), "TACHO_RUN_ID": "crash"})
    return process, counters, process.stdout.readline().strip()


def check(path, counters):
    """Each thread's acknowledged records are in the file, and in that thread's order."""
    raw = Path(path).read_bytes()
    acknowledged = struct.unpack_from(f"<{THREADS}Q", counters.read_bytes())
    seen = [0] * THREADS
    at = 0
    while at + 32 <= len(raw):
        sync, kind, _, length, _, _, _ = struct.unpack_from("<IHHIIQQ", raw, at)
        assert sync == _journal.SYNC, f"no record at byte {at} of {len(raw)}"
        if at + 32 + length > len(raw):
            break
        if kind == _journal.METRICS:
            step, _, _, _ = struct.unpack_from("<qHdH", raw, at + 32)
            thread = int(raw[at + 32 + 20 + 1:at + 32 + length])
            assert step == seen[thread]
            seen[thread] += 1
        at += 32 + length
    for thread in range(THREADS):
        assert seen[thread] >= acknowledged[thread]
    return sum(acknowledged)


def test_sigkill_loses_no_acknowledged_record(writer, tmp_path):
    total = 0
    for trial in range(TRIALS):
        folder = tmp_path / str(trial)
        folder.mkdir()
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        processes = [start(writer, folder, name) for name in ("a", "b")]
        time.sleep(random.uniform(0.005, 0.15))
        for process, _, _ in processes:
            process.kill()
            process.wait()
            process.stdout.close()
        hog.kill()
        hog.wait()
        total += sum(check(path, counters) for _, counters, path in processes)
        for _, _, path in processes:
            os.unlink(path)
    assert total > 0
    print(f"{TRIALS} trials, {total} acknowledged records, none lost")


@pytest.mark.parametrize("pure", ["", "1"])
def test_workload_lives_beyond_a_full_disk(tmp_path, pure):
    """RLIMIT_FSIZE stands for the disk: a write beyond it would be SIGXFSZ."""
    code = ("import tachograph, sys; r = tachograph.init(name='full');\n"
            "for i in range(3000): r.log({'loss': 1.0}, step=i)\n"
            "print(r.dropped); p = r.journal_path; r.finish(); print(p)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)),
                         env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TACHO_DATA": str(tmp_path),
                              "TACHO_PURE_PYTHON": pure})
    dropped, path = out.stdout.split("\n")[:2]
    assert int(dropped) > 1000
    assert reader.Journal(path).lost_bytes == 0


@pytest.mark.parametrize("size", ["1m"])
def test_workload_lives_on_a_full_tmpfs(tmp_path, size):
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    code = ("import tachograph; r = tachograph.init(name='full')\n"
            "for i in range(30000): r.log({'loss': 1.0}, step=i)\n"
            "print(r.dropped)")
    script = f'mount -t tmpfs -o size={size} none "$0" && exec "$1" -c "$2"'
    probe = subprocess.run(["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} none "$0"', str(tmp_path)],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"no private mount here: {probe.stderr.strip()}")
    out = subprocess.run(["unshare", "-m", "sh", "-c", script, str(tmp_path), sys.executable, code],
                         capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TACHO_DATA": str(tmp_path)})
    assert int(out.stdout) > 0


@pytest.mark.parametrize("pure", ["", "1"])
def test_python_and_c_write_the_same_format(tmp_path, pure):
    code = ("import tachograph as t; r = t.init(name='x', config={'lr': 1})\n"
            "with r.record(t.Event.STEP, 3): pass\n"
            "r.log({'loss': 0.5}, step=3); r.config({'big': 'z' * 70000}); p = r.journal_path; r.finish(); print(p)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TACHO_DATA": str(tmp_path),
                              "TACHO_PURE_PYTHON": pure})
    journal = reader.Journal(out.stdout.strip())
    assert [record.name for record in journal.records] == [
        "HEADER", "PROCESS_START", "CONFIG", "BEGIN", "END", "METRICS", "CONFIG", "PROCESS_END"]
    assert journal.records[3].data == {"phase": 5, "step": 3, "type": "", "thread": 1}
    assert journal.records[5].data == {"step": 3, "metrics": {"loss": 0.5}}
    assert journal.records[6].data["big"] == "z" * 70000
    assert (journal.lost_bytes, journal.lost_records, journal.tail_bytes) == (0, 0, 0)
