# SPDX-License-Identifier: Apache-2.0
"""Which run this process belongs to, from the environment: the same rules as run_identity.c."""

import hashlib
import os
import re
import secrets
import socket

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
UNKNOWN = 0xFFFFFFFF


def _letters(raw):
    return "".join(ALPHABET[(raw[2 * i] << 8 | raw[2 * i + 1]) % 36] for i in range(12))


def derive(raw):
    return _letters(hashlib.sha256(raw).digest())


def is_valid(run):
    return re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", run) is not None


def _number(*names):
    for name in names:
        value = os.environ.get(name, "")
        if re.fullmatch(r"[0-9]+", value) and int(value) < 2**31:
            return int(value)
    return -1


def _static_torchrun():
    """torchrun without --rdzv-id: its agent's own folder names the job, on this host only."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE", "")
    name = path.find("/none_")
    end = path.find("/attempt_", name) if name >= 0 else -1
    if end < 0:
        return "torchrun", None, ("TORCHELASTIC_RUN_ID=none names no job, so each process records a run "
                                  "of its own")
    alone = None
    if _number("WORLD_SIZE") < 0 or _number("WORLD_SIZE") != _number("LOCAL_WORLD_SIZE"):
        alone = ("torchrun without --rdzv-id: its hosts have no id in common, so each host records a run "
                 "of its own")
    return "torchrun", f"torchrun {path[:end]}", alone


def _launcher():
    """(launcher, text that names one job or None, why other processes find other ids or None)."""
    env = os.environ.get
    torch = env("TORCHELASTIC_RUN_ID", "")
    if torch and torch != "none":
        return "torchrun", f"torchrun {torch}", None
    if env("SLURM_JOB_ID"):
        return "slurm", (f"slurm {env('SLURM_CLUSTER_NAME', '')} {env('SLURM_JOB_ID')} "
                         f"{env('SLURM_STEP_ID', '')}"), None
    for name in ("JOBSET_UID", "JOB_UID", "LWS_UID", "RAYJOB_UID"):
        if env(name):
            return "kubernetes", f"{name} {env(name)}", None
    if torch:
        return _static_torchrun()
    for name in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"):
        if env(name):
            key = env("OMPI_MCA_orte_precondition_transports")
            return "openmpi", f"mpi {env(name)}" + (f" {key}" if key else ""), None
    if env("RAY_JOB_ID"):
        return "ray", None, ("RAY_JOB_ID counts from 1 in every cluster and names no job, so each process "
                             "records a run of its own")
    if env("JAX_COORDINATOR_ADDRESS"):
        return "jax", None, ("the address of a JAX coordinator names no job (the next one may have it too), "
                             "so each process records a run of its own")
    return "", None, None


def find():
    """(run id, source, host, launcher, rank, local rank, world size, restart count, alone)."""
    launcher, text, alone = _launcher()
    given = os.environ.get("TACHO_RUN_ID", "")
    if given and is_valid(given):
        run, source, alone = given, 0, None
    elif text is not None:
        run, source = derive(os.fsencode(text)[:1023]), 1
    else:
        run, source = _letters(secrets.token_bytes(32)), 2
    host = re.sub(r"[^A-Za-z0-9._-]", "_", socket.gethostname()) or "unknown"
    if host.startswith("."):
        host = "unknown"
    rank = _number("RANK", "SLURM_PROCID", "JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                   "PMIX_RANK", "JOB_COMPLETION_INDEX")
    local_rank = _number("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    world = _number("WORLD_SIZE", "SLURM_NTASKS", "JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    restart = _number("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT", "JOBSET_RESTART_ATTEMPT")
    return (run, source, host[:255], launcher, rank, local_rank, max(world, 0),
            restart if restart >= 0 else UNKNOWN, None if world == 1 else alone)


def data_dir():
    env = os.environ.get
    if env("TACHO_DATA"):
        return env("TACHO_DATA")
    if env("XDG_DATA_HOME"):
        return os.path.join(env("XDG_DATA_HOME"), "tachograph")
    return os.path.join(os.path.expanduser("~"), ".local", "share", "tachograph")
