# SPDX-License-Identifier: Apache-2.0
"""A profile of a million events whose starts are known: kernels back to back, bursts of short ones, nested host calls
and markers without a duration. Beside it `starts.bin`: where each event begins, sorted, as doubles (picoseconds)."""
import array
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from xspace_write import event, plane  # noqa: E402

NAMES = {i + 1: f"{'gemm' if i % 3 else 'all-reduce'}_kernel.{i}" for i in range(40)}
CALLS = {1: "train_step", 2: "launch", 3: "memory marker"}


def kernels(n, rng):
    at = 1000
    for _ in range(n):
        duration = rng.choice((700, 12_000, 3_000_000, 9_500_000)) + rng.randrange(500)
        yield 1 + rng.randrange(40), at, duration
        at += duration + rng.choice((0, 0, 1500, 400_000))


def bursts(n, rng, length):
    for burst in range(n // 1000):
        at = burst * (length * 1000 // n) + rng.randrange(1_000_000)
        for _ in range(1000):
            duration = rng.randrange(1, 90_000)
            yield 1 + rng.randrange(40), at, duration
            at += duration + rng.randrange(20_000)


def calls(n, length):
    """A step with 99 calls inside it, a hundredth of its length each."""
    step = length * 100 // n
    for i in range(n // 100):
        yield 1, i * step, step - step // 200
        for k in range(1, 100):
            yield 2, i * step + k * (step // 101), step // 120


def markers(n, length, rng):
    for at in sorted(rng.randrange(length) for _ in range(n)):
        yield 3, at, 0


def write(path, truth, n=1_000_000):
    """n events into path and their starts into truth; how many there are."""
    rng = random.Random(5)
    first = list(kernels(n * 4 // 10, rng))
    length = first[-1][1] + first[-1][2]
    lines = [("Stream #1", first), ("Stream #2", list(bursts(n * 2 // 10, rng, length)))]
    host = [("python", list(calls(n * 3 // 10, length))), ("markers", list(markers(n // 10, length, rng)))]
    starts = array.array("d", sorted(start for _, events in lines + host for _, start, _ in events))
    pathlib.Path(truth).write_bytes(starts.tobytes())
    packed = [[(name, 0, [event(*e) for e in events]) for name, events in part] for part in (lines, host)]
    pathlib.Path(path).write_bytes(plane("/device:GPU:0", NAMES, *packed[0]) + plane("/host:CPU", CALLS, *packed[1]))
    return len(starts)
