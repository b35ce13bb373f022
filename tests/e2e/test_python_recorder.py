# SPDX-License-Identifier: Apache-2.0
"""What a loop calls from Python: what it costs (system calls, memory, threads: counted) and what it writes,
by the extension and by its twin in Python alike."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
N = 500
PRELUDE = """
import os, sys
import tachograph as tacho
run = tacho.init()
STEP, LOAD, CUSTOM = tacho.Event.STEP, tacho.Event.DATA_LOADING, tacho.Event.CUSTOM
"""
LOOP = """
def loop(n):
    for i in range(n):
        with run.record(STEP, i):
            pass
        with run.record(CUSTOM, step=i, type="shard"):
            pass
        run.log({"loss": 0.5, "rate": 3}, step=i)
        run.heartbeat()
"""
RECORDS = 7  # of one turn of LOOP

native = pytest.mark.skipif(not (ROOT / "python" / "tachograph" / "_native.abi3.so").exists(),
                            reason="the extension is not built: no Python.h here")


def python(tmp_path, script, pure=False, before=()):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env = {**keep, "PYTHONPATH": str(ROOT / "python"), "TACHO_DATA": str(tmp_path / f"data-{pure}")}
    if pure:
        env["TACHO_PURE_PYTHON"] = "1"
    got = subprocess.run([*before, sys.executable, "-c", PRELUDE + script], env=env, capture_output=True, text=True,
                         timeout=120)
    assert got.returncode == 0, got.stderr
    return got


def records(tmp_path, pure=False):
    sys.path.insert(0, str(ROOT / "python"))
    from tachograph import reader
    (path,) = (tmp_path / f"data-{pure}").glob("runs/*/journals/*.journal")
    return reader.read(path)


@native
def test_one_system_call_a_record(tmp_path):
    strace = shutil.which("strace")
    trace = tmp_path / "trace"
    if strace is None or subprocess.run([strace, "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        pytest.skip("strace is not here, or may not trace")
    python(tmp_path, LOOP + f"loop(3)\nos.getppid()\nloop({N})\nos.getppid()\n", before=[strace, "-o", str(trace)])
    inside = re.split(r"^getppid\(.*$", trace.read_text(), flags=re.M)[1]
    calls = collections.Counter(re.findall(r"^(\w+)\(", inside, flags=re.M))
    limits = calls.pop("prlimit64", 0) + calls.pop("getrlimit", 0)  # RLIMIT_FSIZE, at most once a millisecond
    assert calls == {"write": N * RECORDS}
    assert limits <= N * RECORDS


@native
def test_no_memory_and_no_thread(tmp_path):
    got = python(tmp_path, LOOP + """
loop(50)
before = sys.getallocatedblocks()
loop(5000)
after = sys.getallocatedblocks()
spans = set()
for i in range(100):
    span = run.record(STEP, i)
    spans.add(id(span))
    del span
print(after - before, len(spans), len(os.listdir("/proc/self/task")), type(run).__mro__[1].__module__)
""")
    blocks, spans, threads, module = got.stdout.split()
    assert abs(int(blocks)) < 20  # of 35,000 records
    assert (spans, threads, module) == ("1", "1", "tachograph._native")


ODD = """
class Sized(dict):
    def items(self):
        return [("own", 2)]
class Word:
    def __str__(self): return "word"
class Point:
    def __float__(self): return 4.5
class Grows:
    def __float__(self):
        growing["more"] = 1
        return 1.0
growing = {"grows": Grows()}
run._complain = lambda failure: said.append(type(failure).__name__)
said = []
with run.record(STEP, 3) as span:
    with run.record(LOAD):
        with run.record(type="Übung", event=CUSTOM, step=None):
            pass
for step in (4, 5):
    with span:
        pass
for bad in (("word",), (300,), (STEP, "x"), (STEP, 1, 2.5)):
    with run.record(*bad):
        pass
run.log({"text": "0.5", Word(): True, "point": Point()}, 3.0)
run.log(Sized(a=1), step=None)
run.log(growing)
run.log({"late": 1, "bad": "x", "never": 1})
run.log(5)
run.log({"a": 1}, step="x")
run.log({})
for wrong in (lambda: run.record(), lambda: run.record(STEP, steps=1), lambda: run.record(STEP, event=STEP),
              lambda: run.record(STEP, 1, None, 2), lambda: run.log()):
    try:
        wrong()
        print("no TypeError")
    except TypeError:
        pass
try:
    with run.record(STEP, 9):
        raise KeyError("the block's own")
except KeyError:
    run.heartbeat()
if os.fork() == 0:
    with run.record(STEP, 99):
        run.log({"child": 1})
    os._exit(0)
os.wait()
print(len(said))
run.finish()
with run.record("after", "the", "end"):
    run.log(5)
run.heartbeat()
print(len(said))
"""


@native
def test_both_writers_say_the_same(tmp_path):
    out = [python(tmp_path, ODD, pure).stdout.split() for pure in (False, True)]
    wrote = [[(r.name, r.payload) for r in records(tmp_path, pure)
              if r.name in ("BEGIN", "END", "METRICS", "HEARTBEAT", "PROCESS_END")] for pure in (False, True)]
    assert wrote[0] == wrote[1]
    named = [(r.data["step"], *r.data["metrics"].items()) for r in records(tmp_path) if r.name == "METRICS"]
    assert named == [(3, ("text", 0.5)), (3, ("word", 1.0)), (3, ("point", 4.5)), (-1, ("own", 2.0)),
                     (-1, ("grows", 1.0)), (-1, ("late", 1.0))]
    spans = [(r.name, r.data["phase"], r.data["step"], r.data["type"]) for r in records(tmp_path)
             if r.name in ("BEGIN", "END")]
    assert spans == [("BEGIN", 5, 3, ""), ("BEGIN", 4, -1, ""), ("BEGIN", 10, -1, "Übung"), ("END", 10, -1, "Übung"),
                     ("END", 4, -1, ""), ("END", 5, 3, ""), ("BEGIN", 5, 3, ""), ("END", 5, 3, ""),
                     ("BEGIN", 5, 3, ""), ("END", 5, 3, ""), ("BEGIN", 5, 9, ""), ("END", 5, 9, "")]
    # Four records, "growing", "late", 5 and the step "x" were said and not raised; the twin says a record's
    # failure at its begin and at its end. Nothing more once the run has ended.
    assert out == [["8", "8"], ["12", "12"]]


@pytest.mark.parametrize("pure", [pytest.param(False, marks=native), True])
def test_steps_of_a_profile(tmp_path, pure):
    """The profiler's mark is entered before a step's record and left after it, for steps alone."""
    got = python(tmp_path, """
class Mark:
    def __enter__(self): print("enter", end=" ")
    def __exit__(self, *why): print("exit", end=" ")
class Session:
    left = 2
    def annotation(self, step): print(step, end=" "); return Mark()
    def step_done(self, step): self.left -= 1; return self.left == 0
    def stop(self): print("stop", end=" "); return {"session": "s"}
with run.record(STEP, 1):
    run._session, run._profiling = Session(), True
for step in (2, 3, 4):
    with run.record(LOAD, step):
        pass
    with run.record(STEP, step):
        pass
run.finish()
""", pure)
    assert got.stdout.split() == "2 enter exit 3 enter exit stop".split()
    assert [r.data["session"] for r in records(tmp_path, pure) if r.name == "SESSION"] == ["s"]
