# SPDX-License-Identifier: Apache-2.0
"""The man and reference pages say what the tables say, and man takes them without a warning."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))


def test_pages_equal_the_tables():
    done = subprocess.run([sys.executable, ROOT / "tools/gen-docs", "--check", TACHO], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_row_of_the_def_files_is_in_the_dump():
    """Counted in the sources, not by the code that prints them."""
    tables = json.loads(subprocess.run([TACHO, "help", "--json"], capture_output=True, text=True, check=True).stdout)
    for name, path in {"commands": "cli/commands.def", "config": "base/config.def", "errors": "base/errors.def",
                       "limits": "base/limits.def", "categories": "model/categories.def",
                       "metrics": "model/metrics.def",
                       "findings": "report/findings.def", "routes": "server/routes.def",
                       "tools": "analysis/tools.def"}.items():
        rows = sum(line.startswith("X(") for line in (ROOT / "src" / path).read_text().splitlines())
        assert len(tables[name]) == rows > 0, name
    flags = sum(line.startswith("X(") for line in (ROOT / "src/cli/flags.def").read_text().splitlines())
    assert sum(len(c["flags"]) for c in tables["commands"]) == flags


def test_findings_name_only_tools_and_commands_that_exist():
    tables = json.loads(subprocess.run([TACHO, "help", "--json"], capture_output=True, text=True, check=True).stdout)
    known = {row["tool"] for row in tables["tools"]}
    commands = {row["name"]: {flag["name"] for flag in row["flags"]} for row in tables["commands"]}
    rules = "".join(p.read_text() for p in (ROOT / "src/report").glob("rules_*.c"))
    evidence = re.findall(r'rules_evidence\(\s*[^;"]*?"([^"]+)"', rules)
    assert len(evidence) > 20
    for words in [row["confirmed_by"] for row in tables["findings"]] + evidence:
        name, *flags = words.split()
        assert name in known or (name in commands and set(flags) <= commands[name]), words


def test_decisions_are_listed_under_numbers_of_their_own():
    pages = sorted((ROOT / "docs/why").glob("[0-9]*.md"))
    numbers = [page.name[:3] for page in pages]
    assert len(set(numbers)) == len(pages) > 0, numbers
    titles = [(page.name, page.read_text().splitlines()[0]) for page in pages]
    listed = re.findall(r"^- \[(\d+)\]\((\S+)\): (.+)$", (ROOT / "docs/why/README.md").read_text(), re.M)
    assert [(file, f"# {number}: {title}") for number, file, title in listed] == titles


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.skipif(shutil.which("man") is None and shutil.which("mandoc") is None, reason="neither man nor mandoc")
def test_man_pages_have_no_warnings():
    for page in sorted((ROOT / "docs/man").glob("*.1")):
        words = ["mandoc", "-T", "lint", "-W", "warning"] if shutil.which("mandoc") else ["man", "--warnings", "-l"]
        done = subprocess.run([*words, page], capture_output=True, text=True,
                              env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
        said = done.stderr + (done.stdout if words[0] == "mandoc" else "")
        assert done.returncode == 0 and said == "", f"{page}: {said}"


SHARED = ROOT.parent / "shared/data/xspace/mi300x_jax_conv.xplane.pb"


def test_the_guides_commands_work(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TACHO_", "XDG_"))}
    (tmp_path / "tacho").symlink_to(TACHO)
    env |= {"TACHO_DATA": str(tmp_path / "data"), "PYTHONPATH": str(ROOT / "python"), "PROFILE": str(SHARED),
            "PATH": f"{tmp_path}:{pathlib.Path(sys.executable).parent}:{env['PATH']}"}
    ran = 0
    for page in ("start", "record", "goodput", "report", "profiles", "export", "sql"):
        if page in ("profiles", "export", "sql") and not SHARED.exists():
            print(f"{page}.md: not run, ../shared is absent")
            continue
        text = (ROOT / f"docs/guide/{page}.md").read_text()
        for block in text.split("```sh run\n")[1:]:
            done = subprocess.run(["bash", "-euo", "pipefail"], input=block.split("\n```")[0] + "\n", text=True,
                                  capture_output=True, cwd=tmp_path, env=env, timeout=60)
            assert done.returncode == 0, f"{page}.md: {done.stderr}"
            ran += 1
    assert ran >= 5
