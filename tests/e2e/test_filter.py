# SPDX-License-Identifier: Apache-2.0
"""Filters of runs: the server and the command line pick the same runs, and the right ones."""
import json
import subprocess
import sys
import urllib.parse

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from test_server import BIN, Server  # noqa: E402

CASES = {
    "state = FAILED": {"bad"},
    "state:completed": {"good", "plain"},
    "reason = exit AND phase = FAILED": {"bad"},
    "config.lr > 0.001": {"good"},
    "config.lr <= 0.001": {"bad"},
    "config.lr != 0.5": {"bad"},  # plain has no lr: not known is not unequal
    "NOT config.lr:*": {"plain"},
    "config.optimizer.name = adam": {"good"},
    "config.optimizer:*": {"good"},
    "config.debug = true": {"bad"},
    "label.team = \"a b\"": {"good"},
    "group = sweep started > -72h": {"good", "bad"},
    "started > 2020-01-01 -group:*": {"plain"},
    "started < -72h": set(),
    "name:go* OR name = pla*": {"good", "plain"},
    "ood": {"good"},
    "hosts = 1 -hosts > 1": {"good", "bad", "plain"},
    "step >= 0 OR NOT step >= 0": set(),  # no step is known
    "goodput_percent >= 0 OR NOT goodput_percent:*": {"good", "bad", "plain"},
}


def tacho(*args):
    return subprocess.run([BIN, *map(str, args)], text=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filter")
    data = folder / "data"
    configs = {"good": {"lr": 0.5, "optimizer": {"name": "Adam"}}, "bad": {"lr": 0.001, "debug": True}}
    for name, code in {"good": 0, "bad": 3, "plain": 0}.items():
        args = ["run", "--data", data, "--name", name]
        if name in configs:
            (folder / name).write_text(json.dumps(configs[name]))
            args += ["--group", "sweep", "--config", folder / name]
        if name == "good":
            args += ["--label", "team=a b"]
        assert tacho(*args, "--", "sh", "-c", f"exit {code}").returncode == code
    return data


def listed(data, text):
    done = tacho("runs", "list", "--data", data, "--filter", text, "--json")
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    at = [c["name"] for c in table["columns"]].index("name")
    return {row[at] for row in table["rows"]}


def test_command_line(data):
    for text, names in CASES.items():
        assert listed(data, text) == names, text
    done = tacho("runs", "list", "--data", data, "--filter", "speed > 3")
    assert done.returncode == 2 and "no field 'speed'" in done.stderr and "config.KEY" in done.stderr, done.stderr


def test_server_answers_as_the_command_line(data):
    server = Server(data)
    try:
        server.wait("runs", lambda a: sum(r["phase"] != "ACTIVE" for r in a["items"]) == 3)
        for text, names in CASES.items():
            items = server.get("runs?" + urllib.parse.urlencode({"filter": text}))["items"]
            assert {r["name"] for r in items} == names, text
        page = server.get("runs?page_size=1&filter=state:completed")
        rest = server.get("runs?page_size=1&filter=state:completed&page_token=" + page["next_page_token"])
        assert {page["items"][0]["name"], rest["items"][0]["name"]} == {"good", "plain"}
        assert rest["next_page_token"] is None and len(page["items"]) == len(rest["items"]) == 1
        status, body, _ = server.ask("GET", "/api/v1/runs?filter=step%20%3E%20fast")
        assert status == 400 and "at byte 7" in json.loads(body)["detail"], body
    finally:
        assert server.stop() == 0


def test_an_unreadable_run_is_a_warning_and_the_others_are_listed(tmp_path):
    data = tmp_path / "data"
    for name in ("one", "two"):
        assert tacho("run", "--data", data, "--name", name, "--", "true").returncode == 0
    broken = next((data / "runs").glob("*/journals/*.journal"))
    broken.write_bytes(b"\0" * 64 + broken.read_bytes()[64:])
    for words in (("--filter", "phase = COMPLETED"), ()):
        done = tacho("runs", "list", "--data", data, "--json", *words)
        table = json.loads(done.stdout)
        assert done.returncode == 6, "partly done"
        (note,) = table["notes"]
        assert note["code"] == "run_unreadable" and broken.name in note["message"] and "byte" in note["message"]
        assert len(table["rows"]) == (1 if words else 2)
    assert tacho("runs", "show", broken.parent.parent.name, "--data", data).returncode == 4
