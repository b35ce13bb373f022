# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a collective, in every form that XLA has written it, beside numpy and plain counting.

Each device's part of a collective lasts 2^device ns, so the time of a group tells its members one by one.
"""
import itertools
import json
import os
import pathlib
import random
import subprocess

import numpy
import pytest
from xspace_write import named, number, text, varint

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
PROGRAM = 7


def packed(field, values):
    return text(field, b"".join(varint(v) for v in values))


def listed(field, groups):
    return b"".join(text(field, packed(1, g)) for g in groups)


def iota(groups, size, dims, perm):
    return number(1, groups) + number(2, size) + packed(3, dims) + packed(4, perm)


def mesh(sizes, refs, device_ids=(), order=None):
    """refs: an axis, or (axis, pre size, size)."""
    body = b"".join(text(1, text(1, f"axis_{i}") + number(2, n)) for i, n in enumerate(sizes))
    if device_ids:
        body += packed(2, device_ids)
    if order:
        body += text(3, packed(1, order[0]) + packed(2, order[1]))
    out = text(1, body)
    for r in refs:
        axis, *part = r if isinstance(r, tuple) else (r,)
        out += text(2, number(1, axis) + (text(2, number(1, part[0]) + number(2, part[1])) if part else b""))
    return out


def hlo(ops):
    """A module of all-reduces of f32[256], each with its groups' field."""
    shape = text(3, number(2, 11) + packed(3, [256]))
    body = text(1, "main") + number(5, 1)
    body += text(2, text(1, "p") + text(2, "parameter") + shape + number(35, 1))
    for i, (name, groups) in enumerate(ops):
        body += text(2, text(1, name) + text(2, "all-reduce") + shape + number(35, i + 2) + packed(36, [1]) + groups)
    return text(1, text(1, "jit_f") + number(5, PROGRAM) + text(3, body))


def xspace(path, devices, ops):
    out = b""
    for d in range(devices):
        line, metadata = b"", b""
        for i, (name, _) in enumerate(ops):
            line += text(4, number(1, i + 1) + number(2, i * 10**12 + 1) + number(3, 1000 << d))
            stat = text(5, number(1, 1) + number(4, PROGRAM))
            metadata += text(4, number(1, i + 1) + text(2, number(1, i + 1) + text(2, name) + stat))
        out += text(1, text(2, f"/device:TPU:{d}") + text(3, text(2, "XLA Ops") + line) + metadata +
                    named(5, 1, "program_id"))
    stat = text(5, number(1, 1) + text(6, hlo(ops)))
    out += text(1, text(2, "/host:metadata") + named(5, 1, "Hlo Proto") +
                text(4, number(1, PROGRAM) + text(2, number(1, PROGRAM) + text(2, f"jit_f({PROGRAM})") + stat)))
    path.write_bytes(out)


def answer(path):
    """By collective: of each row its group, size and members."""
    run = subprocess.run([TACHO, "tool", "collective_match", path, "--json"], capture_output=True, text=True,
                         check=True)
    table = json.loads(run.stdout)["tables"][0]
    names = [c["name"] for c in table["columns"]]
    out = {}
    for row in (dict(zip(names, cells)) for cells in table["rows"]):
        total = row["time_ps"] // 1000
        members = [d for d in range(64) if total >> d & 1]
        out.setdefault(row["collective"], []).append((row["group"], row["group_size"], members, row["bus_bytes_per_s"]))
    return out


def check(path, devices, cases):
    """cases: name -> (field of the instruction, groups expected or None where nothing is known)."""
    ops = [(name, field) for name, (field, _) in cases.items()]
    xspace(path, devices, ops)
    ours = answer(path)
    for name, (_, groups) in cases.items():
        rows = ours[name]
        if groups is None:
            assert {(r[1], r[3]) for r in rows} == {(None, None)}, name
            continue
        want = {None if len(groups) == 1 else f"group {i}": sorted(g) for i, g in enumerate(groups)}
        assert {r[0]: r[2] for r in rows} == want, name
        assert {r[0]: r[1] for r in rows} == {k: len(g) for k, g in want.items()}, name
        for _, size, members, speed in rows:  # all-reduce crosses 2 (n - 1) / n of 1 KiB in the shortest part
            if size > 1:
                assert speed == pytest.approx(1024 * 2 * (size - 1) / size / ((1 << min(members)) * 1e-9)), name


def rows_of(array, size):
    return array.reshape(-1, size).tolist()


def by_axes(sizes, refs, ids):
    """Devices that differ only in what the refs name are together, in the order in which they stand in the mesh."""
    groups = {}
    for place, at in enumerate(itertools.product(*map(range, sizes))):
        rest = []
        for axis, v in enumerate(at):
            mine = [r for r in refs if (r if isinstance(r, int) else r[0]) == axis]
            if any(isinstance(r, int) for r in mine):
                continue
            for _, pre, n in mine:  # strike out the digits that the part covers
                step = sizes[axis] // (pre * n)
                v -= v // step % n * step
            rest.append(v)
        groups.setdefault(tuple(rest), []).append(ids[place])
    return [groups[k] for k in sorted(groups)]


