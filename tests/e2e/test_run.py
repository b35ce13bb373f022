# SPDX-License-Identifier: Apache-2.0
"""tacho run from outside: exit status, signals, masking, --dry-run, --resume, output, SIGKILL."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))


@pytest.fixture
def env(tmp_path):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    return {**keep, "TACHO_DATA": str(tmp_path / "data")}


def tacho(env, *words, **more):
    return subprocess.run([TACHO, *words], env=env, capture_output=True, text=True, timeout=60, **more)


def journals(env):
    return sorted(pathlib.Path(env["TACHO_DATA"]).glob("runs/*/journals/*.journal"))


@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_status(env, script, status):
    assert tacho(env, "run", "--", "sh", "-c", script).returncode == status
    assert len(journals(env)) == 1


def test_before_start(env):
    assert tacho(env, "run", "--", "/no/such/program").returncode == 127
    assert tacho(env, "run", "--", "/etc/passwd").returncode == 126
    assert tacho(env, "run").returncode == 125
    assert journals(env) == []


def test_output_passes_and_is_kept(env):
    got = tacho(env, "run", "--", "sh", "-c", "echo to-out; echo to-err >&2")
    assert (got.stdout, got.stderr) == ("to-out\n", "to-err\n")
    kept = journals(env)[0].read_bytes()
    assert b"\x01to-out\n" in kept and b"\x02to-err\n" in kept


def test_no_output(env):
    got = tacho(env, "run", "--no-output", "--", "sh", "-c", "printf 'a%sb' -; true")
    assert got.stdout == "a-b" and b"\x01a-b" not in journals(env)[0].read_bytes()


def test_no_output_says_what_it_does(env):
    line = next(line for line in tacho(env, "run", "--help").stdout.splitlines() if "--no-output" in line)
    assert line.split(None, 1)[1] == "do not keep the tail of a command's output"


def test_signal_is_forwarded(env):
    p = subprocess.Popen([TACHO, "run", "--", "sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done"],
                         env=env, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    p.send_signal(signal.SIGTERM)
    assert p.wait(20) == 7


def test_secrets_never_reach_the_journal(env):
    secret = "hunter2-" + "do-not-keep"
    tacho({**env, "MY_TOKEN": secret}, "run", "--", "true", "--password", secret, "--api-key=" + secret)
    assert secret.encode() not in journals(env)[0].read_bytes()


def test_dry_run(env):
    got = tacho(env, "run", "--json", "--dry-run", "--name", "n", "--", "train", "--token", "hunter22")
    plan = json.loads(got.stdout)
    assert got.returncode == 0 and plan["start"]["argv"] == ["train", "--token", "***"]
    assert journals(env) == []


def test_resume_is_the_same_run(env):
    show = ["sh", "-c", "echo $TACHO_RUN_ID"]
    first = tacho(env, "run", "--name", "a", "--", *show).stdout
    other = tacho(env, "run", "--name", "a", "--", *show).stdout
    again = tacho(env, "run", "--name", "a", "--resume", "--", *show).stdout
    assert first != other and again == other
    assert tacho(env, "run", "--name", "b", "--resume", "--", "true").returncode != 0


def test_killed_runner_leaves_the_command_alone(env, tmp_path):
    done = tmp_path / "done"
    p = subprocess.Popen([TACHO, "run", "--", "sh", "-c", f"echo up; sleep 1; echo late; echo late; echo ok > {done}"],
                         env=env, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    p.kill()
    assert p.stdout.read() == "late\nlate\n"
    for _ in range(50):
        if done.exists():
            break
        time.sleep(0.1)
    assert done.read_text() == "ok\n"


def rows(table):
    return [dict(zip([c["name"] for c in table["columns"]], row, strict=True)) for row in table["rows"]]


@pytest.mark.parametrize("job", [
    {"JAX_COORDINATOR_ADDRESS": "10.0.0.1:1234"},
    {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h", "MASTER_PORT": "29500", "WORLD_SIZE": "8"}])
def test_an_address_makes_no_run_of_two_jobs(env, job):
    said = [tacho({**env, **job}, "run", "--name", name, "--", "true").stderr for name in ("j1", "j2")]
    runs = rows(json.loads(tacho(env, "runs", "--json").stdout))
    assert sorted(run["name"] for run in runs) == ["j1", "j2"] and [run["attempts"] for run in runs] == [1, 1]
    assert all("names no job" in text and text.count("\n") == 1 for text in said)


def torch_worker(folder, rank):
    return {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h", "MASTER_PORT": "29500", "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank),
            "TORCHELASTIC_ERROR_FILE": f"/tmp/torchelastic_x/{folder}/attempt_0/{rank}/error.json"}


def test_every_recorder_finds_the_same_run(env):
    find = ["import tachograph._identity as i; print(i.find()[0])",
            "import tachograph._native as i; print(i.identity()[0])"]
    where = {**env, "PYTHONPATH": str(ROOT / "python")}
    for job in (torch_worker("none_a", 0), {"SLURM_JOB_ID": "4", "SLURM_STEP_ID": "0"},
                {"PMIX_NAMESPACE": "j", "OMPI_MCA_orte_precondition_transports": "0a-0b"}, {"JOBSET_UID": "u"}):
        ids = [subprocess.run(["python3", "-c", text], env={**where, **job}, capture_output=True, text=True,
                              check=True).stdout.strip() for text in find]
        ids.append(tacho({**env, **job}, "run", "--", "sh", "-c", "echo $TACHO_RUN_ID").stdout.strip())
        assert len(set(ids)) == 1, (job, ids)


def test_the_next_torchrun_is_another_run(env):
    def ids(folder):
        return {tacho({**env, **torch_worker(folder, rank)}, "run", "--", "sh", "-c", "echo $TACHO_RUN_ID").stdout
                for rank in (0, 1)}
    first, second = ids("none_a"), ids("none_b")
    assert len(first) == len(second) == 1 and first != second


@pytest.mark.parametrize("name", ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "JAX_PROCESS_ID"])
def test_a_run_of_one_rank_says_which(env, name):
    tacho({**env, name: "3"}, "run", "--", "true")
    shown = json.loads(tacho(env, "runs", "show", "last", "--json").stdout)
    processes = rows(next(table for table in shown["tables"] if table["table"] == "processes"))
    assert [process["rank"] for process in processes] == [3]
    assert "-3-" in journals(env)[0].name and "-run-" not in journals(env)[0].name


def test_a_relative_data_folder_is_the_same_for_a_command_that_goes_elsewhere(env, tmp_path):
    (tmp_path / "work").mkdir()
    got = tacho({**env, "TACHO_DATA": "data"}, "run", "--", "sh", "-c", "cd work; echo $TACHO_DATA", cwd=tmp_path)
    assert got.stdout == f"{tmp_path}/data\n" and len(journals(env)) == 1


@pytest.mark.parametrize("prepare", ["exec <&-", "exec >&-", "exec 2>&-", "exec <&- >&- 2>&-", "ulimit -n 20",
                                     "ulimit -f 1", "cd gone; rmdir ../gone", "ulimit -c 0 -v 4000000"])
def test_a_bare_environment_does_not_change_the_command(env, tmp_path, prepare):
    """Missing descriptors, small limits, no working directory: CMD runs, its status is kept, no journal is spoilt."""
    (tmp_path / "gone").mkdir()
    script = f'{prepare}; exec "$@"'
    words = ["sh", "-c", script, "sh", TACHO, "run", "--", "sh", "-c", "echo a; echo b >&2; exit 6"]
    got = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, timeout=60)
    assert got.returncode == 6, got.stderr
    for journal in journals(env):
        assert journal.stat().st_size == 0 or journal.read_bytes()[:4] == b"\xa7\x4a\xc3\x1f"
    shown = tacho(env, "runs", "list", "--json")
    assert shown.returncode == 0 and b"\0" not in got.stdout + got.stderr


def test_output_of_any_size_and_input_pass_unchanged(env):
    data = bytes(range(256)) * 200_000
    got = subprocess.run([TACHO, "run", "--", "cat"], env=env, input=data, capture_output=True, timeout=60)
    assert got.returncode == 0 and got.stdout == data and got.stderr == b""


def test_a_daemon_of_the_command_is_not_waited_for(env):
    script = "(setsid sh -c 'trap \"\" TERM; sleep 30' &); echo $$; exit 4"
    begin = time.monotonic()
    got = subprocess.run([TACHO, "run", "--", "sh", "-c", script], env=env, stdout=subprocess.DEVNULL, timeout=60)
    assert got.returncode == 4 and time.monotonic() - begin < 25, "the daemon holds the output open for 30 s"


def test_two_hundred_processes_and_words_that_are_no_text(env):
    script = "for i in $(seq 200); do sleep 1 & done; wait; exit 11"
    got = subprocess.run([TACHO, "run", "--", "sh", "-c", script, b"\xff\xfe"], env=env, timeout=60)
    assert got.returncode == 11
    assert tacho(env, "runs", "show", "last", "--json").returncode == 0
