# SPDX-License-Identifier: Apache-2.0
"""Writes small XSpaces, field by field."""


def varint(v):
    out = b""
    v &= (1 << 64) - 1
    while True:
        out += bytes([(v & 0x7F) | (0x80 if v > 0x7F else 0)])
        v >>= 7
        if not v:
            return out


def number(field, v):
    return varint(field << 3) + varint(v)


def text(field, v):
    v = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(v)) + v


def named(field, key, name):
    return text(field, number(1, key) + text(2, number(1, key) + text(2, name)))


def stats(values, names):
    """{"hlo_op": "add", "group": 7} with names {"hlo_op": 1, "group": 2}: XStat messages of text and numbers."""
    return b"".join(text(4, number(1, names[key]) + (number(4, v) if isinstance(v, int) else text(5, v)))
                    for key, v in values.items())


def event(name, start, duration, occurrences=None, stat=b""):
    return text(4, number(1, name) + (number(2, start) if occurrences is None else number(5, occurrences)) +
                number(3, duration) + stat)


def plane(name, names, *lines, stat_names=None):
    """names: of events by id. lines: (name, timestamp_ns, events). stat_names: ids by name."""
    body = text(2, name)
    for line_name, timestamp_ns, events in lines:
        body += text(3, text(2, line_name) + number(3, timestamp_ns) + b"".join(events))
    body += b"".join(named(4, key, v) for key, v in names.items())
    return text(1, body + b"".join(named(5, key, v) for v, key in (stat_names or {}).items()))
