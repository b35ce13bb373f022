# SPDX-License-Identifier: Apache-2.0
"""Starts the process that sends this host's journals to the server that TACHO_SERVER names."""

import os
import shutil

_OFF = ("off", "no", "false", "0")


def start(data_dir, say):
    """One `tacho ship` a host, data folder and server: it detaches itself, or ends when there is one already.

    Spawned, not forked: the workload may hold threads and accelerators.
    """
    if os.environ.get("TACHO_SHIP", "").lower() in _OFF:
        return
    tacho = shutil.which("tacho")
    if tacho is None:
        say(f"no 'tacho' on PATH: journals wait in '{data_dir}' until `tacho ship` sends them")
        return
    nothing = os.devnull
    quiet = [(os.POSIX_SPAWN_OPEN, 0, nothing, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, nothing, os.O_WRONLY, 0),
             (os.POSIX_SPAWN_OPEN, 2, nothing, os.O_WRONLY, 0)]
    try:
        pid = os.posix_spawn(tacho, [tacho, "ship", "--background", "--data", data_dir], os.environ,
                             file_actions=quiet)
        os.waitpid(pid, 0)  # it has gone to the background within milliseconds
    except OSError as failure:
        say(f"journals wait in '{data_dir}': cannot start {tacho}: {failure}")
