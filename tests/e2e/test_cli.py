# SPDX-License-Identifier: Apache-2.0
"""The command line itself: flags, errors, exit statuses, settings and their sources."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))


def tacho(*args, **env):
    base = {k: v for k, v in os.environ.items() if not k.startswith(("TACHO_", "XDG_"))}
    return subprocess.run([TACHO, *args], capture_output=True, text=True, timeout=30, env={**base, **env})


def test_usage_error_is_one_line_and_status_2():
    done = tacho("nosuch")
    assert done.returncode == 2
    assert done.stderr == "tacho: there is no command 'nosuch'\nhint: tacho --help lists the commands\n"
    assert done.stdout == ""


def test_usage_error_as_json():
    done = tacho("nosuch", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "usage"


def test_help_and_version():
    assert tacho("--help").returncode == 0
    assert tacho("doctor", "--help").stdout.startswith("tacho doctor: ")
    assert tacho().returncode == 2
    assert tacho("--version").stdout == tacho("version").stdout
    assert json.loads(tacho("version", "--json").stdout)["values"]["version"]


def test_doctor_names_the_source_of_each_setting(tmp_path):
    config = tmp_path / "config"
    config.write_text("# settings\nworker_threads = 3\nsample_interval = 4s\n")
    done = tacho("doctor", "--json", "--data", str(tmp_path), TACHO_CONFIG=str(config),
                 TACHO_SAMPLE_INTERVAL="1s", TACHO_TOKEN="do-not-print")
    assert done.returncode == 0, done.stderr
    assert "do-not-print" not in done.stdout
    tables = {t["table"]: t for t in json.loads(done.stdout)["tables"]}
    rows = {row[0]: row[1:] for row in tables["settings"]["rows"]}
    assert rows["worker_threads"] == ["3", "file", f"{config}:2"]
    assert rows["sample_interval"] == ["1s", "environment", "TACHO_SAMPLE_INTERVAL"]
    assert rows["data"] == [str(tmp_path), "flag", "--data"]
    assert rows["listen"][1] == "default"
    assert tables["environment"]["values"]["data_writable"] is True


def test_wrong_config_names_file_and_line(tmp_path):
    config = tmp_path / "config"
    config.write_text("server = http://x\nsample_interval = soon\n")
    done = tacho("doctor", TACHO_CONFIG=str(config))
    assert done.returncode == 2
    assert done.stderr == f"tacho: {config}: line 2: sample_interval must be a duration such as 10s, not 'soon'\n"
    assert tacho("doctor", TACHO_CONFIG=str(tmp_path / "none")).returncode == 3


def test_escape_sequences_in_names_are_not_printed():
    assert "\x1b" not in tacho("no\x1b[31msuch").stderr


def test_completion_scripts_parse():
    done = subprocess.run(["bash", "-n"], input=tacho("completion", "bash").stdout, text=True)
    assert done.returncode == 0
    assert "doctor" in tacho("completion", "fish").stdout
    assert tacho("completion", "tcsh").returncode == 2


def completed(*words):
    """What bash would offer for the last word."""
    script = tacho("completion", "bash").stdout + f"""
COMP_WORDS=({" ".join(f"'{w}'" for w in ("tacho", *words))}); COMP_CWORD={len(words)}; _tacho; echo "${{COMPREPLY[*]}}"
"""
    done = subprocess.run(["bash", "-u"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_bash_completes_commands_and_each_commands_flags():
    assert completed("good") == ["goodput"]
    assert completed("goodput", "--w") == ["--window"]
    assert completed("run", "--dr") == ["--dry-run"]
    assert completed("report", "--w") == []
    assert completed("report", "--js") == ["--json"]


def test_flags_stop_at_the_command_of_run(tmp_path):
    done = tacho("run", "--data", str(tmp_path), "sh", "-c", 'echo "$@"', "sh", "--json", "--name", "--data")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "--json --name --data\n"


def test_unknown_flags_are_usage_errors_of_each_command():
    for command in ("goodput", "report", "why", "runs", "doctor", "serve", "tool"):
        done = tacho(command, "--nosuch", "--json")
        assert done.returncode == 2, command
        assert json.loads(done.stdout)["error"]["message"] == f"tacho {command} has no flag '--nosuch'"
