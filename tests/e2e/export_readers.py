# SPDX-License-Identifier: Apache-2.0
"""Readers of the formats that tacho exports, written from their specifications alone, and a writer of
small XSpaces. Each reader gives slices as (plane, line, name, start_ps, dur_ps)."""
import collections
import csv
import decimal
import gzip
import importlib.machinery
import importlib.util
import io
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
_loader = importlib.machinery.SourceFileLoader("dump_xspace", str(ROOT / "tools/dump-xspace"))
dump_xspace = importlib.util.module_from_spec(importlib.util.spec_from_loader("dump_xspace", _loader))
_loader.exec_module(dump_xspace)


# -- the truth --

def truth_lines(data):
    """(plane, line, [(name, start_ps, dur_ps)], aggregated) of each line; sorted, the longer first."""
    for p in dump_xspace.decode(data):
        for line in p["lines"]:
            events, aggregated = [], []
            for e in line["events"]:
                if e["offset"] < 0 or e["duration"] < 0:
                    continue
                start = line["timestamp_ns"] * 1000 + (0 if e["occurrences"] else e["offset"])
                item = (p["names"].get(e["id"]) or "?", start, e["duration"])
                (aggregated if e["occurrences"] else events).append(item)
            events.sort(key=lambda e: (e[1], -e[2]))
            yield p["name"], line["display_name"] or line["name"], events, aggregated


def truth_slices(data):
    return [(plane, line, *e) for plane, line, events, aggregated in truth_lines(data) for e in events + aggregated]


def self_times(events):
    """Stack of names to self time in ps; None where events overlap in part."""
    out, open_ = collections.Counter(), []  # open: [names, end, inner]

    def close(until):
        while open_ and open_[-1][1] <= until:
            names, _, dur, inner = open_.pop()
            out[names] += dur - inner
            if open_:
                open_[-1][3] += dur

    for name, start, dur in events:
        close(start)
        if open_ and open_[-1][1] < start + dur:
            return None
        open_.append([(open_[-1][0] if open_ else ()) + (name,), start + dur, dur, 0])
    close(float("inf"))
    return out


def from_first(slices):
    """Counted, and timed from the first."""
    first = min((s[3] for s in slices), default=0)
    return collections.Counter((p, line, name, start - first, dur) for p, line, name, start, dur in slices)


# -- Chrome JSON --

def picoseconds(number):
    ps = decimal.Decimal(number) * 10**6
    assert ps == int(ps), number
    return int(ps)


def chrome(data):
    """Slices, counters, flows."""
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    document = json.loads(text, parse_float=decimal.Decimal)
    base = int(document.get("baseTimeNanoseconds", 0)) * 1000
    names, slices, counters, flows = {}, [], [], []
    for e in document["traceEvents"]:
        if e["ph"] == "M" and e["name"] in ("process_name", "thread_name"):
            names[e["pid"], e["tid"] if e["name"] == "thread_name" else None] = e["args"]["name"]
    for e in document["traceEvents"]:
        if e["ph"] == "M":
            continue
        where = names[e["pid"], None], names[e["pid"], e["tid"]]
        at = base + picoseconds(e["ts"])
        if e["ph"] == "X":
            slices.append((*where, e["name"], at, picoseconds(e["dur"])))
        elif e["ph"] == "C":
            counters.append((e["name"], at, e["args"]["value"]))
        else:
            assert e["ph"] in "sf", e
            flows.append((e["ph"], e["id"], at))
    return slices, counters, flows, document


# -- protobuf --

def fields(data):
    for number, _, value in dump_xspace.fields(data, 0, len(data)):
        yield number, bytes(data[value[0]:value[1]]) if isinstance(value, tuple) else value


def one(data, number, default=None):
    return next((v for n, v in fields(data) if n == number), default)


def f64(bits):
    import struct
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]


def perfetto(data):
    """Slices (ps, whole ns where no dur_ps says more), counters, flows of a Perfetto trace."""
    tracks, names, arguments, open_ = {}, {}, {}, collections.defaultdict(list)
    slices, counters, flows, seen = [], [], [], set()

    def place(uuid):
        name, parent, _ = tracks[uuid]
        return (tracks[parent][0] if parent else "", name)

    for number, packet in fields(data):
        assert number == 1
        parts = list(fields(packet))
        got = dict(parts)
        sequence = got.get(10)
        if 60 in got:
            t = dict(fields(got[60]))
            assert t[1] not in tracks
            tracks[t[1]] = (t[2].decode(), t.get(5), 8 in t)
        if 11 not in got:
            continue
        if got[13] == 1:
            assert sequence not in seen
        else:
            assert got[13] == 2 and sequence in seen
        seen.add(sequence)
        for n, entry in fields(got.get(12, b"")):
            e = dict(fields(entry))
            table = {2: names, 3: arguments}[n]
            assert (sequence, e[1]) not in table
            table[sequence, e[1]] = e[2].decode()
        event = list(fields(got[11]))
        kind, uuid, at = dict(event)[9], dict(event)[11], got[8]
        if kind == 1:
            args = {}
            for n, v in event:
                if n == 4:
                    a = list(fields(v))
                    args[arguments[sequence, a[0][1]]] = f64(a[1][1]) if a[1][0] == 5 else a[1][1]
            open_[uuid].append((names[sequence, dict(event)[10]], at, args))
            flows += [("s" if n == 47 else "f", v, at) for n, v in event if n in (47, 48)]
        elif kind == 2:
            name, begin, args = open_[uuid].pop()
            slices.append((*place(uuid), name, begin * 1000, args.get("dur_ps", (at - begin) * 1000)))
        else:
            assert kind == 4 and tracks[uuid][2]
            counters.append((place(uuid)[1], at, f64(dict(event)[44])))
    assert not any(open_.values())
    return slices, counters, flows


