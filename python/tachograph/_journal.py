# SPDX-License-Identifier: Apache-2.0
"""The journal writer in pure Python, for where the extension does not load: docs/formats/journal.md.

Same functions as tachograph._native. Nothing here raises for a file-system error: a record that cannot
be written is counted.
"""

import builtins
import errno
import hashlib
import itertools
import os
import resource
import struct
import threading
import time
import uuid

from . import _identity

SYNC = 0x1FC34AA7
PAYLOAD_MAX = 65536
FLAG_SIDE = 1
PATIENCE = 64
RETRY_NS = 1_000_000_000
ANCHOR_EVERY_NS = 60_000_000_000
PHASE_STEP = 5
(HEADER, ANCHOR, BEGIN, END, METRICS, SYSTEM, PROCESS_START, PROCESS_END, CONFIG, HOST, OUTPUT, SESSION,
 EVENT, HEARTBEAT, DROPPED, CHECKPOINT, RUNNER_START, RUNNER_END) = range(1, 19)

_HEAD = struct.Struct("<IHHIIQQ")
_BODY = struct.Struct("<HHI")
_TIMES = struct.Struct("<QQ")


def _make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _make_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def pack_record(kind, flags, boottime_ns, seq, payload):
    body = _BODY.pack(kind, flags, len(payload))
    times = _TIMES.pack(boottime_ns, seq)
    crc = crc32c(body + times + payload)
    return _HEAD.pack(SYNC, kind, flags, len(payload), crc, boottime_ns, seq) + payload


def _boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _bytes(text):
    if text is None:
        return b""
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _text(value, most):
    raw = _bytes(value)[:most]
    return struct.pack("<H", len(raw)) + raw


