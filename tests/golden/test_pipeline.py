# SPDX-License-Identifier: Apache-2.0
"""Tools that stand on steps: what they say beside the truth of the generated profiles, not beside XProf."""
import json
import subprocess

import pytest
from test_xprof_parity import CASES, TACHO, XSPACE, needs_shared

GPU = [case for case in CASES if case.startswith("gpu") and case != "gpu_h100_no_steps"]
TPU = [case for case in CASES if case.startswith("tpu")]


def truth_of(case):
    return json.loads((XSPACE / case / "truth.json").read_text())


def answer(tool, case, *params, form="--xprof"):
    path = XSPACE / case if (XSPACE / case).exists() else XSPACE / f"{case}.xplane.pb"
    run = subprocess.run([TACHO, "tool", tool, path, *params, form], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def rows_of(table):
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in table["rows"]]


@needs_shared
@pytest.mark.parametrize("case", GPU + TPU)
def test_steps_have_the_programs_numbers(case):
    truth = truth_of(case)
    numbers = [step["step"] for step in truth["hosts"][0]["cores"][0]["steps"]]
    if truth["kind"] == "gpu" and len(numbers) > 5:  # the first and the last may be cut off
        numbers = numbers[1:-1]
    rows = rows_of(answer("overview_page", case)[1])
    assert [int(row["stepnum"]) for row in rows] == numbers


SHORT = ["bf16", "fp16", "nvjet_tst", "nvjet_hsh"]  # of the generator's families: bf16, half


@needs_shared
@pytest.mark.parametrize("case", GPU)
def test_kernels_of_16_bits(case):
    """Of the whole profile by the names of its kernels; the steps shown leave out the first and the last."""
    kernels = [k for host in truth_of(case)["hosts"] for core in host["cores"] for k in core["kernels"]
               if not k["kernel"].startswith("nccl")]
    short = sum(k["total_ps"] for k in kernels if any(word in k["kernel"] for word in SHORT))
    share = 100 * short / sum(k["total_ps"] for k in kernels)
    ours = float(answer("overview_page", case)[0]["p"]["device_compute_16bit_percent"].rstrip("%"))
    assert 30 < share < 70
    assert ours == pytest.approx(share, abs=1)