def packed(data):
    at = 0
    while at < len(data):
        value, at = dump_xspace.varint(data, at, len(data))
        yield value


def pprof(data):
    """Value type names, and {stack from the root: values}."""
    data = gzip.decompress(data)
    parts = list(fields(data))
    strings = [v.decode() for n, v in parts if n == 6]
    assert strings[0] == ""
    functions = {one(v, 1): strings[one(v, 2)] for n, v in parts if n == 5}
    locations = {one(v, 1): functions[one(one(v, 4), 1)] for n, v in parts if n == 4}
    types = [strings[one(v, 1)] + "/" + strings[one(v, 2)] for n, v in parts if n == 1]
    stacks = collections.defaultdict(lambda: [0] * len(types))
    for n, v in parts:
        if n == 2:
            stack = tuple(locations[i] for i in packed(one(v, 1)))[::-1]
            values = list(packed(one(v, 2)))
            assert len(values) == len(types)
            stacks[stack] = [a + b for a, b in zip(stacks[stack], values)]
    return types, dict(stacks), strings[dict(parts)[14]]


# -- speedscope --

def speedscope(data):
    """(slices, sampled) of a document that keeps the rules of speedscope's schema."""
    d = json.loads(data, parse_float=decimal.Decimal)
    assert d["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [f["name"] for f in d["shared"]["frames"]]
    slices, sampled = [], []
    for p in d["profiles"]:
        assert p["unit"] in ("none", "nanoseconds") and p["startValue"] <= p["endValue"]
        *_, plane, line = p["name"].split(" / ")
        if p["type"] == "sampled":
            assert len(p["samples"]) == len(p["weights"])
            sampled += [(tuple(frames[i] for i in s), w) for s, w in zip(p["samples"], p["weights"])]
            continue
        assert p["type"] == "evented"
        open_, last = [], p["startValue"]
        for e in p["events"]:
            assert e["at"] >= last, "not in order"
            last = e["at"]
            if e["type"] == "O":
                open_.append((e["frame"], e["at"]))
            else:
                frame, begin = open_.pop()
                assert frame == e["frame"], "closes what is not innermost"
                slices.append((plane, line, frames[frame], int(begin * 1000), int((e["at"] - begin) * 1000)))
        assert not open_ and last <= p["endValue"]
    return slices, sampled


def csv_slices(data):
    rows = csv.DictReader(io.StringIO(data.decode()))
    return [(r["plane"], r["line"], r["name"], int(r["start_ps"]), int(r["dur_ps"])) for r in rows]


def folded(data):
    out = collections.Counter()
    for row in data.decode().splitlines():
        stack, value = row.rsplit(" ", 1)
        out[tuple(stack.split(";"))] += int(value)
    return out


# -- a writer --

def varint(n):
    out = bytearray()
    n &= 2**64 - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def number(field, v):
    return varint(field << 3) + varint(v)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def stat(names, name, value):
    key = names.setdefault(name, len(names) + 1)
    if isinstance(value, float):
        import struct
        return number(1, key) + b"\x11" + struct.pack("<d", value)
    return number(1, key) + (number(4, value) if isinstance(value, int) else message(5, value))


def xspace_plane(name, lines):
    """lines: {name: (timestamp_ns, [(event name, offset_ps, dur_ps, {stat: value}, {metadata stat: value})])}"""
    stat_names, ids, body = {}, {}, message(2, name)
    for number_of_line, (line, (timestamp, events)) in enumerate(lines.items()):
        out = [number(1, number_of_line) + message(2, line) + number(3, timestamp)]
        for e in events:
            event, offset, dur, stats, meta = (*e, {}, {})[:5]
            key = (event, tuple(meta.items()))
            ids.setdefault(key, len(ids) + 1)
            stats = dict(stats)
            times = stats.pop("occurrences", None)
            where = number(5, times) if times else number(2, offset)
            out.append(message(4, number(1, ids[key]) + where + number(3, dur) +
                               b"".join(message(4, stat(stat_names, k, v)) for k, v in stats.items())))
        body += message(3, b"".join(out))
    for (event, meta), key in ids.items():
        metadata = number(1, key) + message(2, event)
        metadata += b"".join(message(5, stat(stat_names, k, v)) for k, v in meta)
        body += message(4, number(1, key) + message(2, metadata))
    for stat_name, key in stat_names.items():
        body += message(5, number(1, key) + message(2, number(1, key) + message(2, stat_name.encode())))
    return message(1, body)
