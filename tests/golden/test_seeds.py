# SPDX-License-Identifier: Apache-2.0
"""Profiles of random seeds over all kinds and features of the generator: every number of truth.json is asked for."""
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

pytest.register_assert_rewrite("seed_truth")
from seed_truth import COUNTS, ROOT, TACHO, adapted, again, differences  # noqa: E402

SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", ROOT.parent / "shared"))
GENERATOR = SHARED / "tools" / "gen_xspace.py"
SEEDS = 200 if os.environ.get("TACHO_LONG") else 20
COMMITTED = pathlib.Path(__file__).parent / "seeds"
KINDS = ["tpu", "gpu", "cpu", "mixed"]
FEATURES = ["steps", "hlo", "memory", "infeed", "loop", "hostxfer", "counters", "megascale", "devclock", "straggler",
            "slowinput", "python"]

needs_generator = pytest.mark.skipif(not GENERATOR.is_file(), reason=f"no generator at {GENERATOR}: set TACHO_SHARED")
needs_counts = pytest.mark.skipif(not COUNTS.is_file(), reason=f"{COUNTS} was not built")


def request(seed):
    """Arguments of the generator: each kind as often as the others, each feature in about half of the profiles."""
    rng = random.Random(seed)
    features = [name if rng.random() < 0.5 else f"-{name}" for name in FEATURES]
    if KINDS[seed % len(KINDS)] == "tpu" and "straggler" in features and "slowinput" in features:
        features.remove("slowinput")  # the generator then lets steps of one core overlap, which no core does
    return {"kind": KINDS[seed % len(KINDS)], "seed": seed, "hosts": rng.choice([1, 1, 1, 2, 3]),
            "cores": rng.choice([1, 1, 2, 3]), "steps": rng.randrange(1, 12), "ops-per-step": rng.randrange(2, 45),
            "dim": rng.choice([128, 256, 1024]), "tpu": rng.choice(["v5e", "v6e", "v4"]),
            "gpu": rng.choice(["h100", "a100", "v100", "b200"]), "features": ",".join(features)}


def check(profile, dim):
    truth = json.loads((profile / "truth.json").read_text())
    got = again(profile, truth["kind"], truth["features"], list(truth.get("peaks", {})))
    return differences(adapted(truth, dim), got)


@needs_generator
@needs_counts
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_every_number_of_the_truth(tmp_path, seed):
    asked = request(seed)
    words = [f"--{name}={value}" for name, value in asked.items()]
    subprocess.run([sys.executable, GENERATOR, tmp_path, *words], check=True, capture_output=True)
    found = check(tmp_path, asked["dim"])
    assert not found, f"{' '.join(words)}\n" + "\n".join(found[:40])


@needs_counts
@pytest.mark.parametrize("kind", KINDS)
def test_committed_seeds(kind):
    """Where the generator is not at hand: one small profile of each kind."""
    found = check(COMMITTED / kind, 128)
    assert not found, "\n".join(found[:40])


def test_a_number_that_is_not_asked_for_is_a_difference():
    truth = {"hosts": [{"cores": [{"span_ps": 3, "new_ps": 4}]}]}
    assert differences(truth, {"hosts": [{"cores": [{"span_ps": 3}]}]}) == [".hosts[0].cores[0].new_ps: not asked"]
    assert differences({"span_ps": 3}, {"span_ps": 3, "other": 1}) == [".other: not in truth.json"]
    assert differences({"span_ps": 3}, {"span_ps": 4}) and differences({"span_ps": 3}, {"span_ps": None})
    assert differences([1], [1, 2]) and not differences({"a": [1, 0.5]}, {"a": [1, 0.5]})


def test_what_is_not_asked_has_no_tool():
    run = subprocess.run([TACHO, "tools", "--json"], capture_output=True, text=True, check=True)
    assert "memory_viewer" not in run.stdout, "it reads buffer assignments: take module.memory out of NOT_ASKED"
