# SPDX-License-Identifier: Apache-2.0
"""tacho convert against readers of its own formats that share no code with it."""
import collections
import json
import os
import pathlib
import subprocess
import sys

import export_readers as readers
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", str(ROOT.parent / "shared")))
GENERATOR = SHARED / "tools/gen_xspace.py"
FORMATS = ("chrome", "perfetto", "pprof", "speedscope", "folded", "csv", "xspace")


def tacho(*args, check=True, **env):
    done = subprocess.run([TACHO, *map(str, args)], capture_output=True, timeout=120, env={**os.environ, **env})
    assert not check or done.returncode == 0, done.stderr
    return done


def export(path, fmt, *args):
    return tacho("convert", path, "-", "--to", fmt, *args).stdout


def files():
    found = sorted((SHARED / "data/xspace").rglob("*.pb")) if SHARED.is_dir() else []
    return [p for p in found if "damaged" not in p.name]


def check_every_format(path):
    data = path.read_bytes()
    truth = readers.truth_slices(data)
    aggregated = sum(len(a) for *_, a in readers.truth_lines(data))
    events = json.loads(tacho("tool", "summary", path, "--json").stdout)["events"]
    assert events == len(truth) > 0

    assert readers.from_first(readers.csv_slices(export(path, "csv"))) == readers.from_first(truth)
    slices, counters, _, _ = readers.chrome(export(path, "chrome"))
    assert len(slices) + len(counters) == events
    if not counters:
        assert readers.from_first(slices) == readers.from_first(truth)

    in_ns = [(p, line, name, start // 1000 * 1000, dur) for p, line, name, start, dur in truth]
    slices, counters, _ = readers.perfetto(export(path, "perfetto"))
    assert len(slices) + len(counters) == events
    if not counters:
        assert readers.from_first(slices) == readers.from_first(in_ns)

    slices, sampled = readers.speedscope(export(path, "speedscope"))
    assert len(slices) + len(sampled) + aggregated == events
    check_stacks(path, data)
    assert export(path, "xspace") == data


def check_stacks(path, data):
    want, is_exact = collections.Counter(), True
    for plane, line, events, aggregated in readers.truth_lines(data):
        own = readers.self_times(events)
        if own is None:
            is_exact = False
            continue
        for name, _, dur in aggregated:
            own[name,] += dur
        for stack, ps in own.items():
            want[plane.replace(";", ":"), line.replace(";", ":"), *(n.replace(";", ":") for n in stack)] += ps
    got = readers.folded(export(path, "folded"))
    if is_exact:  # each value is whole ns: less than one beside the truth, and the sum of each line is exact
        assert sum(abs(got[k] * 1000 - want[k]) >= 1000 * 2 for k in set(got) | set(want)) == 0
        for line in {k[:2] for k in want}:
            mine = sum(v for k, v in got.items() if k[:2] == line)
            true = sum(v for k, v in want.items() if k[:2] == line)
            assert 0 <= true - mine * 1000 < 1000 * sum(1 for x in readers.truth_lines(data))
    types, stacks, default = readers.pprof(export(path, "pprof"))
    assert (types, default) == (["events/count", "time/nanoseconds"], "time")
    assert sum(v[1] for v in stacks.values()) == sum(got.values())
    folded_again = collections.Counter()
    for stack, values in stacks.items():
        plain = tuple("".join(" " if ord(c) < 32 else ":" if c == ";" else c for c in f) for f in stack)
        folded_again[plain] += values[1]
    assert +folded_again == got


@pytest.mark.skipif(not files(), reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("path", files(), ids=lambda p: "/".join(p.parts[-5:]))
def test_every_format_holds_every_event(path):
    check_every_format(path)


# In a process of its own: what this one holds would be counted.
MEASURE = """import json, resource, subprocess, sys
said = json.loads(subprocess.run(sys.argv[1:], check=True, capture_output=True).stdout)
print(json.dumps([said, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))"""


@pytest.mark.skipif(not GENERATOR.exists(), reason="the generator is not there (TACHO_SHARED)")
@pytest.mark.parametrize("kind", ["tpu"])
def test_twenty_megabytes_in_little_memory(kind, tmp_path):
    subprocess.run([sys.executable, GENERATOR, tmp_path / "in", "--kind", kind, "--cores", "4", "--ops-per-step", "400",
                    "--target-mb", "20", "--seed", "7"], check=True, capture_output=True)
    path, = (tmp_path / "in").rglob("*.xplane.pb")
    events = json.loads(tacho("tool", "summary", path, "--json").stdout)["events"]
    total = None
    for fmt in FORMATS[:-1]:
        out = tmp_path / "out"
        words = [sys.executable, "-c", MEASURE, TACHO, "convert", path, out, "--to", fmt, "--json"]
        said, peak_kb = json.loads(subprocess.run(words, check=True, capture_output=True, timeout=300).stdout)
        assert (said["events"], said["left_out"]) == (events, 0)
        assert peak_kb < 96 * 1024 or "asan" in TACHO, fmt
        data = out.read_bytes()
        if fmt == "chrome":
            assert sum(e["ph"] in "XC" for e in json.loads(data)["traceEvents"]) == events
        elif fmt == "csv":
            assert data.count(b"\r\n") == events + 1
        elif fmt == "perfetto":
            slices, counters, _ = readers.perfetto(data)
            assert len(slices) + len(counters) == events
        elif fmt == "speedscope":
            assert sum(e["type"] == "O" for p in json.loads(data)["profiles"] for e in p["events"]) == events
        elif fmt == "pprof":
            total = sum(v[1] for v in readers.pprof(data)[1].values())
            assert sum(v[0] for v in readers.pprof(data)[1].values()) == events
        else:
            assert sum(readers.folded(data).values()) == total


@pytest.mark.skipif(not files(), reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("path", files(), ids=lambda p: "/".join(p.parts[-5:]))
def test_chrome_json_comes_back_the_same(path, tmp_path):
    there = tmp_path / "there.json"
    tacho("convert", path, there)
    slices, *_ = readers.chrome(there.read_bytes())
    again = readers.csv_slices(export(there, "csv"))

    def bare(found):
        return collections.Counter(slice_[2:] for slice_ in readers.from_first(found).elements())
    assert bare(again) == bare(slices)
    back = tmp_path / "back.json.gz"
    tacho("convert", there, back)
    assert bare(readers.chrome(back.read_bytes())[0]) == bare(slices)


# -- without the shared data --

HOST = readers.xspace_plane(b"/host:CPU", {
    b"python": (1_700_000_000_000_000_000, [
        (b"step", 0, 9000), (b"launch", 1000, 2500, {"correlation_id": 5}), (b"inner", 1500, 500),
        (b"send", 5000, 100, {"_pt": 3, "_p": 77}), (b"instant", 6000, 0), (b"after", 9000, 1001)]),
    b"overlapping": (1_700_000_000_000_000_000, [
        (b"a", 0, 3000), (b"b", 2000, 3000), (b"c", 2500, 500), (b"d", 5000, 1000)]),
    b"bad\xffname;x\ny": (1_700_000_000_000_000_001, [(b"semi;colon\n\xc3(", 7, 1993), (b'quo"te,', 2000, 1)]),
    b"totals": (1_700_000_000_000_000_000, [(b"many", 0, 12_345, {"occurrences": 40})]),
})
GPU = readers.xspace_plane(b"/device:GPU:0", {
    b"Stream #7(Compute)": (1_700_000_000_000_000_000, [
        (b"kernel_a", 4000, 2000, {"correlation_id": 5, "ratio": 0.5}), (b"MemcpyHtoD", 7000, 10),
        (b"receive", 7500, 10, {"_ct": 3, "_c": 77})]),
    b"_counters_": (1_700_000_000_000_000_000, [(b"power", 10_000, 0, {"counter_value": 250}),
                                                (b"power", 20_000, 0, {"counter_value": 300.5})]),
})
SAMPLES = readers.xspace_plane(b"/host:CPU", {
    b"thread 1": (0, [(b"leaf", i * 1000, 0, {"weight": w}, {"stack": stack})
                      for i, (stack, w) in enumerate([(b"main;f;leaf", 3), (b"main;leaf", 4), (b"main;f;leaf", 5)])]),
})


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "host-0.xplane.pb"
    path.write_bytes(HOST + GPU)
    return path


def test_small_profile_in_every_format(small):
    truth = readers.truth_slices(small.read_bytes())
    clean = readers.from_first(truth)
    data = export(small, "chrome")
    slices, counters, flows, document = readers.chrome(data)
    assert document["baseTimeNanoseconds"] == 1_700_000_000_000_000_000
    assert collections.Counter(s[3:] for s in slices) == collections.Counter(t[3:] for t in truth if t[2] != "power")
    assert [(name, str(value)) for name, _, value in counters] == [("power", "250"), ("power", "300.5")]
    pairs = collections.defaultdict(set)
    for kind, flow, at in flows:
        pairs[flow].add((kind, at - 1_700_000_000_000_000_000_000))
    assert sorted(map(sorted, pairs.values())) == [[("f", 4000), ("s", 1000)], [("f", 7500), ("s", 5000)]]
    kernel, = (e for e in document["traceEvents"] if e["name"] == "kernel_a")
    assert kernel["cat"] == "kernel" and kernel["args"] == {"correlation_id": 5, "ratio": kernel["args"]["ratio"]}
    many, = (e for e in document["traceEvents"] if e["name"] == "many")
    assert many["args"] == {"num_occurrences": 40}

    slices, counters, flows = readers.perfetto(export(small, "perfetto"))
    assert {line for _, line, name, _, _ in slices if name == "b"} == {"overlapping"}
    assert collections.Counter((n, d) for _, _, n, _, d in slices) == collections.Counter(
        (n, d) for _, _, n, _, d in truth if n != "power")
    assert [(n, v) for n, _, v in counters] == [("power", 250.0), ("power", 300.5)]
    assert len(flows) == 4 and len({f for _, f, _ in flows}) == 2

    slices, _ = readers.speedscope(export(small, "speedscope"))
    assert sum(clean.values()) - 1 == len(slices)  # "many" has no place in time
    assert {line for _, line, *_ in slices} >= {"overlapping", "overlapping (2)"}
    said = tacho("convert", small, "-", "--to", "speedscope").stderr
    assert b"1 events cannot be said in speedscope: left out" in said


def test_self_times_of_a_small_profile(small):
    got = readers.folded(export(small, "folded"))
    host = ("/host:CPU", "python")
    # step: 9000 - 2500 - 100 ps = 6400; in order of stacks: 6, 2 (2000 ps), 0 (500), 0 (100, carried 1000) and so on
    assert sum(v for k, v in got.items() if k[:2] == host) == (9000 + 1001) // 1000
    assert got[*host, "step"] == 6 and got[*host, "step", "launch"] == 2
    assert got["/host:CPU", "totals", "many"] == 12
    assert any(k[1] == "bad\ufffdname:x y" for k in got)
    types, stacks, _ = readers.pprof(export(small, "pprof"))
    assert stacks["/host:CPU", "totals", "many"] == [40, 12]


def test_samples_keep_their_stacks_and_weights(tmp_path):
    path = tmp_path / "s.xplane.pb"
    path.write_bytes(SAMPLES)
    want = {("main", "f", "leaf"): 8, ("main", "leaf"): 4}
    assert readers.folded(export(path, "folded")) == {("/host:CPU", "thread 1", *k): v for k, v in want.items()}
    types, stacks, default = readers.pprof(export(path, "pprof"))
    assert (types, default) == (["samples/count"], "samples")
    assert stacks == {("/host:CPU", "thread 1", *k): [v] for k, v in want.items()}
    _, sampled = readers.speedscope(export(path, "speedscope"))
    assert sampled == [(("main", "f", "leaf"), 3), (("main", "leaf"), 4), (("main", "f", "leaf"), 5)]


def test_window_and_host(small):
    got = readers.csv_slices(export(small, "csv", "--from", "2ns", "--until", "5ns"))
    assert {g[2] for g in got} >= {"step", "launch", "kernel_a", "a", "b", "c"}
    assert not {g[2] for g in got} & {"send", "instant", "after", "MemcpyHtoD", "d"}
    inside = readers.folded(export(small, "folded", "--from", "2ns", "--until", "5ns"))
    assert sum(v for k, v in inside.items() if k[1] == "python") == 3
    assert export(small, "csv", "--host", "host-0") == export(small, "csv")
    assert tacho("convert", small, "-", "--to", "csv", "--host", "other", check=False).returncode == 3


def test_two_hosts_are_told_apart(tmp_path):
    for host in ("a", "b"):
        (tmp_path / f"{host}.xplane.pb").write_bytes(GPU)
    slices, *_ = readers.chrome(export(tmp_path, "chrome"))
    assert {s[0] for s in slices} == {"a /device:GPU:0", "b /device:GPU:0"}
    done = tacho("convert", tmp_path, "-", "--to", "xspace", check=False)
    assert done.returncode == 2 and b"one target" in done.stderr
    assert export(tmp_path, "xspace", "--host", "b") == GPU


def test_files_appear_whole_or_not_at_all(small, tmp_path):
    for name, fmt in {"a.json": "chrome", "a.json.gz": "chrome", "a.pftrace": "perfetto", "a.pprof": "pprof",
                      "a.folded": "folded", "a.speedscope.json": "speedscope", "a.csv": "csv",
                      "a.xplane.pb": "xspace"}.items():
        said = json.loads(tacho("convert", small, tmp_path / name, "--json").stdout)
        assert said["format"] == fmt and said["bytes"] == (tmp_path / name).stat().st_size > 0
    assert (tmp_path / "a.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    before = set(tmp_path.iterdir())
    (tmp_path / "broken.xplane.pb").write_bytes(HOST[:-3])
    for args, status in (((small, tmp_path / "x.unknown"), 2), ((small, tmp_path / "x", "--to", "nothing"), 2),
                         ((tmp_path / "broken.xplane.pb", tmp_path / "x.json"), 4),
                         ((small, tmp_path / "no/such/folder.json"), 3),
                         ((small, tmp_path / "x.json", "--from", "2s", "--until", "1s"), 2)):
        assert tacho("convert", *args, check=False).returncode == status, args
    assert tacho("convert", small, tmp_path / "x.json", check=False, TACHO_TEST_PARSER_CRASH="1").returncode == 4
    assert set(tmp_path.iterdir()) - before == {tmp_path / "broken.xplane.pb"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run([TACHO, "convert", small, "-", "--to", "csv"], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 1


def test_the_same_profile_gives_the_same_bytes(small):
    for fmt in FORMATS:
        assert export(small, fmt) == export(small, fmt)


MEASURE_WITH_OUTPUT = """import json, resource, subprocess, sys
child = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
head = json.dumps([child.returncode, used.ru_utime + used.ru_stime])
sys.stdout.buffer.write(head.encode() + b"\\n" + child.stdout)"""


def measured(cache, *args):
    """(CPU seconds, standard output)."""
    done = subprocess.run([sys.executable, "-c", MEASURE_WITH_OUTPUT, TACHO, *map(str, args)], check=True,
                          stdout=subprocess.PIPE, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    head, _, out = done.stdout.partition(b"\n")
    code, cpu_s = json.loads(head)
    assert code == 0
    return cpu_s, out


def large_json(path, n=120_000):
    path.write_text('{"traceEvents":[' + ",".join(
        '{"ph":"X","pid":1,"tid":%d,"name":"op %d","ts":%d,"dur":%d,"args":{"i":%d}}' % (i % 5, i % 99, i * 3, i % 7, i)
        for i in range(n)) + "]}")
    return path


@pytest.fixture
def large(tmp_path, request):
    """A profile that is worth an index, and where its cache is."""
    if request.param == "json":
        return large_json(tmp_path / "large.json"), tmp_path / "cache"
    if not GENERATOR.is_file():
        pytest.skip("no generator (TACHO_SHARED)")
    subprocess.run([sys.executable, GENERATOR, tmp_path / "made", "--kind", "gpu", "--target-mb", "12"], check=True,
                   stdout=subprocess.DEVNULL)
    return next((tmp_path / "made").rglob("*.xplane.pb")), tmp_path / "cache"


@pytest.mark.parametrize("large", ["gpu", "json"], indirect=True)
def test_the_second_export_reads_the_index(large):
    """The same bytes as without one (a cache that is no folder), and a small window of it for next to nothing."""
    path, cache = large
    window = ("convert", path, "-", "--to", "chrome", "--from", "1ms", "--until", "1100us")
    whole_s, from_decoding = measured("/dev/null", *window)
    assert not list(path.parent.glob("*.tacho"))
    measured(cache, *window)
    made = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in cache.rglob("*") if p.is_file()}
    assert [p.suffix for p in made].count(".tacho") == 1
    again_s, from_index = measured(cache, *window)
    assert from_index == from_decoding
    assert again_s < whole_s / 3
    for fmt in FORMATS:
        args = ("convert", path, "-", "--to", fmt)
        assert measured(cache, *args)[1] == measured("/dev/null", *args)[1], fmt
    assert made == {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in cache.rglob("*") if p.is_file()}


@pytest.mark.parametrize("large", ["gpu", "json"], indirect=True)
def test_an_index_that_is_damaged_in_the_middle_costs_time_only(large):
    """Half of the export is out by then: it goes on where it was, and the index is made anew."""
    path, cache = large
    args = ("convert", path, "-", "--to", "csv")
    _, whole = measured(cache, *args)
    (index,) = cache.rglob("*.tacho")
    good = index.read_bytes()
    for at in (3, 5, 8):
        damaged = bytearray(good)
        damaged[len(good) * at // 10] ^= 0xFF
        index.write_bytes(damaged)
        assert measured(cache, *args)[1] == whole
    kept = index.read_bytes()
    assert kept[:-72] == good[:-72]


def test_an_original_that_changed_is_exported_as_it_is(tmp_path):
    path = large_json(tmp_path / "a.json")
    _, before = measured(tmp_path / "cache", "convert", path, "-", "--to", "csv")
    path.write_text(path.read_text()[:-2] + ',{"ph":"X","pid":1,"tid":1,"name":"late","ts":5000000,"dur":2}]}')
    _, after = measured(tmp_path / "cache", "convert", path, "-", "--to", "csv")
    assert b"late" in after and after.count(b"\n") == before.count(b"\n") + 1
