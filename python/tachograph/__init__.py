# SPDX-License-Identifier: Apache-2.0
"""Tachograph: says what a training loop does, so that `tacho` can tell where its time went.

    import tachograph as tacho
    run = tacho.init(name="gemma-2b", config=cfg)
    with run.record(tacho.Event.STEP, step): loss = train_step(batch)
    run.log({"loss": loss}, step=step)
    run.finish()

Nothing here raises into the loop, blocks it, starts a thread or needs a server.
"""

import atexit
import enum
import json
import os
import platform
import sys

from . import _identity, _journal, _ship

try:
    if os.environ.get("TACHO_PURE_PYTHON"):
        raise ImportError("pure Python was asked for")
    from . import _native as _writer
except ImportError:
    _writer = _journal

__version__ = "0.1.0"
__all__ = ["Event", "Run", "init"]


class Event(enum.IntEnum):
    """What a record() is about; the numbers are those of phases.def."""

    JOB = 1
    ACCELERATOR_INIT = 2
    TRAINING_PREP = 3
    DATA_LOADING = 4
    STEP = 5
    CHECKPOINT_SAVE = 6
    CHECKPOINT_RESTORE = 7
    COMPILE = 8
    EVAL = 9
    CUSTOM = 10
    ELASTIC_WAIT = 11
    ELASTIC_REINIT = 12
    IDLE = 13


def _say(text):
    try:
        print(f"tacho: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # no stderr: nobody to tell


class Run(_writer.Recorder):
    """One process's part of a run. Made by init(). record(), log() and heartbeat() are the Recorder's."""

    def __init__(self):
        self._writer = self._session = self._said = None
        self.id = self.data_dir = self.name = ""
        self.rank, self.world_size = -1, 0

    def _open(self, name, group, config, labels, data_dir):
        (self.id, _, host, launcher, self.rank, local_rank, self.world_size, restart,
         alone) = _writer.identity()
        self.data_dir = str(data_dir) if data_dir is not None else _identity.data_dir()
        self.name = name or os.environ.get("TACHO_RUN_NAME") or self.id
        writer = _writer.open(self.data_dir, self.id, host, self.rank, self.world_size, restart,
                              f"tacho-python/{__version__}")
        if isinstance(writer, int):
            _say(f"run {self.name} is not recorded: cannot write in '{self.data_dir}': {os.strerror(writer)}")
            return
        self._writer = writer
        start = {"name": self.name, "group": group or os.environ.get("TACHO_RUN_GROUP"), "labels": labels,
                 "argv": sys.argv, "pid": os.getpid(), "host": host, "launcher": launcher or None,
                 "python": platform.python_version(), "version": __version__, "framework": _frameworks(),
                 "rank": self.rank if self.rank >= 0 else None, "world_size": self.world_size or None,
                 "local_rank": local_rank if local_rank >= 0 else None}
        self._write_json(_journal.PROCESS_START, {k: v for k, v in start.items() if v is not None})
        if config is not None:
            self.config(config)
        server = os.environ.get("TACHO_SERVER", "").rstrip("/")
        where = f"{server}/runs/{self.id}" if server else self.id
        if server:
            _ship.start(self.data_dir, _say)
        note = f"; {alone}: set TACHO_RUN_ID, the same for all" if alone else ""
        _say(f"run {self.name} → {where} (recording in {self.run_dir}{note})")

    @property
    def run_dir(self):
        return os.path.join(self.data_dir, "runs", self.id)

    @property
    def journal_path(self):
        return _writer.path(self._writer) if self._writer is not None else ""

    @property
    def dropped(self):
        """Records that could not be written."""
        return _writer.dropped(self._writer) if self._writer is not None else 0

    def _complain(self, failure):
        if self._said is None:
            self._said = failure
            _say(f"a record was left out: {failure}")

    def _write_json(self, kind, value):
        _writer.write(self._writer, kind, json.dumps(value, default=str, ensure_ascii=False))

    def config(self, config):
        """A mapping (or an object with attributes) of the run's configuration."""
        if self._writer is None:
            return
        try:
            self._write_json(_journal.CONFIG, config if isinstance(config, dict) else vars(config))
        except Exception as failure:
            self._complain(failure)

    def profile(self, steps=5):
        """Profiles this process for the next `steps` STEP records. True when it began."""
        if self._writer is None or self._session is not None:
            return False
        try:
            from . import _profile
            self._session = _profile.Session(self.run_dir, self.rank, self.world_size, steps)
            self._profiling = True
            return True
        except Exception as failure:
            self._session = None
            _say(f"no profile: {failure}")
            return False

    def _enter_step(self, step):
        """A step begins while a profile runs: the profiler's mark of it, entered."""
        annotation = self._session.annotation(step)
        annotation.__enter__()
        return annotation

    def _leave_step(self, annotation, step):
        annotation.__exit__(None, None, None)
        if self._session is not None and self._session.step_done(step):
            self._stop_profile()

    def _stop_profile(self):
        session, self._session, self._profiling = self._session, None, False
        try:
            self._write_json(_journal.SESSION, session.stop())
        except Exception as failure:
            _say(f"the profile was lost: {failure}")

    def finish(self, exit_code=0, reason="exit"):
        """The run ends here as far as this process is concerned."""
        if self._writer is None:
            return
        try:
            if self._session is not None:
                self._stop_profile()
            payload = int(exit_code).to_bytes(4, "little", signed=True) + bytes(4) + str(reason).encode()
            _writer.write(self._writer, _journal.PROCESS_END, payload)
            _writer.close(self._writer)
        except Exception as failure:
            self._complain(failure)
        self._writer = None
        atexit.unregister(self._at_exit)

    def _at_exit(self):
        """The interpreter ends without finish(): an uncaught exception left its trace in sys."""
        failed = getattr(sys, "last_type", None) is not None
        self.finish(1 if failed else 0, "exception" if failed else "exit")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.finish(0 if kind is None else 1, "exit" if kind is None else "exception")
        return False


def _frameworks():
    out = {}
    for name in ("jax", "torch"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            out[name] = str(version)
    return out


def init(name=None, group=None, config=None, labels=None, data_dir=None):
    """Opens this process's journal. Always answers a Run; one that cannot record does nothing."""
    run = Run()
    try:
        run._open(name, group, config, labels, data_dir)
        atexit.register(run._at_exit)
    except Exception as failure:
        run._writer = None
        _say(f"run {name} is not recorded: {failure}")
    return run