def test_forms_of_one_grouping(tmp_path):
    """Fields 49, 87 (both of its forms), 92 and 93 say the same."""
    groups = [[0, 2, 4, 6], [1, 3, 5, 7]]
    short = iota(2, 4, [4, 2], [1, 0])
    check(tmp_path / "h.xplane.pb", 8, {
        "all-reduce.1": (listed(49, groups), groups),
        "all-reduce.2": (text(87, listed(1, groups)), groups),
        "all-reduce.3": (text(87, text(2, short)), groups),
        "all-reduce.4": (text(92, short), groups),
        "all-reduce.5": (text(93, mesh([4, 2], [0])), groups),
        "all-reduce.6": (text(93, mesh([8], [(0, 1, 4)])), groups),
        "all-reduce.7": (listed(49, groups) + text(87, listed(1, groups)), groups),  # of the months between
        "all-reduce.8": (text(93, mesh([2, 4], [1], [0, 2, 4, 6, 1, 3, 5, 7])), groups),
        "all-reduce.9": (text(93, mesh([2, 4], [1], order=([4, 2], [1, 0]))), groups),
        "all-reduce.10": (text(92, iota(1, 8, [8], [0])), [list(range(8))]),
        "all-reduce.11": (text(93, mesh([2, 4], [0, 1])), [list(range(8))]),
    })


def test_what_contradicts_itself_is_unknown(tmp_path):
    huge = (1 << 62)
    check(tmp_path / "h.xplane.pb", 4, {
        "all-reduce.1": (text(92, iota(2, 4, [4], [0])), None),
        "all-reduce.2": (text(92, iota(2, 2, [2, 2], [0, 0])), None),
        "all-reduce.3": (text(92, iota(2, 2, [2, 2], [0, 5])), None),
        "all-reduce.4": (text(92, iota(huge, 8, [huge, 8], [0, 1])), None),
        "all-reduce.5": (text(92, iota(-2, -2, [4], [0])), None),
        "all-reduce.6": (text(92, b""), None),
        "all-reduce.7": (text(93, b""), None),
        "all-reduce.8": (text(93, mesh([2, 2], [2])), None),
        "all-reduce.9": (text(93, mesh([4], [(0, 1, 3)])), None),
        "all-reduce.10": (text(93, mesh([4], [(0, 1, 2), 0])), None),
        "all-reduce.11": (text(93, mesh([2, 2], [1], [0, 1, 2])), None),
        "all-reduce.12": (text(93, mesh([2, 0], [0])), None),
        "all-reduce.13": (text(93, mesh([huge, huge], [0])), None),
        "all-reduce.14": (text(93, mesh([4] * 100, [0])), None),
        "all-reduce.15": (text(93, mesh([2, 2], [0], order=([3], [0]))), None),
        "all-reduce.16": (text(87, b""), None),
        "all-reduce.17": (b"", None),
    })


@pytest.mark.parametrize("seed", range(8))
def test_random_short_forms(seed, tmp_path):
    rng = random.Random(seed)
    shape = rng.choice([[2, 2, 2], [4, 6], [2, 3, 4], [8], [3, 2, 2, 2], [16]])
    devices = int(numpy.prod(shape))
    cases = {}
    for i in range(20):
        size = rng.choice([n for n in range(1, devices + 1) if devices % n == 0])
        perm = rng.sample(range(len(shape)), len(shape))
        ordered = numpy.arange(devices).reshape(shape).transpose(perm)
        cases[f"all-reduce.{i}"] = (text(92, iota(devices // size, size, shape, perm)), rows_of(ordered, size))
    for i in range(20, 60):
        ids, given, order = list(range(devices)), (), None
        if i % 3 == 1:
            given = ids = rng.sample(ids, devices)
        elif i % 3 == 2:
            perm = rng.sample(range(len(shape)), len(shape))
            order = (shape, perm)
            ids = numpy.arange(devices).reshape(shape).transpose(perm).flatten().tolist()
        sizes = rng.sample(shape, len(shape))
        refs = []
        for axis in rng.sample(range(len(sizes)), rng.randint(1, len(sizes))):
            n = sizes[axis]
            parts = [(axis, p, s) for p in range(1, n) for s in range(2, n) if n % (p * s) == 0]
            part = rng.choice(parts) if parts and rng.random() < 0.6 else None
            refs.append(part or axis)
            later = [q for q in parts if part and q[1] % (part[1] * part[2]) == 0]
            if later and rng.random() < 0.5:
                refs.append(rng.choice(later))
        rng.shuffle(refs)
        cases[f"all-reduce.{i}"] = (text(93, mesh(sizes, refs, given, order)), by_axes(sizes, refs, ids))
    check(tmp_path / "h.xplane.pb", devices, cases)


def test_a_short_form_is_not_written_out(tmp_path):
    large = text(92, iota(1 << 20, 1 << 20, [1 << 20, 1 << 20], [1, 0]))
    xspace(tmp_path / "h.xplane.pb", 2, [("all-reduce.1", large)])
    assert {(r[0], r[1]) for r in answer(tmp_path / "h.xplane.pb")["all-reduce.1"]} == {
        ("of device 0", 1 << 20), ("of device 1", 1 << 20)}
