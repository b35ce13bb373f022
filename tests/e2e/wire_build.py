# SPDX-License-Identifier: Apache-2.0
"""Protobuf wire format and small profiles in it, written field by field by the tests themselves."""
import struct


def varint(v):
    v &= (1 << 64) - 1
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def number(field, v):
    return varint(field << 3) + varint(v)


def chunk(field, v):
    data = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(data)) + data


def double(field, v):
    return varint(field << 3 | 1) + struct.pack("<d", v)


def fixed64(field, v):
    return varint(field << 3 | 1) + struct.pack("<Q", v)


# -- Perfetto: field numbers of protos/perfetto/trace --

def packet(*fields, sequence=1):
    return chunk(1, b"".join(fields) + number(10, sequence))


def clocks(*readings, primary=6):
    """(id, value[, incremental, unit ns])"""
    out = b""
    for id_, value, *rest in readings:
        out += chunk(1, number(1, id_) + number(2, value) + (number(3, rest[0]) + number(4, rest[1]) if rest else b""))
    return chunk(6, out + number(2, primary))


def process(uuid, pid, name):
    return chunk(60, number(1, uuid) + chunk(3, number(1, pid) + chunk(6, name)))


def thread(uuid, parent, pid, tid, name):
    return chunk(60, number(1, uuid) + number(5, parent) + chunk(4, number(1, pid) + number(2, tid) + chunk(5, name)))


def track(uuid, parent, name):
    return chunk(60, number(1, uuid) + number(5, parent) + chunk(2, name))


def counter(uuid, parent, name, unit="", multiplier=1, incremental=0):
    body = number(4, multiplier) + number(5, incremental) + (chunk(6, unit) if unit else b"")
    return chunk(60, number(1, uuid) + number(5, parent) + chunk(2, name) + chunk(8, body))


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def event(kind, track_uuid=None, *more, name=None, name_iid=None):
    body = number(9, kind)
    body += number(11, track_uuid) if track_uuid is not None else b""
    body += chunk(23, name) if name is not None else b""
    body += number(10, name_iid) if name_iid is not None else b""
    return chunk(11, body + b"".join(more))


def at(ns, clock=None):
    return number(8, ns) + (number(58, clock) if clock else b"")


# -- pprof: field numbers of profile.proto --

def pprof(types, samples, functions, locations, time_ns=0, duration_ns=0, packed=True):
    """types: [(type, unit)]; functions: {id: name}; locations: {id: [function ids, innermost first] or address};
    samples: [([location ids, leaf first], [values], {label: text or number})]"""
    strings = [""]

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    def numbers(field, values):
        if packed:
            return chunk(field, b"".join(varint(v) for v in values))
        return b"".join(number(field, v) for v in values)

    out = b"".join(chunk(1, number(1, text(t)) + number(2, text(u))) for t, u in types)
    for ids, values, labels in samples:
        body = numbers(1, ids) + numbers(2, values)
        for key, v in labels.items():
            body += chunk(3, number(1, text(key)) + (number(2, text(v)) if isinstance(v, str) else number(3, v)))
        out += chunk(2, body)
    for id_, what in locations.items():
        body = number(1, id_)
        if isinstance(what, int):
            body += number(2, 1) + number(3, what)
        else:
            body += b"".join(chunk(4, number(1, f) + number(2, 10)) for f in what)
        out += chunk(4, body)
    for id_, name in functions.items():
        out += chunk(5, number(1, id_) + number(2, text(name)))
    out += chunk(3, number(1, 1) + number(5, text("/usr/lib/libx.so")))
    out += b"".join(chunk(6, s) for s in strings)
    return out + number(9, time_ns) + number(10, duration_ns)
