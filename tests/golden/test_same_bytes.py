# SPDX-License-Identifier: Apache-2.0
"""Every tool's answer is the same, byte for byte: from a first open on one thread and on many, from the index, and
without one; and the index is the same file. TACHO_LONG: every profile of the shared data, and more seeds."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
XSPACE, KINETO = SHARED / "data" / "xspace", SHARED / "data" / "kineto"
GENERATOR = SHARED / "tools" / "gen_xspace.py"
LONG = bool(os.environ.get("TACHO_LONG"))
CAPTURES = [XSPACE / "cpu_two_hosts", XSPACE / "mi300x_jax_conv.xplane.pb", KINETO / "hta" / "nccl_data.json.gz"] + (
    sorted(p.parent for p in XSPACE.glob("*/plugins")) + sorted(KINETO.glob("**/*.json.gz")) if LONG else [])
SEEDS = [("tpu", 5), ("gpu", 6)] + ([(kind, seed) for kind in ("tpu", "gpu", "cpu", "mixed") for seed in range(20, 25)]
                                    if LONG else [])
LEAST_BYTES = 1 << 20  # smaller XSpaces get no index
PASSED_OVER = b"\x9a\x06" + b"\x80\x80\x44" + b"\0" * (0x44 << 14)  # field 99, which nobody reads, of 1.1 MB

needs_shared = pytest.mark.skipif(not XSPACE.is_dir(), reason=f"no profiles at {SHARED}: set TACHO_SHARED")


def tools():
    rows = json.loads(subprocess.run([TACHO, "tools", "--json"], capture_output=True, check=True).stdout)
    return [row["name"] if isinstance(row, dict) else row[0] for row in rows.get("rows", rows.get("tools", []))]


def ask(name, profile, cache, processors=()):
    """The answer, with its status and what was said, of a program that may use these processors."""
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}, "XDG_CACHE_HOME": str(cache)}
    run = subprocess.run([TACHO, "tool", name, profile, "--json"], capture_output=True, env=env, check=False,
                         preexec_fn=(lambda: os.sched_setaffinity(0, processors)) if processors else None)
    assert run.returncode in (0, 3), (name, run.stderr)
    return run.returncode, run.stdout, run.stderr


def large(profile, into):
    """A copy of which every XSpace is large enough for an index."""
    if profile.is_dir():
        shutil.copytree(profile, into)
    else:
        into.mkdir()
        shutil.copy(profile, into)
    for file in into.rglob("*.xplane.pb"):
        if file.stat().st_size < LEAST_BYTES:
            with file.open("ab") as out:
                out.write(PASSED_OVER)
    return into if profile.is_dir() else into / profile.name


def kept(cache, ending):
    return {path.relative_to(cache): path.read_bytes() for path in sorted(cache.rglob(f"*{ending}")) if path.is_file()}


def indexes(cache, profile):
    """Of an imported trace without the footer, which has the time at which its XSpace was made."""
    n = 72 if ".json" in profile.name else 0
    return {name: content[:len(content) - n] for name, content in kept(cache, ".tacho").items()}


def forget_answers(cache):
    shutil.rmtree(cache / "tachograph" / "answers", ignore_errors=True)


def check(profile, tmp_path, fresh):
    """fresh: the tools that are asked of a cache that is empty; all are asked of an index and without any."""
    one, many, none = tmp_path / "one", tmp_path / "many", tmp_path / "none"
    none.write_text("no folder: nothing is kept")
    first = min(os.sched_getaffinity(0))
    for name in tools():
        without = ask(name, profile, none)
        if name in fresh:
            shutil.rmtree(one, ignore_errors=True)
            shutil.rmtree(many, ignore_errors=True)
            assert ask(name, profile, one, {first}) == without, (name, "one thread")
            assert ask(name, profile, many) == without, (name, "many threads")
            assert indexes(one, profile) == indexes(many, profile)
            assert kept(one, ".xplane.pb") == kept(many, ".xplane.pb")
        forget_answers(many)
        before = kept(many, ".tacho")
        assert before
        assert ask(name, profile, many) == without, (name, "from the index")
        assert ask(name, profile, many) == without, (name, "from what was kept")
        assert kept(many, ".tacho") == before


@needs_shared
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda p: p.name)
def test_captures(tmp_path, capture):
    names = tools()
    check(large(capture, tmp_path / "profile"), tmp_path, set(names if LONG else names[:1] + names[2::9]))


@needs_shared
@pytest.mark.parametrize("kind,seed", SEEDS)
def test_seeds(tmp_path, kind, seed):
    words = ["--kind", kind, "--seed", str(seed), "--target-mb", "1.2", "--cores", "2", "--features",
             "counters,megascale,memory"]
    subprocess.run([sys.executable, GENERATOR, tmp_path / "made", *words], check=True, capture_output=True)
    names = tools()
    check(large(tmp_path / "made", tmp_path / "profile"), tmp_path, set(names if LONG else names[:1] + names[5::9]))
