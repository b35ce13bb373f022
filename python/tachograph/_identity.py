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


def derive(text):
    return _letters(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest())


def is_valid(run):
    return re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", run) is not None


def _number(*names):
    for name in names:
        value = os.environ.get(name, "")
        if re.fullmatch(r"[0-9]+", value) and int(value) < 2**31:
            return int(value)
    return -1


def _launcher():
    env = os.environ.get
    torch = env("TORCHELASTIC_RUN_ID", "")
    if torch and torch != "none":
        return "torchrun", f"torchrun {torch}"
    if env("SLURM_JOB_ID"):
        return "slurm", (f"slurm {env('SLURM_CLUSTER_NAME', '')} {env('SLURM_JOB_ID')} "
                         f"{env('SLURM_STEP_ID', '')}")
    for name in ("JOBSET_UID", "JOB_UID", "LWS_UID", "RAY_JOB_ID", "RAYJOB_UID"):
        if env(name):
            return "kubernetes", f"{name} {env(name)}"
    if torch:
        one_host = _number("WORLD_SIZE") == _number("LOCAL_WORLD_SIZE")
        return "torchrun", (f"torchrun {env('MASTER_ADDR', '')}:{env('MASTER_PORT', '')} "
                            f"{os.getppid() if one_host else 0}")
    for name in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"):
        if env(name):
            return "openmpi", f"mpi {env(name)}"
    if env("JAX_COORDINATOR_ADDRESS"):
        return "jax", f"jax {env('JAX_COORDINATOR_ADDRESS')}"
    return "", None


def find():
    """(run id, source, host, launcher, rank, local rank, world size, restart count)."""
    launcher, text = _launcher()
    given = os.environ.get("TACHO_RUN_ID", "")
    if given and is_valid(given):
        run, source = given, 0
    elif text is not None:
        run, source = derive(text[:1023]), 1
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
            restart if restart >= 0 else UNKNOWN)


def data_dir():
    env = os.environ.get
    if env("TACHO_DATA"):
        return env("TACHO_DATA")
    if env("XDG_DATA_HOME"):
        return os.path.join(env("XDG_DATA_HOME"), "tachograph")
    return os.path.join(os.path.expanduser("~"), ".local", "share", "tachograph")
