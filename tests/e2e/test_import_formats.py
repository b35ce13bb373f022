# SPDX-License-Identifier: Apache-2.0
"""Perfetto and pprof: files written here by another hand, and what the importer makes of them."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import zlib

import wire_build as pb
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))


def tool(name, path, *words):
    run = subprocess.run([TACHO, "tool", name, str(path), *words], capture_output=True, text=True, timeout=60)
    return run


def summary(path):
    run = tool("summary", path, "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def events(path):
    """[(process, thread, name, start us, duration us, arguments)] in order of time."""
    run = tool("trace_viewer", path, "--xprof")
    assert run.returncode == 0, run.stderr
    entries = json.loads(run.stdout)["traceEvents"]
    names = {(e.get("pid"), e.get("tid"), e["name"]): e["args"].get("name") for e in entries if e.get("ph") == "M"}
    found = []
    for e in entries:
        if e.get("ph") in ("X", "C", "i"):
            found.append((names.get((e["pid"], None, "process_name")) or names.get((e["pid"], 0, "process_name")),
                          names.get((e["pid"], e["tid"], "thread_name")), e["name"], e["ts"], e.get("dur", 0),
                          e.get("args", {})))
    return sorted(found, key=lambda e: (e[3], -e[4]))


def write(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    return path


WALL, BOOT = 1_700_000_000_000_000_000, 5_000_000_000


def perfetto_trace():
    """Two processes, interned names, an incremental clock, counters, flows, annotations, descriptors at the end."""
    clear = pb.number(13, 1)
    needs = pb.number(13, 2)
    out = pb.packet(pb.clocks((6, BOOT), (1, WALL), (3, BOOT - 1000), (64, 0, 1, 1000)), clear,
                    pb.chunk(59, pb.number(58, 64) + pb.chunk(11, pb.number(11, 100))))
    out += pb.packet(pb.chunk(12, pb.chunk(2, pb.number(1, 7) + pb.chunk(2, "step"))
                              + pb.chunk(1, pb.number(1, 1) + pb.chunk(2, "train"))
                              + pb.chunk(3, pb.number(1, 3) + pb.chunk(2, "shape"))), needs)
    # the clock 64 counts microseconds since the packet before it
    out += pb.packet(pb.at(10), needs, pb.event(pb.BEGIN, None, pb.number(3, 1), pb.chunk(4, pb.number(1, 3) + pb.chunk(
        12, pb.number(4, 2)) + pb.chunk(12, pb.number(4, 3))), pb.fixed64(47, 99), name_iid=7))
    out += pb.packet(pb.at(5), needs, pb.event(pb.BEGIN, name="inner"))
    out += pb.packet(pb.at(20), needs, pb.event(pb.END, None, pb.chunk(4, pb.chunk(10, "loss") + pb.double(5, 0.5))))
    out += pb.packet(pb.at(100), needs, pb.event(pb.END))
    out += pb.packet(pb.at(0), needs, pb.event(pb.COUNTER, 300, pb.number(30, 4)))
    out += pb.packet(pb.at(1), needs, pb.event(pb.COUNTER, 300, pb.number(30, 6)))
    # another sequence, in boot time, of another process; its slices come out of order
    out += pb.packet(pb.at(BOOT + 90_000), pb.event(pb.END, 200), sequence=2)
    out += pb.packet(pb.at(BOOT + 50_000), pb.event(pb.BEGIN, 200, pb.fixed64(48, 99), pb.chunk(22, "io"), name="load"),
                     sequence=2)
    out += pb.packet(pb.at(BOOT - 1000 + 60_000, 3), pb.event(pb.INSTANT, 200, name="tick"), sequence=2)
    out += pb.packet(pb.process(10, 42, "trainer"))
    out += pb.packet(pb.thread(100, 10, 42, 43, "main"))
    out += pb.packet(pb.counter(300, 10, "queue", unit="items", multiplier=2, incremental=1))
    out += pb.packet(pb.process(20, 77, "loader"))
    out += pb.packet(pb.track(200, 20, "async loads"))
    return out


def test_perfetto_tracks_clocks_and_flows(tmp_path):
    path = write(tmp_path, "run.pftrace", perfetto_trace())
    got = summary(path)
    assert got["kind"] == "perfetto"
    assert (got["planes"], got["events"], got["zero_duration_events"]) == (2, 6, 3)
    assert [w for w in got["warnings"] if w["code"] != "no_steps"] == []
    found = {e[2]: e for e in events(path)}
    step, inner, load, tick = found["step"], found["inner"], found["load"], found["tick"]
    assert step[1] == "main" and load[1] == "async loads"
    assert (step[4], inner[4], load[4]) == (125, 20, 40)
    assert inner[3] - step[3] == 5
    assert load[3] - step[3] == 40  # 10 us and 50 us after the snapshot, on two clocks
    assert tick[3] - load[3] == 10
    assert step[5]["category"] == "train" and load[5]["category"] == "io"
    assert [str(step[5][f"shape[{i}]"]) for i in range(2)] == ["2", "3"]
    assert float(inner[5]["loss"]) == 0.5  # an argument of the end


def test_perfetto_counters_and_wall_time(tmp_path):
    path = write(tmp_path, "run.perfetto-trace", perfetto_trace())
    # samples of an incremental counter: each adds to the one before, in units of 2
    assert [float(e[5]["counter_value"]) for e in events(path) if e[2] == "queue (items)"] == [8.0, 20.0]
    assert "_counters_,2" in tool("summary", path, "--csv").stdout
    space = tmp_path / "run.xplane.pb"
    subprocess.run([TACHO, "convert", str(path), str(space)], check=True, timeout=60)
    # the earliest event of the trace in wall time: 10 us after the snapshot
    assert pb.varint(WALL + 10_000) in space.read_bytes()


def test_perfetto_gzip_and_compressed_packets(tmp_path):
    plain = perfetto_trace()
    packed = pb.chunk(1, pb.chunk(50, zlib.compress(plain)))
    want = summary(write(tmp_path, "plain.pftrace", plain))
    packed += pb.packet(pb.number(36, 1))
    for name, data in (("gz.pftrace.gz", gzip.compress(plain)), ("packed.pftrace", packed)):
        got = summary(write(tmp_path, name, data))
        assert {k: got[k] for k in got if k != "hosts"} == {k: want[k] for k in want if k != "hosts"}


def test_perfetto_lost_state_is_counted(tmp_path):
    trace = perfetto_trace()
    lost = pb.packet(pb.number(42, 1)) + pb.packet(pb.at(1), pb.number(13, 2), pb.event(pb.INSTANT, name_iid=7))
    got = summary(write(tmp_path, "lost.pftrace", trace + lost))
    assert got["events"] == 6
    assert any("state that was lost" in w["message"] for w in got["warnings"])


def test_perfetto_with_nothing_but_begins_and_ends(tmp_path):
    begin, end = pb.packet(pb.at(10), pb.event(pb.BEGIN, 1, name="a")), pb.packet(pb.at(15), pb.event(pb.END, 1))
    got = summary(write(tmp_path, "pair.pftrace", begin + end))
    assert (got["events"], got["duration_ns"]) == (1, 5)
    run = tool("summary", write(tmp_path, "open.pftrace", begin), "--json")
    assert run.returncode == 4 and "without track events" in run.stderr + run.stdout


def test_planes_that_went_through_other_formats_stay_devices(tmp_path):
    names = ["/device:GPU:3", "/host:CPU"]
    tracks = b""
    for i, n in enumerate(names):
        tracks += pb.packet(pb.track(i + 1, 0, n)) + pb.packet(pb.track(i + 11, i + 1, f"Stream #{i}"))
        tracks += pb.packet(pb.at(10), pb.event(pb.BEGIN, i + 11, name="a"))
        tracks += pb.packet(pb.at(15), pb.event(pb.END, i + 11))
    slices = [{"ph": "X", "pid": i, "tid": 1, "name": "a", "ts": 1, "dur": 5} for i in range(2)]
    slices += [{"ph": "M", "pid": i, "name": "process_name", "args": {"name": n}} for i, n in enumerate(names)]
    slices += [{"ph": "M", "pid": 0, "tid": 1, "name": "thread_name", "args": {"name": "Stream #0"}}]
    for path in (write(tmp_path, "a.pftrace", tracks), write(tmp_path, "a.json", json.dumps(slices).encode())):
        got = summary(path)
        assert (got["planes"], got["device_planes"], got["host_planes"], got["total_busy_ps"] > 0) == (2, 1, 1, True)


def test_perfetto_scheduling(tmp_path):
    compact = pb.chunk(5, "python") + pb.chunk(5, "swapper")
    compact += pb.chunk(1, pb.varint(1000) + pb.varint(500) + pb.varint(100))
    compact += pb.chunk(3, pb.varint(42) + pb.varint(0) + pb.varint(42)) + pb.chunk(6, b"\0\1\0")
    path = write(tmp_path, "sched.pftrace", pb.packet(pb.chunk(1, pb.number(1, 3) + pb.chunk(4, compact))))
    assert [(e[0].split()[-1], e[1], e[2], e[4]) for e in events(path)] == [("Scheduling", "CPU 3", "python", 0.5)]


def profile():
    functions = {1: "main", 2: "train", 3: "matmul", 4: "inlined"}
    locations = {1: [1], 2: [4, 2], 3: [3], 4: 0x1234}
    samples = [([3, 2, 1], [5, 500], {"thread": "w;0"}), ([3, 2, 1], [2, 200], {}), ([2, 1], [1, 0], {"bytes": 7}),
               ([4], [3, 300], {})]
    return [("samples", "count"), ("cpu", "nanoseconds")], samples, functions, locations


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("compress", [gzip.compress, bytes])
def test_pprof_stacks_and_weights(tmp_path, packed, compress):
    path = write(tmp_path, "cpu.pb.gz", compress(pb.pprof(*profile(), time_ns=WALL, duration_ns=10**9, packed=packed)))
    got = summary(path)
    assert got["kind"] == "pprof"
    assert sorted(got["line_names"]) == ["cpu (nanoseconds)", "samples (count)"]
    assert got["events"] == 7  # a value of 0 is no sample
    found = events(path)
    cpu = sorted((e[2], float(e[5]["weight"])) for e in found if e[1] == "cpu (nanoseconds)")
    assert cpu == [("libx.so+0x1234", 300.0), ("matmul", 200.0), ("matmul", 500.0)]
    assert [e[5]["thread"] for e in found if "thread" in e[5]] == ["w;0", "w;0"]
    assert [str(e[5]["bytes"]) for e in found if "bytes" in e[5]] == ["7"]
    words = [TACHO, "convert", "--to", "folded", str(path), "-"]
    folded = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert sorted(folded.stdout.splitlines()) == sorted([
        "/host:CPU;samples (count);main;train;inlined 1", "/host:CPU;samples (count);main;train;inlined;matmul 7",
        "/host:CPU;samples (count);libx.so+0x1234 3", "/host:CPU;cpu (nanoseconds);main;train;inlined;matmul 700",
        "/host:CPU;cpu (nanoseconds);libx.so+0x1234 300"])


def test_pprof_of_places_that_are_not_there(tmp_path):
    types, samples, functions, locations = profile()
    samples.append(([99, 1], [1, 1], {}))
    del functions[3]
    got = summary(write(tmp_path, "cpu.pprof", pb.pprof(types, samples, functions, locations)))
    assert any("does not name" in w["message"] and w["message"].startswith("3 ") for w in got["warnings"])


def test_an_xspace_that_is_compressed(tmp_path):
    plane = pb.chunk(2, "/host:CPU") + pb.chunk(3, pb.number(1, 1) + pb.chunk(4, pb.number(1, 1) + pb.number(3, 1000)))
    plane += pb.chunk(4, pb.number(1, 1) + pb.chunk(2, pb.number(1, 1) + pb.chunk(2, "work")))
    got = summary(write(tmp_path, "host.pb.gz", gzip.compress(pb.chunk(1, plane))))
    assert (got["kind"], got["events"]) == ("xspace", 1)


@pytest.mark.parametrize("name,data", [("t.pftrace", perfetto_trace()), ("p.pprof", pb.pprof(*profile()))])
def test_cut_at_every_seventh_byte(tmp_path, name, data):
    refused = 0
    for n in range(0, len(data), 7):
        run = tool("summary", write(tmp_path, name, data[:n]), "--json")
        assert run.returncode in (0, 3, 4), (n, run.stderr)
        if run.returncode:
            refused += 1
            assert run.stderr.count("\n") <= 2 and "tacho" in run.stderr
    assert refused > 0


MEASURE = """import json, resource, subprocess, sys
child = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([child.returncode, child.stderr, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime]))"""


def cost(path):
    """(exit status, what it said, peak MB, CPU s) of opening a file, measured by a small process: what it had in
    memory before it became tacho would count as tacho's."""
    run = subprocess.run([sys.executable, "-c", MEASURE, TACHO, "tool", "summary", str(path), "--json"],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def bomb(head, filling, tail=b"", times=400):
    """A gzip of `times` MiB of filling between head and tail."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = filling * ((1 << 20) // len(filling))
    out = [packer.compress(head), *(packer.compress(block) for _ in range(times)), packer.compress(tail)]
    return b"".join(out) + packer.flush()


WHOLE = b'[{"ph":"X","pid":1,"tid":1,"name":"a","ts":1,"dur":2'


@pytest.mark.parametrize("head,filling,tail,status", [
    (WHOLE + b'},{"name":"', b"x", b'"}]', 4),  # one string of 400 MiB
    (WHOLE + b',"args":{', b'"a":[],', b'"b":1}}]', 4),  # one entry of 400 MiB
    (WHOLE + b'}],"other":[', b"[],", b"1]}", 4),  # behind the list, and not JSON
    (b'{"traceEvents":' + WHOLE + b'}],"other":[', b"[],", b"1]}", 0),  # a fact of 400 MiB: passed over
    (WHOLE + b"}", b" ", b"]", 0),
    (WHOLE + b"},", b"[", b"", 4),  # nested without end
    (b"\x0a\x05\x50\x01\x32", b"\0", b"", 4),  # neither format
    (pb.chunk(1, pb.number(8, 1)) + b"\x0a\xff\xff\xff\xff\x07", b"\0", b"", 4),  # a packet of 2 GiB
])
def test_bombs_are_bounded(tmp_path, head, filling, tail, status):
    path = write(tmp_path, "bomb.json.gz", bomb(head, filling, tail))
    code, said, peak_mb, cpu_s = cost(path)
    assert code == status, said
    assert peak_mb < 700 and cpu_s < 60
    assert code == 0 or (said.count("\n") <= 2 and "byte" in said)


def test_lengths_beyond_the_file(tmp_path):
    huge = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    for name, data in (("a.pftrace", pb.packet(pb.at(1)) + b"\x0a" + huge),
                       ("b.pprof", pb.pprof(*profile()) + b"\x32" + huge),
                       ("c.pftrace", pb.packet(pb.at(1), pb.event(pb.INSTANT, name="x")) + pb.packet(b"\x5a" + huge))):
        code, said, peak_mb, _ = cost(write(tmp_path, name, data))
        assert peak_mb < 200
        assert code == (0 if name == "c.pftrace" else 4), said


@pytest.mark.parametrize("ending", [".pftrace", ".json", ".json.gz"])
def test_what_we_export_comes_back(tmp_path, ending):
    path, back = write(tmp_path, "run.pftrace", perfetto_trace()), tmp_path / f"back{ending}"
    subprocess.run([TACHO, "convert", str(path), str(back)], check=True, timeout=60)
    def kept(p):
        return [(e[1], e[2], e[3], e[4]) for e in events(p) if e[1] != "_counters_"]
    assert kept(back) == kept(path)


def test_nothing_is_written_beside_a_foreign_file(tmp_path):
    path = write(tmp_path, "run.pftrace", perfetto_trace())
    before = path.read_bytes()
    summary(path)
    assert [p.name for p in tmp_path.iterdir()] == ["run.pftrace"]
    assert path.read_bytes() == before


def test_a_foreign_file_is_imported_once(tmp_path):
    data = b'{"traceEvents":[' + b",".join(
        b'{"ph":"X","pid":1,"tid":1,"name":"op %d","ts":%d,"dur":2}' % (i % 9, i * 3) for i in range(20000)) + b"]}"
    path, env = write(tmp_path, "big.json", data), {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def ask(name):
        words = [TACHO, "tool", name, str(path), "--json"]
        return subprocess.run(words, capture_output=True, timeout=60, env=env, check=True).stdout
    first = json.loads(ask("summary"))
    assert (first["kind"], first["events"]) == ("chrome", 20000)
    kept = list((tmp_path / "cache").rglob("*.xplane.pb"))
    assert len(kept) == 1 and kept[0].stat().st_mode & 0o077 == 0
    stamp = kept[0].stat()
    hosts = ask("get_hosts")
    assert kept[0].stat().st_ino == stamp.st_ino
    kept[0].write_bytes(b"damaged")  # costs time only
    for answer in (tmp_path / "cache").rglob("*"):
        if answer.is_file() and answer != kept[0]:
            answer.unlink()
    assert ask("get_hosts") == hosts
    path.write_bytes(data[:-2] + b',{"ph":"X","pid":1,"tid":1,"name":"late","ts":90000,"dur":2}]}')
    assert json.loads(ask("summary"))["events"] == 20001
    assert sorted(p.name for p in tmp_path.iterdir()) == ["big.json", "cache"]
