# SPDX-License-Identifier: Apache-2.0
"""Tokens planted in every place of a profile where text stands: no answer of any tool holds one."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
TOOLS = re.findall(r'^X\(\w+, "([^"]+)"', (ROOT / "src/analysis/tools.def").read_text(), re.M)
# in two parts each: scanners of repositories look for them too
SECRETS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLE", "aws_secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "face": "hf_" + "abcdefghijklmnopqrstuvwxyzABCD0123", "github": "ghp_" + "0123456789abcdefABCDEF0123456789abcd",
    "bearer": "abc123def456ghi789", "password": "hunter2", "wandb": "0123456789abcdef0123",
}
ENVIRONMENT = {"PATH": "/usr/bin", "AWS_SECRET_ACCESS_KEY": SECRETS["aws_secret"], "HF_TOKEN": SECRETS["face"],
               "WANDB_API_KEY": SECRETS["wandb"], "DATABASE_URL": f"postgresql://me:{SECRETS['password']}@db/x"}


def tacho(*words):
    return subprocess.run([TACHO, *map(str, words)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    def event(name, ts, **args):
        return {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 7, "name": name, "ts": ts, "dur": 5, "args": args}
    events = [
        event("ProfilerStep#1", 0), event(f"clone https://{SECRETS['github']}@github.com/x", 10),
        event("launch", 20, command=f"train --password {SECRETS['password']} --lr 0.1", env=ENVIRONMENT),
        event("fetch", 30, headers=f"Authorization: Bearer {SECRETS['bearer']}", id=SECRETS["aws"]),
        event("nested", 40, text=json.dumps(json.dumps(ENVIRONMENT)), password=SECRETS["password"]),
        {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "name": f"k_ {SECRETS['face']}", "ts": 50, "dur": 5,
         "args": {"device": 0, "stream": 7, "note": SECRETS["github"]}},
        {"ph": "M", "pid": 1, "tid": 7, "name": "thread_name", "args": {"name": "main"}},
    ]
    path = tmp_path_factory.mktemp("secrets") / "planted.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "metadata": {"environment": ENVIRONMENT}, "env": ENVIRONMENT,
                                "token": SECRETS["wandb"], "traceEvents": events}))
    return path


@pytest.mark.parametrize("form", ["--json", "--csv", "--xprof", None])
def test_no_tool_shows_a_secret(trace, form):
    answered = 0
    for tool in TOOLS:
        run = tacho("tool", tool, trace, *([form] if form else []))
        answered += run.returncode == 0
        for what, secret in SECRETS.items():
            assert secret not in run.stdout + run.stderr, f"{tool} {form} shows {what}"
    assert answered > 0


def test_the_rest_of_the_text_is_shown(trace):
    run = tacho("tool", "trace_viewer", trace, "--xprof")
    assert run.returncode == 0, run.stderr
    for text in ("train --password *** --lr 0.1", "Authorization: Bearer ***", "clone https://***@github.com/x",
                 "/usr/bin", "postgresql://me:***@db/x"):
        assert text in run.stdout
    summary = tacho("tool", "summary", trace, "--json")
    assert "secrets" in [w["code"] for w in json.loads(summary.stdout)["warnings"]]


def test_no_report_shows_a_secret(trace, tmp_path):
    page = tmp_path / "report.html"
    run = tacho("report", "--html", page, trace)
    assert run.returncode == 0, run.stderr
    for what, secret in SECRETS.items():
        assert secret not in run.stdout + page.read_text(), what


@pytest.mark.parametrize("form", ["chrome", "perfetto", "pprof", "speedscope", "folded", "csv", "xspace"])
def test_no_export_holds_a_secret(trace, form):
    run = subprocess.run([TACHO, "convert", "--to", form, str(trace), "-"], capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr
    for what, secret in SECRETS.items():
        assert secret.encode() not in run.stdout, f"{form} holds {what}"


def test_an_xspace_is_whole_under_the_stars(trace, tmp_path):
    space = tmp_path / "copy.xplane.pb"
    assert tacho("convert", trace, space).returncode == 0
    assert b"train --password ******* --lr 0.1" in space.read_bytes()
    copied, original = (json.loads(tacho("tool", "summary", p, "--json").stdout) for p in (space, trace))
    assert copied["events"] == original["events"] and copied["duration_ns"] == original["duration_ns"]
    again = tmp_path / "again.xplane.pb"
    assert tacho("convert", space, again).returncode == 0
    assert again.read_bytes() == space.read_bytes()