def _boot_id():
    try:
        with builtins.open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return bytes.fromhex(f.read().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


def _pid_namespace():
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


class Writer:
    """One process's journal."""

    def __init__(self, data, run, host, rank, world_size, restart_count, version):
        boottime = _boottime_ns()
        self.pid = os.getpid()
        self.seq = itertools.count()  # next() is atomic under the interpreter's lock
        self.n_bytes = self.n_dropped = self.n_dropped_total = self.n_failures = 0
        self.last_errno = 0
        self.retry_ns = 0
        self.anchor_ns = boottime
        folder = os.path.join(data, "runs", run, "journals")
        os.makedirs(folder, mode=0o750, exist_ok=True)
        self.path = os.path.join(folder, f"{host}-{rank}-{self.pid}-{boottime}.journal")
        self.fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        header = struct.pack("<II16s16sQQqiIII", 1, 0, uuid.uuid4().bytes, _boot_id(), boottime,
                             time.monotonic_ns(), time.time_ns(), rank, world_size, self.pid, restart_count)
        header += _text(run, 127) + _text(host, 255) + _text(version, 63) + struct.pack("<Q", _pid_namespace())
        if not self._put(HEADER, 0, header):
            os.unlink(self.path)
            self.close()
            raise OSError(self.last_errno, os.strerror(self.last_errno))

    def _drop(self, error):
        self.n_dropped += 1
        self.n_dropped_total += 1
        self.n_failures += 1
        self.last_errno = error
        if self.n_failures >= PATIENCE:
            self.retry_ns = _boottime_ns() + RETRY_NS
        return False

    def _put(self, kind, flags, payload):
        n = 32 + len(payload)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if limit != resource.RLIM_INFINITY and self.n_bytes + n > limit:
            return self._drop(errno.EFBIG)
        try:
            done = os.write(self.fd, pack_record(kind, flags, _boottime_ns(), next(self.seq), payload))
        except OSError as failure:
            return self._drop(failure.errno or errno.EIO)
        self.n_bytes += done
        if done != n:
            return self._drop(errno.ENOSPC)
        self.n_failures = 0
        return True

    def _put_due(self):
        if self.n_dropped:
            n, self.n_dropped = self.n_dropped, 0
            if not self._put(DROPPED, 0, struct.pack("<Qi", n, self.last_errno)):
                self.n_dropped += n - 1
                self.n_dropped_total -= 1
        now = _boottime_ns()
        if now - self.anchor_ns >= ANCHOR_EVERY_NS:
            self.anchor_ns = now
            self._put(ANCHOR, 0, struct.pack("<qQ", time.time_ns(), time.monotonic_ns()))

    def _put_side(self, kind, payload):
        digest = hashlib.sha256(payload)
        folder = os.path.join(os.path.dirname(self.path), "side")
        path = os.path.join(folder, digest.hexdigest())
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if limit != resource.RLIM_INFINITY and len(payload) > limit:
            return self._drop(errno.EFBIG)
        try:
            os.makedirs(folder, mode=0o750, exist_ok=True)
            with builtins.open(f"{path}.tmp-{self.pid}", "wb") as f:
                f.write(payload)
            os.rename(f"{path}.tmp-{self.pid}", path)
        except OSError as failure:
            return self._drop(failure.errno or errno.EIO)
        return self._put(kind, FLAG_SIDE, struct.pack("<Q", len(payload)) + digest.digest())

    def write(self, kind, payload):
        if self.fd < 0 or os.getpid() != self.pid:
            return False
        if self.n_failures >= PATIENCE and _boottime_ns() < self.retry_ns:
            self.n_dropped += 1
            self.n_dropped_total += 1
            return False
        self._put_due()
        payload = _bytes(payload)
        if len(payload) > PAYLOAD_MAX:
            return self._put_side(kind, payload)
        return self._put(kind, 0, payload)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def open(data, run, host, rank, world_size, restart_count, version):  # noqa: A001 - as in _native
    try:
        return Writer(data, run, host, rank, world_size, restart_count, version)
    except OSError as failure:
        return failure.errno or errno.EIO


def close(writer):
    writer.close()


def path(writer):
    return writer.path


def dropped(writer):
    return writer.n_dropped_total


def write(writer, kind, payload):
    return writer.write(kind, payload)


def phase(writer, record, number, step, custom_type):
    if not 0 <= number <= 255:
        raise ValueError(f"no event has the number {number}")
    return writer.write(record, struct.pack("<Iq", number | _thread.number << 8, step) + _bytes(custom_type))


def metric(writer, step, name, value):
    raw = _bytes(name)[:1024]
    return writer.write(METRICS, struct.pack("<qHdH", step, 1, value, len(raw)) + raw)


class _Thread(threading.local):
    """The calling thread's number: 1, 2 ... in the order in which threads come here; 0 = beyond 24 bits."""

    def __init__(self):
        number = next(_numbers)
        self.number = number if number <= 0xFFFFFF else 0


_numbers = itertools.count(1)
_thread = _Thread()


class Span:
    """The context of one event."""

    __slots__ = ("run", "number", "step", "type", "annotation")

    def __init__(self, run, number, step, custom_type):
        self.run, self.number, self.step, self.type = run, number, step, custom_type
        self.annotation = None

    def __enter__(self):
        run = self.run
        if run._writer is not None:
            try:
                if run._profiling and self.number == PHASE_STEP:
                    self.annotation = run._enter_step(self.step)
            except Exception as failure:
                run._complain(failure)
            try:
                phase(run._writer, BEGIN, self.number, self.step, self.type)
            except Exception as failure:
                run._complain(failure)
        return self

    def __exit__(self, kind, value, traceback):
        run = self.run
        if run._writer is not None:
            try:
                phase(run._writer, END, self.number, self.step, self.type)
                if self.annotation is not None:  # None: the profile began inside this step
                    annotation, self.annotation = self.annotation, None
                    run._leave_step(annotation, self.step)
            except Exception as failure:
                run._complain(failure)
        return False


class Recorder:
    """What a training loop calls; failures go to _complain(failure), never to the caller."""

    _writer = None
    _profiling = False

    def record(self, event, step=-1, type=None):  # noqa: A002 - the format's own word
        """A context manager: the event begins and ends with the block."""
        return Span(self, event, -1 if step is None else step, type)

    def log(self, metrics, step=-1):
        """Numbers of this step: {"loss": 0.3}. Arrays of one element count as numbers."""
        if self._writer is None:
            return
        try:
            step = -1 if step is None else int(step)
            for name, value in metrics.items():
                metric(self._writer, step, str(name), float(value))
        except Exception as failure:
            self._complain(failure)

    def heartbeat(self):
        """"I am alive", for long stretches without other records."""
        if self._writer is not None:
            self._writer.write(HEARTBEAT, b"")


identity = _identity.find
