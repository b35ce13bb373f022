# SPDX-License-Identifier: Apache-2.0
"""Reads journals (docs/formats/journal.md) without the binary.

    for record in read("x.journal"): print(record.name, record.wall_ns, record.data)
"""

import collections
import hashlib
import json
import os
import struct

from . import _journal

NAMES = {getattr(_journal, name): name for name in (
    "HEADER ANCHOR BEGIN END METRICS SYSTEM PROCESS_START PROCESS_END CONFIG HOST OUTPUT SESSION EVENT "
    "HEARTBEAT DROPPED CHECKPOINT RUNNER_START RUNNER_END").split()}
_SYNC_BYTES = struct.pack("<I", _journal.SYNC)

Record = collections.namedtuple("Record", "type name flags boottime_ns seq wall_ns offset payload data")


class Journal:
    """All records of one file, with what was lost."""

    def __init__(self, path):
        self.path = path
        self.records = []
        self.lost_bytes = self.lost_records = self.n_places = self.tail_bytes = 0
        with open(path, "rb") as f:
            self._parse(f.read())
        if not self.records or self.records[0].type != _journal.HEADER or self.records[0].offset != 0:
            raise ValueError(f"cannot read '{path}': not a journal: no header record at byte 0")
        self.header = self.records[0].data
        seen = {record.seq for record in self.records}
        self.lost_records = max(seen) + 1 - len(seen)

    def _parse(self, raw):
        at, anchor, in_damage = 0, (0, 0), False
        while at < len(raw):
            record = _parse_record(raw, at)
            if record is None:
                following = raw.find(_SYNC_BYTES, at + 1)
                while following >= 0 and _parse_record(raw, following) is None:
                    following = raw.find(_SYNC_BYTES, following + 1)
                if following < 0 and raw[at:at + 4] == _SYNC_BYTES[:len(raw) - at]:
                    self.tail_bytes = len(raw) - at
                    return
                end = len(raw) if following < 0 else following
                self.n_places += not in_damage
                self.lost_bytes += end - at
                at, in_damage = end, True
                continue
            kind, flags, boottime, seq, payload = record
            in_damage = False
            size = 32 + len(payload)
            if flags & _journal.FLAG_SIDE:
                payload, flags = self._side(payload, flags)
            data = _decode(kind, payload) if not flags & _journal.FLAG_SIDE else None
            if kind == _journal.HEADER:
                anchor = (boottime if data is None else data["boottime_ns"], 0 if data is None else data["wall_ns"])
            elif kind == _journal.ANCHOR and data is not None:
                anchor = (boottime, data["wall_ns"])
            self.records.append(Record(kind, NAMES.get(kind, str(kind)), flags, boottime, seq,
                                       anchor[1] + boottime - anchor[0], at, payload, data))
            at += size

    def _side(self, payload, flags):
        if len(payload) != 40:
            return b"", flags
        name = payload[8:].hex()
        try:
            with open(os.path.join(os.path.dirname(self.path), "side", name), "rb") as f:
                raw = f.read()
        except OSError:
            return b"", flags
        if hashlib.sha256(raw).hexdigest() != name:
            return b"", flags
        return raw, flags & ~_journal.FLAG_SIDE


def _parse_record(raw, at):
    if len(raw) - at < 32:
        return None
    sync, kind, flags, length, crc, boottime, seq = struct.unpack_from("<IHHIIQQ", raw, at)
    if sync != _journal.SYNC or length > _journal.PAYLOAD_MAX or len(raw) - at - 32 < length:
        return None
    payload = raw[at + 32:at + 32 + length]
    if _journal.crc32c(raw[at + 4:at + 12] + raw[at + 16:at + 32] + payload) != crc:
        return None
    return kind, flags, boottime, seq, payload


def _decode_header(payload):
    fields = struct.unpack_from("<II16s16sQQqiIII", payload)
    out = dict(zip(("version", "role", "journal_id", "boot_id", "boottime_ns", "monotonic_ns", "wall_ns",
                    "rank", "world_size", "pid", "restart_count"), fields))
    at = 80
    for key in ("run", "host", "writer"):
        (n,) = struct.unpack_from("<H", payload, at)
        out[key] = payload[at + 2:at + 2 + n].decode("utf-8", "replace")
        at += 2 + n
    out["journal_id"] = out["journal_id"].hex()
    return out


def _decode_metrics(payload):
    step, count = struct.unpack_from("<qH", payload)
    at, metrics = 10, {}
    for _ in range(count):
        value, n = struct.unpack_from("<dH", payload, at)
        metrics[payload[at + 10:at + 10 + n].decode("utf-8", "replace")] = value
        at += 10 + n
    return {"step": step, "metrics": metrics}


def _decode(kind, payload):
    try:
        if kind == _journal.HEADER:
            return _decode_header(payload)
        if kind == _journal.ANCHOR:
            return dict(zip(("wall_ns", "monotonic_ns"), struct.unpack_from("<qQ", payload)))
        if kind in (_journal.BEGIN, _journal.END):
            phase, step = struct.unpack_from("<Iq", payload)
            return {"phase": phase & 0xFF, "step": step, "type": payload[12:].decode("utf-8", "replace"),
                    "thread": phase >> 8 or None}  # None: unknown
        if kind in (_journal.METRICS, _journal.SYSTEM):
            return _decode_metrics(payload)
        if kind in (_journal.PROCESS_END, _journal.RUNNER_END):
            code, signal = struct.unpack_from("<ii", payload)
            return {"exit_code": code, "signal": signal, "reason": payload[8:].decode("utf-8", "replace")}
        if kind == _journal.OUTPUT:
            return {"stream": payload[0], "text": payload[1:].decode("utf-8", "replace")}
        if kind == _journal.DROPPED:
            return dict(zip(("records", "errno"), struct.unpack_from("<Qi", payload)))
        if kind == _journal.CHECKPOINT:
            return dict(zip(("kind", "step", "duration_ns"), struct.unpack_from("<B7xqq", payload)))
        if kind == _journal.HEARTBEAT:
            return {}
        return json.loads(payload.decode("utf-8"))
    except (struct.error, ValueError, IndexError):
        return None


def read(path):
    """The records of one journal in the order of their numbers."""
    return sorted(Journal(path).records, key=lambda record: record.seq)
